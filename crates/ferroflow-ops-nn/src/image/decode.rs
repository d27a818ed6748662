//! DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeGif, DecodeBmp, DecodeImage, ExtractJpegShape.
//!
//! Most of them accept the other formats too: the first bytes of a file tell its format.

use super::claimed::claimed_pixels;
use super::{bmp, gif, jpeg, png};
use crate::prelude::*;
use ferroflow_core::limits;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Jpeg,
    CropJpeg,
    Png,
    Gif,
    Bmp,
    Image,
}

struct Decode {
    op: Op,
    name: String,
    channels: usize,
    dtype: DType,
    /// Whether to return all frames of an animation, in an extra dimension.
    expand: bool,
    jpeg: jpeg::Options,
}

impl Decode {
    fn new(init: &KernelInit<'_>, op: Op) -> Result<Decode> {
        let channels = if op == Op::Gif { 3 } else { init.int("channels")? };
        ensure!(
            matches!(channels, 0 | 1 | 3 | 4),
            InvalidArgument,
            "`channels` must be 0, 1, 3 or 4 but got {channels}"
        );
        let mut options = jpeg::Options {
            channels: channels as usize,
            ratio: 1,
            smooth: true,
            accurate: false,
            recover_truncated: false,
            acceptable_fraction: 1.0,
            crop: None,
        };
        if matches!(op, Op::Jpeg | Op::CropJpeg) {
            let ratio = init.int("ratio")?;
            ensure!(
                matches!(ratio, 1 | 2 | 4 | 8),
                InvalidArgument,
                "ratio must be 1, 2, 4, or 8, got {ratio}"
            );
            let method = init.string("dct_method")?;
            ensure!(
                matches!(method.as_str(), "" | "INTEGER_FAST" | "INTEGER_ACCURATE"),
                InvalidArgument,
                "dct_method must be one of {{'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}}"
            );
            options.ratio = ratio as usize;
            options.smooth = init.bool("fancy_upscaling")?;
            options.accurate = method == "INTEGER_ACCURATE";
            options.recover_truncated = init.bool("try_recover_truncated")?;
            options.acceptable_fraction = init.float("acceptable_fraction")?;
        }
        let dtype = match op {
            Op::Png | Op::Image => init.dtype("dtype")?,
            _ => DType::UInt8,
        };
        let expand = op != Op::Image || init.bool("expand_animations")?;
        let (name, channels) = (init.node.op.clone(), channels as usize);
        Ok(Decode { op, name, channels, dtype, expand, jpeg: options })
    }

    /// The shape of one picture; DecodeGif puts the number of frames in front.
    fn shape(&self, [height, width, channels]: [usize; 3]) -> Result<Shape> {
        let dims = [1, height as i64, width as i64, channels as i64];
        Shape::from_dims(&dims[usize::from(self.op != Op::Gif)..])
    }

    /// Converts bytes to elements of the requested dtype.
    fn converted(&self, bytes: Tensor) -> Result<Tensor> {
        let mut out = match self.dtype {
            DType::UInt8 => return Ok(bytes),
            wide => Tensor::alloc(wide, bytes.shape().clone())?,
        };
        let from = bytes.as_slice::<u8>()?;
        if self.dtype == DType::UInt16 {
            let to = out.as_mut_slice::<u16>()?.iter_mut();
            to.zip(from).for_each(|(to, &x)| *to = u16::from(x) * 256);
        } else {
            let (to, scale) = (out.as_mut_slice::<f32>()?.iter_mut(), (1.0 / 255.0) as f32);
            to.zip(from).for_each(|(to, &x)| *to = f32::from(x) * scale);
        }
        Ok(out)
    }

    fn tensor(&self, shape: Shape, data: Vec<u8>) -> Result<Tensor> {
        self.converted(Tensor::from_bytes(DType::UInt8, shape, data.into())?)
    }

    fn jpeg(&self, data: &[u8], ctx: &Ctx<'_>) -> Result<Tensor> {
        ensure!(self.channels != 4, InvalidArgument, "JPEG does not support 4 channels");
        ensure!(
            self.op != Op::Bmp,
            InvalidArgument,
            "Trying to decode JPEG format using DecodeBmp op. Use `decode_jpeg` or `decode_image` \
             instead."
        );
        let mut options = self.jpeg;
        if self.op == Op::CropJpeg {
            let window = ctx.input(1)?;
            ensure!(
                window.rank() == 1,
                InvalidArgument,
                "crop_window must be 1-D, got shape {}",
                window.shape()
            );
            let &[top, left, height, width] = window.to_indices()?.as_slice() else {
                bail!(InvalidArgument, "crop_size must have four elements {}", window.shape());
            };
            options.crop = Some(jpeg::Crop { top, left, height, width });
        }
        let pixels = jpeg::decode(data, &options).map_err(|why| {
            err!(
                InvalidArgument,
                "jpeg::Uncompress failed. Invalid JPEG data or crop window. ({why})"
            )
        })?;
        let shape = self.shape([pixels.height, pixels.width, pixels.channels])?;
        self.tensor(shape, pixels.data)
    }

