//! TopK, NthElement, InTopK: the largest elements of rows.

use super::args::{index_tensor, require_rank, scalar_dim, with_dim, with_partial_dim};
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_type, length};
use ferroflow_op_kit::parallel::for_rows2;
use std::cmp::Ordering;

/// A total order, largest first; NaN comes before everything else.
fn descending<T: Real>(a: &T, b: &T) -> Ordering {
    b.partial_cmp(a).unwrap_or_else(|| b.to_f64().is_nan().cmp(&a.to_f64().is_nan()))
}

/// The positions of the `k` largest elements of a row, in order. Equal elements are ordered by
/// position.
fn largest<T: Real>(row: &[T], k: usize, places: &mut Vec<u32>) {
    places.clear();
    let by_value =
        |a: &u32, b: &u32| descending(&row[*a as usize], &row[*b as usize]).then_with(|| a.cmp(b));
    match k {
        0 => {}
        1 => places.extend((0..row.len() as u32).min_by(by_value)),
        _ => {
            places.extend(0..row.len() as u32);
            if k < row.len() {
                places.select_nth_unstable_by(k - 1, by_value);
                places.truncate(k);
            }
            places.sort_unstable_by(by_value);
        }
    }
}

/// `k`, the columns of the input and the shape of the outputs. `k` is an attribute in version 1 and
/// an input in version 2.
fn checked(ctx: &Ctx<'_>, attr: Option<i64>) -> Result<(usize, usize, Shape)> {
    let k = match attr {
        Some(k) => k,
        None => {
            let k = ctx.input(1)?;
            ensure!(k.rank() == 0, InvalidArgument, "k must be scalar, got shape {}", k.shape());
            k.scalar_index()?
        }
    };
    ensure!(k >= 0, InvalidArgument, "Need k >= 0, got {k}");
    let x = ctx.input(0)?;
    ensure!(x.rank() >= 1, InvalidArgument, "input must be >= 1-D, got shape {}", x.shape());
    let axis = x.rank() - 1;
    let cols = x.shape()[axis];
    ensure!(
        k <= cols as i64,
        InvalidArgument,
        "input must have at least k columns. Had {cols}, needed {k}"
    );
    ensure!(
        cols <= u32::MAX as usize,
        InvalidArgument,
        "input has {cols} columns, more than can be numbered"
    );
    Ok((k as usize, cols, with_dim(x.shape(), axis, k as usize)))
}

/// One block for each row, which finds one element after the other.
const TEXT: &str = r#"
typedef WideOf<T>::type W;
// Whether element `i`, `x`, comes before element `j`, `y`. NaN comes first, then the largest.
__device__ inline bool is_before(W x, i64 i, W y, i64 j) {
    if (j < 0) return true;
    if ((x != x) != (y != y)) return x != x;
    return x > y || (!(y > x) && i < j);
}
extern "C" __global__ void top_k(i64 rows, i64 cols, i64 k, const T *x, T *values, Index *indices) {
    __shared__ i64 best[256];
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *mine = x + row * cols;
        i64 last = -1;
        for (i64 n = 0; n < k; n++) {
            i64 found = -1;
            for (i64 i = threadIdx.x; i < cols; i += blockDim.x) {
                W v = wide(mine[i]);
                bool is_left = last < 0 || is_before(wide(mine[last]), last, v, i);
                if (i == last || !is_left) continue;
                if (is_before(v, i, found < 0 ? v : wide(mine[found]), found)) found = i;
            }
            best[threadIdx.x] = found;
            __syncthreads();
            for (int half = 128; half > 0; half /= 2) {
                if ((int)threadIdx.x < half) {
                    i64 a = best[threadIdx.x], b = best[threadIdx.x + half];
                    if (a < 0 || (b >= 0 && is_before(wide(mine[b]), b, wide(mine[a]), a))) {
                        best[threadIdx.x] = b;
                    }
                }
                __syncthreads();
            }
            last = best[0];
            __syncthreads();
            if (threadIdx.x == 0) {
                values[row * k + n] = mine[last];
                indices[row * k + n] = (Index)last;
            }
        }
    }
}
"#;

