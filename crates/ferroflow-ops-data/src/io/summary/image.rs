//! ImageSummary.

use super::{numbered, png, scalar_tag, summary, tagged};
use crate::prelude::*;
use ferroflow_op_kit::protobuf::Message;

/// How images are shown.
pub(super) struct Images {
    pub most: usize,
    /// The colour of pixels that are no numbers.
    pub bad: Vec<u8>,
}

impl Images {
    pub fn new(most: i64, bad: &Tensor) -> Result<Images> {
        ensure!(
            bad.dtype() == DType::UInt8,
            InvalidArgument,
            "bad_color must be uint8, got {}",
            bad.dtype()
        );
        ensure!(
            bad.rank() == 1,
            InvalidArgument,
            "bad_color must be a vector, got shape {}",
            bad.shape()
        );
        let most = usize::try_from(most).unwrap_or(0);
        Ok(Images { most, bad: bad.as_slice::<u8>()?.to_vec() })
    }

    /// Floats scaled to bytes: from 0 to the largest, or around 128 where some are negative.
    fn scaled(&self, pixels: &[f32], channels: usize) -> Vec<u8> {
        let is_good = |pixel: &[f32]| pixel.iter().all(|x| x.is_finite());
        let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
        for &x in pixels.chunks(channels).filter(|p| is_good(p)).flatten() {
            min = min.min(x);
            max = max.max(x);
        }
        const ZERO: f32 = 1e-6;
        let (scale, offset) = if min < 0.0 {
            let most = f32::max(min.abs(), max.abs());
            (if most < ZERO { 0.0 } else { 127.0 / most }, 128.0)
        } else {
            (if max < ZERO { 0.0 } else { 255.0 / max }, 0.0)
        };
        let mut out = Vec::with_capacity(pixels.len());
        for pixel in pixels.chunks(channels) {
            match is_good(pixel) {
                true => out.extend(pixel.iter().map(|x| (x * scale + offset) as u8)),
                false => {
                    let bad = |c: usize| self.bad.get(c).copied().unwrap_or(0);
                    out.extend((0..channels).map(bad));
                }
            }
        }
        out
    }

    /// The values of a summary of a batch of images.
    pub fn values(&self, tag: &str, tensor: &Tensor) -> Result<Vec<Message>> {
        let dims = tensor.shape().dims();
        let &[batch, height, width, channels] = dims else {
            bail!(
                InvalidArgument,
                "Tensor must be 4-D with last dim 1, 3, or 4, not {}",
                tensor.shape()
            );
        };
        ensure!(
            matches!(channels, 1 | 3 | 4),
            InvalidArgument,
            "Tensor must be 4-D with last dim 1, 3, or 4, not {}",
            tensor.shape()
        );
        ensure!(
            tensor.elements() > 0,
            InvalidArgument,
            "input tensor must have non-zero dims. Found: {}.",
            tensor.shape()
        );
        ensure!(
            height < 1 << 31 && width < 1 << 31 && height * width < (1 << 31) / channels,
            InvalidArgument,
            "Tensor too large for summary {}",
            tensor.shape()
        );
        ensure!(
            tensor.dtype() == DType::UInt8 || self.bad.len() >= channels,
            InvalidArgument,
            "expected depth <= {}, got {channels}",
            self.bad.len()
        );
        let size = height * width * channels;
        let mut values = Vec::new();
        for i in 0..std::cmp::min(batch, self.most) {
            let image = tensor.row(i)?;
            let bytes = match image.dtype() {
                DType::UInt8 => image.as_slice::<u8>()?.to_vec(),
                DType::Half => {
                    let wide: Vec<f32> =
                        image.as_slice::<f16>()?.iter().map(|x| x.to_f32()).collect();
                    self.scaled(&wide, channels)
                }
                DType::Double => {
                    let narrow: Vec<f32> =
                        image.as_slice::<f64>()?.iter().map(|&x| x as f32).collect();
                    self.scaled(&narrow, channels)
                }
                _ => self.scaled(image.as_slice::<f32>()?, channels),
            };
            debug_assert_eq!(bytes.len(), size);
            let encoded = png::encode(&bytes, width as u32, height as u32, channels)
                .map_err(|e| err!(Internal, "PNG encoding failed: {e}"))?;
            let mut m = Message::new();
            m.varint_if(1, height as u64)
                .varint_if(2, width as u64)
                .varint_if(3, channels as u64)
                .bytes_if(4, &encoded);
            let mut value = tagged(&numbered(tag, "image", i, self.most));
            value.message(4, &m);
            values.push(value);
        }
        Ok(values)
    }
}

impl Kernel for Images {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let tag = scalar_tag(ctx, "Tags")?;
        let values = self.values(&tag, ctx.input(1)?)?;
        ctx.set(0, summary(&values))
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ImageSummary")
        .doc("A summary of images.")
        .input("tag: string")
        .input("tensor: T")
        .output("summary: string")
        .attr("max_images: int >= 1 = 3")
        .attr("T: {uint8, float, half, double} = DT_FLOAT")
        .attr("bad_color: tensor")
        .default(Tensor::vector(&[255u8, 0, 0, 255]))
        .shape(shape::scalar)
        .expensive()
        .cpu(|init| {
            let images = Images::new(init.int("max_images")?, &init.tensor("bad_color")?)?;
            Ok(KernelBox::new(images))
        });
    c.no_gradient(&["ImageSummary"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn floats_are_scaled() {
        let op = Images { most: 1, bad: vec![9, 8, 7, 6] };
        assert_eq!(op.scaled(&[0.0, 0.5, 1.0], 1), [0, 127, 255]);
        assert_eq!(op.scaled(&[-1.0, 0.0, 0.5], 1), [1, 128, 191]);
        assert_eq!(op.scaled(&[0.0, f32::NAN, 1.0, 1.0, 1.0, 1.0], 3), [9, 8, 7, 255, 255, 255]);
        assert_eq!(op.scaled(&[0.0, 0.0], 1), [0, 0]);
    }

    #[test]
    fn images_are_numbered_and_written() {
        let images = Tensor::zeros(DType::UInt8, [2, 3, 4, 3]).unwrap();
        let c = check("ImageSummary").input(Tensor::string("i")).input(images);
        let out = c.run().unwrap().remove(0);
        let bytes = out.scalar_string().unwrap();
        let has = |text: &[u8]| bytes.windows(text.len()).any(|w| w == text);
        assert!(has(b"i/image/0") && has(b"i/image/1") && has(b"\x89PNG\r\n"));
        check("ImageSummary")
            .input(Tensor::string("i"))
            .input(Tensor::zeros(DType::Float, [2, 3, 4, 2]).unwrap())
            .fails(Code::InvalidArgument, "last dim 1, 3, or 4, not [2,3,4,2]");
    }
}
