//! Optimizer steps: ops that update a variable, and the slots that go with it, by a gradient.
//!
//! An optimizer is a [`Rule`] for one element, and a [`Spec`] with the names and inputs of its ops.
//! Each rule serves up to four ops: on references or handles, with dense gradients or with
//! gradients of some rows.

use crate::prelude::*;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::gpu::{self, GpuTypes};
use ferroflow_op_kit::handle::{Target, modify_all};
use ferroflow_op_kit::multiversion;
use parking_lot::Mutex;

mod device;

mod adadelta;
mod adagrad;
mod adam;
mod descent;
mod ftrl;
mod momentum;
mod rmsprop;
mod sign;
#[cfg(test)]
mod testing;

pub(crate) fn register(c: &mut Catalog) {
    adadelta::register(c);
    adagrad::register(c);
    adam::register(c);
    descent::register(c);
    ftrl::register(c);
    momentum::register(c);
    rmsprop::register(c);
    sign::register(c);
}

/// Numbers that rules compute with: `f32`, also for half types, `f64`, and complex ones.
pub(super) trait Field:
    Copy
    + Send
    + Sync
    + 'static
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
    + std::ops::SubAssign
{
    const ZERO: Self;
    const ONE: Self;
    fn from_f64(x: f64) -> Self;
    fn sqrt(self) -> Self;
}

/// The numbers that have an order: not complex ones.
pub(super) trait Wide: Field + PartialOrd {
    fn powf(self, exponent: Self) -> Self;
    fn exp(self) -> Self;
    fn abs(self) -> Self;
    /// The larger; NaN if `self` is.
    fn at_least(self, other: Self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
}

macro_rules! wide {
    ($($t:ty: $complex:ty),*) => {$(
        impl Field for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline]
            fn from_f64(x: f64) -> Self { x as $t }
            #[inline]
            fn sqrt(self) -> Self { <$t>::sqrt(self) }
        }
        impl Field for $complex {
            const ZERO: Self = <$complex>::new(0.0, 0.0);
            const ONE: Self = <$complex>::new(1.0, 0.0);
            #[inline]
            fn from_f64(x: f64) -> Self { <$complex>::new(x as $t, 0.0) }
            #[inline]
            fn sqrt(self) -> Self { <$complex>::sqrt(self) }
        }
        impl Wide for $t {
            #[inline]
            fn powf(self, exponent: Self) -> Self { <$t>::powf(self, exponent) }
            #[inline]
            fn exp(self) -> Self { <$t>::exp(self) }
            #[inline]
            fn abs(self) -> Self { <$t>::abs(self) }
            #[inline]
            fn at_least(self, other: Self) -> Self { if self < other { other } else { self } }
            #[inline]
            fn sign(self) -> Self {
                if self > 0.0 { 1.0 } else if self < 0.0 { -1.0 } else { self }
            }
        }
        impl Held for $complex {
            type Wide = $complex;
            #[inline]
            fn wide(self) -> $complex { self }
            #[inline]
            fn narrow(x: $complex) -> $complex { x }
        }
    )*};
}
wide!(f32: Complex32, f64: Complex64);

/// The element type of variables, and the type that rules compute in.
pub(super) trait Held: Element {
    type Wide: Field;
    fn wide(self) -> Self::Wide;
    fn narrow(x: Self::Wide) -> Self;
}

macro_rules! held {
    ($($t:ty),*) => {$(
        impl Held for $t {
            type Wide = <$t as Float>::Wide;
            #[inline]
            fn wide(self) -> Self::Wide { Float::wide(self) }
            #[inline]
            fn narrow(x: Self::Wide) -> $t { <$t as Float>::narrow(x) }
        }
    )*};
}
held!(f16, bf16, f32, f64);

/// What an optimizer does to one element of the variable and of its `N - 1` slots.
pub(super) trait Rule<W, const N: usize>: Sync {
    /// Approximate nanoseconds for an element that is in the cache.
    const COST: usize = 0;
    fn step(&self, slots: &mut [W; N], gradient: W);
}

