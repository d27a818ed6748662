//! EncodePng, EncodeJpeg, EncodeJpegVariableQuality.

use super::{jpeg, png};
use crate::prelude::*;

fn encode_png(init: &KernelInit<'_>) -> Result<KernelBox> {
    let compression = init.int("compression")?;
    ensure!(
        (-1..=9).contains(&compression),
        InvalidArgument,
        "compression should be in [-1,9], got {compression}"
    );
    let level = if compression < 0 { 6 } else { compression as u8 };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let image = ctx.input(0)?;
        let rank = image.rank();
        ensure!(rank >= 3, InvalidArgument, "images must be at least rank 3{}", image.shape());
        ensure!(
            image.elements() < i32::MAX as usize,
            InvalidArgument,
            "image cannot have >= int32 max elements"
        );
        let (batch, size) = image.shape().split_at(rank - 3);
        let (height, width, channels) = (size[0], size[1], size[2]);
        ensure!(
            (1..=4).contains(&channels),
            InvalidArgument,
            "image must have 1, 2, 3, or 4 channels, got {channels}"
        );
        let count: usize = batch.iter().product();
        ensure!(
            count == 0 || (height > 0 && width > 0),
            Internal,
            "PNG encoding failed at the following flattened batch indices: 0"
        );
        let wide = image.dtype() == DType::UInt16;
        let bytes = match wide {
            // The file stores the high byte first.
            true => image.as_slice::<u16>()?.iter().flat_map(|x| x.to_be_bytes()).collect(),
            false => image.as_slice::<u8>()?.to_vec(),
        };
        let mut files = Vec::with_capacity(count);
        for image in bytes.chunks_exact((bytes.len() / count.max(1)).max(1)) {
            let file = png::encode(image, (height, width, channels), wide, level);
            files.push(file.map_err(|e| err!(Internal, "PNG encoding failed: {e}"))?.into());
        }
        let out = Tensor::from_strings(Shape::from(batch), files)?;
        ctx.set(0, out)
    }))
}

/// Height, width and channels of the image in input 0.
fn jpeg_size(image: &Tensor) -> Result<(usize, usize, usize)> {
    let &[height, width, channels] = image.shape().dims() else {
        bail!(InvalidArgument, "image must be 3-dimensional{}", image.shape());
    };
    ensure!(
        image.elements() < i32::MAX as usize,
        InvalidArgument,
        "Cannot encode images with >= max int32 elements"
    );
    Ok((height, width, channels))
}

fn write_jpeg(
    image: &Tensor,
    size: (usize, usize, usize),
    options: &jpeg::Encoding,
) -> Result<Tensor> {
    let side = 1..=65500;
    ensure!(
        side.contains(&size.0) && side.contains(&size.1),
        Internal,
        "JPEG encoding failed: sides must be 1 to 65500 pixels long, got {}",
        image.shape()
    );
    Ok(Tensor::string(jpeg::encode(image.as_slice::<u8>()?, size, options)))
}

fn check_quality(quality: i64) -> Result<u32> {
    ensure!(
        (0..=100).contains(&quality),
        InvalidArgument,
        "quality must be in [0,100], got {quality}"
    );
    Ok(quality as u32)
}

fn encode_jpeg(init: &KernelInit<'_>) -> Result<KernelBox> {
    let format = init.string("format")?;
    let expected = match format.as_str() {
        "" => None,
        "grayscale" => Some(1),
        _ => Some(3),
    };
    ensure!(
        !init.bool("progressive")?,
        Unimplemented,
        "EncodeJpeg with progressive = true is not supported (node '{}')",
        init.name()
    );
    let density = |name: &str| -> Result<u16> {
        let x = init.int(name)?;
        u16::try_from(x).map_err(|_| err!(InvalidArgument, "{name} is out of range: {x}"))
    };
    let xmp = init.bytes("xmp_metadata")?.to_vec();
    ensure!(
        xmp.len() <= 65_000,
        InvalidArgument,
        "xmp_metadata of {} bytes does not fit into a segment",
        xmp.len()
    );
    let options = jpeg::Encoding {
        quality: check_quality(init.int("quality")?)?,
        downsample: init.bool("chroma_downsampling")?,
        optimize: init.bool("optimize_size")?,
        density: jpeg::Density {
            per_centimetre: init.string("density_unit")? == "cm",
            across: density("x_density")?,
            down: density("y_density")?,
        },
        xmp,
    };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let image = ctx.input(0)?;
        let size = jpeg_size(image)?;
        match expected {
            None => ensure!(
                matches!(size.2, 1 | 3),
                InvalidArgument,
                "image must have 1 or 3 channels, got {}",
                image.shape()
            ),
            Some(channels) => ensure!(
                size.2 == channels,
                InvalidArgument,
                "format {format} expects {channels} channels, got {}",
                image.shape()
            ),
        }
        let out = write_jpeg(image, size, &options)?;
        ctx.set(0, out)
    }))
}

fn encode_variable_quality(ctx: &mut Ctx<'_>) -> Result<()> {
    let (image, quality) = (ctx.input(0)?, ctx.input(1)?);
    let size = jpeg_size(image)?;
    ensure!(quality.rank() == 0, InvalidArgument, "quality must be scalar: {}", quality.shape());
    let quality = check_quality(quality.scalar_index()?)?;
    ensure!(
        matches!(size.2, 1 | 3),
        InvalidArgument,
        "image must have 1 or 3 channels, got {}",
        image.shape()
    );
    let options = jpeg::Encoding {
        quality,
        downsample: true,
        optimize: false,
        density: jpeg::Density { per_centimetre: false, across: 300, down: 300 },
        xmp: Vec::new(),
    };
    let out = write_jpeg(image, size, &options)?;
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("EncodePng")
        .doc("Images as PNG files.")
        .input("image: T")
        .output("contents: string")
        .attr("compression: int = -1")
        .attr("T: {uint8, uint16} = DT_UINT8")
        .expensive()
        .shape(|c| {
            let image = c.input(0);
            let Some(dims) = image.dims() else { return shape::unknown(c) };
            ensure!(
                dims.len() >= 3,
                InvalidArgument,
                "Shape must be at least rank 3 but is rank {}",
                dims.len()
            );
            Ok(vec![PartialShape::new(dims[..dims.len() - 3].iter().copied())])
        })
        .cpu(encode_png);
    c.op("EncodeJpeg")
        .doc("An image as a JPEG file.")
        .input("image: uint8")
        .output("contents: string")
        .attr("format: {'', 'grayscale', 'rgb'} = ''")
        .attr("quality: int = 95")
        .attr("progressive: bool = false")
        .attr("optimize_size: bool = false")
        .attr("chroma_downsampling: bool = true")
        .attr("density_unit: {'in', 'cm'} = 'in'")
        .attr("x_density: int = 300")
        .attr("y_density: int = 300")
        .attr("xmp_metadata: string = ''")
        .expensive()
        .shape(shape::scalar)
        .cpu(encode_jpeg);
    c.op("EncodeJpegVariableQuality")
        .doc("An image as a JPEG file of a quality that is an input.")
        .input("images: uint8")
        .input("quality: int32")
        .output("contents: string")
        .expensive()
        .shape(shape::scalar)
        .cpu_fn(encode_variable_quality);
}
