//! Activations and their gradients.

use crate::prelude::*;
use ferroflow_graph::BlockKernel;
use ferroflow_op_kit::gpu::{self, elementwise::Elementwise};
use ferroflow_op_kit::parallel::split_mut;
use ferroflow_op_kit::vector::{Binary, Unary};
use ferroflow_ops_math::math::blocks;
use ferroflow_ops_math::math::elementwise::{BinaryKernel, binary, unary};
use ferroflow_ops_math::math::fast::Fast;
use ferroflow_ops_math::math::lanes::{Lane, Lanes};
use ferroflow_ops_math::math::same_shapes;
use std::marker::PhantomData;

/// Rows of `Name, |x| formula` over ordered numbers.
macro_rules! real {
    ($($name:ident, |$x:ident| $formula:expr;)*) => {$(
        struct $name;
        impl<T: Real> Unary<T> for $name {
            #[inline(always)]
            fn eval($x: T) -> T { $formula }
        }
    )*};
}
real! {
    Relu, |x| if x < T::ZERO { T::ZERO } else { x };
    Relu6, |x| {
        let six = T::from_i64(6);
        if x < T::ZERO { T::ZERO } else if x > six { six } else { x }
    };
}

const SELU_SCALE: f64 = 1.0507009873554805;
const SELU_SCALE_ALPHA: f64 = 1.7580993408473766;

/// Rows of `Name, cost, |x| formula` over `f32` and `f64`.
macro_rules! float {
    ($($name:ident, $cost:literal, |$x:ident: $t:ident| $formula:expr;)*) => {$(
        struct $name;
        float!(@impl $name, $cost, $x, $t, $formula, f32);
        float!(@impl $name, $cost, $x, $t, $formula, f64);
    )*};
    (@impl $name:ident, $cost:literal, $x:ident, $t:ident, $formula:expr, $real:ty) => {
        impl Unary<$real> for $name {
            const COST: usize = $cost;
            #[inline(always)]
            fn eval($x: $real) -> $real {
                #[allow(dead_code)]
                type $t = $real;
                $formula
            }
        }
    };
}
float! {
    Elu, 6, |x: T| if x < 0.0 { x.fast_exp_m1() } else { x };
    Selu, 6, |x: T| if x < 0.0 { SELU_SCALE_ALPHA as T * x.fast_exp_m1() } else { SELU_SCALE as T * x };
    Softsign, 1, |x: T| x / (1.0 + x.abs());
    // Beyond some |x| the sum equals its larger part, to rounding.
    Softplus, 10, |x: T| {
        let edge = -(T::EPSILON.ln() + 2.0);
        if x > edge { x } else if x < -edge { x.fast_exp() } else { x.fast_exp().fast_ln_1p() }
    };
}

/// A function of half-precision numbers that rounds after each step, as TensorFlow does. Near zero,
/// `exp(x) - 1` then has few digits or none.
struct InSteps<F, H>(PhantomData<(F, H)>);

/// Rounds to half precision.
trait Rounded: Element {
    const EPSILON: f32;
    fn rounded(x: f32) -> f32;
}
impl Rounded for f16 {
    const EPSILON: f32 = 1.0 / 1024.0;
    #[inline(always)]
    fn rounded(x: f32) -> f32 {
        f16::from_f32(x).to_f32()
    }
}
impl Rounded for bf16 {
    const EPSILON: f32 = 1.0 / 128.0;
    #[inline(always)]
    fn rounded(x: f32) -> f32 {
        bf16::from_f32(x).to_f32()
    }
}

