//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// `Abs`: Element-wise absolute value.
#[inline]
#[track_caller]
pub fn abs(x: &Output) -> Output {
    x.graph().op("Abs").input(x).output()
}

/// `AccumulateNV2`: Element-wise sum of tensors of one shape.
#[inline]
#[track_caller]
pub fn accumulate_n_v2(g: &Graph, inputs: &[Output], shape: &PartialShape) -> Output {
    g.op("AccumulateNV2").list(inputs).attr("shape", shape.clone()).output()
}

/// `Acos`: Element-wise inverse cosine.
#[inline]
#[track_caller]
pub fn acos(x: &Output) -> Output {
    x.graph().op("Acos").input(x).output()
}

/// `Acosh`: Element-wise inverse hyperbolic cosine.
#[inline]
#[track_caller]
pub fn acosh(x: &Output) -> Output {
    x.graph().op("Acosh").input(x).output()
}

/// `Add`: Element-wise `x + y`; strings are joined.
#[inline]
#[track_caller]
pub fn add(x: &Output, y: &Output) -> Output {
    x.graph().op("Add").input(x).input(y).output()
}

/// `AddN`: Element-wise sum of tensors of one shape.
#[inline]
#[track_caller]
pub fn add_n(g: &Graph, inputs: &[Output]) -> Output {
    g.op("AddN").list(inputs).output()
}

/// `AddV2`: Element-wise `x + y`.
#[inline]
#[track_caller]
pub fn add_v2(x: &Output, y: &Output) -> Output {
    x.graph().op("AddV2").input(x).input(y).output()
}

/// The attributes of [`angle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AngleOptions {
    /// `Tout`: type, `Float` by default.
    pub tout: DType,
}

impl Default for AngleOptions {
    fn default() -> Self {
        AngleOptions { tout: DType::Float }
    }
}

/// `Angle`: The arguments, from -pi to pi.
#[inline]
#[track_caller]
pub fn angle(input: &Output) -> Output {
    angle_with(input, AngleOptions::default())
}

/// [`angle()`] with other attributes.
#[inline]
#[track_caller]
pub fn angle_with(input: &Output, options: AngleOptions) -> Output {
    input.graph().op("Angle").input(input).attr("Tout", options.tout).output()
}

/// The attributes of [`approximate_equal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApproximateEqualOptions {
    /// `tolerance`: float, `1e-5` by default.
    pub tolerance: f32,
}

impl Default for ApproximateEqualOptions {
    fn default() -> Self {
        ApproximateEqualOptions { tolerance: 1e-5 }
    }
}

/// `ApproximateEqual`: Element-wise `|x - y| < tolerance`.
#[inline]
#[track_caller]
pub fn approximate_equal(x: &Output, y: &Output) -> Output {
    approximate_equal_with(x, y, ApproximateEqualOptions::default())
}

/// [`approximate_equal()`] with other attributes.
#[inline]
#[track_caller]
pub fn approximate_equal_with(x: &Output, y: &Output, options: ApproximateEqualOptions) -> Output {
    x.graph().op("ApproximateEqual").input(x).input(y).attr("tolerance", options.tolerance).output()
}

/// `Asin`: Element-wise inverse sine.
#[inline]
#[track_caller]
pub fn asin(x: &Output) -> Output {
    x.graph().op("Asin").input(x).output()
}

/// `Asinh`: Element-wise inverse hyperbolic sine.
#[inline]
#[track_caller]
pub fn asinh(x: &Output) -> Output {
    x.graph().op("Asinh").input(x).output()
}

/// `Atan`: Element-wise inverse tangent.
#[inline]
#[track_caller]
pub fn atan(x: &Output) -> Output {
    x.graph().op("Atan").input(x).output()
}

/// `Atan2`: Element-wise angle of the point (x, y), from -pi to pi.
#[inline]
#[track_caller]
pub fn atan2(y: &Output, x: &Output) -> Output {
    y.graph().op("Atan2").input(y).input(x).output()
}

/// `Atanh`: Element-wise inverse hyperbolic tangent.
#[inline]
#[track_caller]
pub fn atanh(x: &Output) -> Output {
    x.graph().op("Atanh").input(x).output()
}

