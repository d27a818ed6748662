//! The type that elements are computed in: their own, or a wider one to which they are converted
//! block by block. So one instantiation of a formula in `f32` also serves `f16` and `bf16`.

use crate::prelude::*;
use half::slice::HalfFloatSliceExt;

/// Elements per block: a converted block stays in the nearest cache.
const BLOCK: usize = 256;

/// Elements that can be computed in `W`.
pub trait Lanes<W: Element>: Element {
    /// `f` from `xs` to `out`, which are of one length, in `W`.
    fn map(f: fn(&[W], &mut [W]), xs: &[Self], out: &mut [Self]);
    /// `f` over `a` and `b`, in `W`.
    fn zip(f: fn(&[W], &[W], &mut [W]), a: &[Self], b: &[Self], out: &mut [Self]);
}

/// The type a dtype's arithmetic is done in.
pub trait Lane: Lanes<Self::Wide> {
    type Wide: Element;
}

macro_rules! native {
    ($($t:ty),*) => {$(
        impl Lanes<$t> for $t {
            fn map(f: fn(&[$t], &mut [$t]), xs: &[$t], out: &mut [$t]) {
                f(xs, out)
            }
            fn zip(f: fn(&[$t], &[$t], &mut [$t]), a: &[$t], b: &[$t], out: &mut [$t]) {
                f(a, b, out)
            }
        }
        impl Lane for $t {
            type Wide = $t;
        }
    )*};
}
native!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, bool, Complex32, Complex64);

macro_rules! widened {
    ($($t:ty => $w:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Lanes<$w> for $t {
            fn map(f: fn(&[$w], &mut [$w]), xs: &[$t], out: &mut [$t]) {
                let (mut x, mut y) = ([<$w>::default(); BLOCK], [<$w>::default(); BLOCK]);
                for (xs, out) in xs.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                    let n = xs.len().min(out.len());
                    $widen(&xs[..n], &mut x[..n]);
                    f(&x[..n], &mut y[..n]);
                    $narrow(&y[..n], &mut out[..n]);
                }
            }
            fn zip(f: fn(&[$w], &[$w], &mut [$w]), a: &[$t], b: &[$t], out: &mut [$t]) {
                let (mut x, mut y) = ([<$w>::default(); BLOCK], [<$w>::default(); BLOCK]);
                let mut z = [<$w>::default(); BLOCK];
                let parts = out.chunks_mut(BLOCK).zip(a.chunks(BLOCK)).zip(b.chunks(BLOCK));
                for ((out, a), b) in parts {
                    let n = out.len().min(a.len()).min(b.len());
                    $widen(&a[..n], &mut x[..n]);
                    $widen(&b[..n], &mut y[..n]);
                    f(&x[..n], &y[..n], &mut z[..n]);
                    $narrow(&z[..n], &mut out[..n]);
                }
            }
        }
    )*};
}
widened! {
    f16 => f32, |from: &[f16], to: &mut [f32]| from.convert_to_f32_slice(to),
        |from: &[f32], to: &mut [f16]| to.convert_from_f32_slice(from);
    bf16 => f32, |from: &[bf16], to: &mut [f32]| from.convert_to_f32_slice(to),
        |from: &[f32], to: &mut [bf16]| to.convert_from_f32_slice(from);
    f16 => f64, |from: &[f16], to: &mut [f64]| from.convert_to_f64_slice(to),
        |from: &[f64], to: &mut [f16]| to.convert_from_f64_slice(from);
    f32 => f64, |from: &[f32], to: &mut [f64]| each(from, to, |x| x as f64),
        |from: &[f64], to: &mut [f32]| each(from, to, |x| x as f32);
    Complex32 => Complex64,
        |from: &[Complex32], to: &mut [Complex64]|
            each(from, to, |z| Complex64::new(z.re as f64, z.im as f64)),
        |from: &[Complex64], to: &mut [Complex32]|
            each(from, to, |z| Complex32::new(z.re as f32, z.im as f32));
}

impl Lane for f16 {
    type Wide = f32;
}
impl Lane for bf16 {
    type Wide = f32;
}

fn each<A: Copy, B>(from: &[A], to: &mut [B], f: impl Fn(A) -> B) {
    for (to, &x) in to.iter_mut().zip(from) {
        *to = f(x);
    }
}