/// The ops of an optimizer.
pub(super) struct Spec {
    /// The part of their names after `Apply`.
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    /// The variable and its slots.
    pub(super) slots: &'static [&'static str],
    /// The other inputs of the dense ops: scalars and, as `grad` or `delta`, the gradient.
    pub(super) args: &'static [&'static str],
    /// An attribute that is a choice, with its default.
    pub(super) choice: Option<(&'static str, bool)>,
    /// The step of the dense ops for an element on a GPU: statements over the slots, the scalars
    /// and the gradient by their names, and `choice`. `W` is the type of the computation.
    pub(super) text: Option<&'static str>,
    pub(super) has_ref: bool,
    pub(super) has_dense: bool,
    pub(super) has_sparse: bool,
}

impl Spec {
    /// Most optimizers have dense ops alone, on references and handles.
    pub(super) const DENSE: Spec = Spec {
        name: "",
        doc: "",
        slots: &[],
        args: &[],
        choice: None,
        text: None,
        has_ref: true,
        has_dense: true,
        has_sparse: false,
    };

    /// The other inputs, those of sparse ops included.
    pub(super) fn inputs(&self, sparse: bool) -> Vec<&'static str> {
        let is_gradient = |arg: &&str| ["grad", "delta"].contains(arg);
        match sparse {
            false => self.args.to_vec(),
            true => self
                .args
                .iter()
                .flat_map(|arg| if is_gradient(arg) { vec!["grad", "indices"] } else { vec![*arg] })
                .collect(),
        }
    }
}

const SPARSE_ON_GPU: GpuTypes = &[("T", gpu::FLOATS), ("Tindices", gpu::INDEX)];

/// Declares the ops of an optimizer.
pub(super) fn declare(
    c: &mut Catalog,
    spec: &'static Spec,
    kernel: fn(&KernelInit<'_>) -> Result<KernelBox>,
) {
    let forms = [(spec.has_dense, false, "Apply"), (spec.has_sparse, true, "SparseApply")];
    for (_, sparse, verb) in forms.into_iter().filter(|form| form.0) {
        for by_ref in [true, false] {
            if by_ref && !spec.has_ref {
                continue;
            }
            let prefix = if by_ref { "" } else { "Resource" };
            let mut op = c.op(&format!("{prefix}{verb}{}", spec.name)).doc(spec.doc);
            for slot in spec.slots {
                op = op.input(&format!("{slot}: {}", if by_ref { "Ref(T)" } else { "resource" }));
            }
            for input in spec.inputs(sparse) {
                let kind = match input {
                    "indices" => "Tindices",
                    "global_step" => "int64",
                    _ => "T",
                };
                op = op.input(&format!("{input}: {kind}"));
            }
            op = op.attr("T: numbertype");
            if sparse {
                op = op.attr("Tindices: {int32, int64}");
            }
            op = op.attr("use_locking: bool = false");
            if let Some((name, default)) = spec.choice {
                op = op.attr(&format!("{name}: bool = {default}"));
            }
            op = if by_ref {
                op.output("out: Ref(T)").shape(|c| Ok(vec![c.input(0)]))
            } else {
                op.stateful().shape(shape::unknown)
            };
            if spec.text.is_some() {
                let types = if sparse { SPARSE_ON_GPU } else { gpu::FLOAT };
                op = op.gpu(types, move |init| device::apply(init, spec));
                if !sparse {
                    op = op.gpu_joins(&device::shared_inputs(spec));
                }
            }
            op.expensive().cpu(kernel);
        }
    }
}

/// The kernel of an optimizer's op.
pub(super) struct Apply<T: Held, R, const N: usize> {
    spec: &'static Spec,
    targets: [Target; N],
    /// The names of inputs `N..`.
    inputs: Vec<&'static str>,
    choice: bool,
    /// Makes the rule from the scalars, in the order of the inputs, and the choice.
    make: fn(&[T::Wide], bool) -> R,
}

impl<T: Held, R, const N: usize> Apply<T, R, N> {
    pub(super) fn new(
        init: &KernelInit<'_>,
        spec: &'static Spec,
        make: fn(&[T::Wide], bool) -> R,
    ) -> Result<Apply<T, R, N>> {
        let choice = match spec.choice {
            Some((name, _)) => init.bool(name)?,
            None => false,
        };
        Ok(Apply {
            spec,
            targets: std::array::from_fn(|i| Target::new(init, i)),
            inputs: spec.inputs(init.contains("Tindices")),
            choice,
            make,
        })
    }
}

impl<T: Held, R: Rule<T::Wide, N> + 'static, const N: usize> Kernel for Apply<T, R, N> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variables: Vec<Arc<StoredVariable>> =
            self.targets.iter().map(|t| variable(t, ctx)).collect::<Result<_>>()?;
        let (mut scalars, mut gradient, mut indices) = (Vec::new(), None, None);
        for (i, &name) in self.inputs.iter().enumerate() {
            let input = ctx.input(N + i)?;
            match name {
                "grad" | "delta" => gradient = Some((name, input)),
                "indices" => indices = Some(input),
                _ => scalars.push(scalar::<T>(input, name)?),
            }
        }
        let (name, gradient) =
            gradient.ok_or_else(|| err!(Internal, "an optimizer without a gradient"))?;
        let rule = (self.make)(&scalars, self.choice);
        modify_all(&variables, &mut |values| {
            self.check_slots(values)?;
            match indices {
                None => {
                    ensure!(
                        values[0].shape() == gradient.shape(),
                        InvalidArgument,
                        "var and {name} do not have the same shape{} {}",
                        values[0].shape(),
                        gradient.shape()
                    );
                    apply::<T, R, N>(&rule, slices(values)?, gradient.as_slice()?);
                    Ok(())
                }
                Some(indices) => apply_rows::<T, R, N>(&rule, values, gradient, indices),
            }
        })?;
        self.targets[0].pass_on(ctx, variables[0].clone())
    }
}