/// `BesselI0`: Element-wise modified Bessel function I of order 0.
#[inline]
#[track_caller]
pub fn bessel_i0(x: &Output) -> Output {
    x.graph().op("BesselI0").input(x).output()
}

/// `BesselI0e`: Element-wise BesselI0, times `exp(-|x|)`.
#[inline]
#[track_caller]
pub fn bessel_i0e(x: &Output) -> Output {
    x.graph().op("BesselI0e").input(x).output()
}

/// `BesselI1`: Element-wise modified Bessel function I of order 1.
#[inline]
#[track_caller]
pub fn bessel_i1(x: &Output) -> Output {
    x.graph().op("BesselI1").input(x).output()
}

/// `BesselI1e`: Element-wise BesselI1, times `exp(-|x|)`.
#[inline]
#[track_caller]
pub fn bessel_i1e(x: &Output) -> Output {
    x.graph().op("BesselI1e").input(x).output()
}

/// `BesselJ0`: Element-wise Bessel function J of order 0.
#[inline]
#[track_caller]
pub fn bessel_j0(x: &Output) -> Output {
    x.graph().op("BesselJ0").input(x).output()
}

/// `BesselJ1`: Element-wise Bessel function J of order 1.
#[inline]
#[track_caller]
pub fn bessel_j1(x: &Output) -> Output {
    x.graph().op("BesselJ1").input(x).output()
}

/// `BesselK0`: Element-wise modified Bessel function K of order 0.
#[inline]
#[track_caller]
pub fn bessel_k0(x: &Output) -> Output {
    x.graph().op("BesselK0").input(x).output()
}

/// `BesselK0e`: Element-wise BesselK0, times `exp(x)`.
#[inline]
#[track_caller]
pub fn bessel_k0e(x: &Output) -> Output {
    x.graph().op("BesselK0e").input(x).output()
}

/// `BesselK1`: Element-wise modified Bessel function K of order 1.
#[inline]
#[track_caller]
pub fn bessel_k1(x: &Output) -> Output {
    x.graph().op("BesselK1").input(x).output()
}

/// `BesselK1e`: Element-wise BesselK1, times `exp(x)`.
#[inline]
#[track_caller]
pub fn bessel_k1e(x: &Output) -> Output {
    x.graph().op("BesselK1e").input(x).output()
}

/// `BesselY0`: Element-wise Bessel function Y of order 0.
#[inline]
#[track_caller]
pub fn bessel_y0(x: &Output) -> Output {
    x.graph().op("BesselY0").input(x).output()
}

/// `BesselY1`: Element-wise Bessel function Y of order 1.
#[inline]
#[track_caller]
pub fn bessel_y1(x: &Output) -> Output {
    x.graph().op("BesselY1").input(x).output()
}

/// `Betainc`: Element-wise incomplete beta function, normalised.
#[inline]
#[track_caller]
pub fn betainc(a: &Output, b: &Output, x: &Output) -> Output {
    a.graph().op("Betainc").input(a).input(b).input(x).output()
}

/// `Bitcast`: The bytes of its input, read as another dtype.
#[inline]
#[track_caller]
pub fn bitcast(input: &Output, type_: DType) -> Output {
    input.graph().op("Bitcast").input(input).attr("type", type_).output()
}

/// `BitwiseAnd`: Element-wise `x and y`, bit by bit.
#[inline]
#[track_caller]
pub fn bitwise_and(x: &Output, y: &Output) -> Output {
    x.graph().op("BitwiseAnd").input(x).input(y).output()
}

/// `BitwiseOr`: Element-wise `x or y`, bit by bit.
#[inline]
#[track_caller]
pub fn bitwise_or(x: &Output, y: &Output) -> Output {
    x.graph().op("BitwiseOr").input(x).input(y).output()
}

/// `BitwiseXor`: Element-wise `x xor y`, bit by bit.
#[inline]
#[track_caller]
pub fn bitwise_xor(x: &Output, y: &Output) -> Output {
    x.graph().op("BitwiseXor").input(x).input(y).output()
}

