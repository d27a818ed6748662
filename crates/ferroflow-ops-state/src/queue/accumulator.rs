//! Conditional accumulators sum gradients as they arrive and drop stale ones. A kernel that asks
//! for the average waits until enough gradients have arrived.

use super::monitor::{Attempt, Monitor, Order, Progress};
use crate::prelude::*;
use ferroflow_core::StoredVariable;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::handle::{Anchor, Seen, name_in};
use ferroflow_op_kit::handle_form::HandleForm;
use ferroflow_op_kit::tensor_arithmetic::{add_assign, divide_rows};

struct Accumulator {
    dtype: DType,
    shape: PartialShape,
    monitor: Monitor<State>,
}

struct State {
    /// The number of gradients in the sum.
    count: i64,
    /// Gradients of steps before this one are stale.
    global_step: i64,
    sum: Sum,
    mean: bool,
    shape: PartialShape,
}

enum Sum {
    Dense(Option<Tensor>),
    Sparse(Option<Slices>),
}

/// The rows of a sparse gradient; rows without an index are zero.
struct Slices {
    indices: Vec<i64>,
    values: Tensor,
    /// The number of gradients in each row's sum.
    counts: Vec<i64>,
}

impl Resource for Accumulator {
    fn describe(&self) -> String {
        format!("a conditional accumulator ({} {})", self.dtype, self.shape)
    }

    fn close(&self) {
        self.monitor.close(&[0], |_| ());
    }
}

impl Accumulator {
    fn new(dtype: DType, shape: PartialShape, mean: bool, sparse: bool) -> Accumulator {
        let sum = if sparse { Sum::Sparse(None) } else { Sum::Dense(None) };
        let state = State { count: 0, global_step: 0, sum, mean, shape: shape.clone() };
        Accumulator { dtype, shape, monitor: Monitor::new(state, &[Order::FirstCome]) }
    }
}

impl State {
    fn apply_dense(&mut self, gradient: Tensor) -> Result<()> {
        let Sum::Dense(sum) = &mut self.sum else {
            bail!(InvalidArgument, "the accumulator takes sparse gradients");
        };
        let expected = match sum {
            Some(sum) => sum.shape().into(),
            None => self.shape.clone(),
        };
        ensure!(
            self.shape.admits(gradient.shape()) && expected.admits(gradient.shape()),
            InvalidArgument,
            "Shape mismatch: expected {expected}, got {}",
            gradient.shape()
        );
        match sum {
            Some(sum) => add_assign(sum, &gradient)?,
            None => *sum = Some(gradient),
        }
        self.count += 1;
        Ok(())
    }

    fn apply_sparse(&mut self, gradient: Slices, shape: Option<Vec<i64>>) -> Result<()> {
        self.check_sparse(&gradient, shape)?;
        let Sum::Sparse(sum) = &mut self.sum else {
            bail!(InvalidArgument, "the accumulator takes dense gradients");
        };
        *sum = Some(match sum.take() {
            Some(sum) => sum.plus(&gradient)?,
            None => gradient,
        });
        self.count += 1;
        Ok(())
    }

    fn check_sparse(&self, gradient: &Slices, shape: Option<Vec<i64>>) -> Result<()> {
        let declared = self.shape.dims().unwrap_or(&[]);
        if let Some(shape) = shape {
            ensure!(
                declared.len() <= shape.len(),
                InvalidArgument,
                "Shape mismatch: expected shape rank at least {}, got {}",
                declared.len(),
                shape.len()
            );
            for (i, (want, &got)) in declared.iter().zip(&shape).enumerate() {
                if let Some(want) = want.filter(|&want| i64::try_from(want) != Ok(got)) {
                    bail!(
                        InvalidArgument,
                        "Shape mismatch: expected shape dim {i} to be {want}, got {got}"
                    );
                }
            }
        }
        if let Some(&Some(rows)) = declared.first() {
            for (i, &index) in gradient.indices.iter().enumerate() {
                ensure!(
                    usize::try_from(index).is_ok_and(|index| index < rows),
                    InvalidArgument,
                    "Shape mismatch: index of slice {i} exceeded limits of shape; index is \
                     {index} exceeded {rows}"
                );
            }
        }
        let got = gradient.values.shape();
        let expected: Vec<Option<usize>> = match &self.sum {
            Sum::Sparse(Some(sum)) => {
                let have = sum.values.shape();
                ensure!(
                    have.rank() == got.rank(),
                    InvalidArgument,
                    "Shape mismatch: expected values rank {}, got {}",
                    have.rank(),
                    got.rank()
                );
                have.iter().map(|&d| Some(d)).collect()
            }
            _ => {
                ensure!(
                    declared.len() <= got.rank(),
                    InvalidArgument,
                    "Shape mismatch: expected values rank at least {}, got {}",
                    declared.len(),
                    got.rank()
                );
                declared.to_vec()
            }
        };
        for (i, (want, &got)) in expected.iter().zip(got.iter()).enumerate().skip(1) {
            if let Some(want) = want.filter(|&want| want != got) {
                bail!(
                    InvalidArgument,
                    "Shape mismatch: expected values dim {i} to be {want}, got {got}"
                );
            }
        }
        Ok(())
    }

