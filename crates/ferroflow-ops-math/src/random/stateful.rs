//! Random ops whose stream is kept in a resource variable: the Stateful* ops, RngSkip,
//! RngReadAndSkip; and NonDeterministicInts.

use super::distribution::{Shaped, can_fill, fill, fill_range};
use super::{bounds, wanted_shape};
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, entropy};

const PHILOX: i64 = 1;
const AUTO_SELECT: i64 = 3;

/// Whether the algorithm is supported.
fn check_alg(alg: i64) -> Result<()> {
    ensure!(
        alg == PHILOX || alg == AUTO_SELECT,
        InvalidArgument,
        "Unsupported algorithm id: {alg}"
    );
    Ok(())
}

/// The algorithm in scalar input `i`.
fn algorithm(ctx: &Ctx<'_>, i: usize) -> Result<i64> {
    let t = ctx.input(i)?;
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "input {i} (0-based) must have shape [], not {}",
        t.shape()
    );
    t.scalar_index()
}

/// Takes `calls` calls from the stream in the variable that input 0 names: counter and key, after
/// an algorithm tag if `tagged`. Returns the stream before that.
pub(super) fn take(ctx: &Ctx<'_>, tagged: bool, calls: u64) -> Result<Philox> {
    let variable = ctx.resource::<StoredVariable>(0)?;
    variable.modify(|state| {
        ensure!(
            state.dtype() == DType::Int64,
            InvalidArgument,
            "dtype of RNG state variable must be int64, not {}",
            state.dtype()
        );
        ensure!(
            state.rank() == 1,
            InvalidArgument,
            "RNG state must have one and only one dimension, not {}",
            state.rank()
        );
        let words = state.as_mut_slice::<i64>()?;
        let words = match (words, tagged) {
            ([tag, rest @ ..], true) => {
                check_alg(*tag)?;
                rest
            }
            (words, false) => words,
            _ => bail!(InvalidArgument, "Size of tensor must be at least 1"),
        };
        let have = words.len() + usize::from(tagged);
        let [low, high, key, ..] = words else {
            bail!(
                InvalidArgument,
                "For the Philox algorithm, the size of state must be at least {}; got {have}",
                3 + usize::from(tagged)
            );
        };
        let before = Philox::from_words(*key as u64, [*low as u64, *high as u64]);
        let after = before.skipped(calls);
        [*low, *high] = after.counter_words().map(|w| w as i64);
        Ok(before)
    })
}

/// Takes as many calls as `outputs` values need.
fn take_outputs(ctx: &Ctx<'_>, tagged: bool, outputs: usize) -> Result<Philox> {
    take(ctx, tagged, (outputs as u64).wrapping_mul(256))
}

fn shaped(which: Shaped) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let dtype = init.dtype("dtype")?;
        if !can_fill(which, dtype) {
            return Err(unsupported(init, "dtype", dtype));
        }
        // The first version keeps the algorithm in the state and has no input for it.
        let tagged = init.inputs.len() == 2;
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            if !tagged {
                check_alg(algorithm(ctx, 1)?)?;
            }
            let shape = wanted_shape(ctx.input(if tagged { 1 } else { 2 })?)?;
            let mut out = ctx.alloc(dtype, shape)?;
            fill(which, take_outputs(ctx, tagged, out.elements())?, &mut out)?;
            ctx.set(0, out)
        }))
    }
}

fn uniform_int(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    if !matches!(dtype, DType::Int32 | DType::Int64) {
        return Err(unsupported(init, "dtype", dtype));
    }
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        check_alg(algorithm(ctx, 1)?)?;
        let (low, high) = bounds(ctx, 3, 4)?;
        let mut out = ctx.alloc(dtype, wanted_shape(ctx.input(2)?)?)?;
        fill_range(take_outputs(ctx, false, out.elements())?, low, high, &mut out)?;
        ctx.set(0, out)
    }))
}

fn rng_skip(ctx: &mut Ctx<'_>) -> Result<()> {
    check_alg(algorithm(ctx, 1)?)?;
    let delta = ctx.input(2)?.scalar_index()? as u64;
    take(ctx, false, delta.wrapping_mul(256))?;
    Ok(())
}

fn rng_read_and_skip(ctx: &mut Ctx<'_>) -> Result<()> {
    check_alg(algorithm(ctx, 1)?)?;
    let delta = ctx.input(2)?;
    ensure!(delta.rank() == 0, InvalidArgument, "delta must be of shape [], not {}", delta.shape());
    let delta = delta.scalar_value::<u64>()?;
    let before = take(ctx, false, delta.wrapping_mul(256))?;
    let [low, high] = before.counter_words();
    let value = [low, high, before.key_word()].map(|w| w as i64);
    ctx.set(0, Tensor::vector(&value))
}

fn non_deterministic_ints(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    if !can_fill(Shaped::FullInt, dtype) {
        return Err(unsupported(init, "dtype", dtype));
    }
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut out = ctx.alloc(dtype, wanted_shape(ctx.input(0)?)?)?;
        fill(Shaped::FullInt, Philox::stateless([entropy(), entropy()]), &mut out)?;
        ctx.set(0, out)
    }))
}

