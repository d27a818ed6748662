//! ImageProjectiveTransformV2 and V3.

use super::pixels::{FromF32, Images};
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;

/// How pixels beyond the edges of an image are filled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beyond {
    Reflect,
    Wrap,
    Constant,
    Nearest,
}

impl Beyond {
    /// The position inside the image that is shown at a position; unchanged for `Constant`.
    fn inside(self, x: f32, len: usize) -> f32 {
        let (last, size) = ((len - 1) as f32, len as i64);
        let clamp = |x: f32| {
            if x < 0.0 {
                0.0
            } else if x > last {
                last
            } else {
                x
            }
        };
        match self {
            Beyond::Constant => x,
            Beyond::Nearest => clamp(x),
            _ if (x < 0.0 || x > last) && len <= 1 => 0.0,
            Beyond::Reflect => {
                let twice = 2 * size;
                let mut x = x;
                if x < 0.0 {
                    x += twice.saturating_mul((-x / twice as f32) as i64) as f32;
                    x = if x < -(size as f32) { x + twice as f32 } else { -x - 1.0 };
                } else if x > last {
                    x -= twice.saturating_mul((x / twice as f32) as i64) as f32;
                    if x >= size as f32 {
                        x = twice as f32 - x - 1.0;
                    }
                }
                clamp(x)
            }
            Beyond::Wrap => {
                let mut x = x;
                if x < 0.0 {
                    let turns = ((-x / last) as i64).saturating_add(1);
                    x += size.saturating_mul(turns) as f32;
                } else if x > last {
                    x -= size.saturating_mul((x / last) as i64) as f32;
                }
                clamp(x)
            }
        }
    }
}

struct Transform<T> {
    bilinear: bool,
    beyond: Beyond,
    marker: std::marker::PhantomData<T>,
}

impl<T: FromF32 + Real> Transform<T> {
    fn new(init: &KernelInit<'_>) -> Result<Transform<T>> {
        let bilinear = match init.string("interpolation")?.as_str() {
            "NEAREST" => false,
            "BILINEAR" => true,
            other => bail!(
                InvalidArgument,
                "Invalid interpolation {other}. Supported types: NEAREST, BILINEAR"
            ),
        };
        let beyond = match init.string("fill_mode")?.as_str() {
            "REFLECT" => Beyond::Reflect,
            "WRAP" => Beyond::Wrap,
            "CONSTANT" => Beyond::Constant,
            "NEAREST" => Beyond::Nearest,
            other => bail!(
                InvalidArgument,
                "Invalid mode {other}. Supported types: REFLECT, WRAP, CONSTANT, NEAREST"
            ),
        };
        Ok(Transform { bilinear, beyond, marker: std::marker::PhantomData })
    }

    /// Writes the pixel of an output place.
    fn pixel(
        &self,
        image: &[T],
        size: &Images,
        transform: &[f32],
        (x, y): (f32, f32),
        fill: T,
        out: &mut [T],
    ) {
        let t = transform;
        let depth = t[6] * x + t[7] * y + 1.0;
        if depth == 0.0 {
            return out.fill(fill);
        }
        let across = self.beyond.inside((t[0] * x + t[1] * y + t[2]) / depth, size.width);
        let down = self.beyond.inside((t[3] * x + t[4] * y + t[5]) / depth, size.height);
        let read = |y: f32, x: f32, c: usize| {
            if (0.0..size.height as f32).contains(&y) && (0.0..size.width as f32).contains(&x) {
                image[y as usize * size.row() + x as usize * size.channels + c]
            } else {
                fill
            }
        };
        for (c, out) in out.iter_mut().enumerate() {
            if !self.bilinear {
                *out = read(down.round(), across.round(), c);
                continue;
            }
            let (top, left) = (down.floor(), across.floor());
            let (bottom, right) = (top + 1.0, left + 1.0);
            let wide = |x: T| x.to_f64() as f32;
            let upper = (right - across) * wide(read(top, left, c))
                + (across - left) * wide(read(top, right, c));
            let lower = (right - across) * wide(read(bottom, left, c))
                + (across - left) * wide(read(bottom, right, c));
            *out = T::of((bottom - down) * upper + (down - top) * lower);
        }
    }
}