/// `Bucketize`: The numbers of the buckets that elements fall into, given their boundaries.
#[inline]
#[track_caller]
pub fn bucketize(input: &Output, boundaries: &[f32]) -> Output {
    input.graph().op("Bucketize").input(input).attr("boundaries", list(boundaries)).output()
}

/// The attributes of [`cast_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CastOptions {
    /// `Truncate`: bool, `false` by default.
    pub truncate: bool,
}

impl Default for CastOptions {
    fn default() -> Self {
        CastOptions { truncate: false }
    }
}

/// `Cast`: Its input, as another dtype.
#[inline]
#[track_caller]
pub fn cast(x: &Output, dst_t: DType) -> Output {
    cast_with(x, dst_t, CastOptions::default())
}

/// [`cast()`] with other attributes.
#[inline]
#[track_caller]
pub fn cast_with(x: &Output, dst_t: DType, options: CastOptions) -> Output {
    x.graph().op("Cast").input(x).attr("DstT", dst_t).attr("Truncate", options.truncate).output()
}

/// `Ceil`: Element-wise smallest integer that is not less.
#[inline]
#[track_caller]
pub fn ceil(x: &Output) -> Output {
    x.graph().op("Ceil").input(x).output()
}

/// `ClipByValue`: Its input, kept between two bounds.
#[inline]
#[track_caller]
pub fn clip_by_value(t: &Output, clip_value_min: &Output, clip_value_max: &Output) -> Output {
    t.graph().op("ClipByValue").input(t).input(clip_value_min).input(clip_value_max).output()
}

/// The attributes of [`complex_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ComplexOptions {
    /// `Tout`: type, `Complex64` by default.
    pub tout: DType,
}

impl Default for ComplexOptions {
    fn default() -> Self {
        ComplexOptions { tout: DType::Complex64 }
    }
}

/// `Complex`: Complex numbers from their real and imaginary parts.
#[inline]
#[track_caller]
pub fn complex(real: &Output, imag: &Output) -> Output {
    complex_with(real, imag, ComplexOptions::default())
}

/// [`complex()`] with other attributes.
#[inline]
#[track_caller]
pub fn complex_with(real: &Output, imag: &Output, options: ComplexOptions) -> Output {
    real.graph().op("Complex").input(real).input(imag).attr("Tout", options.tout).output()
}

/// The attributes of [`complex_abs_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ComplexAbsOptions {
    /// `Tout`: type, `Float` by default.
    pub tout: DType,
}

impl Default for ComplexAbsOptions {
    fn default() -> Self {
        ComplexAbsOptions { tout: DType::Float }
    }
}

/// `ComplexAbs`: The absolute values of complex numbers.
#[inline]
#[track_caller]
pub fn complex_abs(x: &Output) -> Output {
    complex_abs_with(x, ComplexAbsOptions::default())
}

/// [`complex_abs()`] with other attributes.
#[inline]
#[track_caller]
pub fn complex_abs_with(x: &Output, options: ComplexAbsOptions) -> Output {
    x.graph().op("ComplexAbs").input(x).attr("Tout", options.tout).output()
}

/// `Conj`: The complex conjugates.
#[inline]
#[track_caller]
pub fn conj(input: &Output) -> Output {
    input.graph().op("Conj").input(input).output()
}

/// `Cos`: Element-wise cosine.
#[inline]
#[track_caller]
pub fn cos(x: &Output) -> Output {
    x.graph().op("Cos").input(x).output()
}

/// `Cosh`: Element-wise hyperbolic cosine.
#[inline]
#[track_caller]
pub fn cosh(x: &Output) -> Output {
    x.graph().op("Cosh").input(x).output()
}

/// `Dawsn`: Element-wise Dawson's integral.
#[inline]
#[track_caller]
pub fn dawsn(x: &Output) -> Output {
    x.graph().op("Dawsn").input(x).output()
}

/// `Digamma`: Element-wise derivative of Lgamma.
#[inline]
#[track_caller]
pub fn digamma(x: &Output) -> Output {
    x.graph().op("Digamma").input(x).output()
}

