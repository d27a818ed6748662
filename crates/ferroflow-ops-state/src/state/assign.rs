//! Adding to and subtracting from variables, and counting with them.

use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, elementwise::Elementwise};
use ferroflow_op_kit::handle::Target;
use ferroflow_op_kit::parallel::split_mut;
use std::marker::PhantomData;

struct Change<T> {
    target: Target,
    sign: Sign,
    of: PhantomData<fn(T)>,
}

impl<T: Num> Kernel for Change<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variable = self.target.get(ctx)?;
        let delta = ctx.take(1)?;
        variable.modify(|value| {
            check_shapes(&self.target, value, &delta)?;
            // A separate loop for each, so that the compiler vectorises it.
            match self.sign {
                Sign::Plus => apply(value, delta, T::add),
                Sign::Minus => apply(value, delta, T::sub),
            }
        })?;
        self.target.pass_on(ctx, variable)
    }
}

/// The update must have the shape of the variable.
fn check_shapes(target: &Target, value: &Tensor, delta: &Tensor) -> Result<()> {
    if value.shape() == delta.shape() {
        return Ok(());
    }
    match target {
        Target::Ref(_) => bail!(InvalidArgument, "Parameters and update must be the same size"),
        Target::Resource(..) => bail!(
            InvalidArgument,
            "Cannot update variable with shape {} using a Tensor with shape {}, shapes must be \
                 equal.",
            value.shape(),
            delta.shape()
        ),
    }
}

/// `value = apply(value, delta)`, in the storage of one of the two that is unshared.
fn apply<T: Num>(
    value: &mut Tensor,
    mut delta: Tensor,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    if value.is_unique() || !delta.is_unique() {
        let delta = delta.as_slice::<T>()?;
        split_mut(value.as_mut_slice::<T>()?, 1, 1, |from, part| {
            for (x, d) in part.iter_mut().zip(&delta[from..]) {
                *x = f(*x, *d);
            }
        });
    } else {
        let old = value.as_slice::<T>()?;
        split_mut(delta.as_mut_slice::<T>()?, 1, 1, |from, part| {
            for (d, x) in part.iter_mut().zip(&old[from..]) {
                *d = f(*x, *d);
            }
        });
        *value = delta;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

impl<T: Num> Change<T> {
    fn new(init: &KernelInit<'_>, sign: Sign) -> Change<T> {
        Change { target: Target::new(init, 0), sign, of: PhantomData }
    }
}

fn change(sign: Sign) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        if init.contains("T") {
            per_dtype!(NUMBER, "T", init, T => Change::<T>::new(init, sign))(init)
        } else {
            per_dtype!(NUMBER, "dtype", init, T => Change::<T>::new(init, sign))(init)
        }
    }
}

/// [`Change`] on a GPU.
fn change_on_device(init: &KernelInit<'_>, formula: &str, dtype: DType) -> Result<KernelBox> {
    let kernel = Elementwise::of(init, &[dtype, dtype], dtype, formula)?;
    let target = Target::new(init, 0);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let variable = target.get(ctx)?;
        let delta = ctx.take(1)?;
        let gpu = ctx.gpu()?;
        variable.modify(|value| {
            check_shapes(&target, value, &delta)?;
            if value.is_unique() {
                return kernel.run_into(gpu, &[value, &delta], value);
            }
            *value = kernel.run(gpu, vec![value.clone(), delta])?;
            Ok(())
        })?;
        target.pass_on(ctx, variable)
    }))
}

struct CountUpTo {
    target: Target,
    limit: i64,
}

impl Kernel for CountUpTo {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variable = self.target.get(ctx)?;
        let before = variable.modify(|value| {
            ensure!(value.rank() == 0, InvalidArgument, "input is not a scalar: {}", value.shape());
            let now = value.scalar_index()?;
            ensure!(now < self.limit, OutOfRange, "Reached limit of {}", self.limit);
            let next = match value.dtype() {
                DType::Int32 => Tensor::scalar((now + 1) as i32),
                _ => Tensor::scalar(now + 1),
            };
            Ok(std::mem::replace(value, next))
        })?;
        ctx.set(0, before)
    }
}

