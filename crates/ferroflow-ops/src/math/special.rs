//! Special functions. They are computed in double precision for every dtype: they are too rare, and
//! too dear anyway, for more than one version.

use super::elementwise::{binary, binary_in, unary, unary_in};
use super::lanes::Lanes;
use super::vector::{Binary, Unary};
use crate::parallel::split_mut;
use crate::prelude::*;

mod bessel;
mod error;
mod gamma;
mod integrals;

const FLOAT: &str = "T: {bfloat16, half, float, double}";

/// Declares ops `y = f(x)`.
macro_rules! unary_ops {
    ($c:ident; $($op:literal, $doc:literal, $cost:literal, $f:path;)*) => {$({
        struct Op;
        impl Unary<f64> for Op {
            const COST: usize = $cost;
            #[inline(always)]
            fn eval(x: f64) -> f64 { $f(x) }
        }
        $c.op($op)
            .doc($doc)
            .input("x: T")
            .output("y: T")
            .attr(FLOAT)
            .shape(shape::same_as_input)
            .cpu(per_dtype!([Half f16, Float f32, Double f64], T => unary_in::<Op, f64, T>()));
    })*};
}

/// Declares ops `z = f(x, y)` over float and double, with the names of their inputs.
macro_rules! binary_ops {
    ($c:ident; $($op:literal ($a:literal, $b:literal) -> $z:literal $attr:literal, $doc:literal, $f:path;)*) => {$({
        struct Op;
        impl Binary<f64> for Op {
            const COST: usize = 200;
            #[inline(always)]
            fn eval(a: f64, b: f64) -> f64 { $f(a, b) }
        }
        $c.op($op)
            .doc($doc)
            .input($a)
            .input($b)
            .output($z)
            .attr($attr)
            .shape(shape::broadcast)
            .cpu(per_dtype!([Float f32, Double f64], T => binary_in::<Op, f64, T>()));
    })*};
}

struct Erf;
struct Erfc;
struct Atan2;
struct NextAfter;
struct Xlogy;
struct Xlog1py;

macro_rules! floats {
    ($($t:ty, $bits:ty, $erf:path, $erfc:path;)*) => {$(
        impl Unary<$t> for Erf {
            const COST: usize = 15;
            #[inline(always)]
            fn eval(x: $t) -> $t { $erf(x) }
        }
        impl Unary<$t> for Erfc {
            const COST: usize = 20;
            #[inline(always)]
            fn eval(x: $t) -> $t { $erfc(x) }
        }
        impl Binary<$t> for Atan2 {
            const COST: usize = 20;
            #[inline(always)]
            fn eval(y: $t, x: $t) -> $t { y.atan2(x) }
        }
        impl Binary<$t> for NextAfter {
            #[inline(always)]
            fn eval(from: $t, to: $t) -> $t {
                if from.is_nan() || to.is_nan() {
                    from + to
                } else if from < to {
                    from.next_up()
                } else if from > to {
                    from.next_down()
                } else {
                    to
                }
            }
        }
        impl Binary<$t> for Xlogy {
            const COST: usize = 8;
            #[inline(always)]
            fn eval(x: $t, y: $t) -> $t { if x == 0.0 { 0.0 } else { x * y.ln() } }
        }
        impl Binary<$t> for Xlog1py {
            const COST: usize = 10;
            #[inline(always)]
            fn eval(x: $t, y: $t) -> $t { if x == 0.0 { 0.0 } else { x * y.ln_1p() } }
        }
    )*};
}
floats! {
    f32, u32, libm::erff, libm::erfcf;
    f64, u64, libm::erf, libm::erfc;
}

impl Binary<Complex64> for Xlogy {
    const COST: usize = 40;
    fn eval(x: Complex64, y: Complex64) -> Complex64 {
        if x == Complex64::ZERO { x } else { x * y.ln() }
    }
}
impl Binary<Complex64> for Xlog1py {
    const COST: usize = 40;
    fn eval(x: Complex64, y: Complex64) -> Complex64 {
        if x == Complex64::ZERO { x } else { x * super::complex::ln_1p(y) }
    }
}