impl<T: Held, R, const N: usize> Apply<T, R, N> {
    fn check_slots(&self, values: &[&mut Tensor]) -> Result<()> {
        let var = &values[0];
        for (value, name) in values.iter().zip(self.spec.slots) {
            ensure!(
                value.dtype() == T::DTYPE,
                InvalidArgument,
                "{name} is of type {}, not {}",
                value.dtype(),
                T::DTYPE
            );
            ensure!(
                value.shape() == var.shape(),
                InvalidArgument,
                "var and {name} do not have the same shape{} {}",
                var.shape(),
                value.shape()
            );
        }
        Ok(())
    }
}

/// The variable of a target, which must be there and have a value.
fn variable(target: &Target, ctx: &Ctx<'_>) -> Result<Arc<StoredVariable>> {
    target.get(ctx).map_err(|e| match e.code() {
        Code::NotFound => {
            err!(FailedPrecondition, "Attempting to use uninitialized variables: {}", e.message())
        }
        _ => e,
    })
}

fn scalar<T: Held>(t: &Tensor, name: &str) -> Result<T::Wide> {
    ensure!(t.rank() == 0, InvalidArgument, "{name} is not a scalar: {}", t.shape());
    if t.dtype() == DType::Int64 {
        return Ok(Field::from_f64(t.scalar_index()? as f64));
    }
    Ok(t.scalar_value::<T>()?.wide())
}

fn slices<'a, T: Held, const N: usize>(values: &'a mut [&mut Tensor]) -> Result<[&'a mut [T]; N]> {
    let all: Result<Vec<&mut [T]>> = values.iter_mut().map(|t| t.as_mut_slice()).collect();
    all?.try_into().map_err(|_| err!(Internal, "an optimizer with another number of slots"))
}

/// Elements that one thread works on at a time.
const CHUNK: usize = 8 * 1024;

