//! SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, L2Loss.

use super::softmax::{Exp, NARROW, device, exponentials, narrow_exponentials, scaled, sum};
use crate::prelude::*;
use ferroflow_core::RealElement;
use ferroflow_op_kit::gpu::{self, reduce::FoldKernels};
use ferroflow_op_kit::multiversion;
use ferroflow_op_kit::parallel::for_rows2;
use ferroflow_ops_math::math::fast::Fast;

multiversion! {
    /// `out = exps * scale - wanted`.
    fn difference[T: Float<Wide = W>, W: Exp]<T, W>(
        exps: &[W], scale: W, wanted: &[W], out: &mut [T]
    ) {
        for ((out, &e), &want) in out.iter_mut().zip(exps).zip(wanted) {
            *out = T::narrow(e.mul(scale).sub(want));
        }
    }
}

multiversion! {
    /// The contribution of each class to the loss, in place of its logit.
    fn losses[W: Exp]<W>(logits: &mut [W], top: W, log: W, wanted: &[W]) {
        for (x, &want) in logits.iter_mut().zip(wanted) {
            *x = want.mul(log.sub(x.sub(top)));
        }
    }
}

/// How a 2-D operand is read when it broadcasts.
#[derive(Clone, Copy)]
struct Strides {
    row: usize,
    col: usize,
}

fn broadcast_strides(shape: &Shape, rows: usize, cols: usize) -> Strides {
    let at = |i: usize| (i + shape.rank()).checked_sub(2).map_or(1, |i| shape[i]);
    let (own_rows, own_cols) = (at(0), at(1));
    let row = if own_rows == rows && rows != 1 { own_cols } else { 0 };
    Strides { row, col: usize::from(own_cols == cols && cols != 1) }
}

/// The matrix that logits and labels are broadcast to.
pub(super) fn logits_shape(logits: &Tensor, labels: &Tensor) -> Result<Shape> {
    let broadcast = shape::broadcast_shapes(&logits.shape().into(), &labels.shape().into());
    let Some(shape) = broadcast.ok().and_then(|s| s.known()) else {
        bail!(
            InvalidArgument,
            "logits and labels must be broadcastable: logits_size={} labels_size={}",
            logits.shape(),
            labels.shape()
        );
    };
    ensure!(
        shape.rank() == 2,
        InvalidArgument,
        "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional"
    );
    Ok(shape)
}