/// `Div`: Element-wise `x / y`; integers are rounded towards zero.
#[inline]
#[track_caller]
pub fn div(x: &Output, y: &Output) -> Output {
    x.graph().op("Div").input(x).input(y).output()
}

/// `DivNoNan`: Element-wise `x / y`, which is 0 where `y` is.
#[inline]
#[track_caller]
pub fn div_no_nan(x: &Output, y: &Output) -> Output {
    x.graph().op("DivNoNan").input(x).input(y).output()
}

/// The attributes of [`equal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EqualOptions {
    /// `incompatible_shape_error`: bool, `true` by default.
    pub incompatible_shape_error: bool,
}

impl Default for EqualOptions {
    fn default() -> Self {
        EqualOptions { incompatible_shape_error: true }
    }
}

/// `Equal`: Element-wise `x == y`.
#[inline]
#[track_caller]
pub fn equal(x: &Output, y: &Output) -> Output {
    equal_with(x, y, EqualOptions::default())
}

/// [`equal()`] with other attributes.
#[inline]
#[track_caller]
pub fn equal_with(x: &Output, y: &Output, options: EqualOptions) -> Output {
    x.graph()
        .op("Equal")
        .input(x)
        .input(y)
        .attr("incompatible_shape_error", options.incompatible_shape_error)
        .output()
}

/// `Erf`: Element-wise error function.
#[inline]
#[track_caller]
pub fn erf(x: &Output) -> Output {
    x.graph().op("Erf").input(x).output()
}

/// `Erfc`: Element-wise `1 - erf(x)`, precise for large `x`.
#[inline]
#[track_caller]
pub fn erfc(x: &Output) -> Output {
    x.graph().op("Erfc").input(x).output()
}

/// `Erfinv`: Element-wise inverse of Erf.
#[inline]
#[track_caller]
pub fn erfinv(x: &Output) -> Output {
    x.graph().op("Erfinv").input(x).output()
}

/// `Exp`: Element-wise `e` to the power `x`.
#[inline]
#[track_caller]
pub fn exp(x: &Output) -> Output {
    x.graph().op("Exp").input(x).output()
}

/// `Expint`: Element-wise exponential integral of positive numbers.
#[inline]
#[track_caller]
pub fn expint(x: &Output) -> Output {
    x.graph().op("Expint").input(x).output()
}

/// `Expm1`: Element-wise `exp(x) - 1`, precise near 0.
#[inline]
#[track_caller]
pub fn expm1(x: &Output) -> Output {
    x.graph().op("Expm1").input(x).output()
}

/// `Floor`: Element-wise largest integer that is not greater.
#[inline]
#[track_caller]
pub fn floor(x: &Output) -> Output {
    x.graph().op("Floor").input(x).output()
}

/// `FloorDiv`: Element-wise `x / y`, rounded down.
#[inline]
#[track_caller]
pub fn floor_div(x: &Output, y: &Output) -> Output {
    x.graph().op("FloorDiv").input(x).input(y).output()
}

/// `FloorMod`: Element-wise remainder of `x / y` rounded down: it has the sign of `y`.
#[inline]
#[track_caller]
pub fn floor_mod(x: &Output, y: &Output) -> Output {
    x.graph().op("FloorMod").input(x).input(y).output()
}

/// `FresnelCos`: Element-wise Fresnel's cosine integral.
#[inline]
#[track_caller]
pub fn fresnel_cos(x: &Output) -> Output {
    x.graph().op("FresnelCos").input(x).output()
}

/// `FresnelSin`: Element-wise Fresnel's sine integral.
#[inline]
#[track_caller]
pub fn fresnel_sin(x: &Output) -> Output {
    x.graph().op("FresnelSin").input(x).output()
}

/// `Greater`: Element-wise `x > y`.
#[inline]
#[track_caller]
pub fn greater(x: &Output, y: &Output) -> Output {
    x.graph().op("Greater").input(x).input(y).output()
}

/// `GreaterEqual`: Element-wise `x >= y`.
#[inline]
#[track_caller]
pub fn greater_equal(x: &Output, y: &Output) -> Output {
    x.graph().op("GreaterEqual").input(x).input(y).output()
}

