//! Kernels that apply a formula element by element: one tensor in place, one into another dtype,
//! two with broadcasting.

use super::broadcast::{Broadcast, incompatible};
use super::lanes::{Lane, Lanes};
use super::stream::split_new;
use crate::prelude::*;
use ferroflow_op_kit::parallel::split_mut;
use ferroflow_op_kit::vector::{self, Binary, Unary};
use smallvec::SmallVec;

/// Elements handled at a time when an operand is copied or repeated. The copy stays in the nearest
/// cache.
const BLOCK: usize = 1024;
/// Runs shorter than this are gathered into blocks.
const SHORT_RUN: usize = 16;

/// `y = F(x)` in the input's own storage where possible.
pub struct UnaryKernel<W: Element, T: Lanes<W>> {
    f: fn(&[W], &mut [W]),
    cost: usize,
    of: std::marker::PhantomData<T>,
}

/// The kernel of `F` for dtype `T`.
pub fn unary<F: Unary<T::Wide>, T: Lane>() -> UnaryKernel<T::Wide, T> {
    unary_in::<F, T::Wide, T>()
}

/// The kernel of `F` for dtype `T`, computed in `W`.
pub fn unary_in<F: Unary<W>, W: Element, T: Lanes<W>>() -> UnaryKernel<W, T> {
    let f = vector::map::<F, W, W>;
    UnaryKernel { f, cost: F::COST, of: std::marker::PhantomData }
}

impl<W: Element, T: Lanes<W>> Kernel for UnaryKernel<W, T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let mut x = ctx.take(0)?;
        if x.is_unique() {
            split_mut(x.as_mut_slice::<T>()?, 1, self.cost, |_, part| {
                let mut old = Scratch::<T>::new();
                for block in part.chunks_mut(BLOCK) {
                    T::map(self.f, copied(block, &mut old), block);
                }
            });
            return ctx.set(0, x);
        }
        let mut y = ctx.alloc(x.dtype(), x.shape().clone())?;
        let from = x.as_slice::<T>()?;
        split_new(y.as_mut_slice::<T>()?, self.cost, |first, part| {
            T::map(self.f, &from[first..first + part.len()], part)
        });
        ctx.set(0, y)
    }
}

/// `y = F(x)` into a tensor of another dtype.
pub(crate) struct MapKernel<T, U> {
    f: fn(&[T], &mut [U]),
    cost: usize,
}

/// The kernel of `F` from dtype `T` to `U`.
pub(crate) fn map<F: Unary<T, U>, T: Element, U: Element>() -> MapKernel<T, U> {
    MapKernel { f: vector::map::<F, T, U>, cost: F::COST }
}

impl<T: Element, U: Element> Kernel for MapKernel<T, U> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        let mut y = ctx.alloc(U::DTYPE, x.shape().clone())?;
        let from = x.as_slice::<T>()?;
        split_new(y.as_mut_slice::<U>()?, self.cost, |first, part| {
            (self.f)(&from[first..first + part.len()], part)
        });
        ctx.set(0, y)
    }
}

/// `z = F(x, y)` with broadcasting, in the storage of an input where possible.
pub struct BinaryKernel<W: Element, T: Lanes<W>> {
    f: fn(&[W], &[W], &mut [W]),
    cost: usize,
    of: std::marker::PhantomData<T>,
}

/// The kernel of `F` for dtype `T`.
pub fn binary<F: Binary<T::Wide>, T: Lane>() -> BinaryKernel<T::Wide, T> {
    binary_in::<F, T::Wide, T>()
}

/// The kernel of `F` for dtype `T`, computed in `W`.
pub fn binary_in<F: Binary<W>, W: Element, T: Lanes<W>>() -> BinaryKernel<W, T> {
    let f = vector::zip::<F, W, W>;
    BinaryKernel { f, cost: F::COST, of: std::marker::PhantomData }
}

impl<W: Element, T: Lanes<W>> Kernel for BinaryKernel<W, T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        if ctx.input(0)?.rank() == 0 && ctx.input(1)?.rank() == 0 {
            return self.compute_one(ctx);
        }
        match direct(ctx)? {
            Some(repeated) => self.compute_direct(ctx, repeated),
            None => {
                let plan = plan(ctx)?;
                self.compute_as(ctx, &plan)
            }
        }
    }
}

/// Whether inputs 0 and 1 need no broadcast plan: neither is repeated, or one is a scalar.
fn direct(ctx: &Ctx<'_>) -> Result<Option<Option<usize>>> {
    let (a, b) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
    Ok(match (a.rank(), b.rank()) {
        (0, 0) => Some(None),
        (_, 0) => Some(Some(1)),
        (0, _) => Some(Some(0)),
        _ => (a == b).then_some(None),
    })
}