impl<T: FromF32 + Real> Kernel for Transform<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (images, transforms, size) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let from =
            Images::of(images.shape(), || err!(InvalidArgument, "Input images must have rank 4"))?;
        let dims = transforms.shape();
        ensure!(
            dims.rank() == 2 && (dims[0] == from.batch || dims[0] == 1) && dims[1] == 8,
            InvalidArgument,
            "Input transform should be num_images x 8 or 1 x 8"
        );
        ensure!(
            size.rank() == 1,
            InvalidArgument,
            "output shape must be 1-dimensional{}",
            size.shape()
        );
        let &[height, width] = size.as_slice::<i32>()? else {
            bail!(InvalidArgument, "output shape must have two elements{}", size.shape());
        };
        ensure!(height > 0 && width > 0, InvalidArgument, "output dimensions must be positive");
        let mut fill = T::ZERO;
        if ctx.num_inputs() > 3 {
            let t = ctx.input(3)?;
            ensure!(t.rank() == 0, InvalidArgument, "fill_value must be a scalar{}", t.shape());
            fill = T::of(t.scalar_value::<f32>()?);
        }
        let to = from.sized(height as usize, width as usize);
        let mut out = ctx.alloc(T::DTYPE, to.shape()?)?;
        let (x, one) = (images.as_slice::<T>()?, dims[0] == 1);
        let transforms = transforms.as_slice::<f32>()?;
        let c = from.channels;
        if images.elements() == 0 {
            out.as_mut_slice::<T>()?.fill(fill);
            return ctx.set(0, out);
        }
        for_rows(out.as_mut_slice::<T>()?, to.row(), to.row() * 8, |range, out| {
            for (at, out) in range.zip(out.chunks_exact_mut(to.row())) {
                let i = at / to.height;
                let transform = &transforms[if one { 0 } else { 8 * i }..][..8];
                let image = &x[i * from.image()..][..from.image()];
                let y = (at % to.height) as f32;
                for (x, out) in out.chunks_exact_mut(c).enumerate() {
                    self.pixel(image, &from, transform, (x as f32, y), fill, out);
                }
            }
        });
        ctx.set(0, out)
    }
}

/// The gradient through the inverse transforms, as in TensorFlow. It is not exact where a pixel is
/// shown several times, or never.
fn projective_gradient<'g>(g: &GradientScope<'g>, dy: Term<'g>) -> Vec<Term<'g>> {
    let (images, transforms) = (g.input(0), g.input(1));
    let columns = |x: Term<'g>, from: i64, n: i64| {
        g.call("Slice", &[x, g.ints(&[0, from]), g.ints(&[-1, n])])
    };
    let ones = columns(transforms, 0, 1).ones_like();
    let matrices = g.concat(&[transforms, ones], 1).reshape(g.ints(&[-1, 3, 3]));
    let back = matrices.apply("MatrixInverse").reshape(g.ints(&[-1, 9]));
    let back = columns(back, 0, 8) / columns(back, 8, 1);
    let size = g.call("Slice", &[images.shape(), g.ints(&[1]), g.ints(&[2])]);
    let mut inputs = vec![dy, back, size];
    let op = match g.num_inputs() {
        4 => {
            inputs.push(g.number(0.0, DType::Float));
            "ImageProjectiveTransformV3"
        }
        _ => "ImageProjectiveTransformV2",
    };
    g.only(g.call_like(op, &inputs))
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, filled) in
        [("ImageProjectiveTransformV2", false), ("ImageProjectiveTransformV3", true)]
    {
        let op = c.op(op).doc("Images seen through projective transforms.");
        let op = op.input("images: dtype").input("transforms: float").input("output_shape: int32");
        let op = if filled { op.input("fill_value: float") } else { op };
        op.output("transformed_images: dtype")
            .attr("dtype: {uint8, int32, int64, half, float, double}")
            .attr("interpolation: string")
            .attr("fill_mode: string = 'CONSTANT'")
            .expensive()
            .shape(|c| {
                let images = c.input(0).merge(&PartialShape::of_rank(4))?;
                let size = c.shape_from(2).merge(&PartialShape::of_rank(2))?;
                let shape = [images.dim(0), size.dim(0), size.dim(1), images.dim(3)];
                Ok(vec![PartialShape::new(shape)])
            })
            .cpu(per_dtype!(
                [UInt8 u8, Int32 i32, Int64 i64, Half f16, Float f32, Double f64],
                "dtype",
                init,
                T => Transform::<T>::new(init)?
            ));
    }
    for op in ["ImageProjectiveTransformV2", "ImageProjectiveTransformV3"] {
        c.gradient(op, |g, dy| Ok(projective_gradient(g, dy[0])));
    }
}
