//! ScatterNd and the TensorScatter ops: write slices to a tensor or combine them with it.

use super::args::to_shape;
use super::gather_nd::slice_numbers;
use super::walk::by_width;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::gpu::{self, GpuTypes, rows::RowUpdate};
use ferroflow_op_kit::newer_attrs::BAD_INDICES_POLICY;

/// The slices of a tensor that the updates change.
pub(crate) struct Targets {
    /// The slice number of each update.
    numbers: Vec<i64>,
    /// The number of elements in a slice.
    len: usize,
}

/// Checks that `indices` and `updates` fit a tensor of `shape`, and each other. Returns the number
/// of indices that name a slice.
fn checked_depth(indices: &Tensor, updates: &Tensor, shape: &Shape) -> Result<usize> {
    let (i, u) = (indices.shape(), updates.shape());
    for (name, s) in [("Indices", i), ("Updates", u)] {
        ensure!(
            s.rank() >= 1,
            InvalidArgument,
            "{name} shape must have rank at least one. Found:{s}"
        );
    }
    let outer = i.rank() - 1;
    let depth = i[outer];
    ensure!(
        indices.elements() > 0 || updates.elements() == 0,
        InvalidArgument,
        "Indices and updates specified for empty output shape"
    );
    ensure!(
        !shape.contains(&0) || (indices.elements() == 0 && updates.elements() == 0),
        InvalidArgument,
        "Indices and updates specified for empty output.  indices shape: {i}"
    );
    ensure!(
        u.rank() >= outer && i[..outer] == u[..outer],
        InvalidArgument,
        "Dimensions [0,{outer}) of indices[shape={i}] must match dimensions [0,{outer}) of \
         updates[shape={u}]"
    );
    ensure!(
        depth <= shape.rank() && shape[depth..] == u[outer..],
        InvalidArgument,
        "Dimensions [{depth},{}) of input[shape={shape}] must match dimensions [{outer},{}) of \
         updates[shape={u}]",
        shape.rank(),
        u.rank()
    );
    Ok(depth)
}

/// The slices of a tensor of `shape` that `updates` change.
pub(crate) fn targets(indices: &Tensor, updates: &Tensor, shape: &Shape) -> Result<Targets> {
    let depth = checked_depth(indices, updates, shape)?;
    let numbers = slice_numbers(indices, &shape[..depth], |at, index| {
        err!(InvalidArgument, "indices{at} = {index} does not index into shape {shape}")
    })?;
    Ok(Targets { numbers, len: shape[depth..].iter().product() })
}

impl Targets {
    /// Writes the slices of `updates` to their positions. Of duplicates, the last one wins.
    pub(crate) fn assign(&self, out: &mut Tensor, updates: &Tensor) -> Result<()> {
        by_width!(out.dtype(), W => {
            self.each(W::of_mut(out)?, W::of(updates)?, |to, from| to.clone_from_slice(from));
            Ok(())
        })
    }

    /// Combines the slices of `updates` with the present values.
    pub(crate) fn combine<T: Element>(
        &self,
        out: &mut Tensor,
        updates: &Tensor,
        f: impl Fn(T, T) -> T,
    ) -> Result<()> {
        self.each(out.as_mut_slice::<T>()?, updates.as_slice::<T>()?, |to, from| {
            to.iter_mut().zip(from).for_each(|(a, b)| *a = f(*a, *b))
        });
        Ok(())
    }

    fn each<T>(&self, out: &mut [T], updates: &[T], mut f: impl FnMut(&mut [T], &[T])) {
        if self.len == 0 {
            return;
        }
        for (&n, from) in self.numbers.iter().zip(updates.chunks_exact(self.len)) {
            f(&mut out[n as usize * self.len..][..self.len], from);
        }
    }
}

/// Adds `updates` to `out`. Strings are appended; booleans are combined with `or`.
type Add = fn(&Targets, &mut Tensor, &Tensor) -> Result<()>;

fn add_numbers<T: Num>(t: &Targets, out: &mut Tensor, updates: &Tensor) -> Result<()> {
    t.combine(out, updates, T::add)
}

fn add_bools(t: &Targets, out: &mut Tensor, updates: &Tensor) -> Result<()> {
    t.combine(out, updates, |a: bool, b| a | b)
}

fn append(t: &Targets, out: &mut Tensor, updates: &Tensor) -> Result<()> {
    t.each(out.strings_mut()?, updates.strings()?, |to, from| {
        for (a, b) in to.iter_mut().zip(from) {
            *a = if a.is_empty() { b.clone() } else { Bytes::from([&a[..], &b[..]].concat()) };
        }
    });
    Ok(())
}

