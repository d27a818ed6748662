//! The arithmetic of reductions on bytes: `dst = dst OP src` for each element, vectorized.
//!
//! Half types are widened to `f32`, combined, and rounded back at each step. Integers wrap. Minimum
//! and maximum of floats are NaN if either side is NaN.

use ferroflow_core::{DType, Result, bail, bf16, f16};
use half::slice::HalfFloatSliceExt;
use std::fmt;

/// How the values of the ranks are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReduceOp {
    /// The sum.
    Sum = 0,
    /// The sum, divided once at the end by the number of ranks. Integers are truncated.
    Mean = 1,
    /// The smallest value.
    Min = 2,
    /// The largest value.
    Max = 3,
    /// The product.
    Product = 4,
}

impl ReduceOp {
    /// All operations.
    pub const ALL: [ReduceOp; 5] =
        [ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Min, ReduceOp::Max, ReduceOp::Product];

    /// The name in messages.
    pub fn name(self) -> &'static str {
        ["sum", "mean", "min", "max", "product"][self as usize]
    }

    pub(crate) fn from_number(number: u8) -> Option<ReduceOp> {
        ReduceOp::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compiles `body` a second time for AVX2 and selects by the processor's features. Both give the
/// same results.
macro_rules! vectorised {
    (fn $name:ident($dst:ident: &mut [u8], $src:ident: &[u8]) $body:block) => {
        fn $name($dst: &mut [u8], $src: &[u8]) {
            #[inline(always)]
            fn body($dst: &mut [u8], $src: &[u8]) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide(dst: &mut [u8], src: &[u8]) {
                    body(dst, src)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2, the only feature that `wide` needs.
                    return unsafe { wide($dst, $src) };
                }
            }
            body($dst, $src)
        }
    };
}

macro_rules! plain {
    ($($module:ident: $t:ty as $wide:ty, $size:literal, $add:expr, $mul:expr, $min:expr, $max:expr;)*) => {$(
        mod $module {
            use super::*;
            macro_rules! fold {
                ($name:ident, $f:expr) => {
                    vectorised! {
                        fn $name(dst: &mut [u8], src: &[u8]) {
                            let f: fn($t, $t) -> $t = $f;
                            let (d, _) = dst.as_chunks_mut::<$size>();
                            let (s, _) = src.as_chunks::<$size>();
                            for (d, s) in d.iter_mut().zip(s) {
                                *d = f(<$t>::from_ne_bytes(*d), <$t>::from_ne_bytes(*s)).to_ne_bytes();
                            }
                        }
                    }
                };
            }
            fold!(add, $add);
            fold!(mul, $mul);
            fold!(min, $min);
            fold!(max, $max);
            pub(super) fn combine(op: ReduceOp, dst: &mut [u8], src: &[u8]) {
                match op {
                    ReduceOp::Sum | ReduceOp::Mean => add(dst, src),
                    ReduceOp::Product => mul(dst, src),
                    ReduceOp::Min => min(dst, src),
                    ReduceOp::Max => max(dst, src),
                }
            }
            pub(super) fn divide(dst: &mut [u8], by: u32) {
                for d in dst.as_chunks_mut::<$size>().0 {
                    // The wide type can hold the number of ranks. The element type may be too
                    // small.
                    *d = ((<$t>::from_ne_bytes(*d) as $wide / by as $wide) as $t).to_ne_bytes();
                }
            }
        }
    )*};
}

fn fmin<T: PartialOrd + Copy>(a: T, b: T) -> T {
    // A NaN on the left is unequal to itself and is kept. A NaN on the right makes the comparison
    // false.
    #[allow(clippy::eq_op)]
    if a < b || a != a { a } else { b }
}

fn fmax<T: PartialOrd + Copy>(a: T, b: T) -> T {
    #[allow(clippy::eq_op)]
    if a > b || a != a { a } else { b }
}