/// Applies the rule to every element, on several threads when there are many.
fn apply<T: Held, R: Rule<T::Wide, N>, const N: usize>(
    rule: &R,
    slots: [&mut [T]; N],
    gradient: &[T],
) {
    if gradient.len() <= 2 * CHUNK {
        return run::<T, T::Wide, R, N>(rule, slots, gradient);
    }
    let mut parts = slots.map(|slot| slot.chunks_mut(CHUNK));
    // One thread locks each part once, so the locks are never contended.
    let parts: Vec<(Mutex<[&mut [T]; N]>, &[T])> = gradient
        .chunks(CHUNK)
        .map(|g| {
            let part = std::array::from_fn(|k| parts[k].next().unwrap_or_default());
            (Mutex::new(part), g)
        })
        .collect();
    // Most rules wait for memory: about a nanosecond for 32 bytes that are read or written.
    let bytes = (2 * N + 1) * size_of::<T>();
    let converts = size_of::<T>() < size_of::<T::Wide>();
    let cost = CHUNK * bytes / 32 + CHUNK * (R::COST + 2 * usize::from(converts));
    ComputePool::parallel_for(parts.len(), cost, |range| {
        for (slots, gradient) in &parts[range] {
            run::<T, T::Wide, R, N>(rule, slots.lock().each_mut().map(|s| &mut **s), gradient);
        }
    });
}

/// The loop of [`run`] over the variable and its other slots, each by its name and number.
macro_rules! each {
    ($rule:ident, $gradient:ident, $($slot:ident $k:literal),*) => {{
        // The compiler sees that they have one length, so it checks no access.
        let n = $gradient.len();
        $(let $slot = &mut $slot[..n];)*
        for i in 0..n {
            let mut wide = [W::ZERO; N];
            $(wide[$k] = $slot[i].wide();)*
            $rule.step(&mut wide, $gradient[i].wide());
            $($slot[i] = T::narrow(wide[$k]);)*
        }
    }};
}

multiversion! {
    /// The innermost loop, over slices of one length.
    fn run[T: Held<Wide = W>, W: Field, R: Rule<W, N>, const N: usize]<T, W, R, N>(
        rule: &R, slots: [&mut [T]; N], gradient: &[T]
    ) {
        let mut slots = slots;
        match &mut slots[..] {
            [a] => each!(rule, gradient, a 0),
            [a, b] => each!(rule, gradient, a 0, b 1),
            [a, b, c] => each!(rule, gradient, a 0, b 1, c 2),
            [a, b, c, d] => each!(rule, gradient, a 0, b 1, c 2, d 3),
            _ => unreachable!("no optimizer has more slots"),
        }
    }
}

/// Applies the rule to the rows that `indices` name, one after the other.
fn apply_rows<T: Held, R: Rule<T::Wide, N>, const N: usize>(
    rule: &R,
    values: &mut [&mut Tensor],
    gradient: &Tensor,
    indices: &Tensor,
) -> Result<()> {
    let shape = values[0].shape().clone();
    let Some((&rows, row_dims)) = shape.split_first() else {
        bail!(InvalidArgument, "var must be at least 1 dimensional");
    };
    ensure!(indices.rank() == 1, InvalidArgument, "indices must be one-dimensional");
    let at = indices.to_indices()?;
    ensure!(
        gradient.shape().first() == Some(&at.len()),
        InvalidArgument,
        "grad must be the same size as indices in the first dimension."
    );
    for d in 1..shape.rank().max(gradient.rank()) {
        ensure!(
            shape.get(d) == gradient.shape().get(d),
            InvalidArgument,
            "var and grad must match in dimension {d}"
        );
    }
    for (offset, &i) in at.iter().enumerate() {
        ensure!(
            usize::try_from(i).is_ok_and(|i| i < rows),
            InvalidArgument,
            "Index {i} at offset {offset} in indices is out of range"
        );
    }
    let row: usize = row_dims.iter().product();
    if row == 0 {
        return Ok(());
    }
    let mut slots = slices::<T, N>(values)?;
    for (&i, gradient) in at.iter().zip(gradient.as_slice::<T>()?.chunks_exact(row)) {
        let from = i as usize * row;
        run::<T, T::Wide, R, N>(
            rule,
            slots.each_mut().map(|slot| &mut slot[from..from + row]),
            gradient,
        );
    }
    Ok(())
}