fn adder(init: &KernelInit<'_>) -> Result<Add> {
    let dtype = init.dtype("T")?;
    Ok(match dtype {
        DType::Bool => add_bools,
        DType::String => append,
        DType::Half => add_numbers::<f16>,
        DType::BFloat16 => add_numbers::<bf16>,
        DType::Float => add_numbers::<f32>,
        DType::Double => add_numbers::<f64>,
        DType::Int8 => add_numbers::<i8>,
        DType::Int16 => add_numbers::<i16>,
        DType::Int32 => add_numbers::<i32>,
        DType::Int64 => add_numbers::<i64>,
        DType::UInt8 => add_numbers::<u8>,
        DType::UInt16 => add_numbers::<u16>,
        DType::UInt32 => add_numbers::<u32>,
        DType::UInt64 => add_numbers::<u64>,
        DType::Complex64 => add_numbers::<Complex32>,
        DType::Complex128 => add_numbers::<Complex64>,
        other => return Err(unsupported(init, "T", other)),
    })
}

fn scatter_nd(init: &KernelInit<'_>) -> Result<KernelBox> {
    let add = adder(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (indices, updates, shape) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(shape.rank() == 1, InvalidArgument, "Shape must be a vector");
        let shape = to_shape(&shape.to_indices()?)?;
        let targets = targets(indices, updates, &shape)?;
        let mut out = Tensor::zeros(updates.dtype(), shape)?;
        add(&targets, &mut out, updates)?;
        ctx.set(0, out)
    }))
}

/// The kernel of the ops that change a copy of input 0.
fn scattered(
    f: impl Fn(&Targets, &mut Tensor, &Tensor) -> Result<()> + Send + Sync + 'static,
) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let targets = targets(ctx.input(1)?, ctx.input(2)?, ctx.input(0)?.shape())?;
        let mut out = ctx.take_or_copy(0)?;
        f(&targets, &mut out, ctx.input(2)?)?;
        ctx.set(0, out)
    }
}

fn update<T: Element>(f: fn(T, T) -> T) -> impl Kernel {
    scattered(move |targets, out, updates| targets.combine::<T>(out, updates, f))
}

/// The larger value; the present one if they do not compare.
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

fn smaller<T: Real>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

/// [`scatter_nd`] on a GPU.
fn scatter_nd_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    let add = RowUpdate::new(init, dtype, Some(sum_of(dtype)))?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (indices, updates, shape) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(shape.rank() == 1, InvalidArgument, "Shape must be a vector");
        let shape = to_shape(&shape.to_indices()?)?;
        let depth = checked_depth(indices, updates, &shape)?;
        let out = updates.zeros_beside(dtype, shape.clone())?;
        add.run(ctx.gpu()?, &out, indices, &shape[..depth], updates)?;
        ctx.set(0, out)
    }))
}

/// The kernel of the ops that change a copy of input 0, on a GPU.
fn scattered_on_device(init: &KernelInit<'_>, formula: Option<&str>) -> Result<KernelBox> {
    let update = RowUpdate::new(init, init.dtype("T")?, formula)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut out = ctx.take(0)?;
        let (indices, updates) = (ctx.input(1)?, ctx.input(2)?);
        let shape = out.shape().clone();
        let depth = checked_depth(indices, updates, &shape)?;
        if !out.is_unique() {
            out = out.deep_copy()?;
        }
        update.run(ctx.gpu()?, &out, indices, &shape[..depth], updates)?;
        ctx.set(0, out)
    }))
}

/// Booleans are combined with `or`.
fn sum_of(dtype: DType) -> &'static str {
    if dtype == DType::Bool { "x || y" } else { "x + y" }
}

/// The types that are added on GPUs.
const ADDED: GpuTypes = &[("T", gpu::NUMBERS_OR_BOOL), ("Tindices", gpu::INDEX)];
const COMPARED: GpuTypes = &[("T", gpu::REALS), ("Tindices", gpu::INDEX)];
const REPLACED: GpuTypes = &[("T", gpu::MOVED), ("Tindices", gpu::INDEX)];

