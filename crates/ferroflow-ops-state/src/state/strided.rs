//! Assigning to a strided slice of a variable.

use crate::prelude::*;
use ferroflow_op_kit::handle::Target;
use std::marker::PhantomData;

/// The attributes of the op that select a slice.
struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink: i64,
}

/// One dimension of the sliced tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    start: usize,
    step: i64,
    len: usize,
}

/// A slice of a tensor of known shape.
#[derive(Debug)]
struct Slice {
    /// The selected part of each dimension of the tensor.
    runs: Vec<Run>,
    /// The slice's own dimensions, each with the dimension it comes from: new axes have none,
    /// and dimensions that were shrunk are not there.
    dims: Vec<(usize, Option<usize>)>,
}

impl Masks {
    fn new(init: &KernelInit<'_>) -> Result<Masks> {
        let masks = Masks {
            begin: init.int("begin_mask")?,
            end: init.int("end_mask")?,
            ellipsis: init.int("ellipsis_mask")?,
            new_axis: init.int("new_axis_mask")?,
            shrink: init.int("shrink_axis_mask")?,
        };
        ensure!(
            masks.ellipsis & masks.ellipsis.wrapping_sub(1) == 0,
            InvalidArgument,
            "Multiple ellipses in slice spec not allowed"
        );
        Ok(masks)
    }

    /// The slice that `begin`, `end` and `strides` give, one entry per dimension of the
    /// specification.
    fn slice(&self, begin: &[i64], end: &[i64], strides: &[i64], shape: &[usize]) -> Result<Slice> {
        let has = |mask: i64, i: usize| i < 63 && mask >> i & 1 == 1;
        let n = begin.len();
        ensure!(
            end.len() == n && strides.len() == n,
            InvalidArgument,
            "Expected begin, end, and strides to be 1D equal size tensors, but got sizes {n}, {}, \
             and {} instead.",
            end.len(),
            strides.len()
        );
        let ellipsis = (0..n).find(|&i| has(self.ellipsis, i));
        let is_new = |i: usize| has(self.new_axis, i) && Some(i) != ellipsis;
        let named = (0..n).filter(|&i| !is_new(i) && Some(i) != ellipsis).count();
        ensure!(
            named <= shape.len(),
            InvalidArgument,
            "Index out of range using input dim {}; input has only {} dims",
            shape.len(),
            shape.len()
        );
        let whole = shape.len() - named;
        let mut out = Slice { runs: Vec::new(), dims: Vec::new() };
        let take_whole = |out: &mut Slice, count: usize| {
            for _ in 0..count {
                let at = out.runs.len();
                out.runs.push(Run { start: 0, step: 1, len: shape[at] });
                out.dims.push((shape[at], Some(at)));
            }
        };
        for i in 0..n {
            if Some(i) == ellipsis {
                take_whole(&mut out, whole);
            } else if is_new(i) {
                out.dims.push((1, None));
            } else {
                let at = out.runs.len();
                let (shrink, size) = (has(self.shrink, i), shape[at] as i64);
                let open = (has(self.begin, i), has(self.end, i));
                let run = run(begin[i], end[i], strides[i], open, shrink, size, i)?;
                out.runs.push(run);
                if !shrink {
                    out.dims.push((run.len, Some(at)));
                }
            }
        }
        if ellipsis.is_none() {
            take_whole(&mut out, whole);
        }
        Ok(out)
    }
}

/// The part of a dimension that `begin`, `end` and `stride` select; errors name it as `i`.
fn run(
    begin: i64,
    end: i64,
    stride: i64,
    open: (bool, bool),
    shrink: bool,
    size: i64,
    i: usize,
) -> Result<Run> {
    ensure!(stride != 0, InvalidArgument, "strides[{i}] must be non-zero");
    if shrink {
        ensure!(stride > 0, InvalidArgument, "only stride 1 allowed on non-range indexing.");
        let at = if begin < 0 { begin.saturating_add(size) } else { begin };
        ensure!(
            (0..size).contains(&at),
            InvalidArgument,
            "slice index {begin} of dimension {i} out of bounds."
        );
        return Ok(Run { start: at as usize, step: 1, len: 1 });
    }
    let (low, high) = if stride > 0 { (0, size) } else { (-1, size - 1) };
    let place = |x: i64| (if x < 0 { x.saturating_add(size) } else { x }).clamp(low, high);
    let first = match (open.0, stride > 0) {
        (true, true) => low,
        (true, false) => high,
        _ => place(begin),
    };
    let last = match (open.1, stride > 0) {
        (true, true) => high,
        (true, false) => low,
        _ => place(end),
    };
    let span = if stride > 0 { last - first } else { first - last };
    let len = if span <= 0 { 0 } else { (span - 1) / stride.saturating_abs() + 1 };
    // Where nothing is taken, `first` may be one off either end.
    Ok(Run { start: if len == 0 { 0 } else { first as usize }, step: stride, len: len as usize })
}

