//! Segments on a GPU: in the order of the CPU, so that results are the same in every run.

use super::segment::{num_segments, segments_of};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_type, length, rows::RowUpdate};

/// How rows are combined on a GPU.
#[derive(Clone, Copy)]
pub(super) struct SegmentText {
    /// The first value of a segment, for type `T` with wide type `W`.
    start: &'static str,
    /// The value of a sorted segment without rows.
    empty: &'static str,
    /// A formula of `x`, the value so far, and `y`, an element.
    join: &'static str,
    is_mean: bool,
}

impl SegmentText {
    pub(super) const SUM: SegmentText =
        SegmentText { start: "W(0)", empty: "W(0)", join: "x + y", is_mean: false };
    pub(super) const MEAN: SegmentText = SegmentText { is_mean: true, ..SegmentText::SUM };
    pub(super) const PROD: SegmentText =
        SegmentText { start: "W(1)", empty: "W(1)", join: "x * y", is_mean: false };
    pub(super) const MAX: SegmentText =
        SegmentText { start: "LOWEST", empty: "W(0)", join: "larger(x, y)", is_mean: false };
    pub(super) const MIN: SegmentText =
        SegmentText { start: "HIGHEST", empty: "W(0)", join: "smaller(x, y)", is_mean: false };
}

pub(super) const SORTED: GpuTypes = gpu::REAL;
pub(super) const UNSORTED: GpuTypes = &[("T", gpu::REALS), ("Tindices", gpu::INDEX)];

const BODY: &str = r#"
typedef WideOf<T>::type W;
// Rows `from[s]` to `from[s + 1]` are those of segment `s`.
extern "C" __global__ void sorted(i64 n, i64 inner, const i64 *from, const T *data, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 s = i / inner, count = from[s + 1] - from[s];
        T value = Narrow<T>::from(count ? (W)START : (W)EMPTY);
        for (i64 j = from[s]; j < from[s + 1]; j++) {
            W x = wide(value), y = wide(data[j * inner + i % inner]);
            value = Narrow<T>::from(JOIN);
        }
        if (MEAN && count) value = Narrow<T>::from(wide(value) / wide(Narrow<T>::from((W)count)));
        out[i] = value;
    }
}
extern "C" __global__ void start(i64 n, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) out[i] = Narrow<T>::from((W)START);
}
"#;

fn text(init: &KernelInit<'_>, how: SegmentText) -> Result<String> {
    let dtype = init.dtype("T")?;
    let [low, high] = gpu::finite_range(dtype);
    Ok(format!(
        "typedef {} T;\n#define LOWEST {low}\n#define HIGHEST {high}\n#define START {}\n\
         #define EMPTY {}\n#define JOIN {}\n#define MEAN {}\n{BODY}",
        c_type(dtype)?,
        how.start,
        how.empty,
        how.join,
        how.is_mean
    ))
}

/// The kernel of ops with sorted ids, which are in host memory: they say how long the result is.
pub(super) fn sorted(init: &KernelInit<'_>, how: SegmentText) -> Result<KernelBox> {
    let kernel = GpuKernel::new(text(init, how)?, "sorted").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let data = ctx.input(0)?;
        let (ids, shape) = segments_of(data, ctx.input(1)?)?;
        let rows = shape[0];
        let out = ctx.alloc_on_device(data.dtype(), shape)?;
        let n = out.elements();
        if n > 0 {
            let begins = |s: usize| ids.partition_point(|&id| id < s as i64) as i64;
            let from: Vec<i64> = (0..=rows).map(begins).collect();
            let from = Tensor::vector(&from).to_device(ctx.gpu()?)?;
            let sizes = [length(n), length(n / rows)];
            let tensors = [address(&from)?, address(data)?, address(&out)?];
            let args: Vec<_> = sizes.into_iter().chain(tensors).collect();
            kernel.over(ctx.gpu()?.as_ref(), n, &args)?;
        }
        ctx.set(0, out)
    }))
}

/// The kernel of ops with unsorted ids. Rows with ids out of range are left out, as on TensorFlow's
/// GPUs.
pub(super) fn unsorted(init: &KernelInit<'_>, how: SegmentText) -> Result<KernelBox> {
    let start = GpuKernel::new(text(init, how)?, "start").prepared(init)?;
    let join = RowUpdate::new(init, init.dtype("T")?, Some(how.join))?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (data, ids) = (ctx.input(0)?, ctx.input(1)?);
        let n = num_segments(ctx, 2)?;
        ensure!(n >= 0, InvalidArgument, "Input num_segments == {n} must not be negative.");
        ensure!(
            data.shape().starts_with(ids.shape()),
            InvalidArgument,
            "data.shape = {} does not start with segment_ids.shape = {}",
            data.shape(),
            ids.shape()
        );
        let rest = &data.shape()[ids.rank()..];
        let dims: Vec<i64> = std::iter::once(n).chain(rest.iter().map(|&d| d as i64)).collect();
        let out = ctx.alloc_on_device(data.dtype(), Shape::from_dims(&dims)?)?;
        let gpu = ctx.gpu()?;
        start.over(gpu.as_ref(), out.elements(), &[length(out.elements()), address(&out)?])?;
        join.run(gpu, &out, ids, &[n as usize], data)?;
        ctx.set(0, out)
    }))
}