    fn png(&self, data: &[u8]) -> Result<Tensor> {
        let fault = |fault: png::Fault| match fault {
            png::Fault::Header => {
                err!(InvalidArgument, "Invalid PNG. Failed to initialize decoder.")
            }
            png::Fault::Data => err!(InvalidArgument, "Invalid PNG data, size {}", data.len()),
            png::Fault::TooLarge(width, height) => {
                err!(InvalidArgument, "PNG size too large for int: {width} by {height}")
            }
            png::Fault::Memory(error) => error,
        };
        let image = png::Image::read(data).map_err(fault)?;
        ensure!(
            self.op != Op::Bmp,
            InvalidArgument,
            "Trying to decode PNG format using DecodeBmp op. Use `decode_png` or `decode_image` \
             instead."
        );
        self.not_cropped("PNG")?;
        let channels = if self.channels == 0 { image.channels() } else { self.channels };
        let shape = self.shape([image.height, image.width, channels])?;
        let mut out = Tensor::alloc(self.dtype, shape)?;
        match self.dtype {
            DType::UInt8 => {
                let to = out.as_mut_slice::<u8>()?;
                image.decode(channels, false, |i, x| to[i] = x as u8)
            }
            DType::UInt16 => {
                let to = out.as_mut_slice::<u16>()?;
                image.decode(channels, true, |i, x| to[i] = x)
            }
            _ => {
                let (to, scale) = (out.as_mut_slice::<f32>()?, (1.0 / 65535.0) as f32);
                image.decode(channels, true, |i, x| to[i] = f32::from(x) * scale)
            }
        }
        .map_err(fault)?;
        Ok(out)
    }

    fn gif(&self, data: &[u8]) -> Result<Tensor> {
        ensure!(
            matches!(self.channels, 0 | 3),
            InvalidArgument,
            "channels must be 0 or 3 for GIF, got {}",
            self.channels
        );
        ensure!(
            self.op != Op::Bmp,
            InvalidArgument,
            "Trying to decode GIF format using DecodeBmp op. Use `decode_gif` or `decode_image` \
             instead."
        );
        self.not_cropped("GIF")?;
        let animation = gif::Animation::read(data, self.expand)?;
        let frames = animation.frames;
        let (height, width) = (animation.height, animation.width);
        let pixels = frames.saturating_mul(height).saturating_mul(width);
        limits().pixels.admit(pixels, &self.name)?;
        let shape = match self.op {
            Op::Png | Op::Jpeg if frames != 1 => bail!(
                InvalidArgument,
                "Got {frames} frames, but animated gifs can only be decoded by tf.io.decode_gif or \
                 tf.io.decode_image"
            ),
            Op::Gif => Shape::from([frames, height, width, 3]),
            Op::Image if self.expand => Shape::from([frames, height, width, 3]),
            _ => Shape::from([height, width, 3]),
        };
        shape.checked_elements()?;
        let mut out = Tensor::alloc(DType::UInt8, shape)?;
        animation.draw(out.as_mut_slice()?)?;
        self.converted(out)
    }

    fn bmp(&self, data: &[u8]) -> Result<Tensor> {
        ensure!(
            self.channels != 1,
            InvalidArgument,
            "`channels` must be 0, 3 or 4 for BMP, but got 1"
        );
        self.not_cropped("BMP")?;
        ensure!(
            matches!(self.op, Op::Bmp | Op::Image),
            InvalidArgument,
            "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` \
             instead. Op used: {}",
            self.name
        );
        let (pixels, size) = bmp::decode(data, self.channels)?;
        self.tensor(self.shape(size)?, pixels)
    }

    fn not_cropped(&self, format: &str) -> Result<()> {
        ensure!(
            self.op != Op::CropJpeg,
            InvalidArgument,
            "DecodeAndCropJpeg operation can run on JPEG only, but detected {format}."
        );
        Ok(())
    }
}

/// Decodes an image of any format, for the fuzz target.
pub(crate) fn fuzz(data: &[u8]) {
    let jpeg = jpeg::Options {
        channels: 0,
        ratio: 1,
        smooth: true,
        accurate: false,
        recover_truncated: data.len() % 2 == 1,
        acceptable_fraction: 0.5,
        crop: None,
    };
    // As large as a short input can make it, and no larger.
    if claimed_pixels(data) > 1 << 16 {
        return;
    }
    let image = |op| Decode {
        op,
        name: "fuzz".into(),
        channels: 0,
        dtype: DType::UInt8,
        expand: true,
        jpeg,
    };
    let _ = jpeg::decode(data, &jpeg);
    let _ = jpeg::read_size(data);
    let _ = image(Op::Image).png(data);
    let _ = image(Op::Image).gif(data);
    let _ = image(Op::Image).bmp(data);
}

