//! Converts pixels of any real dtype to floats, for ops whose output is float for all of them.

use crate::prelude::*;
use std::borrow::Cow;

/// The elements of a tensor of real numbers, each as the nearest `f32`.
pub(super) fn floats(t: &Tensor) -> Result<Cow<'_, [f32]>> {
    macro_rules! cast {
        ($($D:ident $t:ty),*) => {
            match t.dtype() {
                DType::Float => Ok(Cow::Borrowed(t.as_slice::<f32>()?)),
                DType::Half => {
                    Ok(Cow::Owned(t.as_slice::<f16>()?.iter().map(|x| x.to_f32()).collect()))
                }
                DType::BFloat16 => {
                    Ok(Cow::Owned(t.as_slice::<bf16>()?.iter().map(|x| x.to_f32()).collect()))
                }
                $(DType::$D => {
                    Ok(Cow::Owned(t.as_slice::<$t>()?.iter().map(|&x| x as f32).collect()))
                })*
                other => bail!(Unimplemented, "images of type {other} are not supported"),
            }
        };
    }
    cast!(
        Double f64, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32,
        UInt64 u64
    )
}

/// Batch, height, width and channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Images {
    pub batch: usize,
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Images {
    /// From a shape with four dimensions; `refuse` makes the error for any other.
    pub fn of(shape: &Shape, refuse: impl FnOnce() -> Error) -> Result<Images> {
        match **shape {
            [batch, height, width, channels] => Ok(Images { batch, height, width, channels }),
            _ => Err(refuse()),
        }
    }

    /// Elements of a row of pixels.
    pub fn row(&self) -> usize {
        self.width * self.channels
    }

    /// Elements of one image.
    pub fn image(&self) -> usize {
        self.height * self.row()
    }

    /// The same number of images and channels, with another size.
    pub fn sized(&self, height: usize, width: usize) -> Images {
        Images { height, width, ..*self }
    }

    pub fn shape(&self) -> Result<Shape> {
        let dims = [self.batch, self.height, self.width, self.channels];
        Shape::from_dims(&dims.map(|d| d as i64))
    }
}

/// Converts a float to an element: images are computed in `f32` and stored as `T`.
pub(super) trait FromF32: Num {
    fn of(x: f32) -> Self;
}

macro_rules! from_f32 {
    ($($t:ty),*) => {$(
        impl FromF32 for $t {
            fn of(x: f32) -> Self { x as $t }
        }
    )*};
}
from_f32!(f32, f64, u8, i32, i64);

macro_rules! half_from_f32 {
    ($($t:ty),*) => {$(
        impl FromF32 for $t {
            fn of(x: f32) -> Self { <$t>::from_f32(x) }
        }
    )*};
}
half_from_f32!(f16, bf16);