fn softmax_cross_entropy<T: Float>(ctx: &mut Ctx<'_>) -> Result<()>
where
    T::Wide: Exp,
{
    let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
    let shape = logits_shape(logits, labels)?;
    let (rows, cols) = (shape[0], shape[1]);
    let by_logits = broadcast_strides(logits.shape(), rows, cols);
    let by_labels = broadcast_strides(labels.shape(), rows, cols);
    let mut loss = Tensor::zeros(T::DTYPE, [rows])?;
    let mut backprop = ctx.alloc(T::DTYPE, shape)?;
    let (x, y) = (logits.as_slice::<T>()?, labels.as_slice::<T>()?);
    if cols > 0 {
        let (loss, backprop) = (loss.as_mut_slice::<T>()?, backprop.as_mut_slice::<T>()?);
        for_rows2(backprop, cols, loss, 1, cols * 2, |range, backprop, loss| {
            let zeros = || vec![<T::Wide as Num>::ZERO; cols];
            let (mut moved, mut exps, mut wanted) = (zeros(), zeros(), zeros());
            for ((i, back), loss) in range.zip(backprop.chunks_exact_mut(cols)).zip(loss) {
                for j in 0..cols {
                    moved[j] = x[i * by_logits.row + j * by_logits.col].wide();
                    wanted[j] = y[i * by_labels.row + j * by_labels.col].wide();
                }
                let (top, total) = exponentials(&moved, &mut exps);
                let scale = <T::Wide as Num>::ONE.div(total);
                difference::<T, T::Wide>(&exps, scale, &wanted, back);
                losses::<T::Wide>(&mut moved, top, total.fast_ln(), &wanted);
                *loss = T::narrow(sum(&moved));
            }
        });
    }
    ctx.set(0, loss)?;
    ctx.set(1, backprop)
}

fn sparse_softmax_cross_entropy<T: Float>(ctx: &mut Ctx<'_>) -> Result<()>
where
    T::Wide: Exp,
{
    let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        logits.rank() == 2,
        InvalidArgument,
        "logits must be 2-D, but got shape {}",
        logits.shape()
    );
    ensure!(
        labels.rank() == 1,
        InvalidArgument,
        "labels must be 1-D, but got shape {}",
        labels.shape()
    );
    let (rows, cols) = (logits.shape()[0], logits.shape()[1]);
    ensure!(
        rows == labels.elements(),
        InvalidArgument,
        "logits and labels must have the same first dimension, got logits shape {} and labels \
         shape {}",
        logits.shape(),
        labels.shape()
    );
    ensure!(
        cols > 0,
        InvalidArgument,
        "Must have at least one class, but got logits shape {}",
        logits.shape()
    );
    let labels = labels.to_indices()?;
    check_labels(&labels, cols)?;
    let mut loss = ctx.alloc(T::DTYPE, [rows])?;
    let mut backprop = ctx.alloc(T::DTYPE, logits.shape().clone())?;
    let x = logits.as_slice::<T>()?;
    let (out_loss, out) = (loss.as_mut_slice::<T>()?, backprop.as_mut_slice::<T>()?);
    for_rows2(out, cols, out_loss, 1, cols * 2, |range, backprop, loss| {
        if cols < NARROW {
            let x = &x[range.start * cols..range.end * cols];
            return narrow_losses(x, &labels[range], cols, backprop, loss);
        }
        let mut exps = vec![<T::Wide as Num>::ZERO; cols];
        for ((i, back), loss) in range.zip(backprop.chunks_exact_mut(cols)).zip(loss) {
            let x = &x[i * cols..(i + 1) * cols];
            let label = labels[i] as usize;
            let (top, total) = exponentials(x, &mut exps);
            let scale = <T::Wide as Num>::ONE.div(total);
            scaled::<T, T::Wide>(&exps, scale, back);
            back[label] = T::narrow(exps[label].mul(scale).sub(<T::Wide as Num>::ONE));
            *loss = T::narrow(total.fast_ln().sub(x[label].wide().sub(top)));
        }
    });
    ctx.set(0, loss)?;
    ctx.set(1, backprop)
}

/// Losses and gradients of rows of a few classes.
fn narrow_losses<T: Float>(
    x: &[T],
    labels: &[i64],
    classes: usize,
    backprop: &mut [T],
    losses: &mut [T],
) where
    T::Wide: Exp,
{
    const ROWS: usize = 32;
    let (mut tops, mut exps) =
        ([<T::Wide as Num>::ZERO; ROWS], vec![<T::Wide as Num>::ZERO; ROWS * classes]);
    let blocks = x.chunks(ROWS * classes).zip(backprop.chunks_mut(ROWS * classes));
    for ((x, back), (labels, losses)) in
        blocks.zip(labels.chunks(ROWS).zip(losses.chunks_mut(ROWS)))
    {
        let exps = &mut exps[..x.len()];
        narrow_exponentials(x, classes, &mut tops, exps);
        let rows = x.chunks(classes).zip(exps.chunks(classes)).zip(back.chunks_mut(classes));
        let answers = labels.iter().zip(losses).zip(&tops);
        for (((x, exps), back), ((&label, loss), &top)) in rows.zip(answers) {
            let total = exps.iter().fold(<T::Wide as Num>::ZERO, |sum, &e| sum.add(e));
            let scale = <T::Wide as Num>::ONE.div(total);
            for (back, e) in back.iter_mut().zip(exps) {
                *back = T::narrow(e.mul(scale));
            }
            let label = label as usize;
            back[label] = T::narrow(exps[label].mul(scale).sub(<T::Wide as Num>::ONE));
            *loss = T::narrow(total.fast_ln().sub(x[label].wide().sub(top)));
        }
    }
}

fn check_labels(labels: &[i64], classes: usize) -> Result<()> {
    let (Some(&low), Some(&high)) = (labels.iter().min(), labels.iter().max()) else {
        return Ok(());
    };
    if low >= 0 && high < classes as i64 {
        return Ok(());
    }
    let bad = if low < 0 { low } else { high };
    let listed: Vec<String> = labels.iter().map(|l| l.to_string()).collect();
    bail!(
        InvalidArgument,
        "Received a label value of {bad} which is outside the valid range of [0, {classes}).  \
         Label values: {}",
        listed.join(" ")
    )
}

/// Half the sum of squares.
fn l2_loss<T: Float>(ctx: &mut Ctx<'_>) -> Result<()>
where
    T::Wide: Exp,
{
    let x = ctx.input(0)?.as_slice::<T>()?;
    // Blocks of blocks, so that rounding errors stay small.
    let half = T::Wide::from_f64(0.5);
    let mut blocks = Vec::with_capacity(x.len().div_ceil(1024));
    for x in x.chunks(1024) {
        let mut squares = [<T::Wide as Num>::ZERO; 1024];
        for (square, x) in squares.iter_mut().zip(x) {
            *square = x.wide().mul(x.wide());
        }
        blocks.push(sum(&squares[..x.len()]));
    }
    ctx.set(0, Tensor::scalar(T::narrow(sum(&blocks).mul(half))))
}

/// [`l2_loss`] on a GPU.
fn l2_loss_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    let fold = GpuFold { lift: "x * x", finish: "a * Acc(0.5)", ..GpuFold::SUM };
    let kernels = FoldKernels::new(init, dtype, dtype, fold)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let out = kernels.run(ctx, x, &vec![true; x.rank()], dtype, Shape::scalar())?;
        ctx.set(0, out)
    }))
}