impl<W: Element, T: Lanes<W>> BinaryKernel<W, T> {
    /// [`Kernel::compute`] of two scalars, which are frequent in loops and counters.
    fn compute_one(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let inputs = [ctx.take(0)?, ctx.take(1)?];
        let (x, y) = ([inputs[0].scalar_value::<T>()?], [inputs[1].scalar_value::<T>()?]);
        let mut z = [T::default()];
        T::zip(self.f, &x, &y, &mut z);
        for mut input in inputs {
            if input.is_unique() {
                input.as_mut_slice::<T>()?.copy_from_slice(&z);
                return ctx.set(0, input);
            }
        }
        ctx.set(0, Tensor::from_slice(Shape::scalar(), &z)?)
    }

    /// [`Kernel::compute`] where both inputs have one shape, except for a scalar that is
    /// `repeated`. Fast for the many small tensors: tens of nanoseconds beside the elements.
    pub fn compute_direct(&self, ctx: &mut Ctx<'_>, repeated: Option<usize>) -> Result<()> {
        let f = |a: &[T], b: &[T], out: &mut [T]| T::zip(self.f, a, b, out);
        let mut inputs = [ctx.take(0)?, ctx.take(1)?];
        for i in (0..2).filter(|i| repeated != Some(*i)) {
            if !inputs[i].is_unique() {
                continue;
            }
            let [a, b] = &mut inputs;
            let (out, other) = if i == 0 { (a, b) } else { (b, a) };
            let other = side::<T>(other, repeated.is_some())?;
            let sides = if i == 0 { [Side::Old, other] } else { [other, Side::Old] };
            zip_sides(sides, out.as_mut_slice()?, |old| old, self.cost, &f);
            let [a, b] = inputs;
            return ctx.set(0, if i == 0 { a } else { b });
        }
        let whole = usize::from(repeated == Some(0));
        let mut out = ctx.alloc(T::DTYPE, inputs[whole].shape().clone())?;
        let sides = [
            side::<T>(&inputs[0], repeated == Some(0))?,
            side::<T>(&inputs[1], repeated == Some(1))?,
        ];
        zip_sides(sides, out.as_mut_slice()?, |old| old, self.cost, &f);
        ctx.set(0, out)
    }

    /// [`Kernel::compute`] for a known broadcast.
    pub(crate) fn compute_as(&self, ctx: &mut Ctx<'_>, plan: &Broadcast<2>) -> Result<()> {
        let f = |a: &[T], b: &[T], out: &mut [T]| T::zip(self.f, a, b, out);
        let (mut out, reused) = ctx.reuse_or_alloc(&[0, 1], T::DTYPE, plan.shape())?;
        let z = out.as_mut_slice::<T>()?;
        let operand = |k: usize| match reused {
            Some(i) if i == k => Ok(Operand::Old),
            _ => ctx.input(k)?.as_slice::<T>().map(Operand::Given),
        };
        zip_broadcast(plan, [operand(0)?, operand(1)?], z, |old| old, self.cost, &f);
        ctx.set(0, out)
    }
}

/// `z = F(x, y)` with broadcasting, into a tensor of another dtype.
pub(crate) struct CompareKernel<T, U> {
    f: fn(&[T], &[T], &mut [U]),
    cost: usize,
}

/// The kernel of `F` from dtype `T` to `U`.
pub(crate) fn compare<F: Binary<T, U>, T: Element, U: Element>() -> CompareKernel<T, U> {
    CompareKernel { f: vector::zip::<F, T, U>, cost: F::COST }
}

impl<T: Element, U: Element> Kernel for CompareKernel<T, U> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        if let Some(repeated) = direct(ctx)? {
            let (a, b) = (ctx.input(0)?, ctx.input(1)?);
            let whole = if repeated == Some(0) { b } else { a };
            let mut out = ctx.alloc(U::DTYPE, whole.shape().clone())?;
            let sides = [side(a, repeated == Some(0))?, side(b, repeated == Some(1))?];
            zip_sides(sides, out.as_mut_slice()?, |_| &[], self.cost, &self.f);
            return ctx.set(0, out);
        }
        let plan = plan(ctx)?;
        let mut out = ctx.alloc(U::DTYPE, plan.shape().clone())?;
        let operands = [
            Operand::Given(ctx.input(0)?.as_slice::<T>()?),
            Operand::Given(ctx.input(1)?.as_slice::<T>()?),
        ];
        zip_broadcast(&plan, operands, out.as_mut_slice()?, |_| &[], self.cost, &self.f);
        ctx.set(0, out)
    }
}

