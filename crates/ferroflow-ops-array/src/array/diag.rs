//! Diag, DiagPart, MatrixBandPart.

use super::args::joined;
use super::walk::{Walk, by_width};
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_width, length};

fn diag(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    ensure!(x.rank() >= 1, InvalidArgument, "Input must be at least rank 1, got 0");
    let shape = joined(&[x.shape(), x.shape()]);
    shape.checked_elements()?;
    let mut out = x.zeros_beside(x.dtype(), shape)?;
    let mut walk = Walk::new(0, 0);
    walk.then(x.elements(), 1, x.elements() as isize + 1);
    walk.copy(x, &mut out)?;
    ctx.set(0, out)
}

fn diag_part(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    let half = x.rank() / 2;
    ensure!(
        x.rank().is_multiple_of(2),
        InvalidArgument,
        "The rank of the tensor should be even and positive, got shape {}",
        x.shape()
    );
    for i in 0..half {
        ensure!(
            x.shape()[i] == x.shape()[i + half],
            InvalidArgument,
            "Invalid shape {}: dimensions {i} and {} do not match.",
            x.shape(),
            i + half
        );
    }
    let mut out = x.alloc_beside(x.dtype(), &x.shape()[..half])?;
    let n = out.elements();
    let mut walk = Walk::new(0, 0);
    walk.then(n, n as isize + 1, 1);
    walk.copy(x, &mut out)?;
    ctx.set(0, out)
}

const MOVED: GpuTypes = &[("T", gpu::MOVED)];

const TEXT: &str = r#"
struct Pair { u64 a, b; };
extern "C" __global__ void band(i64 n, i64 rows, i64 cols, i64 lower, i64 upper, const Word *x, Word *y) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 row = i / cols % rows, col = i % cols;
        Word zero = {};
        y[i] = col >= row - lower && col <= row + upper ? x[i] : zero;
    }
}
"#;

fn band_part_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let text = TEXT.replace("Word", c_width(init.dtype("T")?)?);
    let kernel = GpuKernel::new(text, "band").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (rows, cols, lower, upper) = band_sizes(ctx)?;
        let (x, gpu) = (ctx.input(0)?, ctx.gpu()?.clone());
        let out = Tensor::on_device(&gpu, x.dtype(), x.shape().clone())?;
        let n = out.elements();
        let lengths = [n, rows, cols, lower, upper].map(length);
        let addresses = [address(x)?, address(&out)?];
        let args: Vec<LaunchArg> = lengths.into_iter().chain(addresses).collect();
        kernel.over(gpu.as_ref(), n, &args)?;
        ctx.set(0, out)
    }))
}

fn band_part(ctx: &mut Ctx<'_>) -> Result<()> {
    let (rows, cols, lower, upper) = band_sizes(ctx)?;
    let mut out = ctx.take_or_copy(0)?;
    if out.elements() > 0 {
        by_width!(out.dtype(), W => clear_outside(W::of_mut(&mut out)?, rows, cols, lower, upper));
    }
    ctx.set(0, out)
}

/// Rows and columns of the matrices, and how far the band goes below and above the diagonal.
fn band_sizes(ctx: &Ctx<'_>) -> Result<(usize, usize, usize, usize)> {
    let x = ctx.input(0)?;
    ensure!(
        x.rank() >= 2,
        InvalidArgument,
        "input must be at least 2-dim, received shape: {}",
        x.shape()
    );
    let (rows, cols) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
    let band = |i: usize, name: &str, what: &str, limit: usize| -> Result<usize> {
        let t = ctx.input(i)?;
        ensure!(t.rank() == 0, InvalidArgument, "{name} must be scalar, got shape {}", t.shape());
        let n = t.scalar_index()?;
        ensure!(
            n <= limit as i64,
            InvalidArgument,
            "{name} must be negative or less or equal to number of {what} ({limit}) got: {n}"
        );
        Ok(usize::try_from(n).unwrap_or(limit))
    };
    let lower = band(1, "num_lower", "rows", rows)?;
    let upper = band(2, "num_upper", "columns", cols)?;
    Ok((rows, cols, lower, upper))
}

