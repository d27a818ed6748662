//! Cast: from every plain dtype to every other.
//!
//! Ten plain types (the integers, `float`, `double`) are converted directly. The others are
//! converted through the nearest of these: half types through `float`, complex numbers through
//! their real part, `bool` through `uint8`.

use crate::prelude::*;
use ferroflow_graph::OperandShapes;
use ferroflow_op_kit::gpu::{self, elementwise::elementwise};
use ferroflow_op_kit::parallel::split_mut;
use half::slice::HalfFloatSliceExt;

/// A conversion of the plain types.
trait CastTo<D> {
    fn cast(self) -> D;
}

macro_rules! as_casts {
    ($($s:ty => $($d:ty)*;)*) => {$($(
        impl CastTo<$d> for $s {
            #[inline(always)]
            fn cast(self) -> $d { self as $d }
        }
    )*)*};
}
as_casts! {
    i8 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    i16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    i32 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    i64 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u8 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u32 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u64 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    f32 => f32 f64;
    f64 => f32 f64;
}

/// Converts floats to integers as x86-64 does. NaN and values out of range become the smallest
/// `int32` or `int64`; narrower types take the low bits of an `int32`.
macro_rules! float_casts {
    ($($s:ty)*) => {$(
        impl CastTo<i32> for $s {
            #[inline(always)]
            fn cast(self) -> i32 {
                if self < 2147483648.0 { self as i32 } else { i32::MIN }
            }
        }
        impl CastTo<i64> for $s {
            #[inline(always)]
            fn cast(self) -> i64 {
                if self < 9223372036854775808.0 { self as i64 } else { i64::MIN }
            }
        }
        impl CastTo<u32> for $s {
            #[inline(always)]
            fn cast(self) -> u32 {
                if (0.0..4294967296.0).contains(&self) {
                    self as u32
                } else {
                    CastTo::<i32>::cast(self) as u32
                }
            }
        }
        impl CastTo<u64> for $s {
            #[inline(always)]
            fn cast(self) -> u64 {
                if (9223372036854775808.0..18446744073709551616.0).contains(&self) {
                    self as u64
                } else {
                    CastTo::<i64>::cast(self) as u64
                }
            }
        }
        float_casts!(@narrow $s => i8 i16 u8 u16);
    )*};
    (@narrow $s:ty => $($d:ty)*) => {$(
        impl CastTo<$d> for $s {
            #[inline(always)]
            fn cast(self) -> $d { CastTo::<i32>::cast(self) as $d }
        }
    )*};
}
float_casts!(f32 f64);

/// `D` from each element of `x`.
fn convert<S: Element, D: Element>(x: &Tensor, f: impl Fn(S) -> D + Sync) -> Result<Tensor> {
    let mut y = Tensor::alloc(D::DTYPE, x.shape().clone())?;
    let from = x.as_slice::<S>()?;
    split_mut(y.as_mut_slice::<D>()?, 1, 1, |first, part| {
        for (to, &x) in part.iter_mut().zip(&from[first..]) {
            *to = f(x);
        }
    });
    Ok(y)
}

/// Applies `$go` with `$S` being the plain type of `$dtype`.
macro_rules! with_plain {
    ($dtype:expr, $S:ident => $go:expr) => {
        match $dtype {
            DType::Int8 => {
                type $S = i8;
                $go
            }
            DType::Int16 => {
                type $S = i16;
                $go
            }
            DType::Int32 => {
                type $S = i32;
                $go
            }
            DType::Int64 => {
                type $S = i64;
                $go
            }
            DType::UInt8 => {
                type $S = u8;
                $go
            }
            DType::UInt16 => {
                type $S = u16;
                $go
            }
            DType::UInt32 => {
                type $S = u32;
                $go
            }
            DType::UInt64 => {
                type $S = u64;
                $go
            }
            DType::Float => {
                type $S = f32;
                $go
            }
            DType::Double => {
                type $S = f64;
                $go
            }
            other => Err(err!(Internal, "{other} is not one of the plain types of Cast")),
        }
    };
}

/// Between plain types.
fn cast_plain(x: Tensor, to: DType) -> Result<Tensor> {
    if x.dtype() == to {
        return Ok(x);
    }
    with_plain!(x.dtype(), S => with_plain!(to, D => convert(&x, |s: S| CastTo::<D>::cast(s))))
}