/// How inputs 0 and 1 broadcast; an error when they do not.
pub(crate) fn plan(ctx: &Ctx<'_>) -> Result<Broadcast<2>> {
    let (a, b) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
    let plan = Broadcast::new([a, b]).ok_or_else(|| incompatible(a, b))?;
    plan.shape().checked_elements()?;
    Ok(plan)
}

/// An operand that has the layout of the result, or one element for all of it.
#[derive(Clone, Copy)]
enum Side<'a, T> {
    Given(&'a [T]),
    One(T),
    /// The former contents of the result's storage.
    Old,
}

fn side<T: Element>(t: &Tensor, is_one: bool) -> Result<Side<'_, T>> {
    Ok(if is_one { Side::One(t.scalar_value()?) } else { Side::Given(t.as_slice()?) })
}

/// `out = f(a, b)`. `old` is as in [`zip_broadcast`].
fn zip_sides<T: Element, U: Element>(
    sides: [Side<'_, T>; 2],
    out: &mut [U],
    old: fn(&[U]) -> &[T],
    cost: usize,
    f: &(dyn Fn(&[T], &[T], &mut [U]) + Sync),
) {
    if let [Side::Given(a), Side::Given(b)] = sides {
        return split_new(out, cost, |first, out| {
            let range = first..first + out.len();
            f(&a[range.clone()], &b[range], out);
        });
    }
    split_mut(out, 1, cost, |first, out| {
        let (mut s, mut t) = (Scratch::<T>::new(), Scratch::<T>::new());
        let mut at = first;
        for block in out.chunks_mut(BLOCK) {
            let (a, b) = (
                part_of_side(sides[0], at, old(block), block.len(), &mut s),
                part_of_side(sides[1], at, old(block), block.len(), &mut t),
            );
            f(a, b, block);
            at += block.len();
        }
    });
}

/// `n` elements of an operand from `at` on.
fn part_of_side<'a, T: Element>(
    side: Side<'a, T>,
    at: usize,
    old: &[T],
    n: usize,
    scratch: &'a mut Scratch<T>,
) -> &'a [T] {
    match side {
        Side::Given(x) => &x[at..at + n],
        Side::One(x) => {
            // The first block is the longest.
            if scratch.is_empty() {
                scratch.resize(n, x);
            }
            &scratch[..n]
        }
        Side::Old => copied(old, scratch),
    }
}

/// Where the elements of an operand are.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a, T> {
    Given(&'a [T]),
    /// The former contents of the result's storage; the operand has the layout of the result.
    Old,
}

/// `out = f(a, b)` with broadcasting, over slices. `old` views the result's former elements as the
/// operands' (they are of one type where [`Operand::Old`] is used).
pub(crate) fn zip_broadcast<T: Element, U: Element>(
    plan: &Broadcast<2>,
    operands: [Operand<'_, T>; 2],
    out: &mut [U],
    old: fn(&[U]) -> &[T],
    cost: usize,
    f: &(dyn Fn(&[T], &[T], &mut [U]) + Sync),
) {
    let gathers = plan.run_len() < SHORT_RUN && plan.run_len() < out.len();
    split_mut(out, 1, cost, |first, out| {
        let mut scratch: [Scratch<T>; 2] = Default::default();
        let [s, t] = &mut scratch;
        if gathers {
            let mut at = first;
            for block in out.chunks_mut(BLOCK) {
                let a = gathered(plan, 0, operands[0], at, old(block), block.len(), s);
                let b = gathered(plan, 1, operands[1], at, old(block), block.len(), t);
                f(a, b, block);
                at += block.len();
            }
            return;
        }
        plan.runs(first..first + out.len(), |at, offsets, len| {
            let out = &mut out[at - first..at - first + len];
            let is_direct =
                |k: usize| matches!(operands[k], Operand::Given(_)) && !plan.repeats_in_run(k);
            let step = if is_direct(0) && is_direct(1) { len } else { BLOCK };
            let mut done = 0;
            for block in out.chunks_mut(step) {
                let n = block.len();
                let a = part_of_run(plan, 0, operands[0], offsets[0], done, old(block), n, s);
                let b = part_of_run(plan, 1, operands[1], offsets[1], done, old(block), n, t);
                f(a, b, block);
                done += n;
            }
        });
    });
}

/// Room for a block of an operand.
type Scratch<T> = SmallVec<[T; 64]>;

/// `n` elements of an operand from `done` within a run whose elements start at `offset`.
fn part_of_run<'a, T: Element>(
    plan: &Broadcast<2>,
    k: usize,
    operand: Operand<'a, T>,
    offset: usize,
    done: usize,
    old: &[T],
    n: usize,
    scratch: &'a mut Scratch<T>,
) -> &'a [T] {
    match operand {
        Operand::Given(x) if plan.repeats_in_run(k) => {
            // The first block of a run is the longest.
            if done == 0 {
                scratch.clear();
                scratch.resize(n, x[offset]);
            }
            &scratch[..n]
        }
        Operand::Given(x) => &x[offset + done..offset + done + n],
        Operand::Old => copied(old, scratch),
    }
}