/// Writes `value`, broadcast to the slice's shape, to the slice of `to`.
fn assign<T: Movable>(to: &mut Tensor, slice: &Slice, value: &Tensor) -> Result<()> {
    let dims: Vec<usize> = slice.dims.iter().map(|d| d.0).collect();
    if dims.contains(&0) {
        return Ok(());
    }
    // Leading ones of the value beyond the slice's rank go; the rest must broadcast.
    let extra = value.rank().saturating_sub(dims.len());
    let missing = dims.len() - value.rank().min(dims.len());
    let (cut, kept) = value.shape().split_at(extra);
    let fits = cut.iter().all(|&d| d == 1)
        && kept.iter().zip(&dims[missing..]).all(|(&v, &d)| v == d || v == 1);
    ensure!(
        fits,
        InvalidArgument,
        "Cannot broadcast input shape {} into final shape {}",
        value.shape(),
        Shape::from(dims.clone())
    );
    // How far to go in the value for a step along each dimension of the variable.
    let value_strides = Shape::from(kept).strides();
    let mut steps = vec![0usize; slice.runs.len()];
    for (k, (&v, &stride)) in kept.iter().zip(&value_strides).enumerate() {
        if let (true, Some(at)) = (v > 1, slice.dims[missing + k].1) {
            steps[at] = stride;
        }
    }
    let strides = to.shape().strides();
    let (from, to) = (T::of(value)?, T::of_mut(to)?);
    let mut at = vec![0usize; slice.runs.len()];
    loop {
        let (mut t, mut f) = (0, 0);
        for ((&i, run), (&stride, &step)) in
            at.iter().zip(&slice.runs).zip(strides.iter().zip(&steps))
        {
            t += (run.start as i64 + i as i64 * run.step) as usize * stride;
            f += i * step;
        }
        to[t].clone_from(&from[f]);
        // The next position, last dimension fastest.
        let mut d = slice.runs.len();
        loop {
            if d == 0 {
                return Ok(());
            }
            d -= 1;
            at[d] += 1;
            if at[d] < slice.runs[d].len {
                break;
            }
            at[d] = 0;
        }
    }
}

struct AssignSlice<T> {
    target: Target,
    masks: Masks,
    of: PhantomData<fn() -> T>,
}