/// The plain type through which a dtype is cast, or `None` if it cannot be cast.
fn hub(dtype: DType) -> Option<DType> {
    Some(match dtype {
        DType::Half | DType::BFloat16 | DType::Complex64 => DType::Float,
        DType::Complex128 => DType::Double,
        DType::Bool => DType::UInt8,
        DType::QInt8 => DType::Int8,
        DType::QUInt8 => DType::UInt8,
        DType::QInt16 => DType::Int16,
        DType::QUInt16 => DType::UInt16,
        DType::QInt32 => DType::Int32,
        DType::Float | DType::Double => dtype,
        DType::Int4 | DType::UInt4 => return None,
        _ if dtype.is_integer() => dtype,
        _ => return None,
    })
}

/// `x` as the plain type of its hub.
fn to_hub(x: Tensor) -> Result<Tensor> {
    let widened = |fill: &dyn Fn(&Tensor, &mut [f32]) -> Result<()>| {
        let mut y = Tensor::alloc(DType::Float, x.shape().clone())?;
        fill(&x, y.as_mut_slice::<f32>()?)?;
        Ok(y)
    };
    match x.dtype() {
        DType::Half => widened(&|x, y| {
            x.as_slice::<f16>()?.convert_to_f32_slice(y);
            Ok(())
        }),
        DType::BFloat16 => widened(&|x, y| {
            x.as_slice::<bf16>()?.convert_to_f32_slice(y);
            Ok(())
        }),
        DType::Complex64 => convert(&x, |z: Complex32| z.re),
        DType::Complex128 => convert(&x, |z: Complex64| z.re),
        other => match hub(other) {
            Some(plain) if plain != other => x.with_dtype(plain),
            _ => Ok(x),
        },
    }
}

/// From the plain type of `to`'s hub to `to` itself. Floats are truncated instead of rounded if
/// `truncates`.
fn from_hub(x: Tensor, to: DType, truncates: bool) -> Result<Tensor> {
    match to {
        DType::Half if truncates => convert(&x, |x: f32| truncate_half(x)),
        DType::BFloat16 if truncates => convert(&x, |x: f32| {
            if x.is_nan() { bf16::NAN } else { bf16::from_bits((x.to_bits() >> 16) as u16) }
        }),
        DType::Half => {
            let mut y = Tensor::alloc(to, x.shape().clone())?;
            y.as_mut_slice::<f16>()?.convert_from_f32_slice(x.as_slice::<f32>()?);
            Ok(y)
        }
        DType::BFloat16 => {
            let mut y = Tensor::alloc(to, x.shape().clone())?;
            y.as_mut_slice::<bf16>()?.convert_from_f32_slice(x.as_slice::<f32>()?);
            Ok(y)
        }
        DType::Complex64 => convert(&x, |x: f32| Complex32::new(x, 0.0)),
        DType::Complex128 => convert(&x, |x: f64| Complex64::new(x, 0.0)),
        other if other == x.dtype() => Ok(x),
        other => x.with_dtype(other),
    }
}

/// The half nearest to `x` whose magnitude is not larger.
fn truncate_half(x: f32) -> f16 {
    let near = f16::from_f32(x);
    if x.is_finite() && near.to_f32().abs() > x.abs() {
        // The next half towards zero; below infinity that is the largest finite one. TensorFlow
        // keeps infinity for values far out of range.
        if near.is_infinite() && x.abs() >= 65536.0 {
            near
        } else {
            f16::from_bits(near.to_bits() - 1)
        }
    } else {
        near
    }
}

/// The single-precision number nearest to `x` whose magnitude is not larger.
fn truncate_single(x: f64) -> f32 {
    let near = x as f32;
    if near.is_finite() && (near as f64).abs() > x.abs() {
        f32::from_bits(near.to_bits() - 1)
    } else {
        near
    }
}

fn run(x: Tensor, to: DType, truncates: bool) -> Result<Tensor> {
    match (x.dtype(), to) {
        (from, to) if from == to => return Ok(x),
        (DType::Complex64, DType::Complex128) => {
            return convert(&x, |z: Complex32| Complex64::new(z.re as f64, z.im as f64));
        }
        (DType::Complex128, DType::Complex64) => {
            return convert(&x, |z: Complex64| Complex32::new(z.re as f32, z.im as f32));
        }
        (DType::Double, DType::Float) if truncates => return convert(&x, truncate_single),
        _ => {}
    }
    let x = to_hub(x)?;
    if to == DType::Bool {
        return with_plain!(x.dtype(), S => convert(&x, |s: S| s != 0 as S));
    }
    let plain = hub(to).ok_or_else(|| err!(Internal, "Cast to {to} has no kernel"))?;
    from_hub(cast_plain(x, plain)?, to, truncates)
}