fn top_k_on_device(
    init: &KernelInit<'_>,
    attr: Option<i64>,
    index_type: DType,
) -> Result<KernelBox> {
    let (t, index) = (c_type(init.dtype("T")?)?, c_type(index_type)?);
    let text = format!("typedef {t} T;\ntypedef {index} Index;\n{TEXT}");
    let kernel = GpuKernel::new(text, "top_k").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (k, cols, shape) = checked(ctx, attr)?;
        let x = ctx.input(0)?;
        let values = ctx.alloc_on_device(x.dtype(), shape.clone())?;
        let indices = ctx.alloc_on_device(index_type, shape)?;
        if values.elements() > 0 {
            let rows = values.elements() / k;
            let sizes = [length(rows), length(cols), length(k)];
            let tensors = [address(x)?, address(&values)?, address(&indices)?];
            let args: Vec<_> = sizes.into_iter().chain(tensors).collect();
            let grid = [rows.min(1 << 20) as u32, 1, 1];
            kernel.blocks(ctx.gpu()?.as_ref(), grid, [256, 1, 1], &args)?;
        }
        ctx.set(0, values)?;
        ctx.set(1, indices)
    }))
}

const ON_GPU: GpuTypes = gpu::REAL;
const ON_GPU_V2: GpuTypes = &[("T", gpu::REALS), ("index_type", gpu::INDEX)];

/// The kernel.
fn top_k<T: Real>(attr: Option<i64>, index_type: DType) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (k, cols, shape) = checked(ctx, attr)?;
        let x = ctx.input(0)?;
        let mut values = ctx.alloc(x.dtype(), shape.clone())?;
        let mut indices = vec![0i64; shape.elements()];
        let from = x.as_slice::<T>()?;
        let to = values.as_mut_slice::<T>()?;
        for_rows2(to, k, &mut indices, k, cols.saturating_mul(2), |rows, to, at| {
            let mut places = Vec::new();
            let rows = from[rows.start * cols..].chunks_exact(cols);
            for ((row, to), at) in rows.zip(to.chunks_exact_mut(k)).zip(at.chunks_exact_mut(k)) {
                largest(row, k, &mut places);
                for ((to, at), &i) in to.iter_mut().zip(at).zip(&places) {
                    (*to, *at) = (row[i as usize], i as i64);
                }
            }
        });
        ctx.set(0, values)?;
        ctx.set(1, index_tensor(index_type, shape, &indices)?)
    }
}

/// Like TensorFlow's CPU kernel, works along the last dimension only.
fn approx_top_k(init: &KernelInit<'_>) -> Result<KernelBox> {
    ensure!(
        init.int("reduction_dimension")? == -1 && init.bool("is_max_k")?,
        Unimplemented,
        "ApproxTopK finds the largest along the last dimension only (node '{}')",
        init.name()
    );
    let make = per_dtype!([Half f16, BFloat16 bf16, Float f32], init,
        T => top_k::<T>(Some(init.int("k")?), DType::Int32));
    make(init)
}

fn top_k_shape(c: &ShapeCtx<'_>, k: Option<i64>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let Some(rank) = input.rank() else { return shape::unknown(c) };
    ensure!(rank >= 1, InvalidArgument, "Shape must be at least rank 1 but is rank 0");
    let k = k.and_then(|k| usize::try_from(k).ok());
    if let (Some(k), Some(last)) = (k, input.dim(rank - 1)) {
        ensure!(
            last >= k,
            InvalidArgument,
            "input must have last dimension >= k = {k} but is {last}"
        );
    }
    Ok(vec![with_partial_dim(&input, rank - 1, k); c.outputs])
}

fn nth_element<T: Real>(reverse: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (x, n) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(n.rank() == 0, InvalidArgument, "N must be scalar but has rank {}", n.rank());
        let n = n.scalar_index()?;
        ensure!(n >= 0, InvalidArgument, "n must be non-negative but is {n}");
        ensure!(
            x.rank() >= 1,
            InvalidArgument,
            "Input must be at least rank 1 but is rank {}",
            x.rank()
        );
        let cols = x.shape()[x.rank() - 1];
        ensure!(cols as i64 > n, InvalidArgument, "Input must have last dimension > n = {n}");
        let n = if reverse { n as usize } else { cols - 1 - n as usize };
        let mut out = ctx.alloc(x.dtype(), &x.shape()[..x.rank() - 1])?;
        let mut row = Vec::with_capacity(cols);
        for (from, to) in x.as_slice::<T>()?.chunks_exact(cols).zip(out.as_mut_slice::<T>()?) {
            row.clear();
            row.extend_from_slice(from);
            *to = *row.select_nth_unstable_by(n, descending).1;
        }
        ctx.set(0, out)
    }
}