/// `Igamma`: Element-wise lower incomplete gamma function, normalised.
#[inline]
#[track_caller]
pub fn igamma(a: &Output, x: &Output) -> Output {
    a.graph().op("Igamma").input(a).input(x).output()
}

/// `IgammaGradA`: Derivative of Igamma for `a`.
#[inline]
#[track_caller]
pub fn igamma_grad_a(a: &Output, x: &Output) -> Output {
    a.graph().op("IgammaGradA").input(a).input(x).output()
}

/// `Igammac`: Element-wise upper incomplete gamma function, normalised.
#[inline]
#[track_caller]
pub fn igammac(a: &Output, x: &Output) -> Output {
    a.graph().op("Igammac").input(a).input(x).output()
}

/// The attributes of [`imag_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ImagOptions {
    /// `Tout`: type, `Float` by default.
    pub tout: DType,
}

impl Default for ImagOptions {
    fn default() -> Self {
        ImagOptions { tout: DType::Float }
    }
}

/// `Imag`: The imaginary parts.
#[inline]
#[track_caller]
pub fn imag(input: &Output) -> Output {
    imag_with(input, ImagOptions::default())
}

/// [`imag()`] with other attributes.
#[inline]
#[track_caller]
pub fn imag_with(input: &Output, options: ImagOptions) -> Output {
    input.graph().op("Imag").input(input).attr("Tout", options.tout).output()
}

/// `Inv`: Element-wise `1 / x`.
#[inline]
#[track_caller]
pub fn inv(x: &Output) -> Output {
    x.graph().op("Inv").input(x).output()
}

/// `InvGrad`: Gradient of `y = 1 / x`: `-dy y^2`.
#[inline]
#[track_caller]
pub fn inv_grad(y: &Output, dy: &Output) -> Output {
    y.graph().op("InvGrad").input(y).input(dy).output()
}

/// `Invert`: Element-wise, every bit flipped.
#[inline]
#[track_caller]
pub fn invert(x: &Output) -> Output {
    x.graph().op("Invert").input(x).output()
}

/// `IsFinite`: Element-wise: is it neither infinite nor NaN?
#[inline]
#[track_caller]
pub fn is_finite(x: &Output) -> Output {
    x.graph().op("IsFinite").input(x).output()
}

/// `IsInf`: Element-wise: is it infinite?
#[inline]
#[track_caller]
pub fn is_inf(x: &Output) -> Output {
    x.graph().op("IsInf").input(x).output()
}

/// `IsNan`: Element-wise: is it NaN?
#[inline]
#[track_caller]
pub fn is_nan(x: &Output) -> Output {
    x.graph().op("IsNan").input(x).output()
}

/// `LeftShift`: Element-wise `x` shifted left by `y` bits.
#[inline]
#[track_caller]
pub fn left_shift(x: &Output, y: &Output) -> Output {
    x.graph().op("LeftShift").input(x).input(y).output()
}

/// `Less`: Element-wise `x < y`.
#[inline]
#[track_caller]
pub fn less(x: &Output, y: &Output) -> Output {
    x.graph().op("Less").input(x).input(y).output()
}

/// `LessEqual`: Element-wise `x <= y`.
#[inline]
#[track_caller]
pub fn less_equal(x: &Output, y: &Output) -> Output {
    x.graph().op("LessEqual").input(x).input(y).output()
}

/// `Lgamma`: Element-wise logarithm of the absolute value of the gamma function.
#[inline]
#[track_caller]
pub fn lgamma(x: &Output) -> Output {
    x.graph().op("Lgamma").input(x).output()
}

/// `Log`: Element-wise natural logarithm.
#[inline]
#[track_caller]
pub fn log(x: &Output) -> Output {
    x.graph().op("Log").input(x).output()
}

/// `Log1p`: Element-wise `log(1 + x)`, precise near 0.
#[inline]
#[track_caller]
pub fn log1p(x: &Output) -> Output {
    x.graph().op("Log1p").input(x).output()
}