/// A tensor as another dtype of numbers, as Cast has it.
pub(crate) fn cast_to(x: &Tensor, to: DType) -> Result<Tensor> {
    run(x.clone(), to, false)
}

fn cast(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (from, to) = (init.dtype("SrcT")?, init.dtype("DstT")?);
    ensure!(
        from == to || hub(from).is_some() && hub(to).is_some(),
        Unimplemented,
        "Cast {from} to {to} is not supported"
    );
    let truncates = init.bool("Truncate")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.take(0)?;
        ctx.set(0, run(x, to, truncates)?)
    }))
}

/// Truncation, and floats that become large unsigned integers, are left to the CPU.
fn is_cast_on_device(attrs: &Attrs) -> bool {
    let (from, to) = (attrs.dtype("SrcT"), attrs.dtype("DstT"));
    let is_large = matches!(to, Ok(DType::UInt32 | DType::UInt64));
    let truncates = attrs.bool("Truncate").unwrap_or(false);
    !(truncates || is_large && from.is_ok_and(DType::is_floating))
}

/// A float out of an integer's range becomes what the processor makes of it.
fn cast_formula(attrs: &Attrs) -> Result<&'static str> {
    let (from, to) = (attrs.dtype("SrcT")?, attrs.dtype("DstT")?);
    Ok(if from.is_floating() && to.is_integer() { "whole<Out>(x)" } else { "x" })
}

fn cast_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    elementwise(cast_formula(init)?)(init)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Cast")
        .doc("Its input, as another dtype.")
        .input("x: SrcT")
        .output("y: DstT")
        .attr("SrcT: type")
        .attr("DstT: type")
        .attr("Truncate: bool = false")
        .shape(shape::same_as_input)
        .gpu(&[("SrcT", gpu::COMPUTED), ("DstT", gpu::COMPUTED)], cast_on_device)
        .gpu_if(is_cast_on_device)
        .gpu_formula(GpuFormula {
            text: |attrs, _| cast_formula(attrs).ok(),
            given: "",
            operands: OperandShapes::Broadcast,
        })
        .cpu(cast);
    c.op("_HostCast")
        .doc("Its input, as another dtype, in the memory of the host.")
        .input("x: SrcT")
        .output("y: DstT")
        .attr("SrcT: type")
        .attr("DstT: type")
        .attr("Truncate: bool = false")
        .shape(shape::same_as_input)
        .cpu(cast);
    c.gradient("Cast", |g, dy| {
        let from = g.input(0).dtype();
        let has = |d: DType| d.is_floating() || d.is_complex();
        Ok(vec![if has(from) && has(dy[0].dtype()) { dy[0].cast(from) } else { g.none() }])
    });
}

