//! Arithmetic over every numeric element type, as TensorFlow's CPU kernels do it: integers wrap,
//! half types are computed in `f32` and rounded after each op.

use ferroflow_core::{Complex32, Complex64, Element, FloatElement, RealElement, bf16, f16};

/// Numbers, complex ones included.
pub trait Num: Element {
    const ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The quotient. Integers truncate, and give 0 for a zero divisor. Ops that must report
    /// division by zero check for it themselves.
    fn div(self, other: Self) -> Self;
    fn neg(self) -> Self;
    /// Converts a small integer, such as a count or a weight.
    fn from_i64(x: i64) -> Self;
}

/// Ordered numbers.
pub trait Real: Num + RealElement {
    /// The larger; NaN if either is, for floats.
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn abs(self) -> Self;
}

/// Floating-point numbers, with the type their functions are computed in.
pub trait Float: Real + FloatElement {
    /// `f64` for `f64`, `f32` for everything narrower.
    type Wide: Float<Wide = Self::Wide>;
    fn wide(self) -> Self::Wide;
    fn narrow(x: Self::Wide) -> Self;
}

macro_rules! integers {
    ($($t:ty: $abs:expr),*) => {$(
        impl Num for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline]
            fn add(self, o: Self) -> Self { self.wrapping_add(o) }
            #[inline]
            fn sub(self, o: Self) -> Self { self.wrapping_sub(o) }
            #[inline]
            fn mul(self, o: Self) -> Self { self.wrapping_mul(o) }
            #[inline]
            fn div(self, o: Self) -> Self { if o == 0 { 0 } else { self.wrapping_div(o) } }
            #[inline]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline]
            fn from_i64(x: i64) -> Self { x as $t }
        }
        impl Real for $t {
            #[inline]
            fn max(self, o: Self) -> Self { Ord::max(self, o) }
            #[inline]
            fn min(self, o: Self) -> Self { Ord::min(self, o) }
            #[inline]
            fn abs(self) -> Self { ($abs)(self) }
        }
    )*};
}
integers!(i8: i8::wrapping_abs, i16: i16::wrapping_abs, i32: i32::wrapping_abs,
          i64: i64::wrapping_abs, u8: std::convert::identity, u16: std::convert::identity,
          u32: std::convert::identity, u64: std::convert::identity);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Num for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline]
            fn add(self, o: Self) -> Self { self + o }
            #[inline]
            fn sub(self, o: Self) -> Self { self - o }
            #[inline]
            fn mul(self, o: Self) -> Self { self * o }
            #[inline]
            fn div(self, o: Self) -> Self { self / o }
            #[inline]
            fn neg(self) -> Self { -self }
            #[inline]
            fn from_i64(x: i64) -> Self { x as $t }
        }
        impl Real for $t {
            #[inline]
            fn max(self, o: Self) -> Self { if self > o || self.is_nan() { self } else { o } }
            #[inline]
            fn min(self, o: Self) -> Self { if self < o || self.is_nan() { self } else { o } }
            #[inline]
            fn abs(self) -> Self { <$t>::abs(self) }
        }
        impl Float for $t {
            type Wide = $t;
            #[inline]
            fn wide(self) -> $t { self }
            #[inline]
            fn narrow(x: $t) -> Self { x }
        }
    )*};
}
floats!(f32, f64);

macro_rules! halves {
    ($($t:ty),*) => {$(
        impl Num for $t {
            const ZERO: Self = <$t>::ZERO;
            const ONE: Self = <$t>::ONE;
            #[inline]
            fn add(self, o: Self) -> Self { Self::from_f32(self.to_f32() + o.to_f32()) }
            #[inline]
            fn sub(self, o: Self) -> Self { Self::from_f32(self.to_f32() - o.to_f32()) }
            #[inline]
            fn mul(self, o: Self) -> Self { Self::from_f32(self.to_f32() * o.to_f32()) }
            #[inline]
            fn div(self, o: Self) -> Self { Self::from_f32(self.to_f32() / o.to_f32()) }
            #[inline]
            fn neg(self) -> Self { -self }
            #[inline]
            fn from_i64(x: i64) -> Self { Self::from_f64(x as f64) }
        }
        impl Real for $t {
            #[inline]
            fn max(self, o: Self) -> Self { if self > o || self.is_nan() { self } else { o } }
            #[inline]
            fn min(self, o: Self) -> Self { if self < o || self.is_nan() { self } else { o } }
            #[inline]
            fn abs(self) -> Self { Self::from_f32(self.to_f32().abs()) }
        }
        impl Float for $t {
            type Wide = f32;
            #[inline]
            fn wide(self) -> f32 { self.to_f32() }
            #[inline]
            fn narrow(x: f32) -> Self { Self::from_f32(x) }
        }
    )*};
}
halves!(f16, bf16);

macro_rules! complexes {
    ($($t:ty, $part:ty);*) => {$(
        impl Num for $t {
            const ZERO: Self = Self::new(0.0, 0.0);
            const ONE: Self = Self::new(1.0, 0.0);
            #[inline]
            fn add(self, o: Self) -> Self { self + o }
            #[inline]
            fn sub(self, o: Self) -> Self { self - o }
            #[inline]
            fn mul(self, o: Self) -> Self { self * o }
            #[inline]
            fn div(self, o: Self) -> Self { self / o }
            #[inline]
            fn neg(self) -> Self { -self }
            #[inline]
            fn from_i64(x: i64) -> Self { Self::new(x as $part, 0.0) }
        }
    )*};
}
complexes!(Complex32, f32; Complex64, f64);