fn losses_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let shape = shape::broadcast_shapes(&c.input(0), &c.input(1))?;
    Ok(vec![PartialShape::new([shape.dim(0)]), shape.merge(&PartialShape::of_rank(2))?])
}

fn sparse_losses_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let logits = c.input(0).merge(&PartialShape::of_rank(2))?;
    let labels = c.input(1).merge(&PartialShape::of_rank(1))?;
    let rows = PartialShape::new([logits.dim(0)]).merge(&labels)?;
    Ok(vec![rows.clone(), PartialShape::new([rows.dim(0), logits.dim(1)])])
}

/// The forward op outputs the gradient of its loss; its own gradient is needed for second
/// derivatives.
fn logits_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Term<'g> {
    let first = dy[0].expand_dims(-1) * g.output(1);
    if dy[1].is_zero() {
        return first;
    }
    let softmax = g.input(0).apply("Softmax");
    let mean = (dy[1] * softmax).sum(g.ints(&[-1]), true);
    first + (dy[1] - mean) * softmax
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SoftmaxCrossEntropyWithLogits")
        .doc("Cross entropy of the softmax of logits and label distributions, with its gradient.")
        .input("features: T")
        .input("labels: T")
        .output("loss: T")
        .output("backprop: T")
        .attr("T: {half, bfloat16, float, double}")
        .shape(losses_shape)
        .gpu(gpu::FLOAT, device::cross_entropy)
        .cpu(per_dtype!(FLOAT, T => softmax_cross_entropy::<T>));
    c.op("SparseSoftmaxCrossEntropyWithLogits")
        .doc("Cross entropy of the softmax of logits and class labels, with its gradient.")
        .input("features: T")
        .input("labels: Tlabels")
        .output("loss: T")
        .output("backprop: T")
        .attr("T: {half, bfloat16, float, double}")
        .attr("Tlabels: {int32, int64} = DT_INT64")
        .shape(sparse_losses_shape)
        .gpu(device::SPARSE, device::sparse_cross_entropy)
        .cpu(per_dtype!(FLOAT, T => sparse_softmax_cross_entropy::<T>));
    c.op("L2Loss")
        .doc("Half the sum of squares.")
        .input("t: T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double}")
        .shape(shape::scalar)
        .gpu(gpu::FLOAT, l2_loss_on_device)
        .cpu(per_dtype!(FLOAT, T => l2_loss::<T>));
    c.gradient("SoftmaxCrossEntropyWithLogits", |g, dy| {
        let labels = -g.input(0).apply("LogSoftmax");
        Ok(vec![logits_gradient(g, dy), dy[0].expand_dims(-1) * labels])
    });
    c.gradient("SparseSoftmaxCrossEntropyWithLogits", |g, dy| {
        Ok(vec![logits_gradient(g, dy), g.none()])
    });
    c.gradient("L2Loss", |g, dy| Ok(vec![g.input(0) * dy[0]]));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_testing::assert_close;

    fn mat(rows: usize, cols: usize, values: &[f32]) -> Tensor {
        Tensor::from_slice([rows, cols], values).unwrap()
    }

    fn expect(got: Vec<Tensor>, want: [Tensor; 2]) {
        for (got, want) in got.iter().zip(&want) {
            assert_close(got, want, 1e-5, 1e-6);
        }
    }

    #[test]
    fn labels_are_distributions() {
        let logits = mat(2, 3, &[1.0, 2.0, 3.0, 1.0, 1.0, 1.0]);
        let op = || check("SoftmaxCrossEntropyWithLogits").input(logits.clone());
        let third = 1.0 / 3.0;
        expect(
            op().input(mat(2, 3, &[0.0, 0.0, 1.0, 0.5, 0.5, 0.0])).run().unwrap(),
            [
                Tensor::vector(&[0.407606f32, 1.0986123]),
                mat(2, 3, &[0.09003057, 0.24472848, -0.33475906, -0.1666667, -0.1666667, third]),
            ],
        );
        expect(
            op().input(Tensor::vector(&[0f32, 0.0, 1.0])).run().unwrap(),
            [
                Tensor::vector(&[0.407606f32, 1.0986123]),
                mat(2, 3, &[0.09003057, 0.24472848, -0.33475906, third, third, -2.0 * third]),
            ],
        );
        let text = "logits and labels must be broadcastable: logits_size=[2,3] labels_size=[2,4]";
        op().input(mat(2, 4, &[0.0; 8])).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn labels_are_classes() {
        let logits = mat(2, 3, &[1.0, 2.0, 3.0, 1.0, 1.0, 1.0]);
        let op = || check("SparseSoftmaxCrossEntropyWithLogits").input(logits.clone());
        expect(
            op().input(Tensor::vector(&[0i32, 2])).run().unwrap(),
            [
                Tensor::vector(&[2.407606f32, 1.0986123]),
                mat(
                    2,
                    3,
                    &[-0.9099695, 0.24472848, 0.66524094, 0.33333334, 0.33333334, -0.6666666],
                ),
            ],
        );
        let text = "Received a label value of 3 which is outside the valid range of [0, 3).  Label \
                    values: 0 3";
        op().input(Tensor::vector(&[0i64, 3])).fails(Code::InvalidArgument, text);
        let text = "logits and labels must have the same first dimension, got logits shape [2,3] \
                    and labels shape [1]";
        op().input(Tensor::vector(&[0i64])).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn empty_batches_are_fine() {
        let none = || Tensor::zeros(DType::Float, [0, 3]).unwrap();
        let got = check("SoftmaxCrossEntropyWithLogits").input(none()).input(none()).run().unwrap();
        expect(got, [Tensor::zeros(DType::Float, [0]).unwrap(), none()]);
        let no_class = || Tensor::zeros(DType::Float, [2, 0]).unwrap();
        let op = check("SoftmaxCrossEntropyWithLogits").input(no_class()).input(no_class());
        expect(op.run().unwrap(), [Tensor::vector(&[0f32, 0.0]), no_class()]);
    }

    #[test]
    fn squares_are_halved() {
        check("L2Loss").input(mat(2, 2, &[1.0, 2.0, 3.0, 4.0])).gives(Tensor::scalar(15f32));
        let h = Tensor::vector(&[f16::from_f32(300.0); 2]);
        check("L2Loss").input(h).gives(Tensor::scalar(f16::INFINITY));
    }

    #[test]
    fn gradients_are_slopes() {
        let x = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        check("L2Loss").input(x.clone()).gradient();
        let labels = Tensor::vector(&[2i32, 0]);
        check("SparseSoftmaxCrossEntropyWithLogits").input(x).input(labels).gradient();
    }
}