#[cfg(test)]
// Expected values are what TensorFlow prints.
#[allow(clippy::approx_constant, clippy::excessive_precision)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn casts<S: Element, D: Element>(from: &[S], to: &[D]) {
        check("Cast").attr("DstT", D::DTYPE).input(Tensor::vector(from)).gives(Tensor::vector(to));
    }

    #[test]
    fn integers_wrap() {
        let x = [300i32, -1, i32::MAX];
        casts(&x, &[44i8, -1, -1]);
        casts(&x, &[44u8, 255, 255]);
        casts(&x, &[300u16, 65535, 65535]);
        casts(&x, &[300u64, u64::MAX, 2147483647]);
        casts(&x, &[300.0f32, -1.0, 2147483600.0]);
        casts(&[u64::MAX, 1 << 63], &[-1i64, i64::MIN]);
        casts(&[u64::MAX, 1 << 63], &[1.8446744073709552e19f64, 9.223372036854775808e18]);
    }

    #[test]
    fn floats_convert_as_the_processor_does() {
        let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.9, -1.9, 3e9, -3e9, 300.7, -300.7];
        let (m, n) = (i32::MIN, i64::MIN);
        casts(&x, &[m, m, m, 1, -1, m, m, 300, -300]);
        casts(&x, &[n, n, n, 1, -1, 3_000_000_000, -3_000_000_000, 300, -300]);
        casts(&x, &[0i8, 0, 0, 1, -1, 0, 0, 44, -44]);
        casts(&x, &[0u8, 0, 0, 1, 255, 0, 0, 44, 212]);
        let m = 1 << 31;
        casts(&x, &[m, m, m, 1, u32::MAX, 3_000_000_000, m, 300, 4294966996u32]);
        let n = 1 << 63;
        let big = 18446744070709551616u64;
        casts(&x, &[n, n, n, 1, u64::MAX, 3_000_000_000, big, 300, 18446744073709551316u64]);
        casts(&[1e20f64, f64::NAN], &[n, n]);
        casts(&[0.0f32, -0.0, 0.5, f32::NAN], &[false, false, true, true]);
    }

    #[test]
    fn half_types_round_to_nearest() {
        let x = [1.0009765f32, 65519.0, 65520.0, 1e-8, 3.14159];
        casts(&x, &[1.001, 65504.0, f32::INFINITY, 0.0, 3.141].map(f16::from_f32));
        let x = [1.00390625f32, 1.01171875, 3.14159];
        casts(&x, &[1.0, 1.015625, 3.140625].map(bf16::from_f32));
        casts(&[f16::from_f32(-2.5)], &[-2i32]);
        casts(&[bf16::from_f32(2.5)], &[2.5f64]);
        casts(&[7i64, 70000], &[7.0, f32::INFINITY].map(f16::from_f32));
    }

    #[test]
    fn truncation_cuts_off() {
        let x = Tensor::vector(&[1.999999f32, 65519.0, -3.14159, 65520.0, 1e6, f32::NAN]);
        let want = [1.999, 65504.0, -3.1406, 65504.0, f32::INFINITY, f32::NAN].map(f16::from_f32);
        let on =
            |x: Tensor, to: DType| check("Cast").attr("DstT", to).attr("Truncate", true).input(x);
        on(x.clone(), DType::Half).gives(Tensor::vector(&want));
        let want = [1.9921875, 65280.0, -3.140625, 65280.0, 999424.0, f32::NAN].map(bf16::from_f32);
        on(x, DType::BFloat16).gives(Tensor::vector(&want));
        let got = on(Tensor::vector(&[1.00000019f64, -1.00000019]), DType::Float).run().unwrap();
        assert_eq!(got[0].as_slice::<f32>().unwrap(), [1.0000001, -1.0000001]);
    }

    #[test]
    fn complex_numbers_lose_their_imaginary_part() {
        let z = [Complex32::new(1.5, 2.0), Complex32::new(0.0, 3.0)];
        casts(&z, &[1.5f32, 0.0]);
        casts(&z, &[1i32, 0]);
        casts(&z, &[true, false]);
        casts(&z, &[Complex64::new(1.5, 2.0), Complex64::new(0.0, 3.0)]);
        casts(&[2u8, 3], &[Complex64::new(2.0, 0.0), Complex64::new(3.0, 0.0)]);
        casts(&[true], &[Complex32::new(1.0, 0.0)]);
    }

    #[test]
    fn bools_are_zero_or_one() {
        casts(&[true, false], &[1.0f32, 0.0]);
        casts(&[true, false], &[1i64, 0]);
        casts(&[true, false], &[1u8, 0]);
        casts(&[2i32, 0, -1], &[true, false, true]);
    }

    #[test]
    fn every_pair_is_cast() {
        use DType::*;
        let all = [
            Half, BFloat16, Float, Double, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32,
            UInt64, Bool, Complex64, Complex128,
        ];
        for from in all {
            for to in all {
                let one = Tensor::vector(&[1u8, 0]);
                let x = check("Cast").attr("DstT", from).input(one.clone()).run().unwrap();
                let y = check("Cast").attr("DstT", to).input(x[0].clone()).run().unwrap();
                check("Cast").attr("DstT", UInt8).input(y[0].clone()).gives(one);
            }
        }
    }

    #[test]
    fn strings_are_not_cast() {
        check("Cast")
            .attr("DstT", DType::Int32)
            .input(Tensor::string("a"))
            .fails(Code::Unimplemented, "Cast string to int32 is not supported");
        check("Cast")
            .attr("DstT", DType::String)
            .input(Tensor::string("a"))
            .gives(Tensor::string("a"));
    }
}