plain! {
    float: f32 as f32, 4, |a, b| a + b, |a, b| a * b, |a, b| fmin(a, b), |a, b| fmax(a, b);
    double: f64 as f64, 8, |a, b| a + b, |a, b| a * b, |a, b| fmin(a, b), |a, b| fmax(a, b);
    int8: i8 as i64, 1, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    int16: i16 as i64, 2, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    int32: i32 as i64, 4, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    int64: i64 as i64, 8, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    uint16: u16 as u64, 2, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    uint8: u8 as u64, 1, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    uint32: u32 as u64, 4, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
    uint64: u64 as u64, 8, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b);
}

/// Elements of a half type that are widened at a time.
const BLOCK: usize = 256;

macro_rules! halves {
    ($($module:ident: $t:ident;)*) => {$(
        mod $module {
            use super::*;
            fn widen(bytes: &[u8], out: &mut [f32]) {
                let mut narrow = [$t::ZERO; BLOCK];
                for (n, b) in narrow.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *n = $t::from_ne_bytes(*b);
                }
                narrow[..out.len()].convert_to_f32_slice(out);
            }
            fn narrow(wide: &[f32], out: &mut [u8]) {
                let mut narrow = [$t::ZERO; BLOCK];
                narrow[..wide.len()].convert_from_f32_slice(wide);
                for (n, b) in narrow.iter().zip(out.as_chunks_mut::<2>().0) {
                    *b = n.to_ne_bytes();
                }
            }
            pub(super) fn combine(op: ReduceOp, dst: &mut [u8], src: &[u8]) {
                let (mut a, mut b) = ([0f32; BLOCK], [0f32; BLOCK]);
                for (d, s) in dst.chunks_mut(2 * BLOCK).zip(src.chunks(2 * BLOCK)) {
                    let len = d.len() / 2;
                    widen(d, &mut a[..len]);
                    widen(s, &mut b[..len]);
                    float::combine(
                        op,
                        crate::number::bytes_of_mut(&mut a[..len]),
                        crate::number::bytes_of(&b[..len]),
                    );
                    narrow(&a[..len], d);
                }
            }
            pub(super) fn divide(dst: &mut [u8], by: u32) {
                let mut a = [0f32; BLOCK];
                for d in dst.chunks_mut(2 * BLOCK) {
                    let len = d.len() / 2;
                    widen(d, &mut a[..len]);
                    a[..len].iter_mut().for_each(|x| *x /= by as f32);
                    narrow(&a[..len], d);
                }
            }
        }
    )*};
}
halves! { half16: f16; brain16: bf16; }

/// Fails unless `dtype` can be reduced.
pub(crate) fn check_dtype(dtype: DType) -> Result<()> {
    if !crate::number::NUMBERS.contains(&dtype) {
        bail!(Unimplemented, "collectives do not reduce values of type {dtype}");
    }
    Ok(())
}

/// Computes `dst = dst OP src` for all whole elements of the shorter slice. Does nothing for a
/// dtype that [`check_dtype`] refuses.
pub(crate) fn combine(op: ReduceOp, dtype: DType, dst: &mut [u8], src: &[u8]) {
    match dtype {
        DType::Float => float::combine(op, dst, src),
        DType::Double => double::combine(op, dst, src),
        DType::Half => half16::combine(op, dst, src),
        DType::BFloat16 => brain16::combine(op, dst, src),
        DType::Int8 => int8::combine(op, dst, src),
        DType::Int16 => int16::combine(op, dst, src),
        DType::Int32 => int32::combine(op, dst, src),
        DType::Int64 => int64::combine(op, dst, src),
        DType::UInt8 => uint8::combine(op, dst, src),
        DType::UInt16 => uint16::combine(op, dst, src),
        DType::UInt32 => uint32::combine(op, dst, src),
        DType::UInt64 => uint64::combine(op, dst, src),
        _ => {}
    }
}