/// Floats, and complex numbers in double precision.
fn float_complex<F>(init: &KernelInit<'_>) -> Result<KernelBox>
where
    F: Binary<f32> + Binary<f64> + Binary<Complex64>,
{
    match init.dtype("T")? {
        DType::Complex64 => Ok(KernelBox::new(binary_in::<F, Complex64, Complex32>())),
        DType::Complex128 => Ok(KernelBox::new(binary::<F, Complex64>())),
        _ => per_dtype!(FLOAT, T => binary::<F, T>())(init),
    }
}

/// Inputs of one shape, or scalars.
fn betainc<T: Float + Lanes<f64>>(ctx: &mut Ctx<'_>) -> Result<()> {
    let [a, b, x] = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?];
    for (p, q, names) in [(a, b, "a and b"), (b, x, "b and x"), (a, x, "a and x")] {
        ensure!(
            p.rank() == 0 || q.rank() == 0 || p.shape() == q.shape(),
            InvalidArgument,
            "Shapes of {names} are inconsistent: {} vs. {}",
            p.shape(),
            q.shape()
        );
    }
    let shape = [a, b, x].into_iter().find(|t| t.rank() > 0).unwrap_or(a).shape().clone();
    let mut z = ctx.alloc(T::DTYPE, shape)?;
    let inputs = [a.as_slice::<T>()?, b.as_slice::<T>()?, x.as_slice::<T>()?];
    let is_scalar = [a, b, x].map(|t| t.rank() == 0);
    split_mut(z.as_mut_slice::<T>()?, 1, 300, |first, part| {
        for (i, z) in part.iter_mut().enumerate() {
            let at = |k: usize| inputs[k][if is_scalar[k] { 0 } else { first + i }].to_f64();
            *z = T::from_f64(gamma::betainc(at(0), at(1), at(2)));
        }
    });
    ctx.set(0, z)
}

fn betainc_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let mut shape: Option<PartialShape> = None;
    for s in c.inputs.iter().filter(|s| s.rank() != Some(0)) {
        if s.rank().is_none() {
            return shape::unknown(c);
        }
        shape = Some(shape.map_or(Ok(s.clone()), |t| t.merge(s))?);
    }
    Ok(vec![shape.unwrap_or_else(PartialShape::scalar)])
}