/// The predictions, the targets and `k`, which is an attribute in version 1 and an input in version
/// 2.
fn in_top_k_inputs<'c>(
    ctx: &'c Ctx<'_>,
    attr: Option<i64>,
) -> Result<(&'c Tensor, &'c Tensor, i64)> {
    let (predictions, targets) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(predictions.rank() == 2, InvalidArgument, "predictions must be 2-dimensional");
    ensure!(targets.rank() == 1, InvalidArgument, "targets must be 1-dimensional");
    ensure!(
        predictions.shape()[0] == targets.elements(),
        InvalidArgument,
        "First dimension of predictions {} must match length of targets {}",
        predictions.shape()[0],
        targets.elements()
    );
    let k = match attr {
        Some(k) => k,
        None => {
            let k = ctx.input(2)?;
            ensure!(k.rank() == 0, InvalidArgument, "k must be 0-D, got shape {}", k.shape());
            k.scalar_index()?
        }
    };
    Ok((predictions, targets, k))
}

const IN_TOP_K: &str = r#"
extern "C" __global__ void in_top_k(i64 rows, i64 classes, i64 k, const f32 *x, const Index *targets,
                                    bool *out) {
    for (i64 i = thread_number(); i < rows; i += thread_count()) {
        i64 target = (i64)targets[i], larger = 0;
        bool is_in = 0 <= target && target < classes;
        for (i64 c = 0; is_in && c < classes; c++) {
            f32 score = x[i * classes + c];
            is_in = score - score == 0;
            larger += score > x[i * classes + target];
        }
        out[i] = is_in && larger < k;
    }
}
"#;

fn in_top_k_on_device(init: &KernelInit<'_>, attr: Option<i64>) -> Result<KernelBox> {
    let text = IN_TOP_K.replace("Index", c_type(init.dtype("T")?)?);
    let kernel = GpuKernel::new(text, "in_top_k").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (x, targets, k) = in_top_k_inputs(ctx, attr)?;
        let (gpu, rows) = (ctx.gpu()?.clone(), targets.elements());
        let out = Tensor::on_device(&gpu, DType::Bool, targets.shape().clone())?;
        let numbers = [length(rows), length(x.shape()[1]), LaunchArg::I64(k)];
        let addresses = [address(x)?, address(targets)?, address(&out)?];
        let args: Vec<LaunchArg> = numbers.into_iter().chain(addresses).collect();
        kernel.over(gpu.as_ref(), rows, &args)?;
        ctx.set(0, out)
    }))
}

/// The kernel; `k` is an attribute in version 1 and an input in version 2.
fn in_top_k(attr: Option<i64>) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (predictions, targets, k) = in_top_k_inputs(ctx, attr)?;
        let classes = predictions.shape()[1];
        let rows = predictions.as_slice::<f32>()?;
        let is_in = |(i, target): (usize, i64)| {
            let row = &rows[i * classes..][..classes];
            let Some(&score) = usize::try_from(target).ok().and_then(|t| row.get(t)) else {
                return false;
            };
            // With NaN, no comparison holds.
            row.iter().all(|x| x.is_finite())
                && (row.iter().filter(|x| **x > score).count() as i64) < k
        };
        let found: Vec<bool> = targets.to_indices()?.into_iter().enumerate().map(is_in).collect();
        ctx.set(0, Tensor::vector(&found))
    }
}

fn in_top_k_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (predictions, targets) = (c.input(0), c.input(1));
    require_rank(&predictions, 2)?;
    require_rank(&targets, 1)?;
    let rows = PartialShape::new([predictions.dim(0)]).merge(&targets)?;
    Ok(vec![rows])
}