fn clear_outside<W: Movable>(x: &mut [W], rows: usize, cols: usize, lower: usize, upper: usize) {
    for (i, row) in x.chunks_exact_mut(cols).enumerate() {
        let i = i % rows;
        let begin = i.saturating_sub(lower).min(cols);
        let end = (i + upper + 1).min(cols);
        row[..begin].fill(W::default());
        row[end.max(begin)..].fill(W::default());
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Diag")
        .work(work::any)
        .doc("A tensor of twice the rank with its input on the diagonal.")
        .input("diagonal: T")
        .output("output: T")
        .attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
        .shape(|c| {
            let x = c.input(0);
            Ok(vec![super::args::joined_partial(&[x.dims(), x.dims()])])
        })
        .cpu_fn(diag)
        .anywhere();
    c.op("DiagPart")
        .doc("The diagonal of a tensor of even rank.")
        .input("input: T")
        .output("diagonal: T")
        .attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
        .shape(|c| {
            let x = c.input(0);
            let Some(dims) = x.dims() else { return shape::unknown(c) };
            let (a, b) = dims.split_at(dims.len() / 2);
            let half = |dims: &[Option<usize>]| PartialShape::new(dims.iter().copied());
            Ok(vec![half(a).merge(&half(b))?])
        })
        .cpu_fn(diag_part)
        .anywhere();
    c.op("MatrixBandPart")
        .doc("Matrices with everything outside a band around the diagonal set to zero.")
        .input("input: T")
        .input("num_lower: Tindex")
        .input("num_upper: Tindex")
        .output("band: T")
        .attr("T: type")
        .attr("Tindex: {int32, int64} = DT_INT64")
        .shape(shape::same_as_input)
        .gpu(MOVED, band_part_on_device)
        .host_inputs(&["num_lower", "num_upper"])
        .cpu_fn(band_part);
    c.op("BatchMatrixBandPart")
        .doc("An old name of MatrixBandPart.")
        .input("input: T")
        .input("num_lower: int64")
        .input("num_upper: int64")
        .output("band: T")
        .attr("T: type")
        .shape(shape::same_as_input)
        .gpu(MOVED, band_part_on_device)
        .host_inputs(&["num_lower", "num_upper"])
        .cpu_fn(band_part);
    c.gradient("Diag", |_, dy| Ok(vec![dy[0].apply("DiagPart")]));
    c.gradient("DiagPart", |_, dy| Ok(vec![dy[0].apply("Diag")]));
    c.gradient("MatrixBandPart", |g, dy| {
        Ok(g.only(g.call("MatrixBandPart", &[dy[0], g.input(1), g.input(2)])))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    #[test]
    fn a_diagonal_goes_in_and_out() {
        check("Diag").input(t(&[2], &[1.0, 2.0])).gives(t(&[2, 2], &[1.0, 0.0, 0.0, 2.0]));
        check("Diag").input(t(&[0], &[])).gives(t(&[0, 0], &[]));
        let square = t(&[1, 2], &[1.0, 2.0]);
        check("Diag").input(square.clone()).gives(t(&[1, 2, 1, 2], &[1.0, 0.0, 0.0, 2.0]));
        check("DiagPart").input(t(&[1, 2, 1, 2], &[1.0, 0.0, 0.0, 2.0])).gives(square);
        check("DiagPart").input(t(&[2, 2], &[1.0, 2.0, 3.0, 4.0])).gives(t(&[2], &[1.0, 4.0]));
        check("Diag")
            .input(t(&[], &[1.0]))
            .fails(Code::InvalidArgument, "Input must be at least rank 1, got 0");
        check("DiagPart")
            .input(t(&[1, 2], &[1.0, 2.0]))
            .fails(Code::InvalidArgument, "Invalid shape [1,2]: dimensions 0 and 1 do not match.");
        check("DiagPart").input(t(&[1], &[1.0])).fails(Code::InvalidArgument, "got shape [1]");
    }

    fn band(lower: i64, upper: i64) -> Check<'static> {
        let m: Vec<f32> = (1..=12).map(|x| x as f32).collect();
        check("MatrixBandPart")
            .input(t(&[3, 4], &m))
            .input(Tensor::scalar(lower))
            .input(Tensor::scalar(upper))
    }

    #[test]
    fn bands_are_kept() {
        band(1, 0)
            .gives(t(&[3, 4], &[1.0, 0.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0, 0.0, 10.0, 11.0, 0.0]));
        band(-1, 1)
            .gives(t(&[3, 4], &[1.0, 2.0, 0.0, 0.0, 5.0, 6.0, 7.0, 0.0, 9.0, 10.0, 11.0, 12.0]));
        band(4, 0).fails(
            Code::InvalidArgument,
            "num_lower must be negative or less or equal to number of rows (3) got: 4",
        );
        band(0, 5).fails(
            Code::InvalidArgument,
            "num_upper must be negative or less or equal to number of columns (4) got: 5",
        );
        check("BatchMatrixBandPart")
            .input(Tensor::from_slice([2, 2], &[true; 4]).unwrap())
            .input(Tensor::scalar(0i64))
            .input(Tensor::scalar(0i64))
            .gives(Tensor::from_slice([2, 2], &[true, false, false, true]).unwrap());
        check("MatrixBandPart")
            .input(t(&[2], &[1.0, 2.0]))
            .input(Tensor::scalar(0i32))
            .input(Tensor::scalar(0i32))
            .fails(Code::InvalidArgument, "input must be at least 2-dim, received shape: [2]");
    }
}