    /// Takes the sum or average, and starts a new step.
    fn take(&mut self) -> Result<Vec<Tensor>> {
        let (count, mean) = (std::mem::take(&mut self.count), self.mean);
        self.global_step += 1;
        match &mut self.sum {
            Sum::Dense(sum) => {
                let mut sum = sum.take().ok_or_else(|| err!(Internal, "nothing was summed"))?;
                if mean {
                    divide_rows(&mut sum, &[count])?;
                }
                Ok(vec![sum])
            }
            Sum::Sparse(sum) => {
                let mut sum = sum.take().ok_or_else(|| err!(Internal, "nothing was summed"))?;
                if mean {
                    divide_rows(&mut sum.values, &sum.counts)?;
                }
                let rows = self.shape.dim(0).map_or(-1, |d| d as i64);
                let dims = sum.values.shape().iter().skip(1).map(|&d| d as i64);
                let shape: Vec<i64> = std::iter::once(rows).chain(dims).collect();
                Ok(vec![Tensor::vector(&sum.indices), sum.values, Tensor::vector(&shape)])
            }
        }
    }
}

impl Slices {
    fn new(indices: &Tensor, values: Tensor) -> Result<Slices> {
        ensure!(
            indices.rank() == 1,
            InvalidArgument,
            "Input indices should be vector but received shape: {}",
            indices.shape()
        );
        let Some(&rows) = values.shape().first() else {
            bail!(InvalidArgument, "Values cannot be 0-dimensional.");
        };
        let indices = indices.to_indices()?;
        ensure!(
            rows == indices.len(),
            InvalidArgument,
            "Expected {} non-empty input values, got {rows}",
            indices.len()
        );
        let counts = vec![1; rows];
        Ok(Slices { indices, values, counts })
    }

    /// Merges both by index; each must be sorted.
    fn plus(&self, other: &Slices) -> Result<Slices> {
        let (mut i, mut j) = (0, 0);
        let mut sum = Slices {
            indices: Vec::new(),
            values: Tensor::zeros(self.values.dtype(), [0])?,
            counts: Vec::new(),
        };
        let mut rows: Vec<Tensor> = Vec::new();
        loop {
            let (a, b) = (self.indices.get(i), other.indices.get(j));
            let (from_a, from_b) = match (a, b) {
                (Some(a), Some(b)) => (a <= b, b <= a),
                (None, None) => break,
                (a, b) => (a.is_some(), b.is_some()),
            };
            sum.indices.extend(if from_a { a } else { b });
            let mut count = 0;
            let mut row: Option<Tensor> = None;
            if from_a {
                (count, row) = (self.counts[i], Some(self.values.row(i)?));
                i += 1;
            }
            if from_b {
                count += 1;
                let other = other.values.row(j)?;
                row = Some(match row {
                    Some(mut row) => {
                        add_assign(&mut row, &other)?;
                        row
                    }
                    None => other,
                });
                j += 1;
            }
            sum.counts.push(count);
            rows.extend(row);
        }
        let row = &other.values.shape()[1..];
        sum.values = ferroflow_op_kit::pack::stack(self.values.dtype(), row, rows.iter())?;
        Ok(sum)
    }
}

struct Take {
    required: i64,
}

impl Attempt<State> for Take {
    fn advance(&mut self, state: &mut State) -> Progress {
        if state.count < self.required {
            return Progress::Stuck;
        }
        match state.take() {
            Ok(outputs) => Progress::finish(outputs),
            Err(e) => Progress::fail(e),
        }
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "TakeGrad operation was cancelled")
    }
}