impl<H: Rounded> Unary<f32> for InSteps<Elu, H> {
    const COST: usize = 6;
    #[inline(always)]
    fn eval(x: f32) -> f32 {
        if x < 0.0 { H::rounded(x.fast_exp()) - 1.0 } else { x }
    }
}
impl<H: Rounded> Unary<f32> for InSteps<Selu, H> {
    const COST: usize = 6;
    #[inline(always)]
    fn eval(x: f32) -> f32 {
        match x < 0.0 {
            true => {
                let excess = H::rounded(H::rounded(x.fast_exp()) - 1.0);
                H::rounded(SELU_SCALE_ALPHA as f32) * excess
            }
            false => H::rounded(SELU_SCALE as f32) * x,
        }
    }
}
impl<H: Rounded> Unary<f32> for InSteps<Softplus, H> {
    const COST: usize = 10;
    #[inline(always)]
    fn eval(x: f32) -> f32 {
        let edge = -H::rounded(H::rounded(H::EPSILON.ln()) + 2.0);
        match x {
            x if x > edge => x,
            x if x < -edge => x.fast_exp(),
            x => H::rounded(x.fast_exp()).fast_ln_1p(),
        }
    }
}

/// Rows of `name, formula, half dtypes that are rounded after each step`.
macro_rules! stepwise {
    ($($name:ident, $F:ident, $($dtype:ident $half:ident),*;)*) => {$(
        fn $name(init: &KernelInit<'_>) -> Result<KernelBox> {
            match init.dtype("T")? {
                $(DType::$dtype => {
                    Ok(KernelBox::new(unary::<InSteps<$F, $half>, $half>()))
                })*
                _ => per_dtype!(FLOAT, T => unary::<$F, T>())(init),
            }
        }
    )*};
}
stepwise! {
    elu, Elu, Half f16, BFloat16 bf16;
    selu, Selu, Half f16, BFloat16 bf16;
    softplus, Softplus, BFloat16 bf16;
}

/// Rows of `Name, |g, x| formula` over ordered numbers: the gradient from that of the result, and
/// the argument or the result.
macro_rules! gradient {
    ($($name:ident: $bound:ident, |$g:ident, $x:ident| $formula:expr;)*) => {$(
        struct $name;
        impl<T: $bound> Binary<T> for $name {
            #[inline(always)]
            fn eval($g: T, $x: T) -> T { $formula }
        }
    )*};
}
gradient! {
    // A product, so that a NaN or infinite gradient is kept.
    ReluGrad: Real, |g, x| g.mul(if x > T::ZERO { T::ONE } else { T::ZERO });
    Relu6Grad: Real, |g, x| {
        g.mul(if x > T::ZERO && x < T::from_i64(6) { T::ONE } else { T::ZERO })
    };
    EluGrad: Real, |g, y| if y < T::ZERO { g.mul(y.add(T::ONE)) } else { g };
    SoftsignGrad: Real, |g, x| {
        let d = T::ONE.add(x.abs());
        g.div(d.mul(d))
    };
}

struct SeluGrad;
struct SoftplusGrad;
macro_rules! float_gradients {
    ($($t:ty)*) => {$(
        impl Binary<$t> for SeluGrad {
            #[inline(always)]
            fn eval(g: $t, y: $t) -> $t {
                if y < 0.0 { g * (y + SELU_SCALE_ALPHA as $t) } else { g * SELU_SCALE as $t }
            }
        }
        impl Binary<$t> for SoftplusGrad {
            const COST: usize = 6;
            #[inline(always)]
            fn eval(g: $t, x: $t) -> $t { g / ((-x).fast_exp() + 1.0) }
        }
    )*};
}
float_gradients!(f32 f64);

/// A gradient: both inputs have the same shape.
struct Gradient<W: Element, T: Lanes<W>>(BinaryKernel<W, T>);

impl<W: Element, T: Lanes<W>> Kernel for Gradient<W, T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        same_shapes(ctx, 0, 1)?;
        self.0.compute_direct(ctx, None)
    }
}

fn gradient<F: Binary<T::Wide>, T: Lane>() -> Gradient<T::Wide, T> {
    Gradient(binary::<F, T>())
}