/// The elements of an operand for the result's elements `at..at + n`.
fn gathered<'a, T: Element>(
    plan: &Broadcast<2>,
    k: usize,
    operand: Operand<'a, T>,
    at: usize,
    old: &[T],
    n: usize,
    scratch: &'a mut Scratch<T>,
) -> &'a [T] {
    match operand {
        Operand::Given(x) if plan.is_whole(k) => &x[at..at + n],
        Operand::Given(x) => {
            scratch.clear();
            let repeats = plan.repeats_in_run(k);
            plan.runs(at..at + n, |_, offsets, len| {
                let from = offsets[k];
                if repeats {
                    scratch.resize(scratch.len() + len, x[from]);
                } else {
                    scratch.extend_from_slice(&x[from..from + len]);
                }
            });
            scratch
        }
        Operand::Old => copied(old, scratch),
    }
}

fn copied<'a, T: Element>(from: &[T], scratch: &'a mut Scratch<T>) -> &'a [T] {
    scratch.clear();
    scratch.extend_from_slice(from);
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn large_and_odd_shapes_broadcast() {
        // Crosses blocks and threads; the expected value of element (i, j) is a[i] * 1000 + b[j].
        for (rows, columns) in [(7, 4099), (70_001, 3), (300, 300)] {
            let a: Vec<f64> = (0..rows).map(|i| 1000.0 * i as f64).collect();
            let b: Vec<f64> = (0..columns).map(|j| j as f64).collect();
            let want: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x + y)).collect();
            let a = Tensor::from_slice([rows, 1], &a).unwrap();
            let b = Tensor::from_slice([columns], &b).unwrap();
            let want = Tensor::from_slice([rows, columns], &want).unwrap();
            check("AddV2").input(a.clone()).input(b.clone()).gives(want.clone());
            check("AddV2").input(b.clone()).input(a).gives(want.clone());
            let zeros = Tensor::zeros(DType::Double, [rows, columns]).unwrap();
            let row = check("Sub").input(zeros.clone()).input(b.clone()).run().unwrap();
            let back = check("Sub").input(b).input(zeros).run().unwrap();
            let (row, back) =
                (row[0].as_slice::<f64>().unwrap(), back[0].as_slice::<f64>().unwrap());
            assert!(
                row.iter()
                    .zip(back)
                    .enumerate()
                    .all(|(i, (x, y))| { *y == (i % columns) as f64 && *x == -*y })
            );
        }
    }

    #[test]
    fn an_unshared_input_lends_its_storage() {
        let x = Tensor::vector(&[1.0f32; 5000]);
        let before = x.bytes().unwrap().as_ptr();
        let y = check("Neg").input(x).run().unwrap();
        assert_eq!(y[0].bytes().unwrap().as_ptr(), before);
        assert_eq!(y[0].as_slice::<f32>().unwrap(), [-1.0; 5000]);
        let x = Tensor::vector(&[3.0f32; 5000]);
        let before = x.bytes().unwrap().as_ptr();
        let y = check("Sub").input(Tensor::scalar(1.0f32)).input(x).run().unwrap();
        assert_eq!(y[0].bytes().unwrap().as_ptr(), before);
        assert_eq!(y[0].as_slice::<f32>().unwrap(), [-2.0; 5000]);
    }

    #[test]
    fn a_shared_input_is_left_alone() {
        let x = Tensor::vector(&[1.0f32, 2.0]);
        let y = check("Neg").input(x.clone()).run().unwrap();
        assert_eq!(x.as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(y[0].as_slice::<f32>().unwrap(), [-1.0, -2.0]);
    }

    #[test]
    fn halves_are_computed_in_f32_and_rounded_once() {
        let x: Vec<f16> = (0..1000).map(|i| f16::from_f32(i as f32 * 0.01)).collect();
        let want: Vec<f16> = x.iter().map(|x| f16::from_f32(x.to_f32().powi(2))).collect();
        check("Square").input(Tensor::vector(&x)).gives(Tensor::vector(&want));
        check("Mul")
            .input(Tensor::vector(&x))
            .input(Tensor::vector(&x))
            .gives(Tensor::vector(&want));
    }
}