fn count_up_to(init: &KernelInit<'_>) -> Result<KernelBox> {
    let limit = init.int("limit")?;
    Ok(KernelBox::new(CountUpTo { target: Target::new(init, 0), limit }))
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, doc, text, sign) in [
        ("AssignAdd", "Adds to a variable.", "x + y", Sign::Plus),
        ("AssignSub", "Subtracts from a variable.", "x - y", Sign::Minus),
    ] {
        c.op(name)
            .doc(doc)
            .input("ref: Ref(T)")
            .input("value: T")
            .output("output_ref: Ref(T)")
            .attr("T: numbertype")
            .attr("use_locking: bool = false")
            .shape(shape::merged_inputs)
            .gpu(gpu::REAL, move |init| change_on_device(init, text, init.dtype("T")?))
            .cpu(change(sign));
        c.op(&format!("{name}VariableOp"))
            .doc(doc)
            .input("resource: resource")
            .input("value: dtype")
            .attr("dtype: type")
            .stateful()
            .shape(shape::unknown)
            .gpu(gpu::REAL_DTYPE, move |init| change_on_device(init, text, init.dtype("dtype")?))
            .cpu(change(sign));
    }
    for is_ref in [true, false] {
        let op = match is_ref {
            true => c.op("CountUpTo").input("ref: Ref(T)"),
            false => c.op("ResourceCountUpTo").input("resource: resource").stateful(),
        };
        op.doc("The value of a scalar variable, which is one more then, as long as it is below a limit.")
            .output("output: T")
            .attr("limit: int")
            .attr("T: {int32, int64}")
            .shape(shape::scalar)
            .cpu(count_up_to);
    }
    c.no_gradient(&["AssignAdd", "AssignSub"]);
}

#[cfg(test)]
mod tests {
    use super::super::testing::Held;
    use super::*;
    use crate::testing::check;

    #[test]
    fn variables_are_changed_in_place_or_beside_their_snapshots() {
        for held in Held::both(Tensor::vector(&[1.0f32, 2.0])) {
            let op = held.op("AssignAdd", "AssignAddVariableOp");
            held.on(op).input(Tensor::vector(&[10.0f32, 20.0])).run_values().unwrap();
            let snapshot = held.value();
            let op = held.op("AssignSub", "AssignSubVariableOp");
            held.on(op).input(Tensor::vector(&[1.0f32, 1.0])).run_values().unwrap();
            assert_eq!(snapshot, Tensor::vector(&[11.0f32, 22.0]));
            assert_eq!(held.value(), Tensor::vector(&[10.0f32, 21.0]));
            let text = held.op(
                "Parameters and update must be the same size",
                "Cannot update variable with shape [2] using a Tensor with shape [1], shapes must \
                 be equal.",
            );
            let op = held.op("AssignSub", "AssignSubVariableOp");
            held.on(op).input(Tensor::vector(&[1.0f32])).fails(Code::InvalidArgument, text);
        }
    }

    #[test]
    fn integers_wrap_and_complex_numbers_add() {
        let held = Held::by_ref(Tensor::vector(&[i32::MAX]));
        held.on("AssignAdd").input(Tensor::vector(&[1i32])).run_values().unwrap();
        assert_eq!(held.value(), Tensor::vector(&[i32::MIN]));
        let held = Held::by_ref(Tensor::scalar(Complex32::new(1.0, 2.0)));
        held.on("AssignSub").input(Tensor::scalar(Complex32::new(0.0, 5.0))).run_values().unwrap();
        assert_eq!(held.value(), Tensor::scalar(Complex32::new(1.0, -3.0)));
    }

    #[test]
    fn an_uninitialized_variable_cannot_be_added_to() {
        let v = Arc::new(StoredVariable::new("v", DType::Float, PartialShape::scalar()));
        check("AssignAdd")
            .ref_input(v)
            .input(Tensor::scalar(1.0f32))
            .fails(Code::FailedPrecondition, "Attempting to use uninitialized value v");
        let handle = Tensor::handle(ResourceHandle { name: "v".into(), ..Default::default() });
        check("AssignAddVariableOp")
            .input(handle)
            .input(Tensor::scalar(1.0f32))
            .fails(Code::NotFound, "v");
    }

    #[test]
    fn counting_ends_at_the_limit() {
        for held in Held::both(Tensor::scalar(1i64)) {
            let op = held.op("CountUpTo", "ResourceCountUpTo");
            let count = || held.on(op).attr("limit", 3).attr("T", DType::Int64);
            count().gives(Tensor::scalar(1i64));
            count().gives(Tensor::scalar(2i64));
            count().fails(Code::OutOfRange, "Reached limit of 3");
            assert_eq!(held.value(), Tensor::scalar(3i64));
        }
    }
}