/// Moves the gradients of the picked elements back to their positions in each row.
fn top_k_gradient<'g>(g: &GradientScope<'g>, dy: Term<'g>) -> Term<'g> {
    let (x, at) = (g.input(0), g.output(1).cast(DType::Int32));
    let last = g.call_with(
        "StridedSlice",
        &[x.shape(), g.ints(&[-1]), g.ints(&[0]), g.ints(&[1])],
        Attrs::new().with("end_mask", 1i64),
    );
    let k = g.call_with(
        "StridedSlice",
        &[at.shape(), g.ints(&[-1]), g.ints(&[0]), g.ints(&[1])],
        Attrs::new().with("end_mask", 1i64),
    );
    let rows = at.reshape(g.concat(&[g.ints(&[-1]), k], 0));
    let count = rows.shape().element(0);
    let first = (g.range(count) * last).expand_dims(1);
    let flat = (rows + first).reshape(g.ints(&[-1, 1]));
    let size = x.size().reshape(g.ints(&[1]));
    let values = dy.reshape(g.ints(&[-1]));
    g.call("ScatterNd", &[flat, values, size]).reshape_like(x)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("TopK")
        .doc("The `k` largest elements of each row, and where they are.")
        .input("input: T")
        .output("values: T")
        .output("indices: int32")
        .attr("k: int >= 0")
        .attr("sorted: bool = true")
        .attr("T: realnumbertype")
        .expensive()
        .shape(|c| top_k_shape(c, Some(c.attrs.int("k")?)))
        .gpu(ON_GPU, |init| top_k_on_device(init, Some(init.int("k")?), DType::Int32))
        .cpu(per_dtype!(REAL, init, T => top_k::<T>(Some(init.int("k")?), DType::Int32)));
    c.op("TopKV2")
        .doc("The `k` largest elements of each row, and where they are.")
        .input("input: T")
        .input("k: Tk")
        .output("values: T")
        .output("indices: index_type")
        .attr("sorted: bool = true")
        .attr("T: realnumbertype")
        .attr("Tk: {int16, int32, int64} = DT_INT32")
        .attr("index_type: {int16, int32, int64} = DT_INT32")
        .expensive()
        .shape(|c| {
            let k = scalar_dim(c, 1)?;
            top_k_shape(c, k.and_then(|k| i64::try_from(k).ok()))
        })
        .gpu(ON_GPU_V2, |init| top_k_on_device(init, None, init.dtype("index_type")?))
        .host_inputs(&["k"])
        .cpu(per_dtype!(REAL, init, T => top_k::<T>(None, init.dtype("index_type")?)));
    c.op("ApproxTopK")
        .doc("The `k` largest elements of each row, and where they are; exact on the CPU.")
        .input("input: T")
        .output("values: T")
        .output("indices: int32")
        .attr("k: int >= 0")
        .attr("reduction_dimension: int = -1")
        .attr("recall_target: float = 0.949999988079071")
        .attr("is_max_k: bool = true")
        .attr("reduction_input_size_override: int = -1")
        .attr("aggregate_to_topk: bool = true")
        .attr("T: {half, bfloat16, float}")
        .expensive()
        .shape(|c| {
            let (input, k) = (c.input(0), usize::try_from(c.attrs.int("k")?).ok());
            let Some(rank) = input.rank() else { return shape::unknown(c) };
            ensure!(rank >= 1, InvalidArgument, "Shape must be at least rank 1 but is rank 0");
            Ok(vec![with_partial_dim(&input, rank - 1, k); c.outputs])
        })
        .cpu(approx_top_k);
    c.op("NthElement")
        .doc("The element of each row that would be number `n` if the row were sorted.")
        .input("input: T")
        .input("n: int32")
        .output("values: T")
        .attr("reverse: bool = false")
        .attr("T: realnumbertype")
        .expensive()
        .shape(|c| {
            let input = c.input(0);
            let dims = input.dims().and_then(|d| d.split_last()).map(|(_, rest)| rest);
            let known = |d: &[Option<usize>]| PartialShape::new(d.iter().copied());
            Ok(vec![dims.map_or(PartialShape::unknown(), known)])
        })
        .cpu(per_dtype!(REAL, init, T => nth_element::<T>(init.bool("reverse")?)));
    for (op, k_is_input) in [("InTopK", false), ("InTopKV2", true)] {
        let declared = c
            .op(op)
            .doc("Whether the target class of each row is among its `k` largest predictions.")
            .input("predictions: float")
            .input("targets: T");
        let declared = if k_is_input { declared.input("k: T") } else { declared.attr("k: int") };
        let k_of = move |init: &KernelInit<'_>| -> Result<Option<i64>> {
            if k_is_input { Ok(None) } else { init.int("k").map(Some) }
        };
        declared
            .output("precision: bool")
            .attr("T: {int32, int64} = DT_INT32")
            .shape(in_top_k_shape)
            .gpu(&[], move |init| in_top_k_on_device(init, k_of(init)?))
            .host_inputs(if k_is_input { &["k"] } else { &[] })
            .cpu(move |init| Ok(KernelBox::new(in_top_k(k_of(init)?))));
    }
    for op in ["TopK", "TopKV2"] {
        c.gradient(op, |g, dy| Ok(g.only(top_k_gradient(g, dy[0]))));
    }
    c.gradient("ApproxTopK", |g, dy| Ok(vec![top_k_gradient(g, dy[0])]));
    c.gradient("NthElement", |g, dy| {
        let (x, y) = (g.input(0), g.output(0).expand_dims(-1));
        let is_it = y.with("Equal", x).cast(dy[0].dtype());
        let count = is_it.sum(g.ints(&[-1]), true);
        Ok(g.only(is_it / count * dy[0].expand_dims(-1)))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn top(x: Tensor, k: i32) -> Check<'static> {
        check("TopKV2").input(x).input(Tensor::scalar(k))
    }

    fn v() -> Tensor {
        Tensor::vector(&[1.0f32, 5.0, 3.0, 5.0, 2.0])
    }

    #[test]
    fn equal_elements_keep_their_order() {
        let want = [Tensor::vector(&[5.0f32, 5.0, 3.0]), Tensor::vector(&[1i32, 3, 2])];
        assert_eq!(top(v(), 3).run().unwrap(), want);
        assert_eq!(check("TopK").input(v()).attr("k", 3i64).run().unwrap(), want);
        assert_eq!(check("ApproxTopK").input(v()).attr("k", 3i64).run().unwrap(), want);
        assert_eq!(top(v(), 1).run().unwrap()[1], Tensor::vector(&[1i32]));
        assert_eq!(top(v(), 5).run().unwrap()[1], Tensor::vector(&[1i32, 3, 2, 4, 0]));
        assert_eq!(top(v(), 0).run().unwrap()[1], Tensor::vector::<i32>(&[]));
        let rows = Tensor::from_slice([2, 2], &[1i64, 2, 4, 3]).unwrap();
        let out = top(rows, 1).attr("index_type", DType::Int64).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([2, 1], &[2i64, 4]).unwrap());
        assert_eq!(out[1], Tensor::from_slice([2, 1], &[1i64, 0]).unwrap());
        assert!(top(Tensor::zeros(DType::Float, [0, 2]).unwrap(), 1).run().is_ok());
        assert!(top(Tensor::zeros(DType::Float, [2, 0]).unwrap(), 0).run().is_ok());
    }

    #[test]
    fn nan_counts_as_largest() {
        let nan = f32::NAN;
        let out = top(Tensor::vector(&[1.0, nan, 3.0, nan, 2.0]), 3).run().unwrap();
        assert_eq!(out[1], Tensor::vector(&[1i32, 3, 2]));
    }

    #[test]
    fn impossible_requests_are_refused() {
        let invalid = Code::InvalidArgument;
        top(v(), 6).fails(invalid, "input must have at least k columns. Had 5, needed 6");
        top(v(), -1).fails(invalid, "Need k >= 0, got -1");
        top(Tensor::scalar(1.0f32), 1).fails(invalid, "input must be >= 1-D, got shape []");
    }

    #[test]
    fn the_nth_counts_from_either_end() {
        let nth = |n: i32| {
            check("NthElement")
                .input(Tensor::from_slice([2, 3], &[3.0f32, 1.0, 2.0, 9.0, 7.0, 8.0]).unwrap())
                .input(Tensor::scalar(n))
        };
        nth(1).gives(Tensor::vector(&[2.0f32, 8.0]));
        nth(0).gives(Tensor::vector(&[1.0f32, 7.0]));
        nth(0).attr("reverse", true).gives(Tensor::vector(&[3.0f32, 9.0]));
        nth(3).fails(Code::InvalidArgument, "Input must have last dimension > n = 3");
        nth(-1).fails(Code::InvalidArgument, "n must be non-negative but is -1");
    }

    #[test]
    fn ties_are_in_and_the_unsayable_is_out() {
        let predictions = || {
            let (nan, inf) = (f32::NAN, f32::INFINITY);
            let p =
                [0.1, 0.3, 0.2, 0.4, 0.1, 0.2, 0.3, 0.3, nan, 1.0, 2.0, 3.0, 1.0, 2.0, inf, 3.0];
            Tensor::from_slice([4, 4], &p).unwrap()
        };
        let v1 = |targets: &[i32], k: i64| {
            check("InTopK").input(predictions()).input(Tensor::vector(targets)).attr("k", k)
        };
        v1(&[1, 2, 1, 0], 2).gives(Tensor::vector(&[true, true, false, false]));
        v1(&[3, 3, 2, 2], 1).gives(Tensor::vector(&[true, true, false, false]));
        v1(&[9, -1, 3, 4], 2).gives(Tensor::vector(&[false; 4]));
        v1(&[1], 2).fails(
            Code::InvalidArgument,
            "First dimension of predictions 4 must match length of targets 1",
        );
        check("InTopKV2")
            .input(predictions())
            .input(Tensor::vector(&[1i64, 2, 1, 0]))
            .input(Tensor::scalar(2i64))
            .gives(Tensor::vector(&[true, true, false, false]));
    }
}