/// `LogicalAnd`: Element-wise `x and y`.
#[inline]
#[track_caller]
pub fn logical_and(x: &Output, y: &Output) -> Output {
    x.graph().op("LogicalAnd").input(x).input(y).output()
}

/// `LogicalNot`: Element-wise `not x`.
#[inline]
#[track_caller]
pub fn logical_not(x: &Output) -> Output {
    x.graph().op("LogicalNot").input(x).output()
}

/// `LogicalOr`: Element-wise `x or y`.
#[inline]
#[track_caller]
pub fn logical_or(x: &Output, y: &Output) -> Output {
    x.graph().op("LogicalOr").input(x).input(y).output()
}

/// `Maximum`: Element-wise larger of `x` and `y`; NaN where either is.
#[inline]
#[track_caller]
pub fn maximum(x: &Output, y: &Output) -> Output {
    x.graph().op("Maximum").input(x).input(y).output()
}

/// `Minimum`: Element-wise smaller of `x` and `y`; NaN where either is.
#[inline]
#[track_caller]
pub fn minimum(x: &Output, y: &Output) -> Output {
    x.graph().op("Minimum").input(x).input(y).output()
}

/// `Mod`: Element-wise remainder of `x / y` rounded towards zero: it has the sign of `x`.
#[inline]
#[track_caller]
pub fn mod_(x: &Output, y: &Output) -> Output {
    x.graph().op("Mod").input(x).input(y).output()
}

/// `Mul`: Element-wise `x * y`.
#[inline]
#[track_caller]
pub fn mul(x: &Output, y: &Output) -> Output {
    x.graph().op("Mul").input(x).input(y).output()
}

/// `MulNoNan`: Element-wise `x * y`, which is 0 where `y` is, whatever `x`.
#[inline]
#[track_caller]
pub fn mul_no_nan(x: &Output, y: &Output) -> Output {
    x.graph().op("MulNoNan").input(x).input(y).output()
}

/// `Ndtri`: Element-wise inverse of the standard normal distribution function.
#[inline]
#[track_caller]
pub fn ndtri(x: &Output) -> Output {
    x.graph().op("Ndtri").input(x).output()
}

/// `Neg`: Element-wise `-x`.
#[inline]
#[track_caller]
pub fn neg(x: &Output) -> Output {
    x.graph().op("Neg").input(x).output()
}

/// `NextAfter`: Element-wise next number after `x1` in the direction of `x2`.
#[inline]
#[track_caller]
pub fn next_after(x1: &Output, x2: &Output) -> Output {
    x1.graph().op("NextAfter").input(x1).input(x2).output()
}

/// The attributes of [`not_equal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct NotEqualOptions {
    /// `incompatible_shape_error`: bool, `true` by default.
    pub incompatible_shape_error: bool,
}

impl Default for NotEqualOptions {
    fn default() -> Self {
        NotEqualOptions { incompatible_shape_error: true }
    }
}

/// `NotEqual`: Element-wise `x != y`.
#[inline]
#[track_caller]
pub fn not_equal(x: &Output, y: &Output) -> Output {
    not_equal_with(x, y, NotEqualOptions::default())
}

/// [`not_equal()`] with other attributes.
#[inline]
#[track_caller]
pub fn not_equal_with(x: &Output, y: &Output, options: NotEqualOptions) -> Output {
    x.graph()
        .op("NotEqual")
        .input(x)
        .input(y)
        .attr("incompatible_shape_error", options.incompatible_shape_error)
        .output()
}

/// `Polygamma`: Element-wise derivative of Digamma, `a` times over.
#[inline]
#[track_caller]
pub fn polygamma(a: &Output, x: &Output) -> Output {
    a.graph().op("Polygamma").input(a).input(x).output()
}

/// `PopulationCount`: Element-wise number of bits that are 1.
#[inline]
#[track_caller]
pub fn population_count(x: &Output) -> Output {
    x.graph().op("PopulationCount").input(x).output()
}

/// `Pow`: Element-wise `x` to the power `y`.
#[inline]
#[track_caller]
pub fn pow(x: &Output, y: &Output) -> Output {
    x.graph().op("Pow").input(x).input(y).output()
}

