//! CTCLoss: the probability of the labels of a sequence given its class probabilities, summed over
//! all alignments (Graves, "Supervised Sequence Labelling", section 7).

use crate::prelude::*;
use ferroflow_core::Reservation;

/// Logarithm of a sum, from the logarithms of its terms.
pub(super) fn log_add(a: f64, b: f64) -> f64 {
    if a == f64::NEG_INFINITY {
        return b;
    }
    if b == f64::NEG_INFINITY {
        return a;
    }
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    large + (small - large).exp().ln_1p()
}

#[derive(Clone, Copy)]
struct Options {
    collapse_labels: bool,
    merge_repeated: bool,
    ignore_longer: bool,
}

/// Class probabilities over time for one sequence, and its target labels.
struct Sequence {
    /// Time by class.
    probabilities: Vec<f64>,
    classes: usize,
    times: usize,
    /// The labels with blanks around them.
    path: Vec<usize>,
    merge_repeated: bool,
}

impl Sequence {
    fn blank(&self) -> usize {
        self.classes - 1
    }

    fn log(&self, time: usize, step: usize) -> f64 {
        self.probabilities[time * self.classes + self.path[step]].ln()
    }

    /// The steps of the path that are possible at a time, so that all steps before and after fit.
    fn steps(&self, time: usize) -> std::ops::Range<usize> {
        let len = self.path.len();
        let from = len.saturating_sub(2 * (self.times - time));
        from..len.min(2 * (time + 1)).max(from)
    }

    /// Whether a step may be followed by itself.
    fn stays(&self, step: usize) -> bool {
        self.merge_repeated || self.path[step] == self.blank()
    }

    /// Whether the blank between two steps may be skipped.
    fn skips(&self, from: usize, to: usize, whose: usize) -> bool {
        let same = self.merge_repeated && self.path[from] == self.path[to];
        self.path[whose] != self.blank() && !same
    }

    /// Log-probability of having read up to each step at each time; time by step.
    fn forward(&self) -> Vec<f64> {
        let len = self.path.len();
        let mut alpha = vec![f64::NEG_INFINITY; self.times * len];
        for step in 0..len.min(2) {
            alpha[step] = self.log(0, step);
        }
        for time in 1..self.times {
            let (before, now) = alpha.split_at_mut(time * len);
            let before = &before[(time - 1) * len..];
            for step in self.steps(time) {
                let mut sum = f64::NEG_INFINITY;
                if self.stays(step) {
                    sum = before[step];
                }
                if step > 0 {
                    sum = log_add(sum, before[step - 1]);
                }
                if step > 1 && self.skips(step - 2, step, step) {
                    sum = log_add(sum, before[step - 2]);
                }
                now[step] = self.log(time, step) + sum;
            }
        }
        alpha
    }

    /// Log-probability of reading the rest after each step at each time; time by step.
    fn backward(&self) -> Vec<f64> {
        let len = self.path.len();
        let mut beta = vec![f64::NEG_INFINITY; self.times * len];
        let last = (self.times - 1) * len;
        beta[last + len.saturating_sub(2)..last + len].fill(0.0);
        for time in (0..self.times - 1).rev() {
            let (now, after) = beta.split_at_mut((time + 1) * len);
            let now = &mut now[time * len..];
            for step in self.steps(time) {
                let mut sum = now[step];
                if self.stays(step) {
                    sum = log_add(sum, after[step] + self.log(time + 1, step));
                }
                if step + 1 < len {
                    sum = log_add(sum, after[step + 1] + self.log(time + 1, step + 1));
                }
                if step + 2 < len && self.skips(step, step + 2, step) {
                    sum = log_add(sum, after[step + 2] + self.log(time + 1, step + 2));
                }
                now[step] = sum;
            }
        }
        beta
    }