/// `x` above zero, `alpha * x` below.
fn leaky_relu<T: Float>(ctx: &mut Ctx<'_>, alpha: f32) -> Result<()> {
    let mut y = ctx.take_or_copy(0)?;
    let alpha = T::from_f64(alpha as f64);
    split_mut(y.as_mut_slice::<T>()?, 1, 1, |_, part| leak(part, alpha));
    ctx.set(0, y)
}

fn leak<T: Float>(xs: &mut [T], alpha: T) {
    for x in xs {
        *x = if *x > T::ZERO { *x } else { x.mul(alpha) };
    }
}

fn leaky_blocks(attrs: &Attrs) -> Option<AnyBlockKernel> {
    let alpha = attrs.float("alpha").ok()?;
    Some(match attrs.dtype("T").ok()? {
        DType::Float => AnyBlockKernel::F32(BlockKernel::unary(move |xs| leak(xs, alpha), 1)),
        DType::Double => {
            AnyBlockKernel::F64(BlockKernel::unary(move |xs| leak(xs, alpha as f64), 1))
        }
        _ => return None,
    })
}

fn leaky_relu_grad<T: Float>(ctx: &mut Ctx<'_>, alpha: f32) -> Result<()> {
    same_shapes(ctx, 0, 1)?;
    let mut g = ctx.take_or_copy(0)?;
    let alpha = T::from_f64(alpha as f64);
    let x = ctx.input(1)?.as_slice::<T>()?;
    split_mut(g.as_mut_slice::<T>()?, 1, 1, |first, part| {
        for (g, x) in part.iter_mut().zip(&x[first..]) {
            *g = if *x > T::ZERO { *g } else { g.mul(alpha) };
        }
    });
    ctx.set(0, g)
}

/// LeakyRelu and its gradient on a GPU.
fn leaky(init: &KernelInit<'_>, formula: &str) -> Result<KernelBox> {
    let alpha = format!("{:e}", f64::from(init.float("alpha")?));
    Ok(KernelBox::new(Elementwise::new(init, formula.replace("ALPHA", &alpha))?))
}

type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;

fn declare(
    c: &mut Catalog,
    op: &str,
    attr: &str,
    doc: &str,
    blocks: MakeBlockKernel,
    text: &'static str,
    make: Make,
) {
    c.op(op)
        .doc(doc)
        .input("features: T")
        .output("activations: T")
        .attr(attr)
        .shape(shape::same_as_input)
        .blocks(blocks)
        .gpu_elementwise(gpu::FLOAT, text)
        .cpu(make);
}

fn declare_gradient(
    c: &mut Catalog,
    op: &str,
    from: &str,
    attr: &str,
    doc: &str,
    blocks: MakeBlockKernel,
    text: &'static str,
    make: Make,
) {
    c.op(op)
        .doc(doc)
        .input("gradients: T")
        .input(from)
        .output("backprops: T")
        .attr(attr)
        .shape(shape::merged_inputs)
        .blocks(blocks)
        .gpu_pair(gpu::FLOAT, text)
        .cpu(make);
}

