//! The Stateless* ops without parameters: the same seed always gives the same values.

use super::distribution::{
    FLOATS_ON_GPU, INTEGERS_ON_GPU, Shaped, alloc, can_fill, fill, fill_range, prepare,
};
use super::{bounds, wanted_shape};
use crate::prelude::*;
use ferroflow_op_kit::gpu::GpuTypes;
use ferroflow_op_kit::philox::Philox;

const PHILOX: i32 = 1;
const AUTO_SELECT: i32 = 3;

/// The stream of a `seed` input: two integers.
pub fn stream_of_seed(seed: &Tensor) -> Result<Philox> {
    ensure!(
        seed.shape().dims() == [2],
        InvalidArgument,
        "seed must have shape [2], not {}",
        seed.shape()
    );
    let seed = match seed.dtype() {
        DType::UInt64 => <[u64; 2]>::try_from(seed.as_slice::<u64>()?),
        _ => <[i64; 2]>::try_from(seed.to_indices()?.as_slice()).map(|s| s.map(|x| x as u64)),
    };
    Ok(Philox::stateless(seed.expect("two elements by its shape")))
}

/// The stream that inputs `at..at + 3` (key, counter, algorithm) describe.
pub(super) fn stream_of_key(ctx: &Ctx<'_>, at: usize) -> Result<Philox> {
    let (key, counter, alg) = (ctx.input(at)?, ctx.input(at + 1)?, ctx.input(at + 2)?);
    ensure!(
        alg.rank() == 0,
        InvalidArgument,
        "input {} (0-based) must have shape [], not {}",
        at + 2,
        alg.shape()
    );
    let alg = alg.scalar_value::<i32>()?;
    ensure!(
        alg == PHILOX || alg == AUTO_SELECT,
        InvalidArgument,
        "Unsupported algorithm id: {alg}"
    );
    ensure!(
        key.shape().dims() == [1],
        InvalidArgument,
        "key must have shape [1], not {}. (Note that batched keys are not supported yet.)",
        key.shape()
    );
    let key = key.scalar_value::<u64>()?;
    ensure!(
        counter.rank() == 1 && counter.elements() > 0,
        InvalidArgument,
        "counter must be a vector with length at least 1; got shape: {}. (Note that batched \
         counters are not supported yet.)",
        counter.shape()
    );
    // TensorFlow reads past the end of a counter of one word; here the missing word is 0.
    let mut words = counter.as_slice::<u64>()?.iter().copied();
    let counter = [words.next().unwrap_or(0), words.next().unwrap_or(0)];
    Ok(Philox::from_words(key, counter))
}

/// The inputs that define an op's stream.
#[derive(Clone, Copy)]
enum From {
    /// Input 1 is a seed.
    Seed,
    /// Inputs 1, 2, 3 are a key, a counter and an algorithm.
    Key,
}

impl From {
    fn stream(self, ctx: &Ctx<'_>) -> Result<Philox> {
        match self {
            From::Seed => stream_of_seed(ctx.input(1)?),
            From::Key => stream_of_key(ctx, 1),
        }
    }

    /// How many inputs there are after the shape.
    fn inputs(self) -> usize {
        match self {
            From::Seed => 1,
            From::Key => 3,
        }
    }
}

fn shaped(from: From, which: Shaped) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let dtype = init.dtype("dtype")?;
        if !can_fill(which, dtype) {
            return Err(unsupported(init, "dtype", dtype));
        }
        prepare(init, which, dtype)?;
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let stream = from.stream(ctx)?;
            let mut out = alloc(ctx, dtype, wanted_shape(ctx.input(0)?)?)?;
            fill(which, stream, &mut out)?;
            ctx.set(0, out)
        }))
    }
}

fn ranged(from: From) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let dtype = init.dtype("dtype")?;
        if !matches!(dtype, DType::Int32 | DType::Int64) {
            return Err(unsupported(init, "dtype", dtype));
        }
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let stream = from.stream(ctx)?;
            let mut out = alloc(ctx, dtype, wanted_shape(ctx.input(0)?)?)?;
            if out.elements() > 0 {
                let first = 1 + from.inputs();
                let (low, high) = bounds(ctx, first, first + 1)?;
                fill_range(stream, low, high, &mut out)?;
            }
            ctx.set(0, out)
        }))
    }
}