impl<T: Movable> Kernel for AssignSlice<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variable = self.target.get(ctx)?;
        let bounds = [ctx.input(1)?, ctx.input(2)?, ctx.input(3)?];
        ensure!(
            bounds.iter().all(|t| t.rank() == 1),
            InvalidArgument,
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes {}, {}, \
             and {} instead.",
            bounds[0].shape(),
            bounds[1].shape(),
            bounds[2].shape()
        );
        let (begin, end) = (bounds[0].to_indices()?, bounds[1].to_indices()?);
        let strides = bounds[2].to_indices()?;
        let value = ctx.input(4)?;
        variable.modify(|params| {
            ensure!(
                params.dtype() == value.dtype(),
                InvalidArgument,
                "l-value dtype {} does not match r-value dtype {}",
                params.dtype(),
                value.dtype()
            );
            let slice = self.masks.slice(&begin, &end, &strides, params.shape())?;
            assign::<T>(params, &slice, value)
        })?;
        self.target.pass_on(ctx, variable)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for is_ref in [true, false] {
        let op = match is_ref {
            true => c
                .op("StridedSliceAssign")
                .input("ref: Ref(T)")
                .output("output_ref: Ref(T)")
                .shape(shape::same_as_input),
            false => c
                .op("ResourceStridedSliceAssign")
                .input("ref: resource")
                .stateful()
                .shape(shape::unknown),
        };
        op.doc("Assigns to a strided slice of a variable.")
            .inputs(&["begin: Index", "end: Index", "strides: Index", "value: T"])
            .attr("T: type")
            .attr("Index: {int32, int64}")
            .attr("begin_mask: int = 0")
            .attr("end_mask: int = 0")
            .attr("ellipsis_mask: int = 0")
            .attr("new_axis_mask: int = 0")
            .attr("shrink_axis_mask: int = 0")
            .cpu(per_width!("T", init, T => AssignSlice::<T> {
                target: Target::new(init, 0),
                masks: Masks::new(init)?,
                of: PhantomData,
            }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Held;
    use super::*;
    use crate::testing::Check;

    fn on(held: &Held, bounds: [&[i32]; 3], value: Tensor) -> Check<'static> {
        let check = held.on(held.op("StridedSliceAssign", "ResourceStridedSliceAssign"));
        bounds.into_iter().fold(check, |c, b| c.input(Tensor::vector(b))).input(value)
    }

    fn vector() -> [Held; 2] {
        Held::both(Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0, 5.0]))
    }

    #[test]
    fn slices_are_replaced() {
        for held in vector() {
            on(&held, [&[1], &[5], &[2]], Tensor::vector(&[9.0f32, 8.0])).run_values().unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 3.0, 8.0, 5.0]));
            on(&held, [&[0], &[-2], &[-1]], Tensor::scalar(7.0f32))
                .attr("begin_mask", 1)
                .run_values()
                .unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 3.0, 8.0, 7.0]));
            on(&held, [&[-3], &[0], &[1]], Tensor::scalar(6.0f32))
                .attr("shrink_axis_mask", 1)
                .run_values()
                .unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 6.0, 8.0, 7.0]));
            on(&held, [&[3], &[3], &[1]], Tensor::scalar(0.0f32)).run_values().unwrap();
            assert_eq!(held.value(), Tensor::vector(&[1.0f32, 9.0, 6.0, 8.0, 7.0]));
        }
    }

    #[test]
    fn masks_and_broadcasting_apply() {
        let held = Held::by_ref(Tensor::zeros(DType::Int32, [2, 2, 2]).unwrap());
        // v[..., newaxis, 1] = [[[1], [2]], [[3], [4]]]
        let value = Tensor::from_slice([2, 2, 1], &[1i32, 2, 3, 4]).unwrap();
        on(&held, [&[0, 0, 1], &[0, 0, 2], &[1, 1, 1]], value)
            .attr("ellipsis_mask", 1)
            .attr("new_axis_mask", 2)
            .attr("shrink_axis_mask", 4)
            .run_values()
            .unwrap();
        let want = Tensor::from_slice([2, 2, 2], &[0i32, 1, 0, 2, 0, 3, 0, 4]).unwrap();
        assert_eq!(held.value(), want);
        // v[1] = [5, 6], for both rows.
        on(&held, [&[1], &[0], &[1]], Tensor::vector(&[5i32, 6]))
            .attr("shrink_axis_mask", 1)
            .run_values()
            .unwrap();
        let want = Tensor::from_slice([2, 2, 2], &[0i32, 1, 0, 2, 5, 6, 5, 6]).unwrap();
        assert_eq!(held.value(), want);
    }

    #[test]
    fn bad_slices_are_refused() {
        for held in vector() {
            let fails = |bounds: [&[i32]; 3], value: Tensor, shrink: i64, text: &str| {
                on(&held, bounds, value)
                    .attr("shrink_axis_mask", shrink)
                    .fails(Code::InvalidArgument, text);
            };
            let one = || Tensor::scalar(9.0f32);
            fails(
                [&[0], &[2], &[1]],
                Tensor::vector(&[9.0f32, 8.0, 7.0]),
                0,
                "Cannot broadcast input shape [3] into final shape [2]",
            );
            fails([&[5], &[6], &[1]], one(), 1, "slice index 5 of dimension 0 out of bounds.");
            fails([&[0], &[6], &[0]], one(), 0, "strides[0] must be non-zero");
            fails(
                [&[0, 0], &[1, 1], &[1, 1]],
                one(),
                0,
                "Index out of range using input dim 1; input has only 1 dims",
            );
        }
    }
}
