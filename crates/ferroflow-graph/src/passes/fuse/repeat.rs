//! Operands that are repeated to fill a larger shape (broadcast).

use ferroflow_core::Shape;

/// Element `i` of the whole is element `i / inner % period` of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    inner: usize,
    period: usize,
}

impl Repeat {
    /// How `shape` is broadcast to `whole`. `None` if it is not, or if that takes more than one
    /// inner and one outer repetition.
    pub(super) fn new(shape: &Shape, whole: &Shape) -> Option<Repeat> {
        let skipped = whole.rank().checked_sub(shape.rank())?;
        // Whether the operand has the dimension. For a dimension of 1 both answers are right.
        let has = |i: usize| i >= skipped && shape[i - skipped] != 1;
        let (mut inner, mut period, mut end) = (1usize, 1usize, whole.rank());
        while end > 0 && (!has(end - 1)) {
            end -= 1;
            inner = inner.checked_mul(whole[end])?;
        }
        while end > 0 && (has(end - 1) || whole[end - 1] == 1) {
            end -= 1;
            if has(end) && shape[end - skipped] != whole[end] {
                return None;
            }
            period = period.checked_mul(whole[end])?;
        }
        (0..end).all(|i| !has(i)).then_some(Repeat { inner, period })
    }

    /// How a vector of channels is repeated over `whole`.
    pub(super) fn channels(bias: &Shape, whole: &Shape, is_nchw: bool) -> Option<Repeat> {
        let axis = if is_nchw { 1 } else { whole.rank().checked_sub(1)? };
        let fits = whole.rank() >= 2 && bias.rank() == 1 && bias[0] == whole[axis];
        fits.then(|| Repeat { inner: whole[axis + 1..].iter().product(), period: bias[0] })
    }

    /// Whether the operand is a single element.
    pub(super) fn is_one(&self) -> bool {
        self.period == 1
    }

    /// Writes the repeated elements from position `first` of the whole.
    pub(super) fn fill<T: Copy>(&self, operand: &[T], first: usize, to: &mut [T]) {
        if to.is_empty() {
            return;
        }
        if self.is_one() {
            return to.fill(operand[0]);
        }
        if self.inner == 1 {
            return self.fill_cycle(&operand[..self.period], first, to);
        }
        let mut index = first / self.inner % self.period;
        let mut left = self.inner - first % self.inner;
        let mut rest = to;
        while !rest.is_empty() {
            let (run, later) = rest.split_at_mut(left.min(rest.len()));
            run.fill(operand[index]);
            index = (index + 1) % self.period;
            left = self.inner;
            rest = later;
        }
    }

    fn fill_cycle<T: Copy>(&self, operand: &[T], first: usize, to: &mut [T]) {
        let n = self.period.min(to.len());
        let at = first % self.period;
        let head = n.min(self.period - at);
        to[..head].copy_from_slice(&operand[at..at + head]);
        to[head..n].copy_from_slice(&operand[..n - head]);
        let mut done = n;
        while done < to.len() {
            // A whole number of periods is written; copy it forward.
            let more = done.min(to.len() - done);
            to.copy_within(..more, done);
            done += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat(shape: &[usize], whole: &[usize]) -> Option<Vec<usize>> {
        let whole = Shape::from(whole);
        let repeat = Repeat::new(&Shape::from(shape), &whole)?;
        let operand: Vec<usize> = (0..shape.iter().product()).collect();
        let n = whole.elements();
        let mut all = vec![usize::MAX; n];
        // Blocks of odd lengths.
        for first in (0..n).step_by(5) {
            let end = (first + 5).min(n);
            repeat.fill(&operand, first, &mut all[first..end]);
        }
        Some(all)
    }

    #[test]
    fn rows_columns_and_middle_dimensions_repeat() {
        assert_eq!(repeat(&[], &[2, 2]), Some(vec![0; 4]));
        assert_eq!(repeat(&[1, 1], &[2, 2]), Some(vec![0; 4]));
        assert_eq!(repeat(&[3], &[2, 3]), Some(vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(repeat(&[2, 1], &[2, 3]), Some(vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(repeat(&[2, 1], &[2, 2, 2]), Some(vec![0, 0, 1, 1, 0, 0, 1, 1]));
        assert_eq!(repeat(&[2, 1, 3], &[2, 1, 3]), Some(vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(repeat(&[3], &[4, 3]).map(|v| v.len()), Some(12));
        assert_eq!(repeat(&[2, 1, 3], &[2, 2, 3]), None);
        assert_eq!(repeat(&[1, 2], &[2]), None);
        assert_eq!(repeat(&[2], &[3]), None);
        assert_eq!(repeat(&[3], &[0, 3]), Some(vec![]));
    }

    #[test]
    fn channels_are_the_last_dimension_or_the_second() {
        let channels = |bias: &[usize], whole: &[usize], is_nchw| {
            Repeat::channels(&Shape::from(bias), &Shape::from(whole), is_nchw)
        };
        assert_eq!(channels(&[3], &[2, 3], false), Some(Repeat { inner: 1, period: 3 }));
        assert_eq!(channels(&[3], &[2, 3, 4, 5], true), Some(Repeat { inner: 20, period: 3 }));
        assert_eq!(channels(&[4], &[2, 3], false), None);
        assert_eq!(channels(&[3], &[3], false), None);
        assert_eq!(channels(&[1, 3], &[2, 3], false), None);
    }
}