/// `RandomGammaGrad`: Derivative of a gamma-distributed sample for the distribution's `alpha`.
#[inline]
#[track_caller]
pub fn random_gamma_grad(alpha: &Output, sample: &Output) -> Output {
    alpha.graph().op("RandomGammaGrad").input(alpha).input(sample).output()
}

/// The attributes of [`real_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RealOptions {
    /// `Tout`: type, `Float` by default.
    pub tout: DType,
}

impl Default for RealOptions {
    fn default() -> Self {
        RealOptions { tout: DType::Float }
    }
}

/// `Real`: The real parts.
#[inline]
#[track_caller]
pub fn real(input: &Output) -> Output {
    real_with(input, RealOptions::default())
}

/// [`real()`] with other attributes.
#[inline]
#[track_caller]
pub fn real_with(input: &Output, options: RealOptions) -> Output {
    input.graph().op("Real").input(input).attr("Tout", options.tout).output()
}

/// `RealDiv`: Element-wise `x / y`.
#[inline]
#[track_caller]
pub fn real_div(x: &Output, y: &Output) -> Output {
    x.graph().op("RealDiv").input(x).input(y).output()
}

/// `Reciprocal`: Element-wise `1 / x`.
#[inline]
#[track_caller]
pub fn reciprocal(x: &Output) -> Output {
    x.graph().op("Reciprocal").input(x).output()
}

/// `ReciprocalGrad`: Gradient of `y = 1 / x`: `-dy y^2`.
#[inline]
#[track_caller]
pub fn reciprocal_grad(y: &Output, dy: &Output) -> Output {
    y.graph().op("ReciprocalGrad").input(y).input(dy).output()
}

/// `RightShift`: Element-wise `x` shifted right by `y` bits; the sign is kept.
#[inline]
#[track_caller]
pub fn right_shift(x: &Output, y: &Output) -> Output {
    x.graph().op("RightShift").input(x).input(y).output()
}

/// `Rint`: Element-wise nearest integer, halves to even.
#[inline]
#[track_caller]
pub fn rint(x: &Output) -> Output {
    x.graph().op("Rint").input(x).output()
}

/// `Round`: Element-wise nearest integer, halves to even.
#[inline]
#[track_caller]
pub fn round(x: &Output) -> Output {
    x.graph().op("Round").input(x).output()
}

/// `Rsqrt`: Element-wise `1 / sqrt(x)`.
#[inline]
#[track_caller]
pub fn rsqrt(x: &Output) -> Output {
    x.graph().op("Rsqrt").input(x).output()
}

/// `RsqrtGrad`: Gradient of `y = 1 / sqrt(x)`: `-dy y^3 / 2`.
#[inline]
#[track_caller]
pub fn rsqrt_grad(y: &Output, dy: &Output) -> Output {
    y.graph().op("RsqrtGrad").input(y).input(dy).output()
}

/// `Select`: Elements (or rows) of `t` where the condition is true, of `e` where it is not.
#[inline]
#[track_caller]
pub fn select(condition: &Output, t: &Output, e: &Output) -> Output {
    condition.graph().op("Select").input(condition).input(t).input(e).output()
}

/// `SelectV2`: Elements of `t` where the condition is true, of `e` where it is not; all broadcast.
#[inline]
#[track_caller]
pub fn select_v2(condition: &Output, t: &Output, e: &Output) -> Output {
    condition.graph().op("SelectV2").input(condition).input(t).input(e).output()
}

/// `Sigmoid`: Element-wise `1 / (1 + exp(-x))`.
#[inline]
#[track_caller]
pub fn sigmoid(x: &Output) -> Output {
    x.graph().op("Sigmoid").input(x).output()
}

/// `SigmoidGrad`: Gradient of `y = sigmoid(x)`: `dy y (1 - y)`.
#[inline]
#[track_caller]
pub fn sigmoid_grad(y: &Output, dy: &Output) -> Output {
    y.graph().op("SigmoidGrad").input(y).input(dy).output()
}