fn make(sparse: bool) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let type_name = "tensorflow::ConditionalAccumulatorBase";
        let anchor = Anchor::<Accumulator>::new(init, false, type_name)?;
        let (dtype, shape) = (init.dtype("dtype")?, init.shape("shape")?);
        let mean = init.string("reduction_type")? == "MEAN";
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let make = |_: &str| Ok(Accumulator::new(dtype, shape.clone(), mean, sparse));
            anchor.output(ctx, make, |found| {
                ensure!(
                    found.dtype == dtype,
                    InvalidArgument,
                    "Shared accumulator has type {} but requested type was {dtype}",
                    found.dtype
                );
                Ok(())
            })
        }))
    }
}

/// The accumulator input 0 names, which must be of this dtype.
fn found(
    seen: &Seen<Accumulator>,
    resources: &Arc<Resources>,
    handle: &Value,
    dtype: Option<DType>,
) -> Result<Arc<Accumulator>> {
    let accumulator = seen.find(resources, handle)?;
    if let Some(dtype) = dtype.filter(|&dtype| dtype != accumulator.dtype) {
        bail!(InvalidArgument, "the accumulator is of type {}, not {dtype}", accumulator.dtype);
    }
    Ok(accumulator)
}

fn scalar(t: &Tensor, name: &str) -> Result<i64> {
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "Argument {name} must be scalar, but had bad shape {}",
        t.shape()
    );
    t.scalar_index()
}

/// Counts a dropped gradient in the `int64` variable `NAME/stale` of the accumulator's container,
/// where clients can read it. The first dropped gradient creates the variable.
fn count_stale(resources: &Resources, handle: &Value) -> Result<()> {
    let (container, name) = name_in(handle)?;
    let name = format!("{name}/stale");
    let count = resources.lookup_or_create(&container, &name, || {
        Ok(StoredVariable::new(name.as_str(), DType::Int64, PartialShape::scalar()))
    })?;
    count.update(|slot| {
        let before = slot.as_ref().map_or(Ok(0), Tensor::scalar_value::<i64>)?;
        *slot = Some(Tensor::scalar(before + 1));
        Ok(())
    })
}

fn apply_gradient(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, seen) = (init.dtype("dtype")?, Seen::new());
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let accumulator = found(&seen, &ctx.step().resources, &handle, Some(dtype))?;
        let step = scalar(ctx.input(1)?, "local_step")?;
        let gradient = ctx.take(2)?;
        let is_stale = accumulator.monitor.change(ctx.scope(), |state| match step {
            step if step < state.global_step => Ok(true),
            _ => state.apply_dense(gradient).map(|()| false),
        })?;
        if is_stale { count_stale(&ctx.step().resources, &handle) } else { Ok(()) }
    }))
}

fn apply_sparse(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, seen) = (init.dtype("dtype")?, Seen::new());
    let has_shape = init.bool("has_known_shape")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let accumulator = found(&seen, &ctx.step().resources, &handle, Some(dtype))?;
        let step = scalar(ctx.input(1)?, "local_step")?;
        let values = ctx.take(3)?;
        let gradient = Slices::new(ctx.input(2)?, values)?;
        let shape = if has_shape { Some(ctx.input(4)?.to_indices()?) } else { None };
        let is_stale = accumulator.monitor.change(ctx.scope(), |state| match step {
            step if step < state.global_step => Ok(true),
            _ => state.apply_sparse(gradient, shape).map(|()| false),
        })?;
        if is_stale { count_stale(&ctx.step().resources, &handle) } else { Ok(()) }
    }))
}

fn take_gradient(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, seen) = (init.dtype("dtype")?, Seen::new());
    Ok(KernelBox::new_async(move |ctx: AsyncCtx, done: Done, scope: &InlineScope| {
        let handle = ctx.inputs.first().cloned().unwrap_or_default();
        let accumulator = found(&seen, &ctx.step.resources, &handle, Some(dtype));
        let both = accumulator.and_then(|accumulator| {
            let required = scalar(ctx.input(1)?, "num_required")?;
            ensure!(
                required > 0,
                InvalidArgument,
                "Argument num_required must be positive, but was {required}"
            );
            Ok((accumulator, required))
        });
        match both {
            Ok((accumulator, required)) => {
                accumulator.monitor.start(&ctx.step.cancel, 0, Take { required }, scope, done);
            }
            Err(e) => done.fail(e),
        }
    }))
}

fn set_global_step(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let accumulator = found(&seen, &ctx.step().resources, &handle, None)?;
        let step = scalar(ctx.input(1)?, "new_global_step")?;
        accumulator.monitor.change(ctx.scope(), |state| state.global_step = step);
        Ok(())
    }))
}

fn num_accumulated(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let accumulator = found(&seen, &ctx.step().resources, &handle, None)?;
        let n = accumulator.monitor.read(|state| state.count);
        ctx.set(0, Tensor::scalar(n as i32))
    }))
}