impl Kernel for Decode {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let contents = ctx.input(0)?;
        ensure!(
            contents.rank() == 0,
            InvalidArgument,
            "`contents` must be scalar but got shape{}",
            contents.shape()
        );
        let data = contents.scalar_string()?;
        ensure!(!data.is_empty(), InvalidArgument, "Input is empty.");
        // The decoders refuse larger images in TensorFlow's words.
        let pixels = claimed_pixels(data);
        if pixels < 1 << 29 {
            limits().pixels.admit(pixels, &self.name)?;
        }
        let out = match data.as_ref() {
            [0xff, 0xd8, 0xff, ..] => self.jpeg(data, ctx)?,
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => self.png(data)?,
            [b'G', b'I', b'F', b'8', ..] => self.gif(data)?,
            [b'B', b'M', ..] => self.bmp(data)?,
            _ => bail!(
                InvalidArgument,
                "Unknown image file format. One of JPEG, PNG, GIF, BMP required."
            ),
        };
        ctx.set(0, out)
    }
}

fn extract_shape(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("output_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let contents = ctx.input(0)?;
        ensure!(
            contents.rank() == 0,
            InvalidArgument,
            "contents must be scalar, got shape {}",
            contents.shape()
        );
        let data = contents.scalar_string()?;
        let (height, width, channels) = jpeg::read_size(data).map_err(|why| {
            err!(InvalidArgument, "Invalid JPEG data, size {} ({why})", data.len())
        })?;
        let shape = [height, width, channels];
        ctx.set(
            0,
            match dtype {
                DType::Int32 => Tensor::vector(&shape.map(|x| x as i32)),
                _ => Tensor::vector(&shape.map(|x| x as i64)),
            },
        )
    }))
}

/// One image with the number of channels of the attribute, or its own.
fn picture_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let channels = c.attrs.int("channels")?;
    ensure!(channels >= 0, InvalidArgument, "channels must be non-negative, got {channels}");
    Ok(vec![PartialShape::new([None, None, Some(channels as usize).filter(|&n| n > 0)])])
}

pub(crate) fn register(c: &mut Catalog) {
    fn make(op: Op) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
        move |init| Ok(KernelBox::new(Decode::new(init, op)?))
    }
    for (name, op) in [("DecodeJpeg", Op::Jpeg), ("DecodeAndCropJpeg", Op::CropJpeg)] {
        let builder = c.op(name).doc("The pixels of a JPEG file.").input("contents: string");
        let builder = match op {
            Op::CropJpeg => builder.doc("A part of a JPEG file.").input("crop_window: int32"),
            _ => builder,
        };
        builder
            .output("image: uint8")
            .attr("channels: int = 0")
            .attr("ratio: int = 1")
            .attr("fancy_upscaling: bool = true")
            .attr("try_recover_truncated: bool = false")
            .attr("acceptable_fraction: float = 1.0")
            .attr("dct_method: string = ''")
            .expensive()
            .shape(picture_shape)
            .cpu(make(op));
    }
    c.op("DecodePng")
        .doc("The pixels of a PNG file.")
        .input("contents: string")
        .output("image: dtype")
        .attr("channels: int = 0")
        .attr("dtype: {uint8, uint16} = DT_UINT8")
        .expensive()
        .shape(picture_shape)
        .cpu(make(Op::Png));
    c.op("DecodeGif")
        .doc("The frames of a GIF file.")
        .input("contents: string")
        .output("image: uint8")
        .expensive()
        .shape(|_| Ok(vec![PartialShape::new([None, None, None, Some(3)])]))
        .cpu(make(Op::Gif));
    c.op("DecodeBmp")
        .doc("The pixels of a BMP file.")
        .input("contents: string")
        .output("image: uint8")
        .attr("channels: int = 0")
        .expensive()
        .shape(picture_shape)
        .cpu(make(Op::Bmp));
    c.op("DecodeImage")
        .doc("The pixels of an image file of one of several formats.")
        .input("contents: string")
        .output("image: dtype")
        .attr("channels: int = 0")
        .attr("dtype: {uint8, uint16, float} = DT_UINT8")
        .attr("expand_animations: bool = true")
        .expensive()
        .shape(|c| match c.attrs.bool("expand_animations")? {
            true => shape::unknown(c),
            false => picture_shape(c),
        })
        .cpu(make(Op::Image));
    c.op("ExtractJpegShape")
        .doc("Height, width and channels of a JPEG file.")
        .input("contents: string")
        .output("image_shape: output_type")
        .attr("output_type: {int32, int64} = DT_INT32")
        .shape(|_| Ok(vec![[3].into()]))
        .cpu(extract_shape);
}