/// `Sign`: Element-wise sign: -1, 0 or 1; for complex numbers `x / |x|`, or 0.
#[inline]
#[track_caller]
pub fn sign(x: &Output) -> Output {
    x.graph().op("Sign").input(x).output()
}

/// `Sin`: Element-wise sine.
#[inline]
#[track_caller]
pub fn sin(x: &Output) -> Output {
    x.graph().op("Sin").input(x).output()
}

/// `Sinh`: Element-wise hyperbolic sine.
#[inline]
#[track_caller]
pub fn sinh(x: &Output) -> Output {
    x.graph().op("Sinh").input(x).output()
}

/// `Spence`: Element-wise Spence's integral.
#[inline]
#[track_caller]
pub fn spence(x: &Output) -> Output {
    x.graph().op("Spence").input(x).output()
}

/// `Sqrt`: Element-wise square root.
#[inline]
#[track_caller]
pub fn sqrt(x: &Output) -> Output {
    x.graph().op("Sqrt").input(x).output()
}

/// `SqrtGrad`: Gradient of `y = sqrt(x)`: `dy / 2y`.
#[inline]
#[track_caller]
pub fn sqrt_grad(y: &Output, dy: &Output) -> Output {
    y.graph().op("SqrtGrad").input(y).input(dy).output()
}

/// `Square`: Element-wise `x * x`.
#[inline]
#[track_caller]
pub fn square(x: &Output) -> Output {
    x.graph().op("Square").input(x).output()
}

/// `SquaredDifference`: Element-wise `conj(x - y) * (x - y)`.
#[inline]
#[track_caller]
pub fn squared_difference(x: &Output, y: &Output) -> Output {
    x.graph().op("SquaredDifference").input(x).input(y).output()
}

/// `Sub`: Element-wise `x - y`.
#[inline]
#[track_caller]
pub fn sub(x: &Output, y: &Output) -> Output {
    x.graph().op("Sub").input(x).input(y).output()
}

/// `Tan`: Element-wise tangent.
#[inline]
#[track_caller]
pub fn tan(x: &Output) -> Output {
    x.graph().op("Tan").input(x).output()
}

/// `Tanh`: Element-wise hyperbolic tangent.
#[inline]
#[track_caller]
pub fn tanh(x: &Output) -> Output {
    x.graph().op("Tanh").input(x).output()
}

/// `TanhGrad`: Gradient of `y = tanh(x)`: `dy (1 - y^2)`.
#[inline]
#[track_caller]
pub fn tanh_grad(y: &Output, dy: &Output) -> Output {
    y.graph().op("TanhGrad").input(y).input(dy).output()
}

/// `TruncateDiv`: Element-wise `x / y`, rounded towards zero.
#[inline]
#[track_caller]
pub fn truncate_div(x: &Output, y: &Output) -> Output {
    x.graph().op("TruncateDiv").input(x).input(y).output()
}

/// `TruncateMod`: Element-wise remainder of `x / y` rounded towards zero: it has the sign of `x`.
#[inline]
#[track_caller]
pub fn truncate_mod(x: &Output, y: &Output) -> Output {
    x.graph().op("TruncateMod").input(x).input(y).output()
}

/// `Xdivy`: Element-wise `x / y`, which is 0 where `x` is.
#[inline]
#[track_caller]
pub fn xdivy(x: &Output, y: &Output) -> Output {
    x.graph().op("Xdivy").input(x).input(y).output()
}

/// `Xlog1py`: Element-wise `x * log(1 + y)`, which is 0 where `x` is.
#[inline]
#[track_caller]
pub fn xlog1py(x: &Output, y: &Output) -> Output {
    x.graph().op("Xlog1py").input(x).input(y).output()
}

/// `Xlogy`: Element-wise `x * log(y)`, which is 0 where `x` is.
#[inline]
#[track_caller]
pub fn xlogy(x: &Output, y: &Output) -> Output {
    x.graph().op("Xlogy").input(x).input(y).output()
}

/// `Zeta`: Element-wise Hurwitz's zeta function.
#[inline]
#[track_caller]
pub fn zeta(x: &Output, q: &Output) -> Output {
    x.graph().op("Zeta").input(x).input(q).output()
}