/// Completes the reduction after all values are combined: divides a mean.
pub(crate) fn finish(op: ReduceOp, dtype: DType, dst: &mut [u8], ranks: u32) {
    if op != ReduceOp::Mean || ranks < 2 {
        return;
    }
    match dtype {
        DType::Float => float::divide(dst, ranks),
        DType::Double => double::divide(dst, ranks),
        DType::Half => half16::divide(dst, ranks),
        DType::BFloat16 => brain16::divide(dst, ranks),
        DType::Int8 => int8::divide(dst, ranks),
        DType::Int16 => int16::divide(dst, ranks),
        DType::Int32 => int32::divide(dst, ranks),
        DType::UInt8 => uint8::divide(dst, ranks),
        DType::UInt16 => uint16::divide(dst, ranks),
        DType::Int64 => int64::divide(dst, ranks),
        DType::UInt32 => uint32::divide(dst, ranks),
        DType::UInt64 => uint64::divide(dst, ranks),
        _ => {}
    }
}

/// Multiplies the values in `bytes` by `factor`. Integers are rounded towards zero. Fails for a
/// dtype that collectives do not reduce.
pub fn scale(dtype: DType, bytes: &mut [u8], factor: f64) -> Result<()> {
    check_dtype(dtype)?;
    macro_rules! each {
        ($($dtype:ident $t:ty, $size:literal, $f:expr;)*) => {
            match dtype {
                $(DType::$dtype => {
                    let f: fn($t, f64) -> $t = $f;
                    for b in bytes.as_chunks_mut::<$size>().0 {
                        *b = f(<$t>::from_ne_bytes(*b), factor).to_ne_bytes();
                    }
                })*
                _ => {}
            }
        };
    }
    each! {
        Float f32, 4, |x, f| x * f as f32;
        Double f64, 8, |x, f| x * f;
        Half f16, 2, |x, f| f16::from_f32(x.to_f32() * f as f32);
        BFloat16 bf16, 2, |x, f| bf16::from_f32(x.to_f32() * f as f32);
        Int8 i8, 1, |x, f| (f64::from(x) * f) as i8;
        Int16 i16, 2, |x, f| (f64::from(x) * f) as i16;
        Int32 i32, 4, |x, f| (f64::from(x) * f) as i32;
        Int64 i64, 8, |x, f| (x as f64 * f) as i64;
        UInt8 u8, 1, |x, f| (f64::from(x) * f) as u8;
        UInt16 u16, 2, |x, f| (f64::from(x) * f) as u16;
        UInt32 u32, 4, |x, f| (f64::from(x) * f) as u32;
        UInt64 u64, 8, |x, f| (x as f64 * f) as u64;
    }
    Ok(())
}