/// Key, counter and, where the op has the output, algorithm.
fn key_counter(ctx: &mut Ctx<'_>) -> Result<()> {
    let stream = stream_of_seed(ctx.input(0)?)?;
    ctx.set(0, Tensor::vector(&[stream.key_word()]))?;
    ctx.set(1, Tensor::vector(&stream.counter_words()))?;
    if ctx.num_outputs() > 2 {
        ctx.set(2, Tensor::scalar(PHILOX))?;
    }
    Ok(())
}

fn key_counter_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let mut shapes = vec![PartialShape::from([1]), PartialShape::from([2])];
    shapes.resize(c.outputs, PartialShape::scalar());
    Ok(shapes)
}

/// `int32` stays in host memory.
const RANGED_ON_GPU: GpuTypes = &[("dtype", &[DType::Int64])];

/// A shape, and the state of a generator.
const KEYED: [&str; 4] = ["shape: Tshape", "key: uint64", "counter: uint64", "alg: int32"];

pub(crate) fn register(c: &mut Catalog) {
    register_shaped(c);
    register_ints(c);
    c.op("StatelessRandomGetKeyCounter")
        .doc("The key and counter that a seed stands for.")
        .input("seed: Tseed")
        .output("key: uint64")
        .output("counter: uint64")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .shape(key_counter_shapes)
        .cpu_fn(key_counter);
    c.op("StatelessRandomGetKeyCounterAlg")
        .doc("The key and counter that a seed stands for, and the algorithm for them.")
        .input("seed: Tseed")
        .output("key: uint64")
        .output("counter: uint64")
        .output("alg: int32")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .shape(key_counter_shapes)
        .cpu_fn(key_counter);
    c.op("StatelessRandomGetAlg")
        .doc("The random number algorithm of this device: Philox.")
        .output("alg: int32")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(|ctx| ctx.set(0, Tensor::scalar(PHILOX)));
    c.no_gradient(&[
        "StatelessRandomNormal",
        "StatelessRandomNormalV2",
        "StatelessRandomUniform",
        "StatelessRandomUniformV2",
        "StatelessRandomUniformFullInt",
        "StatelessRandomUniformFullIntV2",
        "StatelessRandomUniformInt",
        "StatelessRandomUniformIntV2",
        "StatelessTruncatedNormal",
        "StatelessTruncatedNormalV2",
    ]);
}

fn register_shaped(c: &mut Catalog) {
    for (op, which, doc) in [
        ("StatelessRandomUniform", Shaped::Uniform, "Values uniform in [0, 1), from a seed."),
        ("StatelessRandomNormal", Shaped::Normal, "Standard normal values, from a seed."),
        (
            "StatelessTruncatedNormal",
            Shaped::Truncated,
            "Normal values within two deviations, from a seed.",
        ),
    ] {
        c.op(op)
            .work(work::of_shape::<0>)
            .doc(doc)
            .input("shape: T")
            .input("seed: Tseed")
            .output("output: dtype")
            .attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
            .attr("T: {int32, int64} = DT_INT32")
            .attr("Tseed: {int32, int64} = DT_INT64")
            .shape(shape::from_input_0)
            .gpu(FLOATS_ON_GPU, shaped(From::Seed, which))
            .host_inputs(&["shape", "seed"])
            .cpu(shaped(From::Seed, which));
        c.op(&format!("{op}V2"))
            .work(work::of_shape::<0>)
            .doc(&doc.replace("a seed", "a key and counter"))
            .inputs(&KEYED)
            .output("output: dtype")
            .attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
            .attr("Tshape: {int32, int64} = DT_INT32")
            .shape(shape::from_input_0)
            .gpu(FLOATS_ON_GPU, shaped(From::Key, which))
            .host_inputs(&["shape", "key", "counter", "alg"])
            .cpu(shaped(From::Key, which));
    }
}

