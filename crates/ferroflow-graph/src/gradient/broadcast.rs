//! Gradients of operands that were broadcast: sums over the repeated axes.

use super::scope::GradientScope;
use super::term::Term;
use ferroflow_core::PartialShape;

impl<'g> GradientScope<'g> {
    /// The gradients of inputs 0 and 1, which were broadcast against each other. `dx` and `dy` are
    /// the gradients as if both had the shape of the result.
    pub fn unbroadcast(&self, dx: Term<'g>, dy: Term<'g>) -> Vec<Term<'g>> {
        let (x, y) = (self.input(0), self.input(1));
        self.unbroadcast_to(&[(dx, x), (dy, y)])
    }

    /// [`GradientScope::unbroadcast`] for any two operands.
    pub fn unbroadcast_to(&self, parts: &[(Term<'g>, Term<'g>); 2]) -> Vec<Term<'g>> {
        let [(_, x), (_, y)] = *parts;
        let (sx, sy) = (x.static_shape(), y.static_shape());
        if let (Some(a), Some(b)) = (sx.known(), sy.known())
            && a == b
        {
            return parts.iter().map(|p| p.0).collect();
        }
        let axes = [repeated_axes(&sx, &sy), repeated_axes(&sy, &sx)];
        // Computed once per step if one of the two shapes is unknown.
        let mut dynamic: Option<Vec<Term<'g>>> = None;
        let mut out = Vec::with_capacity(2);
        for (i, (d, operand)) in parts.iter().enumerate() {
            out.push(match &axes[i] {
                _ if d.is_none() => *d,
                Some(axes) if axes.is_empty() => *d,
                Some(axes) => self.summed_to(*d, axes, *operand, [&sx, &sy]),
                None => {
                    let found = dynamic.get_or_insert_with(|| {
                        self.calls("BroadcastGradientArgs", &[x.shape(), y.shape()])
                    });
                    let axes = found.get(i).copied().unwrap_or(self.none());
                    d.sum(axes, false).reshape(operand.shape())
                }
            });
        }
        out
    }

    /// Sums `d` over `axes` to the shape of `operand`, which is known.
    fn summed_to(
        &self,
        d: Term<'g>,
        axes: &[i64],
        operand: Term<'g>,
        shapes: [&PartialShape; 2],
    ) -> Term<'g> {
        let rank = shapes.iter().filter_map(|s| s.rank()).max().unwrap_or(0);
        let missing = rank - operand.rank().unwrap_or(rank).min(rank);
        let leading = (0..missing as i64).collect::<Vec<_>>();
        match axes {
            // All summed axes have length 1 in the operand.
            _ if missing == 0 => d.sum(self.ints(axes), true),
            axes if axes == leading => d.sum(self.ints(axes), false),
            _ => d.sum(self.ints(axes), false).reshape(operand.shape()),
        }
    }

    /// Sums `d`, which has the shape of `whole`, to the shape of `part`, which was broadcast to it.
    pub fn unbroadcast_one(&self, d: Term<'g>, part: Term<'g>, whole: Term<'g>) -> Term<'g> {
        self.unbroadcast_to(&[(d, part), (self.none(), whole)])[0]
    }
}

/// The axes of the broadcast result over which a tensor of shape `x` was repeated. They are known
/// if all dimensions of `x` and the rank of `y` are.
fn repeated_axes(x: &PartialShape, y: &PartialShape) -> Option<Vec<i64>> {
    let (x, y) = (x.known()?, y.dims()?);
    let rank = x.rank().max(y.len());
    let mut axes = Vec::new();
    for axis in 0..rank {
        let of_x = (axis + x.rank()).checked_sub(rank).map(|i| x.dims()[i]);
        let of_y = (axis + y.len()).checked_sub(rank).map_or(Some(1), |i| y[i]);
        match of_x {
            None => axes.push(axis as i64),
            Some(1) if of_y != Some(1) => axes.push(axis as i64),
            _ => {}
        }
    }
    Some(axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_axes_follow_from_known_shapes() {
        let s = |dims: &[i64]| PartialShape::from_i64s(dims).unwrap();
        assert_eq!(repeated_axes(&s(&[3]), &s(&[-1, 3])), Some(vec![0]));
        assert_eq!(repeated_axes(&s(&[2, 1]), &s(&[-1, -1])), Some(vec![1]));
        assert_eq!(repeated_axes(&s(&[2, 1]), &s(&[2, 1])), Some(vec![]));
        assert_eq!(repeated_axes(&s(&[-1, 3]), &s(&[3])), None);
        assert_eq!(repeated_axes(&s(&[3]), &PartialShape::unknown()), None);
        assert_eq!(repeated_axes(&s(&[]), &s(&[4, 5])), Some(vec![0, 1]));
    }
}