    /// The loss, and its gradient for the activations: time by class.
    fn loss(self) -> (f64, Vec<f64>) {
        let (alpha, beta) = (self.forward(), self.backward());
        let len = self.path.len();
        let first = (0..len).map(|step| alpha[step] + beta[step]);
        let likelihood = first.fold(f64::NEG_INFINITY, log_add);
        if likelihood == f64::NEG_INFINITY {
            return (f64::INFINITY, self.probabilities);
        }
        let mut gradient = self.probabilities.clone();
        for (time, gradient) in gradient.chunks_exact_mut(self.classes).enumerate() {
            let mut sums = vec![f64::NEG_INFINITY; self.classes];
            for (step, &class) in self.path.iter().enumerate() {
                let at = time * len + step;
                sums[class] = log_add(sums[class], alpha[at] + beta[at]);
            }
            for (g, sum) in gradient.iter_mut().zip(sums) {
                *g -= (sum - likelihood).exp();
            }
        }
        (-likelihood, gradient)
    }
}

/// The labels of each sequence, from the parts of a sparse tensor.
fn labels_of(ctx: &Ctx<'_>, batch: usize) -> Result<Vec<Vec<i32>>> {
    let (indices, values) = (ctx.input(1)?, ctx.input(2)?);
    ensure!(
        indices.shape()[0] == values.elements(),
        InvalidArgument,
        "labels_indices and labels_values must contain the same number of rows, but saw shapes: \
         {} vs. {}",
        indices.shape(),
        values.shape()
    );
    ensure!(batch != 0, InvalidArgument, "batch_size must not be 0");
    ensure!(
        indices.shape()[1] == 2,
        InvalidArgument,
        "labels_indices must have two columns, got shape {}",
        indices.shape()
    );
    let rows = indices.as_slice::<i64>()?;
    let longest = rows.chunks_exact(2).map(|r| r[1].saturating_add(1)).fold(0, Ord::max);
    let mut labels = vec![Vec::new(); batch];
    let mut before: Option<[i64; 2]> = None;
    for (i, (row, &value)) in rows.chunks_exact(2).zip(values.as_slice::<i32>()?).enumerate() {
        let at = [row[0], row[1]];
        let shown = format!("indices[{i}] = [{},{}]", at[0], at[1]);
        ensure!(
            (0..batch as i64).contains(&at[0]) && at[1] >= 0,
            InvalidArgument,
            "label SparseTensor is not valid: {shown} is out of bounds: need 0 <= index < \
             [{batch},{longest}]"
        );
        if let Some(before) = before {
            ensure!(
                before != at,
                InvalidArgument,
                "label SparseTensor is not valid: {shown} is repeated"
            );
            ensure!(
                before < at,
                InvalidArgument,
                "label SparseTensor is not valid: {shown} is out of order. Many sparse ops require \
                 sorted indices."
            );
        }
        before = Some(at);
        labels[at[0] as usize].push(value);
    }
    Ok(labels)
}

/// The labels with blanks before, between and after them.
fn path_of(
    labels: &[i32],
    item: usize,
    classes: usize,
    times: i64,
    options: Options,
) -> Result<Vec<usize>> {
    ensure!(!labels.is_empty(), InvalidArgument, "Labels length is zero in batch {item}");
    let joined = || labels.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let (mut path, mut ended) = (vec![classes - 1], false);
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 && options.collapse_labels && label == labels[i - 1] {
            continue;
        }
        if i64::from(label) >= classes as i64 - 1 {
            ended = true;
            continue;
        }
        ensure!(
            !ended,
            InvalidArgument,
            "Saw a non-null label (index >= num_classes - 1) following a null label, batch: {item} \
             num_classes: {classes} labels: {}",
            joined()
        );
        let Ok(label) = usize::try_from(label) else {
            bail!(
                InvalidArgument,
                "All labels must be nonnegative integers, batch: {item} labels: {}",
                joined()
            );
        };
        path.extend([label, classes - 1]);
    }
    ensure!(
        options.ignore_longer || labels.len() as i64 <= times,
        InvalidArgument,
        "Not enough time for target transition sequence (required: {}, available: {times}){item}You \
         can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs",
        labels.len()
    );
    Ok(path)
}