pub(crate) fn register(c: &mut Catalog) {
    unary_ops! { c;
        // op, doc, ns an element, function
        "Lgamma", "Element-wise logarithm of the absolute value of the gamma function.", 20, libm::lgamma;
        "Digamma", "Element-wise derivative of Lgamma.", 30, gamma::digamma;
        "Erfinv", "Element-wise inverse of Erf.", 100, error::erfinv;
        "Ndtri", "Element-wise inverse of the standard normal distribution function.", 100, error::ndtri;
        "BesselI0", "Element-wise modified Bessel function I of order 0.", 100, bessel::i0;
        "BesselI0e", "Element-wise BesselI0, times `exp(-|x|)`.", 100, bessel::i0e;
        "BesselI1", "Element-wise modified Bessel function I of order 1.", 100, bessel::i1;
        "BesselI1e", "Element-wise BesselI1, times `exp(-|x|)`.", 100, bessel::i1e;
        "BesselJ0", "Element-wise Bessel function J of order 0.", 50, bessel::j0;
        "BesselJ1", "Element-wise Bessel function J of order 1.", 50, bessel::j1;
        "BesselK0", "Element-wise modified Bessel function K of order 0.", 200, bessel::k0;
        "BesselK0e", "Element-wise BesselK0, times `exp(x)`.", 200, bessel::k0e;
        "BesselK1", "Element-wise modified Bessel function K of order 1.", 200, bessel::k1;
        "BesselK1e", "Element-wise BesselK1, times `exp(x)`.", 200, bessel::k1e;
        "BesselY0", "Element-wise Bessel function Y of order 0.", 50, bessel::y0;
        "BesselY1", "Element-wise Bessel function Y of order 1.", 50, bessel::y1;
        "Dawsn", "Element-wise Dawson's integral.", 200, integrals::dawsn;
        "Expint", "Element-wise exponential integral of positive numbers.", 200, integrals::expint;
        "FresnelCos", "Element-wise Fresnel's cosine integral.", 200, integrals::fresnel_cos;
        "FresnelSin", "Element-wise Fresnel's sine integral.", 200, integrals::fresnel_sin;
        "Spence", "Element-wise Spence's integral.", 100, integrals::spence;
    }
    binary_ops! { c;
        "Igamma"("a: T", "x: T") -> "z: T" "T: {bfloat16, half, float, double}",
            "Element-wise lower incomplete gamma function, normalised.", gamma::igamma;
        "Igammac"("a: T", "x: T") -> "z: T" "T: {bfloat16, half, float, double}",
            "Element-wise upper incomplete gamma function, normalised.", gamma::igammac;
        "IgammaGradA"("a: T", "x: T") -> "z: T" "T: {float, double}",
            "Derivative of Igamma for `a`.", gamma::igamma_grad_a;
        "RandomGammaGrad"("alpha: T", "sample: T") -> "output: T" "T: {float, double}",
            "Derivative of a gamma-distributed sample for the distribution's `alpha`.", gamma::random_gamma_grad;
        "Zeta"("x: T", "q: T") -> "z: T" "T: {float, double}",
            "Element-wise Hurwitz's zeta function.", gamma::zeta;
        "Polygamma"("a: T", "x: T") -> "z: T" "T: {float, double}",
            "Element-wise derivative of Digamma, `a` times over.", gamma::polygamma;
    }
    for (op, doc, make) in [
        ("Erf", "Element-wise error function.", per_dtype!(FLOAT, T => unary::<Erf, T>()) as Make),
        (
            "Erfc",
            "Element-wise `1 - erf(x)`, precise for large `x`.",
            per_dtype!(FLOAT, T => unary::<Erfc, T>()),
        ),
    ] {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .output("y: T")
            .attr(FLOAT)
            .shape(shape::same_as_input)
            .cpu(make);
    }
    for (op, doc, make) in [
        (
            "Xlogy",
            "Element-wise `x * log(y)`, which is 0 where `x` is.",
            float_complex::<Xlogy> as Make,
        ),
        (
            "Xlog1py",
            "Element-wise `x * log(1 + y)`, which is 0 where `x` is.",
            float_complex::<Xlog1py>,
        ),
    ] {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .input("y: T")
            .output("z: T")
            .attr("T: {half, bfloat16, float, double, complex64, complex128}")
            .shape(shape::broadcast)
            .cpu(make);
    }
    c.op("Atan2")
        .doc("Element-wise angle of the point (x, y), from -pi to pi.")
        .input("y: T")
        .input("x: T")
        .output("z: T")
        .attr(FLOAT)
        .shape(shape::broadcast)
        .cpu(per_dtype!(FLOAT, T => binary::<Atan2, T>()));
    c.op("NextAfter")
        .doc("Element-wise next number after `x1` in the direction of `x2`.")
        .input("x1: T")
        .input("x2: T")
        .output("output: T")
        .attr("T: {double, float} = DT_FLOAT")
        .shape(shape::broadcast)
        .cpu(per_dtype!([Float f32, Double f64], T => binary::<NextAfter, T>()));
    c.op("Betainc")
        .doc("Element-wise incomplete beta function, normalised.")
        .input("a: T")
        .input("b: T")
        .input("x: T")
        .output("z: T")
        .attr("T: {float, double}")
        .shape(betainc_shape)
        .cpu(per_dtype!([Float f32, Double f64], T => betainc::<T>));
}

