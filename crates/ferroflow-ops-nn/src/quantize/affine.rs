//! Quantised elements: integers that represent floats of a range.

use crate::prelude::*;

/// An integer type that quantised tensors hold.
pub(crate) trait Quantized: Element + Real + Into<i64> {
    const LOWEST: i64;
    const HIGHEST: i64;
    /// From an integer within bounds.
    fn of(x: i64) -> Self;

    /// Bits of an element.
    fn bits() -> u32 {
        8 * size_of::<Self>() as u32
    }

    /// Number of values, less one.
    fn steps() -> f64 {
        (1u64 << Self::bits()) as f64 - 1.0
    }

    /// The nearest element for an integer that may be out of range.
    fn clamped(x: i64) -> Self {
        Self::of(x.clamp(Self::LOWEST, Self::HIGHEST))
    }
}

macro_rules! quantized {
    ($($t:ty),*) => {$(
        impl Quantized for $t {
            const LOWEST: i64 = <$t>::MIN as i64;
            const HIGHEST: i64 = <$t>::MAX as i64;
            fn of(x: i64) -> Self { x as $t }
        }
    )*};
}
quantized!(u8, i8, u16, i16, i32);

/// The float that an element represents when elements are spread over `[min, max]`.
pub(crate) fn to_float<T: Quantized>(x: T, min: f32, max: f32) -> f32 {
    if min == max {
        return min;
    }
    let values = T::steps() + 1.0;
    let range = f64::from(max - min) * (values / T::steps());
    let step = range / values;
    let start = f64::from((min / step as f32).round() * step as f32);
    let x: i64 = x.into();
    (start + (x as f64 - T::LOWEST as f64) * step) as f32
}

/// The integer that represents `x`; it may be out of range for `T`.
pub(crate) fn unclamped<T: Quantized>(x: f32, min: f32, max: f32) -> i64 {
    if min == max {
        return T::LOWEST;
    }
    let values = T::steps() + 1.0;
    let range = f64::from(max - min) * (values / T::steps());
    let scale = values / range;
    let level = (f64::from(x) * scale).round() - (f64::from(min) * scale).round();
    (level as i64).saturating_add(T::LOWEST)
}

/// The element that represents `x` best.
pub(crate) fn from_float<T: Quantized>(x: f32, min: f32, max: f32) -> T {
    T::clamped(unclamped::<T>(x, min, max))
}

/// The scalar that input `i` holds.
pub(crate) fn scalar(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<f32> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "`{name}` must be rank 0 but is rank {}", t.rank());
    t.scalar_value::<f32>()
}

/// Converts elements of `T` over a range to floats, in single precision: a linear function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    scale: f32,
    offset: f32,
}

impl Line {
    pub fn new<T: Quantized>(min: f32, max: f32) -> Line {
        let scale = (f64::from(max - min) / T::steps()) as f32;
        let start = if max == min { min } else { (min / scale).round() * scale };
        Line { scale, offset: start - T::LOWEST as f32 * scale }
    }

    pub fn at<T: Quantized>(&self, x: T) -> f32 {
        let x: i64 = x.into();
        self.offset + x as f32 * self.scale
    }
}

/// Floats as elements of `T` over a range, in single precision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    scale: f32,
    offset: f32,
}

impl Levels {
    pub fn new<T: Quantized>(min: f32, max: f32) -> Levels {
        let scale = if max == min { 0.0 } else { (T::steps() / f64::from(max - min)) as f32 };
        Levels { scale, offset: (min * scale).round() - T::LOWEST as f32 }
    }

    pub fn of<T: Quantized>(&self, x: f32) -> T {
        // The largest float below 2^31 bounds the levels of the widest type.
        let (least, most) = (T::LOWEST as f32, (T::HIGHEST as f32).min(2_147_483_520.0));
        T::of(((x * self.scale).round() - self.offset).max(least).min(most) as i64)
    }
}

/// The size of one level of `T` over a range.
pub(crate) fn one_level<T: Quantized>(min: f32, max: f32) -> f32 {
    // There are as many signed levels below zero as above.
    (max - min) / (T::HIGHEST - std::cmp::max(T::LOWEST, -T::HIGHEST)) as f32
}

/// The range of products of elements, as 32-bit elements.
pub(crate) fn product_range<A: Quantized, B: Quantized>(
    a: (f32, f32),
    b: (f32, f32),
) -> (f32, f32) {
    let level = one_level::<A>(a.0, a.1) * one_level::<B>(b.0, b.1);
    (level * i32::MIN as f32, level * i32::MAX as f32)
}

/// Sets outputs 1 and 2 to the ends of a range.
pub(crate) fn set_range(ctx: &mut Ctx<'_>, (min, max): (f32, f32)) -> Result<()> {
    ctx.set(1, Tensor::scalar(min))?;
    ctx.set(2, Tensor::scalar(max))
}

/// An output like input 0, and two scalars.
pub(crate) fn like_input_and_range(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.input(0), PartialShape::scalar(), PartialShape::scalar()])
}