/// Starts the declaration of a `TensorScatter…` op.
fn tensor_scatter<'c>(c: &'c mut Catalog, name: &str, what: &str) -> OpBuilder<'c> {
    c.op(&format!("TensorScatter{name}"))
        .doc(&format!("Its input{what} the slices that indices name."))
        .inputs(&["tensor: T", "indices: Tindices", "updates: T"])
        .output("output: T")
        .attr("T: type")
        .attr("Tindices: {int32, int64}")
        .newer_attr(BAD_INDICES_POLICY)
        .shape(shape::same_as_input)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ScatterNd")
        .work(work::of_shape::<2>)
        .doc("Zeros of the given shape, with the updates added to the slices that indices name.")
        .input("indices: Tindices")
        .input("updates: T")
        .input("shape: Tindices")
        .output("output: T")
        .attr("T: type")
        .attr("Tindices: {int16, int32, int64}")
        .newer_attr(BAD_INDICES_POLICY)
        .shape(|c| Ok(vec![c.shape_from(2)]))
        .gpu(ADDED, scatter_nd_on_device)
        .host_inputs(&["shape"])
        .cpu(scatter_nd);
    c.op("TensorScatterUpdate")
        .doc("Its input with the slices that indices name replaced by the updates.")
        .input("tensor: T")
        .input("indices: Tindices")
        .input("updates: T")
        .output("output: T")
        .attr("T: type")
        .attr("Tindices: {int16, int32, int64, uint16}")
        .newer_attr(BAD_INDICES_POLICY)
        .shape(shape::same_as_input)
        .gpu(REPLACED, |init| scattered_on_device(init, None))
        .cpu(|_| Ok(KernelBox::new(scattered(Targets::assign))));
    tensor_scatter(c, "Add", " with the updates added to")
        .gpu(ADDED, |init| scattered_on_device(init, Some(sum_of(init.dtype("T")?))))
        .cpu(|init| Ok(KernelBox::new(scattered(adder(init)?))));
    tensor_scatter(c, "Sub", " with the updates subtracted from")
        .gpu(COMPARED, |init| scattered_on_device(init, Some("x - y")))
        .cpu(per_dtype!(NUMBER, T => update::<T>(T::sub)));
    tensor_scatter(c, "Max", ", with the larger of it and the updates in")
        .gpu(COMPARED, |init| scattered_on_device(init, Some("y > x ? y : x")))
        .cpu(per_dtype!(REAL, T => update::<T>(larger)));
    tensor_scatter(c, "Min", ", with the smaller of it and the updates in")
        .gpu(COMPARED, |init| scattered_on_device(init, Some("y < x ? y : x")))
        .cpu(per_dtype!(REAL, T => update::<T>(smaller)));
    c.op("ScatterNdNonAliasingAdd")
        .doc("Its input with the updates added to the slices that indices name.")
        .input("input: T")
        .input("indices: Tindices")
        .input("updates: T")
        .output("output: T")
        .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}")
        .attr("Tindices: {int32, int64}")
        .newer_attr(BAD_INDICES_POLICY)
        .shape(shape::same_as_input)
        .gpu(ADDED, |init| scattered_on_device(init, Some(sum_of(init.dtype("T")?))))
        .cpu(|init| Ok(KernelBox::new(scattered(adder(init)?))));
    c.gradient("ScatterNd", |g, dy| Ok(g.at(1, g.call("GatherNd", &[dy[0], g.input(0)]))));
    c.gradient("TensorScatterUpdate", |g, dy| {
        let (at, zeros) = (g.input(1), g.input(2).zeros_like());
        let kept = g.call("TensorScatterUpdate", &[dy[0], at, zeros]);
        Ok(vec![kept, g.none(), g.call("GatherNd", &[dy[0], at])])
    });
    for op in ["TensorScatterAdd", "ScatterNdNonAliasingAdd"] {
        c.gradient(op, |g, dy| Ok(vec![dy[0], g.none(), g.call("GatherNd", &[dy[0], g.input(1)])]));
    }
    c.gradient("TensorScatterSub", |g, dy| {
        Ok(vec![dy[0], g.none(), -g.call("GatherNd", &[dy[0], g.input(1)])])
    });
    for op in ["TensorScatterMax", "TensorScatterMin"] {
        c.gradient(op, |g, dy| {
            let (x, at, updates, y) = (g.input(0), g.input(1), g.input(2), g.output(0));
            let dtype = dy[0].dtype();
            // Equal maxima share the gradient.
            let of_x = x.with("Equal", y).cast(dtype);
            let of_updates = updates.with("Equal", g.call("GatherNd", &[y, at])).cast(dtype);
            let shape = x.shape_as(at.dtype());
            let count = of_x + g.call("ScatterNd", &[at, of_updates, shape]);
            let d_updates = g.call("GatherNd", &[dy[0] / count, at]) * of_updates;
            Ok(vec![dy[0] * of_x / count, g.none(), d_updates])
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn column(indices: &[i32]) -> Tensor {
        Tensor::from_slice([indices.len(), 1], indices).unwrap()
    }

    fn scatter(indices: Tensor, updates: Tensor, shape: &[i32]) -> Check<'static> {
        check("ScatterNd").input(indices).input(updates).input(Tensor::vector(shape))
    }

    #[test]
    fn updates_to_one_place_add_up() {
        scatter(column(&[1, 3, 1]), Tensor::vector(&[1.0f32, 2.0, 3.0]), &[5])
            .gives(Tensor::vector(&[0.0f32, 4.0, 0.0, 2.0, 0.0]));
        scatter(column(&[1, 1]), Tensor::vector(&[true, true]), &[3])
            .gives(Tensor::vector(&[false, true, false]));
        let words = Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap();
        scatter(column(&[1, 1]), words, &[2])
            .gives(Tensor::from_strings([2], vec!["".into(), "ab".into()]).unwrap());
        scatter(column(&[1]), Tensor::from_slice([1, 2], &[7i64, 8]).unwrap(), &[2, 2])
            .gives(Tensor::from_slice([2, 2], &[0i64, 0, 7, 8]).unwrap());
        scatter(column(&[]), Tensor::vector::<f32>(&[]), &[3]).gives(Tensor::vector(&[0.0f32; 3]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let v = |n: usize| Tensor::zeros(DType::Float, [n]).unwrap();
        let fails = |c: Check<'_>, text: &str| c.fails(Code::InvalidArgument, text);
        fails(
            scatter(column(&[1, 5]), v(2), &[5]),
            "indices[1] = [5] does not index into shape [5]",
        );
        fails(
            scatter(column(&[1, -1]), v(2), &[5]),
            "indices[1] = [-1] does not index into shape [5]",
        );
        fails(
            scatter(column(&[1, 2]), v(3), &[5]),
            "Dimensions [0,1) of indices[shape=[2,1]] must match dimensions [0,1) of updates[shape=[3]]",
        );
        let wide = Tensor::zeros(DType::Float, [2, 3]).unwrap();
        fails(
            scatter(column(&[1, 2]), wide, &[5, 2]),
            "Dimensions [1,2) of input[shape=[5,2]] must match dimensions [1,2) of updates[shape=[2,3]]",
        );
        fails(
            scatter(column(&[1, 2]), v(2), &[0]),
            "Indices and updates specified for empty output",
        );
        fails(
            scatter(Tensor::scalar(1i32), v(2), &[5]),
            "Indices shape must have rank at least one. Found:[]",
        );
        fails(scatter(column(&[1]), v(1), &[-3]), "Dimension -3 must be >= 0");
        let none = Tensor::zeros(DType::Int32, [1, 0]).unwrap();
        let whole = Tensor::zeros(DType::Float, [1, 5]).unwrap();
        fails(scatter(none, whole, &[5]), "Indices and updates specified for empty output shape");
        let deep = Tensor::from_slice([1, 3], &[1i32, 1, 1]).unwrap();
        fails(scatter(deep, v(1), &[5, 5]), "must match dimensions [1,1) of updates[shape=[1]]");
    }

    #[test]
    fn a_tensor_is_updated() {
        for (op, want) in [
            ("TensorScatterUpdate", [1.0f32, 7.0, 3.0, -8.0]),
            ("TensorScatterAdd", [1.0, 18.0, 3.0, -4.0]),
            ("TensorScatterSub", [1.0, -14.0, 3.0, 12.0]),
            ("TensorScatterMax", [1.0, 9.0, 3.0, 4.0]),
            ("TensorScatterMin", [1.0, 2.0, 3.0, -8.0]),
            ("ScatterNdNonAliasingAdd", [1.0, 18.0, 3.0, -4.0]),
        ] {
            let base = Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0]);
            check(op)
                .input(base.clone())
                .input(column(&[1, 3, 1]))
                .input(Tensor::vector(&[9.0f32, -8.0, 7.0]))
                .gives(Tensor::vector(&want));
            check(op)
                .input(base)
                .input(column(&[4]))
                .input(Tensor::vector(&[9.0f32]))
                .fails(Code::InvalidArgument, "indices[0] = [4] does not index into shape [4]");
        }
    }

    #[test]
    fn nan_does_not_displace_a_number() {
        check("TensorScatterMax")
            .input(Tensor::vector(&[1.0f32, f32::NAN]))
            .input(column(&[0, 1]))
            .input(Tensor::vector(&[f32::NAN, 1.0]))
            .gives(Tensor::vector(&[1.0f32, f32::NAN]));
    }
}