/// Fills `dst` with the identity of `op`. A rank without data contributes these values.
pub(crate) fn fill_identity(op: ReduceOp, dtype: DType, dst: &mut [u8]) {
    fn fill<const N: usize>(dst: &mut [u8], value: [u8; N]) {
        dst.as_chunks_mut::<N>().0.fill(value);
    }
    macro_rules! ends {
        ($t:ty, $one:expr, $low:expr, $high:expr) => {
            match op {
                ReduceOp::Sum | ReduceOp::Mean => dst.fill(0),
                ReduceOp::Product => fill(dst, <$t>::to_ne_bytes($one)),
                ReduceOp::Min => fill(dst, <$t>::to_ne_bytes($high)),
                ReduceOp::Max => fill(dst, <$t>::to_ne_bytes($low)),
            }
        };
    }
    match dtype {
        DType::Float => ends!(f32, 1.0, f32::NEG_INFINITY, f32::INFINITY),
        DType::Double => ends!(f64, 1.0, f64::NEG_INFINITY, f64::INFINITY),
        DType::Half => ends!(f16, f16::ONE, f16::NEG_INFINITY, f16::INFINITY),
        DType::BFloat16 => ends!(bf16, bf16::ONE, bf16::NEG_INFINITY, bf16::INFINITY),
        DType::Int8 => ends!(i8, 1, i8::MIN, i8::MAX),
        DType::Int16 => ends!(i16, 1, i16::MIN, i16::MAX),
        DType::Int32 => ends!(i32, 1, i32::MIN, i32::MAX),
        DType::Int64 => ends!(i64, 1, i64::MIN, i64::MAX),
        DType::UInt8 => ends!(u8, 1, 0, u8::MAX),
        DType::UInt16 => ends!(u16, 1, 0, u16::MAX),
        DType::UInt32 => ends!(u32, 1, 0, u32::MAX),
        DType::UInt64 => ends!(u64, 1, 0, u64::MAX),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{Number, bytes_of, bytes_of_mut};

    fn reduced<T: Number>(op: ReduceOp, mut a: Vec<T>, b: Vec<T>) -> Vec<T> {
        combine(op, T::DTYPE, bytes_of_mut(&mut a), bytes_of(&b));
        a
    }

    #[test]
    fn combine_works_element_by_element() {
        assert_eq!(reduced(ReduceOp::Sum, vec![1.0f32, 2.0], vec![3.0, 4.0]), [4.0, 6.0]);
        assert_eq!(reduced(ReduceOp::Product, vec![3i32, -2], vec![5, 7]), [15, -14]);
        assert_eq!(reduced(ReduceOp::Min, vec![3u8, 200], vec![5, 7]), [3, 7]);
        assert_eq!(reduced(ReduceOp::Max, vec![-3i64, 4], vec![5, -7]), [5, 4]);
        assert_eq!(reduced(ReduceOp::Sum, vec![i8::MAX], vec![1]), [i8::MIN]);
    }

    #[test]
    fn min_and_max_keep_nan_from_either_side() {
        for op in [ReduceOp::Min, ReduceOp::Max] {
            assert!(reduced(op, vec![f32::NAN], vec![1.0])[0].is_nan());
            assert!(reduced(op, vec![1.0f64], vec![f64::NAN])[0].is_nan());
        }
    }

    #[test]
    fn half_types_of_odd_lengths_are_widened_in_blocks() {
        let a: Vec<f16> = (0..601).map(|i| f16::from_f32(i as f32)).collect();
        let sum = reduced(ReduceOp::Sum, a.clone(), a);
        assert!(sum.iter().enumerate().all(|(i, x)| x.to_f32() == 2.0 * i as f32));
        let b = vec![bf16::from_f32(1.0); 3];
        assert_eq!(reduced(ReduceOp::Sum, b.clone(), b)[2].to_f32(), 2.0);
    }

    #[test]
    fn scaling_multiplies_each_value_and_truncates_integers() {
        fn scaled<T: Number>(mut values: Vec<T>, factor: f64) -> Vec<T> {
            scale(T::DTYPE, bytes_of_mut(&mut values), factor).unwrap();
            values
        }
        assert_eq!(scaled(vec![1.5f32, -2.0], 0.5), [0.75, -1.0]);
        assert_eq!(scaled(vec![7i32, -7], 0.5), [3, -3]);
        assert_eq!(scaled(vec![bf16::from_f32(3.0)], 2.0), [bf16::from_f32(6.0)]);
        assert_eq!(scaled(vec![200u8], 2.0), [255]);
        assert!(scale(DType::Bool, &mut [1], 2.0).is_err());
    }

    #[test]
    fn a_mean_over_more_ranks_than_the_type_can_count_is_correct() {
        let mut x = vec![-100i8, 99];
        finish(ReduceOp::Mean, DType::Int8, bytes_of_mut(&mut x), 300);
        assert_eq!(x, [0, 0]);
        let mut y = vec![9.0f32];
        finish(ReduceOp::Mean, DType::Float, bytes_of_mut(&mut y), 2);
        assert_eq!(y, [4.5]);
    }
}