fn taken_slices(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1), PartialShape::unknown(), PartialShape::of_rank(1)])
}

/// Starts the declaration of an op on an accumulator, in one of two forms.
fn on<'c>(c: &'c mut Catalog, form: HandleForm, name: &str, doc: &str) -> OpBuilder<'c> {
    let name = format!("{}Accumulator{name}", form.pick("", "Resource"));
    form.input(c.op(&name).doc(doc), "handle")
}

const TAKEN: &str =
    "The average (or sum) of the gradients, when there are enough; a new step begins.";

pub(crate) fn register(c: &mut Catalog) {
    for (name, doc, form, is_sparse) in [
        ("ConditionalAccumulator", "An accumulator of dense gradients.", HandleForm::Ref, false),
        (
            "SparseConditionalAccumulator",
            "An accumulator of sparse gradients.",
            HandleForm::Ref,
            true,
        ),
        (
            "ResourceConditionalAccumulator",
            "An accumulator of dense gradients.",
            HandleForm::Resource,
            false,
        ),
    ] {
        form.output(c.op(name).doc(doc), "handle")
            .attr("dtype: numbertype")
            .attr("shape: shape")
            .attr("container: string = ''")
            .attr("shared_name: string = ''")
            .attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
            .cpu(make(is_sparse));
    }
    for form in HandleForm::BOTH {
        on(c, form, "ApplyGradient", "Adds a gradient, unless it is stale.")
            .input("local_step: int64")
            .input("gradient: dtype")
            .attr("dtype: numbertype")
            .shape(shape::unknown)
            .cpu(apply_gradient);
        on(c, form, "TakeGradient", TAKEN)
            .input("num_required: int32")
            .output("average: dtype")
            .attr("dtype: numbertype")
            .shape(shape::unknown)
            .waits()
            .cpu(take_gradient);
        on(c, form, "SetGlobalStep", "Sets the step before which gradients are stale.")
            .input("new_global_step: int64")
            .shape(shape::unknown)
            .cpu(set_global_step);
        on(
            c,
            form,
            "NumAccumulated",
            "How many gradients have been added since the last were taken.",
        )
        .output("num_accumulated: int32")
        .shape(shape::scalar)
        .cpu(num_accumulated);
    }
    c.op("SparseAccumulatorApplyGradient")
        .doc("Adds a sparse gradient, unless it is stale.")
        .input("handle: Ref(string)")
        .input("local_step: int64")
        .input("gradient_indices: int64")
        .input("gradient_values: dtype")
        .input("gradient_shape: int64")
        .attr("dtype: numbertype")
        .attr("has_known_shape: bool")
        .shape(shape::unknown)
        .cpu(apply_sparse);
    c.op("SparseAccumulatorTakeGradient")
        .doc(TAKEN)
        .input("handle: Ref(string)")
        .input("num_required: int32")
        .output("indices: int64")
        .output("values: dtype")
        .output("shape: int64")
        .attr("dtype: numbertype")
        .shape(taken_slices)
        .waits()
        .cpu(take_gradient);
}

#[cfg(test)]
mod tests {
    use super::super::testing::Pending;
    use super::*;
    use crate::testing::{Check, check};
    use ferroflow_core::CancelToken;