pub(crate) fn register(c: &mut Catalog) {
    let float = "T: {half, bfloat16, float, double}";
    let real = "T: realnumbertype";
    declare(
        c,
        "Relu",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}",
        "Element-wise `max(features, 0)`.",
        blocks::unary::<Relu>,
        "x < W(0) ? W(0) : x",
        per_dtype!(REAL, T => unary::<Relu, T>()),
    );
    declare(
        c,
        "Relu6",
        real,
        "Element-wise `min(max(features, 0), 6)`.",
        blocks::unary::<Relu6>,
        "x < W(0) ? W(0) : x > W(6) ? W(6) : x",
        per_dtype!(REAL, T => unary::<Relu6, T>()),
    );
    declare(
        c,
        "Elu",
        float,
        "Element-wise `features`, and `exp(features) - 1` below 0.",
        blocks::unary::<Elu>,
        "x < W(0) ? exp_less_one<Out>(x) : x",
        elu,
    );
    declare(
        c,
        "Selu",
        float,
        "Element-wise Elu, scaled so that activations normalise themselves.",
        blocks::unary::<Selu>,
        "x < W(0) ? rounded<Out>(W(1.7580993408473766)) * exp_less_one<Out>(x) : rounded<Out>(W(1.0507009873554805)) * x",
        selu,
    );
    declare(
        c,
        "Softplus",
        float,
        "Element-wise `log(exp(features) + 1)`.",
        blocks::unary::<Softplus>,
        "x > W(0) ? x + log1p(exp(-x)) : log1p(exp(x))",
        softplus,
    );
    declare(
        c,
        "Softsign",
        float,
        "Element-wise `features / (1 + |features|)`.",
        blocks::unary::<Softsign>,
        "x / (W(1) + magnitude(x))",
        per_dtype!(FLOAT, T => unary::<Softsign, T>()),
    );

    let (features, outputs) = ("features: T", "outputs: T");
    declare_gradient(
        c,
        "ReluGrad",
        features,
        real,
        "Gradient of Relu.",
        blocks::pair::<ReluGrad>,
        "x * (y > W(0) ? W(1) : W(0))",
        per_dtype!(REAL, T => gradient::<ReluGrad, T>()),
    );
    declare_gradient(
        c,
        "Relu6Grad",
        features,
        real,
        "Gradient of Relu6.",
        blocks::pair::<Relu6Grad>,
        "x * (y > W(0) && y < W(6) ? W(1) : W(0))",
        per_dtype!(REAL, T => gradient::<Relu6Grad, T>()),
    );
    declare_gradient(
        c,
        "EluGrad",
        outputs,
        float,
        "Gradient of Elu, from its result.",
        blocks::pair::<EluGrad>,
        "y < W(0) ? x * (y + W(1)) : x",
        per_dtype!(FLOAT, T => gradient::<EluGrad, T>()),
    );
    declare_gradient(
        c,
        "SeluGrad",
        outputs,
        float,
        "Gradient of Selu, from its result.",
        blocks::pair::<SeluGrad>,
        "y < W(0) ? x * (y + W(1.7580993408473766)) : x * W(1.0507009873554805)",
        per_dtype!(FLOAT, T => gradient::<SeluGrad, T>()),
    );
    declare_gradient(
        c,
        "SoftplusGrad",
        features,
        float,
        "Gradient of Softplus.",
        blocks::pair::<SoftplusGrad>,
        "x / (exp(-y) + W(1))",
        per_dtype!(FLOAT, T => gradient::<SoftplusGrad, T>()),
    );
    declare_gradient(
        c,
        "SoftsignGrad",
        features,
        float,
        "Gradient of Softsign.",
        blocks::pair::<SoftsignGrad>,
        "x / ((W(1) + magnitude(y)) * (W(1) + magnitude(y)))",
        per_dtype!(FLOAT, T => gradient::<SoftsignGrad, T>()),
    );

    c.op("LeakyRelu")
        .doc("Element-wise `features`, and `alpha * features` below 0.")
        .input("features: T")
        .output("activations: T")
        .attr("alpha: float = 0.20000000298023224")
        .attr("T: {half, bfloat16, float, double} = DT_FLOAT")
        .shape(shape::same_as_input)
        .blocks(leaky_blocks)
        .gpu(gpu::FLOAT, |init| leaky(init, "x > W(0) ? x : x * W(ALPHA)"))
        .cpu(per_dtype!(FLOAT, init, T => {
            let alpha = init.float("alpha")?;
            move |ctx: &mut Ctx<'_>| leaky_relu::<T>(ctx, alpha)
        }));
    c.op("LeakyReluGrad")
        .doc("Gradient of LeakyRelu.")
        .input("gradients: T")
        .input("features: T")
        .output("backprops: T")
        .attr("alpha: float = 0.20000000298023224")
        .attr("T: {half, bfloat16, float, double} = DT_FLOAT")
        .shape(shape::merged_inputs)
        .gpu(gpu::FLOAT, |init| leaky(init, "y > W(0) ? x : x * W(ALPHA)"))
        .cpu(per_dtype!(FLOAT, init, T => {
            let alpha = init.float("alpha")?;
            move |ctx: &mut Ctx<'_>| leaky_relu_grad::<T>(ctx, alpha)
        }));
    // Of the activations from their results where the backward op takes those.
    unary_gradients! { c;
        "Relu": |g, dy, _, y| g.call("ReluGrad", &[dy, y]);
        "Relu6": |g, dy, _, y| g.call("Relu6Grad", &[dy, y]);
        "Elu": |g, dy, _, y| g.call("EluGrad", &[dy, y]);
        "Selu": |g, dy, _, y| g.call("SeluGrad", &[dy, y]);
        "Softplus": |_, dy, x, _| dy * x.apply("Sigmoid");
        "Softsign": |g, dy, x, _| g.call("SoftsignGrad", &[dy, x]);
        "LeakyRelu": |g, dy, x, _| g.call_like("LeakyReluGrad", &[dy, x]);
    }
    for op in ["ReluGrad", "Relu6Grad", "LeakyReluGrad"] {
        c.gradient(op, move |g, dy| {
            let x = g.input(1);
            Ok(vec![g.call_like(op, &[dy[0], x]), x.zeros_like()])
        });
    }
    for op in ["EluGrad", "SeluGrad"] {
        c.gradient(op, move |g, dy| {
            let y = g.input(1);
            let is_curved = y.with("Less", y.number(0.0));
            let dx = g.select(is_curved, dy[0] * g.input(0), y.number(0.0));
            Ok(vec![g.call(op, &[dy[0], y]), dx])
        });
    }
    c.gradient("SoftplusGrad", |g, dy| {
        let (d, x) = (g.input(0), g.input(1));
        let dx = dy[0] * d / ((-x).exp() + 2.0 + x.exp());
        Ok(vec![g.call("SoftplusGrad", &[dy[0], x]), dx])
    });
}