fn register_ints(c: &mut Catalog) {
    c.op("StatelessRandomUniformFullInt")
        .work(work::of_shape::<0>)
        .doc("Any integers of the type, from a seed.")
        .input("shape: T")
        .input("seed: Tseed")
        .output("output: dtype")
        .attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
        .attr("T: {int32, int64} = DT_INT32")
        .attr("Tseed: {int32, int64, uint32, uint64} = DT_INT64")
        .shape(shape::from_input_0)
        .gpu(INTEGERS_ON_GPU, shaped(From::Seed, Shaped::FullInt))
        .host_inputs(&["shape", "seed"])
        .cpu(shaped(From::Seed, Shaped::FullInt));
    c.op("StatelessRandomUniformFullIntV2")
        .work(work::of_shape::<0>)
        .doc("Any integers of the type, from a key and counter.")
        .inputs(&KEYED)
        .output("output: dtype")
        .attr("dtype: {int32, int64, uint32, uint64} = DT_UINT64")
        .attr("Tshape: {int32, int64} = DT_INT32")
        .shape(shape::from_input_0)
        .gpu(INTEGERS_ON_GPU, shaped(From::Key, Shaped::FullInt))
        .host_inputs(&["shape", "key", "counter", "alg"])
        .cpu(shaped(From::Key, Shaped::FullInt));
    c.op("StatelessRandomUniformInt")
        .work(work::of_shape::<0>)
        .doc("Integers uniform in [minval, maxval), from a seed.")
        .input("shape: T")
        .input("seed: Tseed")
        .input("minval: dtype")
        .input("maxval: dtype")
        .output("output: dtype")
        .attr("dtype: {int32, int64}")
        .attr("T: {int32, int64}")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .shape(shape::from_input_0)
        .gpu(RANGED_ON_GPU, ranged(From::Seed))
        .host_inputs(&["shape", "seed", "minval", "maxval"])
        .cpu(ranged(From::Seed));
    c.op("StatelessRandomUniformIntV2")
        .work(work::of_shape::<0>)
        .doc("Integers uniform in [minval, maxval), from a key and counter.")
        .inputs(&KEYED)
        .input("minval: dtype")
        .input("maxval: dtype")
        .output("output: dtype")
        .attr("dtype: {int32, int64, uint32, uint64}")
        .attr("Tshape: {int32, int64} = DT_INT32")
        .shape(shape::from_input_0)
        .gpu(RANGED_ON_GPU, ranged(From::Key))
        .host_inputs(&["shape", "key", "counter", "alg", "minval", "maxval"])
        .cpu(ranged(From::Key));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    const SEED: [i32; 2] = [1, 2];

    #[test]
    fn a_seed_gives_the_values_of_tensorflow() {
        check("StatelessRandomUniform")
            .input(Tensor::vector(&[5i32]))
            .input(Tensor::vector(&SEED))
            .gives(Tensor::vector(&[0.8440604f32, 0.19204533, 0.9962232, 0.1603874, 0.27199018]));
        check("StatelessRandomUniformFullInt")
            .input(Tensor::vector(&[3i32]))
            .input(Tensor::vector(&SEED))
            .gives(Tensor::vector(&[
                7464880146280614444u64,
                1591045637757961278,
                17389275318164050067,
            ]));
    }

    #[test]
    fn a_seed_is_a_key_and_a_counter() {
        let made =
            check("StatelessRandomGetKeyCounter").input(Tensor::vector(&SEED)).run().unwrap();
        assert_eq!(made[0], Tensor::vector(&[10413732777507651514u64]));
        assert_eq!(made[1], Tensor::vector(&[0, 17830669156045600267u64]));
        check("StatelessRandomNormalV2")
            .input(Tensor::vector(&[5i32]))
            .input(made[0].clone())
            .input(made[1].clone())
            .input(Tensor::scalar(1i32))
            .gives(Tensor::vector(&[0.5441101f32, 0.20738031, 0.07356432, 0.04643455, -1.3015898]));
    }

    #[test]
    fn malformed_seeds_and_keys_are_refused() {
        check("StatelessRandomUniform")
            .input(Tensor::vector(&[5i32]))
            .input(Tensor::vector(&[1i32]))
            .fails(Code::InvalidArgument, "seed must have shape [2], not [1]");
        let with = |key: &[u64], alg: i32| {
            check("StatelessRandomUniformV2")
                .input(Tensor::vector(&[5i32]))
                .input(Tensor::vector(key))
                .input(Tensor::vector(&[0u64, 1]))
                .input(Tensor::scalar(alg))
        };
        with(&[1, 2], 1).fails(Code::InvalidArgument, "key must have shape [1], not [2]");
        with(&[1], 2).fails(Code::InvalidArgument, "Unsupported algorithm id: 2");
    }
}