/// The output has the shape that input `I` holds.
fn from_input<const I: usize>(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.shape_from(I)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StatefulStandardNormal")
        .work(work::any)
        .doc("Standard normal values, from a stream kept in a variable with its algorithm.")
        .input("resource: resource")
        .input("shape: shape_dtype")
        .output("output: dtype")
        .attr("dtype: type = DT_FLOAT")
        .attr("shape_dtype: type = DT_INT64")
        .stateful()
        .shape(from_input::<1>)
        .cpu(shaped(Shaped::Normal));
    for (op, which, dtype, doc) in [
        ("StatefulStandardNormalV2", Shaped::Normal, "DT_FLOAT", "Standard normal values"),
        ("StatefulUniform", Shaped::Uniform, "DT_FLOAT", "Values uniform in [0, 1)"),
        ("StatefulTruncatedNormal", Shaped::Truncated, "DT_FLOAT", "Truncated normal values"),
        ("StatefulUniformFullInt", Shaped::FullInt, "DT_UINT64", "Any integers of the type"),
    ] {
        c.op(op)
            .work(work::any)
            .doc(&format!("{doc}, from a stream kept in a variable."))
            .input("resource: resource")
            .input("algorithm: int64")
            .input("shape: shape_dtype")
            .output("output: dtype")
            .attr(&format!("dtype: type = {dtype}"))
            .attr("shape_dtype: type = DT_INT64")
            .stateful()
            .shape(from_input::<2>)
            .cpu(shaped(which));
    }
    c.op("StatefulUniformInt")
        .work(work::any)
        .doc("Integers uniform in [minval, maxval), from a stream kept in a variable.")
        .input("resource: resource")
        .input("algorithm: int64")
        .input("shape: shape_dtype")
        .input("minval: dtype")
        .input("maxval: dtype")
        .output("output: dtype")
        .attr("dtype: type = DT_INT64")
        .attr("shape_dtype: type = DT_INT64")
        .stateful()
        .shape(from_input::<2>)
        .cpu(uniform_int);
    c.op("RngSkip")
        .doc("Moves the stream kept in a variable on by `delta` values.")
        .input("resource: resource")
        .input("algorithm: int64")
        .input("delta: int64")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(rng_skip);
    c.op("RngReadAndSkip")
        .doc("The stream kept in a variable, which then moves on by `delta` values.")
        .input("resource: resource")
        .input("alg: int32")
        .input("delta: uint64")
        .output("value: int64")
        .stateful()
        .shape(|_| Ok(vec![PartialShape::from([3])]))
        .cpu_fn(rng_read_and_skip);
    c.op("NonDeterministicInts")
        .work(work::any)
        .doc("Integers that no seed determines.")
        .input("shape: shape_dtype")
        .output("output: dtype")
        .attr("dtype: type = DT_INT64")
        .attr("shape_dtype: type = DT_INT64")
        .stateful()
        .shape(shape::from_input_0)
        .cpu(non_deterministic_ints);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    #[test]
    fn the_variable_moves_on() {
        let resources = Arc::new(Resources::new());
        let state = StoredVariable::new("rng", DType::Int64, PartialShape::unknown());
        state.assign(Tensor::vector(&[11i64, 22, 33]));
        let state = resources.create("c", "rng", state).unwrap();
        let with = |op: &str| -> Check<'static> {
            let handle =
                ResourceHandle { container: "c".into(), name: "rng".into(), ..Default::default() };
            check(op).resources(&resources).input(Tensor::handle(handle))
        };
        with("StatefulUniform")
            .input(Tensor::scalar(1i64))
            .input(Tensor::vector(&[3i64]))
            .gives(Tensor::vector(&[0.30921948f32, 0.6980343, 0.7381778]));
        with("RngReadAndSkip")
            .input(Tensor::scalar(1i32))
            .input(Tensor::scalar(3u64))
            .gives(Tensor::vector(&[779i64, 22, 33]));
        with("RngSkip").input(Tensor::scalar(1i64)).input(Tensor::scalar(2i64)).run().unwrap();
        assert_eq!(state.read().unwrap(), Tensor::vector(&[2059i64, 22, 33]));
        with("StatefulRandomBinomial")
            .input(Tensor::scalar(1i64))
            .input(Tensor::vector(&[2i32]))
            .input(Tensor::scalar(10f32))
            .input(Tensor::scalar(0.3f32))
            .gives(Tensor::vector(&[4i64, 6]));
        assert_eq!(state.read().unwrap(), Tensor::vector(&[66059i64, 22, 33]));
        with("RngSkip")
            .input(Tensor::scalar(7i64))
            .input(Tensor::scalar(2i64))
            .fails(Code::InvalidArgument, "Unsupported algorithm id: 7");
        state.assign(Tensor::vector(&[1i64]));
        with("RngSkip")
            .input(Tensor::scalar(1i64))
            .input(Tensor::scalar(2i64))
            .fails(Code::InvalidArgument, "size of state must be at least 3; got 1");
    }
}