#[cfg(test)]
// Expected values are what TensorFlow prints.
#[allow(clippy::approx_constant, clippy::excessive_precision)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const X: [f32; 8] = [NAN, INF, -INF, 0.0, 1.0, -1.5, 2.5, 100.0];

    #[test]
    fn activations_have_their_values() {
        let rows: [(&str, [f32; 8]); 7] = [
            ("Relu", [NAN, INF, 0.0, 0.0, 1.0, 0.0, 2.5, 100.0]),
            ("Relu6", [NAN, 6.0, 0.0, 0.0, 1.0, 0.0, 2.5, 6.0]),
            ("Elu", [NAN, INF, -1.0, 0.0, 1.0, -0.77686983, 2.5, 100.0]),
            ("Selu", [NAN, INF, -1.7580993, 0.0, 1.050701, -1.3658143, 2.6267526, 105.0701]),
            ("Softsign", [NAN, NAN, NAN, 0.0, 0.5, -0.6, 0.71428573, 0.990099]),
            ("Softplus", [NAN, INF, 0.0, 0.6931472, 1.3132616, 0.20141326, 2.5788898, 100.0]),
            ("LeakyRelu", [NAN, INF, -INF, 0.0, 1.0, -0.3, 2.5, 100.0]),
        ];
        for (op, want) in rows {
            check(op).maps(X, want);
            check(op).maps(X.map(f64::from), want.map(f64::from));
        }
        check("Relu").maps([-3i8, 4], [0, 4]);
        check("Relu6").maps([-3i32, 4, 9], [0, 4, 6]);
        check("Relu").maps([-1.5, 2.5].map(bf16::from_f32), [0.0, 2.5].map(bf16::from_f32));
        check("LeakyRelu").attr("alpha", 0.5f32).maps([-3.0f64, 4.0], [-1.5, 4.0]);
        let far = Tensor::vector(&[-100.0f64]);
        let got = check("Softplus").input(far).run().unwrap();
        assert_eq!(got[0].as_slice::<f64>().unwrap(), [(-100f64).exp()]);
    }

    #[test]
    fn gradients_have_their_values() {
        let g = [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, NAN, INF];
        let x = [NAN, INF, -INF, 0.0, 1.0, -1.5, -1.0, -1.0];
        let rows: [(&str, [f32; 8]); 7] = [
            ("ReluGrad", [0.0, 2.0, 0.0, 0.0, 2.0, 0.0, NAN, NAN]),
            ("Relu6Grad", [0.0, 0.0, 0.0, 0.0, 2.0, 0.0, NAN, NAN]),
            ("LeakyReluGrad", [0.4, 2.0, 0.4, 0.4, 2.0, 0.4, NAN, INF]),
            ("SoftplusGrad", [NAN, 2.0, 0.0, 1.0, 1.4621172, 0.36485106, NAN, INF]),
            ("SoftsignGrad", [NAN, 0.0, 0.0, 2.0, 0.5, 0.32, NAN, INF]),
            ("EluGrad", [2.0, 2.0, -INF, 2.0, 2.0, -1.0, NAN, NAN]),
            ("SeluGrad", [2.101402, 2.101402, -INF, 2.101402, 2.101402, 0.51619864, NAN, INF]),
        ];
        for (op, want) in rows {
            check(op)
                .input(Tensor::vector(&g))
                .input(Tensor::vector(&x))
                .gives(Tensor::vector(&want));
        }
        let (g, x) = (Tensor::vector(&[5i32, 5, 5]), Tensor::vector(&[-1i32, 3, 7]));
        check("Relu6Grad").input(g).input(x).gives(Tensor::vector(&[0i32, 5, 0]));
    }

    #[test]
    fn gradients_demand_one_shape() {
        for op in ["ReluGrad", "LeakyReluGrad", "SoftplusGrad"] {
            check(op)
                .input(Tensor::from_slice([1, 2], &[1.0f32, 2.0]).unwrap())
                .input(Tensor::vector(&[1.0f32, 2.0]))
                .fails(
                    Code::InvalidArgument,
                    &format!("of type {op} must have the same size and shape.  Input 0: [1,2] != input 1: [2]"),
                );
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let x = Tensor::vector(&[-2.5f64, -0.5, 0.75, 3.0, 7.0]);
        for op in ["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"] {
            check(op).input(x.clone()).gradient();
        }
        let dy = Tensor::vector(&[1.0f64, -0.5, 2.0, 0.25, 1.5]);
        for op in ["SoftplusGrad", "EluGrad", "SeluGrad", "ReluGrad", "LeakyReluGrad"] {
            check(op).input(dy.clone()).input(x.clone()).gradient();
        }
    }

    #[test]
    fn half_precision_takes_its_steps_in_half_precision() {
        // What TensorFlow gives.
        let x = [-3e-4f32, -0.01, -1.0, 1.5];
        for (op, want) in [
            ("Elu", [-4.883e-4f32, -9.766e-3, -0.6318, 1.5]),
            ("Selu", [-8.583e-4, -1.717e-2, -1.11, 1.576]),
        ] {
            let got = check(op).input(Tensor::vector(&x.map(f16::from_f32))).run().unwrap();
            let got = got[0].as_slice::<f16>().unwrap();
            for (got, want) in got.iter().zip(want) {
                assert!((got.to_f32() / want - 1.0).abs() < 6e-4, "{op}: {got}, not {want}");
            }
        }
        let x = [-0.01, -2.25, 3.0, -4.0].map(bf16::from_f32);
        for (op, want) in [
            ("Elu", [-0.01171875f32, -0.89453125, 3.0, -0.98046875]),
            ("Softplus", [0.6875, 0.10009766, 3.0, 0.018310547]),
        ] {
            check(op).input(Tensor::vector(&x)).gives(Tensor::vector(&want.map(bf16::from_f32)));
        }
    }
}