fn ctc_loss<T: Float>(options: Options) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (inputs, lengths) = (ctx.input(0)?, ctx.input(3)?);
        let &[max_time, batch, classes] = inputs.shape().dims() else {
            bail!(InvalidArgument, "inputs is not a 3-Tensor");
        };
        ensure!(lengths.rank() == 1, InvalidArgument, "sequence_length is not a vector");
        ensure!(ctx.input(1)?.rank() == 2, InvalidArgument, "labels_indices is not a matrix");
        ensure!(ctx.input(2)?.rank() == 1, InvalidArgument, "labels_values is not a vector");
        ensure!(
            batch == lengths.elements(),
            InvalidArgument,
            "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {batch}",
            lengths.elements()
        );
        let labels = labels_of(ctx, batch)?;
        let lengths = lengths.to_indices()?;
        for (b, &n) in lengths.iter().enumerate() {
            ensure!(n <= max_time as i64, InvalidArgument, "sequence_length({b}) <= {max_time}");
        }
        for (b, &n) in lengths.iter().enumerate() {
            ensure!(n >= 0, InvalidArgument, "seq_len({b}) < 0");
        }
        ensure!(classes > 0, InvalidArgument, "num_classes must not be 0");
        let mut paths = Vec::with_capacity(batch);
        for (b, labels) in labels.iter().enumerate() {
            paths.push(path_of(labels, b, classes, lengths[b], options)?);
        }
        let x = inputs.as_slice::<T>()?;
        let mut loss = Tensor::zeros(T::DTYPE, [batch])?;
        let mut gradient = Tensor::zeros(T::DTYPE, inputs.shape().clone())?;
        for (b, path) in paths.into_iter().enumerate() {
            let times = lengths[b] as usize;
            if times == 0 || (options.ignore_longer && labels[b].len() > times) {
                continue;
            }
            ctx.step().cancel.check()?;
            // Two numbers for each step or class at each time.
            let each = path.len().saturating_add(classes).saturating_mul(2 * size_of::<f64>());
            let _counted = Reservation::new(times.saturating_mul(each))?;
            let mut probabilities = Vec::with_capacity(times * classes);
            for time in 0..times {
                let row = &x[(time * batch + b) * classes..][..classes];
                let top = row.iter().map(|x| x.to_f64()).fold(f64::NEG_INFINITY, f64::max);
                let from = probabilities.len();
                probabilities.extend(row.iter().map(|x| (x.to_f64() - top).exp()));
                let sum: f64 = probabilities[from..].iter().sum();
                probabilities[from..].iter_mut().for_each(|p| *p /= sum);
            }
            let merge_repeated = options.merge_repeated;
            let sequence = Sequence { probabilities, classes, times, path, merge_repeated };
            let (value, slopes) = sequence.loss();
            loss.as_mut_slice::<T>()?[b] = T::from_f64(value);
            let gradient = gradient.as_mut_slice::<T>()?;
            for (time, slopes) in slopes.chunks_exact(classes).enumerate() {
                let to = &mut gradient[(time * batch + b) * classes..][..classes];
                to.iter_mut().zip(slopes).for_each(|(to, g)| *to = T::from_f64(*g));
            }
        }
        ctx.set(0, loss)?;
        ctx.set(1, gradient)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("CTCLoss")
        .work(work::any)
        .doc("The CTC loss of sequences of class activations, and its gradient.")
        .input("inputs: T")
        .input("labels_indices: int64")
        .input("labels_values: int32")
        .input("sequence_length: int32")
        .output("loss: T")
        .output("gradient: T")
        .attr("preprocess_collapse_repeated: bool = false")
        .attr("ctc_merge_repeated: bool = true")
        .attr("ignore_longer_outputs_than_inputs: bool = false")
        .attr("T: {float, double} = DT_FLOAT")
        .expensive()
        .shape(|c| {
            let inputs = c.input(0).merge(&PartialShape::of_rank(3))?;
            let batch = inputs.dim(1).or(c.input(3).dim(0));
            Ok(vec![PartialShape::new([batch]), inputs])
        })
        .cpu(per_dtype!([Float f32, Double f64], init, T => ctc_loss::<T>(Options {
            collapse_labels: init.bool("preprocess_collapse_repeated")?,
            merge_repeated: init.bool("ctc_merge_repeated")?,
            ignore_longer: init.bool("ignore_longer_outputs_than_inputs")?,
        })));
    // The op computes its gradient together with the loss.
    c.gradient("CTCLoss", |g, dy| Ok(g.only(dy[0].expand_dims(-1) * g.output(1))));
}

#[cfg(test)]
mod tests {
    use crate::testing::check_recorded;

    #[test]
    fn recorded_sequences_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../../tests/data/recorded/ctc.txt"));
    }
}