    fn on(op: &str, resources: &Arc<Resources>, handle: &Value) -> Check<'static> {
        let check = check(op).resources(resources);
        match handle {
            Value::Ref(v) => check.ref_input(v.clone()),
            Value::Tensor(t) => check.input(t.clone()),
            _ => unreachable!(),
        }
    }

    fn new(op: &str, resources: &Arc<Resources>, shape: PartialShape, how: &str) -> Value {
        check(op)
            .resources(resources)
            .attr("dtype", DType::Float)
            .attr("shape", shape)
            .attr("shared_name", "acc")
            .attr("reduction_type", how)
            .run_values()
            .unwrap()
            .remove(0)
    }

    #[test]
    fn gradients_are_averaged_and_stale_ones_dropped() {
        for (prefix, how, want) in [("", "MEAN", [1.5f32, 3.0]), ("Resource", "SUM", [3.0, 6.0])] {
            let resources = Arc::new(Resources::new());
            let make = format!("{prefix}ConditionalAccumulator");
            let acc = new(&make, &resources, PartialShape::from([2]), how);
            let op = |name: &str| on(&format!("{prefix}Accumulator{name}"), &resources, &acc);
            let apply = |step: i64, g: &[f32]| {
                op("ApplyGradient").input(Tensor::scalar(step)).input(Tensor::vector(g))
            };
            apply(0, &[1.0, 2.0]).run().unwrap();
            apply(0, &[2.0, 4.0]).run().unwrap();
            apply(-1, &[9.0, 9.0]).run().unwrap();
            op("NumAccumulated").gives(Tensor::scalar(2i32));
            apply(0, &[1.0]).fails(Code::InvalidArgument, "Shape mismatch: expected [2], got [1]");
            let take =
                |n: i32| op("TakeGradient").input(Tensor::scalar(n)).attr("dtype", DType::Float);
            take(0)
                .fails(Code::InvalidArgument, "Argument num_required must be positive, but was 0");
            take(2).gives(Tensor::vector(&want));
            // The step is 1 now.
            apply(0, &[1.0, 2.0]).run().unwrap();
            op("NumAccumulated").gives(Tensor::scalar(0i32));
            op("SetGlobalStep").input(Tensor::scalar(5i64)).run().unwrap();
            apply(4, &[1.0, 2.0]).run().unwrap();
            apply(5, &[1.0, 2.0]).run().unwrap();
            op("NumAccumulated").gives(Tensor::scalar(1i32));
        }
    }

    #[test]
    fn takers_are_served_in_order() {
        let acc = Accumulator::new(DType::Float, PartialShape::scalar(), true, false);
        let token = CancelToken::new();
        let take = |required: i64, token: &CancelToken| {
            let (pending, done) = Pending::new();
            acc.monitor.start(token, 0, Take { required }, &InlineScope::unknown(), done);
            pending
        };
        let (cancelled, live) = (take(2, &token), CancelToken::new());
        let (two, one) = (take(2, &live), take(1, &live));
        token.cancel(err!(Cancelled, "stop"));
        let e = cancelled.wait().unwrap_err();
        assert_eq!((e.code(), e.message()), (Code::Cancelled, "TakeGrad operation was cancelled"));
        let apply = |x: f32| {
            acc.monitor
                .change(&InlineScope::unknown(), |s| s.apply_dense(Tensor::scalar(x)))
                .unwrap()
        };
        apply(1.0);
        assert!(!two.is_finished() && !one.is_finished());
        apply(3.0);
        assert_eq!(two.wait().unwrap()[0], Tensor::scalar(2.0f32));
        assert!(!one.is_finished());
        apply(7.0);
        assert_eq!(one.wait().unwrap()[0], Tensor::scalar(7.0f32));
    }

    #[test]
    fn sparse_gradients_are_averaged_row_by_row() {
        let resources = Arc::new(Resources::new());
        let shape = PartialShape::new([None, Some(2)]);
        let acc = new("SparseConditionalAccumulator", &resources, shape, "MEAN");
        let apply = |indices: &[i64], values: &[f32], dim: usize, shape: &[i64]| {
            on("SparseAccumulatorApplyGradient", &resources, &acc)
                .input(Tensor::scalar(0i64))
                .input(Tensor::vector(indices))
                .input(Tensor::from_slice([values.len() / dim, dim], values).unwrap())
                .input(Tensor::vector(shape))
                .attr("has_known_shape", true)
        };
        apply(&[1, 2], &[10.0, 20.0, 30.0, 40.0], 2, &[5, 2]).run().unwrap();
        apply(&[0, 2], &[1.0, 2.0, 3.0, 4.0], 2, &[5, 2]).run().unwrap();
        let fails = |check: Check<'static>, text: &str| check.fails(Code::InvalidArgument, text);
        fails(
            apply(&[0], &[1.0, 2.0, 3.0], 3, &[5, 3]),
            "Shape mismatch: expected shape dim 1 to be 2, got 3",
        );
        fails(
            apply(&[0], &[1.0, 2.0, 3.0], 3, &[5, 2]),
            "Shape mismatch: expected values dim 1 to be 2, got 3",
        );
        fails(apply(&[0, 2], &[1.0, 2.0], 2, &[5, 2]), "Expected 2 non-empty input values, got 1");
        let got = on("SparseAccumulatorTakeGradient", &resources, &acc)
            .input(Tensor::scalar(1i32))
            .attr("dtype", DType::Float)
            .run()
            .unwrap();
        assert_eq!(got[0], Tensor::vector(&[0i64, 1, 2]));
        let want = [1.0f32, 2.0, 10.0, 20.0, 16.5, 22.0];
        assert_eq!(got[1], Tensor::from_slice([3, 2], &want).unwrap());
        assert_eq!(got[2], Tensor::vector(&[-1i64, 2]));
    }
}