type Make = fn(&KernelInit<'_>) -> Result<KernelBox>;

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    /// Within a billionth of what TensorFlow computes.
    fn near(op: &str, got: Check<'_>, want: &[f64]) {
        let got = got.run().unwrap();
        let got = got[0].as_slice::<f64>().unwrap();
        assert_eq!(got.len(), want.len());
        for (i, (x, y)) in got.iter().zip(want).enumerate() {
            let same =
                x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-9 * y.abs() + 1e-13;
            assert!(same, "{op} at {i}: {x} is not {y}");
        }
    }

    fn near1(op: &str, x: &[f64], want: &[f64]) {
        near(op, check(op).input(Tensor::vector(x)), want);
    }

    fn near2(op: &str, a: &[f64], b: &[f64], want: &[f64]) {
        near(op, check(op).input(Tensor::vector(a)).input(Tensor::vector(b)), want);
    }

    #[test]
    fn functions_of_one_argument_have_their_values() {
        let x =
            [0.01, 0.3, 0.9, 1.0, 1.5, 2.5, 5.0, 9.5, 20.0, 30.0, 120.0, -0.4, -1.5, -6.25, 0.0];
        let rows: [(&str, [f64; 15]); 21] = [
            (
                "Lgamma",
                [
                    4.599479878042021,
                    1.0957979948180756,
                    0.06637623973474296,
                    0.0,
                    -0.12078223763524522,
                    0.2846828704729192,
                    3.1780538303479458,
                    11.689333420797269,
                    39.339884187199495,
                    71.25703896716801,
                    453.02489623849607,
                    1.31452458994339,
                    0.8600470153764809,
                    -5.560881974609167,
                    INF,
                ],
            ),
            (
                "Digamma",
                [
                    -100.56088545786865,
                    -3.502524222200133,
                    -0.7549269499470515,
                    -0.5772156649015323,
                    0.03648997397857645,
                    0.7031566406452434,
                    1.5061176684318007,
                    2.19773787640295,
                    2.970523992242149,
                    3.384438132685525,
                    4.783319289118529,
                    0.9593807861068102,
                    0.7031566406452434,
                    5.05204618047353,
                    NAN,
                ],
            ),
            (
                "BesselI0",
                [
                    1.0000250001562505,
                    1.0226268793515971,
                    1.2129851657286845,
                    1.2660658777520082,
                    1.6467231897728907,
                    3.289839144050123,
                    27.23987182360444,
                    1753.480990527323,
                    43558282.55955354,
                    781672297823.9774,
                    4.75457347101709e+50,
                    1.0404017822293417,
                    1.6467231897728907,
                    84.4995734794947,
                    1.0,
                ],
            ),
            (
                "BesselI0e",
                [
                    0.9900745851497076,
                    0.7575806251825479,
                    0.4931629661007054,
                    0.46575960759364043,
                    0.36743360905415834,
                    0.27004644161220276,
                    0.1835408126093283,
                    0.1312512608142679,
                    0.08978031188482603,
                    0.07314594648223728,
                    0.036456396116413915,
                    0.6974021705595335,
                    0.36743360905415834,
                    0.1631225511329678,
                    1.0,
                ],
            ),
            (
                "BesselI1",
                [
                    0.0050000625002604195,
                    0.15169384000359282,
                    0.4971264481609643,
                    0.565159103992485,
                    0.9816664285779079,
                    2.5167162452886984,
                    24.335642142450535,
                    1658.4530777821342,
                    42454973.385127775,
                    768532038938.9568,
                    4.734721127388196e+50,
                    -0.2040267557335706,
                    -0.9816664285779079,
                    -77.40811795864833,
                    0.0,
                ],
            ),
            (
                "BesselI1e",
                [
                    0.004950311047118279,
                    0.11237756063983881,
                    0.20211653087685583,
                    0.20791041534970844,
                    0.21903938742092574,
                    0.20658464953126654,
                    0.16397226694454242,
                    0.12413824765488178,
                    0.08750622218328867,
                    0.07191633059864753,
                    0.036304175332028954,
                    -0.13676322429582918,
                    -0.21903938742092574,
                    -0.1494328214908751,
                    0.0,
                ],
            ),
            (
                "BesselJ0",
                [
                    0.9999750001562495,
                    0.9776262465382962,
                    0.8075237981225449,
                    0.7651976865579665,
                    0.5118276717359181,
                    -0.04838377646819804,
                    -0.1775967713143383,
                    -0.19392874768742224,
                    0.16702466434058325,
                    -0.08636798358104031,
                    0.07182341582915616,
                    0.9603982266595634,
                    0.5118276717359181,
                    0.2130900530766608,
                    1.0,
                ],
            ),
            (
                "BesselJ1",
                [
                    0.004999937500260416,
                    0.148318816273104,
                    0.4059495460788056,
                    0.44005058574493355,
                    0.5579365079100997,
                    0.497094102464274,
                    -0.3275791375914653,
                    0.16126443075752983,
                    0.0668331241758502,
                    -0.11875106261662303,
                    -0.011805211433002331,
                    -0.19602657795531878,
                    -0.5579365079100997,
                    0.22072087753923725,
                    0.0,
                ],
            ),
            (
                "BesselK0",
                [
                    4.721244730161095,
                    1.3724600605442978,
                    0.4867303081629007,
                    0.42102443824070823,
                    0.21380556264752565,
                    0.062347553200366196,
                    0.003691098334042595,
                    3.005788495793434e-05,
                    5.741237815336523e-10,
                    2.132477496463056e-14,
                    8.763568099825578e-54,
                    INF,
                    INF,
                    INF,
                    INF,
                ],
            ),
            (
                "BesselK0e",
                [
                    4.768694028544461,
                    1.8526273007720149,
                    1.1971633802518515,
                    1.1444630798068947,
                    0.9582100532948961,
                    0.7595486903280997,
                    0.5478075643135191,
                    0.4015651321154054,
                    0.2785448766571822,
                    0.2278866656162537,
                    0.11429277942292937,
                    INF,
                    INF,
                    INF,
                    INF,
                ],
            ),
            (
                "BesselK1",
                [
                    99.97389411829626,
                    3.055992033457325,
                    0.7165335787760191,
                    0.6019072301972348,
                    0.2773878004568438,
                    0.07389081634774707,
                    0.004044613445452164,
                    3.160203411042675e-05,
                    5.883057969557039e-10,
                    2.1677320018915495e-14,
                    8.800007520092761e-54,
                    INF,
                    INF,
                    INF,
                    INF,
                ],
            ),
            (
                "BesselK1e",
                [
                    100.97864845824004,
                    4.12515776224447,
                    1.76238821960592,
                    1.6361534862632587,
                    1.2431658735525528,
                    0.900174423907878,
                    0.6002738587883125,
                    0.4221945429769579,
                    0.2854254969407265,
                    0.2316541293777118,
                    0.11476801537425146,
                    INF,
                    INF,
                    INF,
                    INF,
                ],
            ),
            (
                "BesselY0",
                [
                    -3.005455637083646,
                    -0.8072735778045196,
                    0.0056283066352055405,
                    0.08825696421567697,
                    0.38244892379775886,
                    0.498070359615232,
                    -0.30851762524903303,
                    0.17121062620272404,
                    0.0626405968093837,
                    -0.11729573168666396,
                    -0.012104365410016008,
                    -INF,
                    -INF,
                    -INF,
                    -INF,
                ],
            ),
            (
                "BesselY1",
                [
                    -63.67859628206067,
                    -2.2931051383885293,
                    -0.8731265824563288,
                    -0.7812128213002888,
                    -0.41230862697391135,
                    0.14591813796678577,
                    0.14786314339122691,
                    0.20317989938720774,
                    -0.16551161436252124,
                    0.08442557066174712,
                    -0.07187447320914947,
                    -INF,
                    -INF,
                    -INF,
                    -INF,
                ],
            ),
            (
                "Dawsn",
                [
                    0.00999933335999924,
                    0.28263166502131193,
                    0.5407243187262987,
                    0.5380795069127684,
                    0.42824907108539856,
                    0.22308372216743552,
                    0.10213407442427684,
                    0.05292815270562564,
                    0.025031367926403675,
                    0.016675941401059175,
                    0.004166811357665619,
                    -0.3599434819348881,
                    -0.42824907108539856,
                    -0.08106609406101173,
                    0.0,
                ],
            ),
            (
                "Expint",
                [
                    -4.017929465426669,
                    -0.30266853926582604,
                    1.6228117136968674,
                    1.895117816355937,
                    3.3012854491297983,
                    7.073765894578601,
                    40.18527535580318,
                    1605.0284066323388,
                    25615652.664056588,
                    368973209407.2742,
                    1.096029062158031e+50,
                    NAN,
                    NAN,
                    NAN,
                    -INF,
                ],
            ),
            (
                "FresnelCos",
                [
                    0.00999999997532599,
                    0.2994009760520472,
                    0.7648230212733264,
                    0.779893400376823,
                    0.44526117603982157,
                    0.45741300964177706,
                    0.5636311887040122,
                    0.4872873310265677,
                    0.49998733497234443,
                    0.4999962473706091,
                    0.49999994136505294,
                    -0.3974807591723595,
                    -0.44526117603982157,
                    -0.4492850934585048,
                    0.0,
                ],
            ),
            (
                "FresnelSin",
                [
                    5.235987746754932e-07,
                    0.014116998006576587,
                    0.3397763443931403,
                    0.4382591473903547,
                    0.697504960082093,
                    0.6191817558195929,
                    0.4991913819171169,
                    0.5309998491513985,
                    0.4840845359259539,
                    0.4893896744421938,
                    0.4973474176190234,
                    -0.033359432660613184,
                    -0.697504960082093,
                    -0.49542162367354675,
                    0.0,
                ],
            ),
            (
                "Spence",
                [
                    1.5886254480763753,
                    0.8893776242860388,
                    0.1026177910993911,
                    0.0,
                    -0.4484142069236462,
                    -1.1473806603755703,
                    -2.3699397969983655,
                    -3.820519021167801,
                    -5.927839724376521,
                    -7.280084707384272,
                    -13.056558975204345,
                    NAN,
                    NAN,
                    NAN,
                    1.6449340668482264,
                ],
            ),
            (
                "Erf",
                [
                    0.011283415555849616,
                    0.3286267594591274,
                    0.7969082124228322,
                    0.8427007929497149,
                    0.9661051464753108,
                    0.999593047982555,
                    0.9999999999984626,
                    1.0,
                    1.0,
                    1.0,
                    1.0,
                    -0.42839235504666845,
                    -0.9661051464753108,
                    -1.0,
                    0.0,
                ],
            ),
            (
                "Erfc",
                [
                    0.9887165844441503,
                    0.6713732405408726,
                    0.20309178757716786,
                    0.15729920705028513,
                    0.033894853524689274,
                    0.0004069520174449589,
                    1.5374597944280351e-12,
                    3.76921448565488e-41,
                    5.3958656116079005e-176,
                    0.0,
                    0.0,
                    1.4283923550466684,
                    1.9661051464753108,
                    2.0,
                    1.0,
                ],
            ),
        ];
        for (op, want) in rows {
            near1(op, &x, &want);
        }
        near1(
            "Ndtri",
            &[1e-300, 1e-20, 1e-5, 0.01, 0.03, 0.2, 0.5, 0.7, 0.97, 0.999999, 1.0, 0.0, -0.1],
            &[
                -37.0470962993612,
                -9.262340089798409,
                -4.264890793922825,
                -2.3263478740408408,
                -1.8807936081512513,
                -0.8416212335729142,
                0.0,
                0.5244005127080407,
                1.8807936081512509,
                4.753424308817087,
                INF,
                -INF,
                NAN,
            ],
        );
        near1(
            "Erfinv",
            &[-0.999999999, -0.97, -0.5, 0.0, 1e-5, 0.3, 0.49, 0.51, 0.9, 0.99999, 1.0, 1.5],
            &[
                -4.320005388105363,
                -1.5344856217777179,
                -0.4769362762044699,
                0.0,
                8.862269254817653e-06,
                0.27246271472675443,
                0.4658686002350574,
                0.4881220505159588,
                1.1630871536766738,
                3.1234132743398733,
                INF,
                NAN,
            ],
        );
    }

    #[test]
    fn functions_of_two_arguments_have_their_values() {
        let a = [0.5, 2.0, 10.0, 100.0, 200.0, 1e-3, 300.0, 30.0, 0.1, 5.0, 0.0, 1.0, -1.0];
        let x = [1.0, 3.0, 5.0, 90.0, 250.0, 1e-5, 200.0, 50.0, 0.05, 4.9, 1.0, 0.0, 1.0];
        let rows: [(&str, [f64; 13]); 4] = [
            (
                "Igamma",
                [
                    0.8427007929497151,
                    0.8008517265285442,
                    0.031828057306204756,
                    0.15822098918642064,
                    0.9995177872404066,
                    0.9891230446957834,
                    2.711468443342757e-11,
                    0.999083171138544,
                    0.7755386354510306,
                    0.5417881317722046,
                    NAN,
                    0.0,
                    NAN,
                ],
            ),
            (
                "Igammac",
                [
                    0.15729920705028505,
                    0.1991482734714558,
                    0.9681719426937953,
                    0.8417790108135794,
                    0.00048221275959342173,
                    0.010876955304216618,
                    0.9999999999728854,
                    0.000916828861456071,
                    0.22446136454896937,
                    0.45821186822779536,
                    NAN,
                    1.0,
                    NAN,
                ],
            ),
            (
                "IgammaGradA",
                [
                    -0.3898372643285106,
                    -0.19742541957920223,
                    -0.025551997720828133,
                    -0.02461191684397851,
                    -0.00011708420516737401,
                    -10.818398299086347,
                    -1.1210215809669513e-11,
                    -0.0005217649811472263,
                    -2.026422662100398,
                    -0.18307084618050706,
                    NAN,
                    0.0,
                    NAN,
                ],
            ),
            (
                "RandomGammaGrad",
                [
                    1.87824728173252,
                    1.3217985181779608,
                    0.704579922386839,
                    0.9498259498011444,
                    1.1166464935495375,
                    0.10937472778081823,
                    0.8113783953512658,
                    1.2841262302509393,
                    1.3672830678368921,
                    1.023502886582833,
                    NAN,
                    0.0,
                    NAN,
                ],
            ),
        ];
        for (op, want) in rows {
            near2(op, &a, &x, &want);
        }
        near2(
            "Zeta",
            &[2.0, 1.0, 0.5, 3.0, 3.0, 4.0, 2.0, 100.0, 5.0, 1.5, 2.0],
            &[1.0, 1.0, 1.0, -1.0, -1.5, -1.5, 1e10, 3.0, 0.1, 7.5, 0.0],
            &[
                1.6449340668482266,
                INF,
                NAN,
                NAN,
                0.11810202582086413,
                32.4323793698646,
                1.00000000005e-10,
                1.940325217483255e-48,
                100000.65030013314,
                0.7554493267867419,
                INF,
            ],
        );
        near2(
            "Polygamma",
            &[0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 1.0, 1.0, 30.0, 2.0],
            &[1.5, 1.0, 2.0, 4.0, 1.0, 1.0, -1.5, 0.0, 2.0, -1.0],
            &[
                0.03648997397857645,
                1.6449340668482266,
                -0.4041138063191886,
                0.04486532819275508,
                NAN,
                NAN,
                9.379246644989124,
                INF,
                -1.2351841765847903e+23,
                NAN,
            ],
        );
    }

    #[test]
    fn functions_have_their_limits() {
        let x = [NAN, INF, -INF];
        let rows = [
            ("Lgamma", [NAN, INF, INF]),
            ("Digamma", [NAN, INF, NAN]),
            ("BesselI0", [NAN, NAN, NAN]),
            ("BesselI0e", [NAN, 0.0, 0.0]),
            ("BesselI1", [NAN, NAN, NAN]),
            ("BesselI1e", [NAN, 0.0, 0.0]),
            ("BesselJ0", [NAN, NAN, NAN]),
            ("BesselJ1", [NAN, NAN, NAN]),
            ("BesselK0", [NAN, 0.0, INF]),
            ("BesselK1e", [NAN, 0.0, INF]),
            ("BesselY0", [NAN, NAN, -INF]),
            ("BesselY1", [NAN, NAN, -INF]),
            ("Dawsn", [NAN, 0.0, 0.0]),
            ("Expint", [NAN, NAN, NAN]),
            ("FresnelCos", [NAN, 0.5, -0.5]),
            ("FresnelSin", [NAN, 0.5, -0.5]),
            ("Spence", [NAN, NAN, NAN]),
            ("Erf", [NAN, 1.0, -1.0]),
            ("Erfc", [NAN, 0.0, 2.0]),
            ("Erfinv", [NAN, NAN, NAN]),
            ("Ndtri", [NAN, NAN, NAN]),
        ];
        for (op, want) in rows {
            near1(op, &x, &want);
            check(op).maps(x.map(|x| x as f32), want.map(|x| x as f32));
        }
        near2("Igamma", &[NAN, INF, 1.0], &[1.0, 1.0, INF], &[NAN, 0.0, 1.0]);
        near2("Igammac", &[NAN, INF, 1.0], &[1.0, 1.0, INF], &[NAN, 1.0, 0.0]);
        near2("Zeta", &[NAN, INF], &[1.0, 2.0], &[NAN, 0.0]);
    }

    #[test]
    fn narrow_types_are_served_too() {
        check("Erf").maps([0.5f32, -1.5], [0.5204999, -0.9661051]);
        check("Lgamma").maps([0.5f32, 100.0], [0.5723649, 359.13422]);
        let half = |x: [f32; 2]| Tensor::vector(&x.map(f16::from_f32));
        check("Lgamma").input(half([0.5, 2.5])).gives(half([0.5723649, 0.2846829]));
        check("Erf").input(half([0.5, 2.5])).gives(half([0.5204999, 0.999593]));
        check("Igamma")
            .input(Tensor::scalar(0.5f32))
            .input(Tensor::scalar(1.0f32))
            .gives(Tensor::scalar(0.842_700_8_f32));
    }

    #[test]
    fn betainc_takes_one_shape_or_scalars() {
        let v = |x: &[f64]| Tensor::vector(x);
        let on = |a, b, x| check("Betainc").input(a).input(b).input(x);
        let a = [0.5, 1.0, 2.0, 30.0, 0.1, 200.0];
        let b = [1.0, 2.0, 3.0, 7.0, 0.3, 300.0];
        let x = [0.3, 0.9, 0.5, 0.8, 0.01, 0.42];
        near(
            "Betainc",
            on(v(&a), v(&b), v(&x)),
            &[
                0.5477225575051661,
                0.99,
                0.6875,
                0.4006916782261369,
                0.492074208145165,
                0.819601066417259,
            ],
        );
        let s = Tensor::scalar::<f64>;
        near("Betainc", on(s(0.5), v(&[1.0, 2.0]), s(0.3)), &[0.5477225575, 0.7394254526]);
        near("Betainc", on(s(1.0), s(2.0), v(&[0.0, 1.0, -1.0, 2.0])), &[0.0, 1.0, NAN, NAN]);
        near("Betainc", on(v(&[NAN, -1.0, 0.0]), s(1.0), s(0.5)), &[NAN; 3]);
        on(v(&[0.5]), v(&[1.0, 2.0]), s(0.3))
            .fails(Code::InvalidArgument, "Shapes of a and b are inconsistent: [1] vs. [2]");
    }

    #[test]
    fn angles_and_neighbours() {
        let (y, x) = ([7.0, 7.0, -7.0, 0.0, 5.0, 0.0], [2.0, -2.0, 2.0, 3.0, 0.0, 0.0]);
        near2(
            "Atan2",
            &y,
            &x,
            &[1.2924966677, 1.8490959859, -1.2924966677, 0.0, 1.5707963268, 0.0],
        );
        let (x1, x2) = ([7.0f32, 0.0, f32::INFINITY, 5.0, f32::NAN], [2.0f32, 3.0, 2.0, 5.0, 1.0]);
        let got =
            check("NextAfter").input(Tensor::vector(&x1)).input(Tensor::vector(&x2)).run().unwrap();
        let got = got[0].as_slice::<f32>().unwrap();
        assert_eq!(got[..4], [6.9999995, 1e-45, f32::MAX, 5.0]);
        assert!(got[4].is_nan());
    }

    #[test]
    fn zero_times_a_logarithm_is_zero() {
        let (x, y) = ([0.0, 2.0, 0.0, 1.0], [0.0, 3.0, NAN, 0.0]);
        near2("Xlogy", &x, &y, &[0.0, 2.1972245773, 0.0, -INF]);
        near2("Xlog1py", &x, &y, &[0.0, 2.7725887222, 0.0, 0.0]);
        let z = |re, im| Complex32::new(re, im);
        check("Xlogy")
            .input(Tensor::vector(&[z(0.0, 0.0), z(3.0, 0.0)]))
            .input(Tensor::vector(&[z(0.0, 0.0), z(0.0, 1.0)]))
            .gives(Tensor::vector(&[z(0.0, 0.0), z(0.0, 4.712389)]));
    }
}
