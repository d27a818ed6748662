//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;

/// `AdjustContrast`: An old form of AdjustContrastv2 that clips its result.
#[inline]
#[track_caller]
pub fn adjust_contrast(
    images: &Output,
    contrast_factor: &Output,
    min_value: &Output,
    max_value: &Output,
) -> Output {
    images
        .graph()
        .op("AdjustContrast")
        .input(images)
        .input(contrast_factor)
        .input(min_value)
        .input(max_value)
        .output()
}

/// `AdjustContrastv2`: Images with distances from the mean of their channels scaled.
#[inline]
#[track_caller]
pub fn adjust_contrastv2(images: &Output, contrast_factor: &Output) -> Output {
    images.graph().op("AdjustContrastv2").input(images).input(contrast_factor).output()
}

/// `AdjustHue`: Images with the hue of every pixel turned.
#[inline]
#[track_caller]
pub fn adjust_hue(images: &Output, delta: &Output) -> Output {
    images.graph().op("AdjustHue").input(images).input(delta).output()
}

/// `AdjustSaturation`: Images with the saturation of every pixel scaled.
#[inline]
#[track_caller]
pub fn adjust_saturation(images: &Output, scale: &Output) -> Output {
    images.graph().op("AdjustSaturation").input(images).input(scale).output()
}

/// The outputs of [`combined_non_max_suppression`].
#[derive(Clone, Debug)]
pub struct CombinedNonMaxSuppressionOutputs {
    /// Output `nmsed_boxes`.
    pub nmsed_boxes: Output,
    /// Output `nmsed_scores`.
    pub nmsed_scores: Output,
    /// Output `nmsed_classes`.
    pub nmsed_classes: Output,
    /// Output `valid_detections`.
    pub valid_detections: Output,
}

/// The attributes of [`combined_non_max_suppression_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CombinedNonMaxSuppressionOptions {
    /// `pad_per_class`: bool, `false` by default.
    pub pad_per_class: bool,
    /// `clip_boxes`: bool, `true` by default.
    pub clip_boxes: bool,
}

impl Default for CombinedNonMaxSuppressionOptions {
    fn default() -> Self {
        CombinedNonMaxSuppressionOptions { pad_per_class: false, clip_boxes: true }
    }
}

/// `CombinedNonMaxSuppression`: The best boxes of each image, of which those of a class do not
/// overlap too much.
#[inline]
#[track_caller]
pub fn combined_non_max_suppression(
    boxes: &Output,
    scores: &Output,
    max_output_size_per_class: &Output,
    max_total_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
) -> CombinedNonMaxSuppressionOutputs {
    combined_non_max_suppression_with(
        boxes,
        scores,
        max_output_size_per_class,
        max_total_size,
        iou_threshold,
        score_threshold,
        CombinedNonMaxSuppressionOptions::default(),
    )
}

/// [`combined_non_max_suppression()`] with other attributes.
#[inline]
#[track_caller]
pub fn combined_non_max_suppression_with(
    boxes: &Output,
    scores: &Output,
    max_output_size_per_class: &Output,
    max_total_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
    options: CombinedNonMaxSuppressionOptions,
) -> CombinedNonMaxSuppressionOutputs {
    let [nmsed_boxes, nmsed_scores, nmsed_classes, valid_detections] = boxes
        .graph()
        .op("CombinedNonMaxSuppression")
        .input(boxes)
        .input(scores)
        .input(max_output_size_per_class)
        .input(max_total_size)
        .input(iou_threshold)
        .input(score_threshold)
        .attr("pad_per_class", options.pad_per_class)
        .attr("clip_boxes", options.clip_boxes)
        .split();
    CombinedNonMaxSuppressionOutputs { nmsed_boxes, nmsed_scores, nmsed_classes, valid_detections }
}

/// The attributes of [`crop_and_resize_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CropAndResizeOptions<'a> {
    /// `method`: string, `"bilinear"` by default.
    pub method: &'a str,
    /// `extrapolation_value`: float, `0.0` by default.
    pub extrapolation_value: f32,
}

impl Default for CropAndResizeOptions<'_> {
    fn default() -> Self {
        CropAndResizeOptions { method: "bilinear", extrapolation_value: 0.0 }
    }
}

/// `CropAndResize`: Boxes of images, resized to one size.
#[inline]
#[track_caller]
pub fn crop_and_resize(
    image: &Output,
    boxes: &Output,
    box_ind: &Output,
    crop_size: &Output,
) -> Output {
    crop_and_resize_with(image, boxes, box_ind, crop_size, CropAndResizeOptions::default())
}

/// [`crop_and_resize()`] with other attributes.
#[inline]
#[track_caller]
pub fn crop_and_resize_with(
    image: &Output,
    boxes: &Output,
    box_ind: &Output,
    crop_size: &Output,
    options: CropAndResizeOptions<'_>,
) -> Output {
    image
        .graph()
        .op("CropAndResize")
        .input(image)
        .input(boxes)
        .input(box_ind)
        .input(crop_size)
        .attr("method", options.method)
        .attr("extrapolation_value", options.extrapolation_value)
        .output()
}

/// The attributes of [`crop_and_resize_grad_boxes_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CropAndResizeGradBoxesOptions<'a> {
    /// `method`: string, `"bilinear"` by default.
    pub method: &'a str,
}

impl Default for CropAndResizeGradBoxesOptions<'_> {
    fn default() -> Self {
        CropAndResizeGradBoxesOptions { method: "bilinear" }
    }
}

/// `CropAndResizeGradBoxes`: Gradient of CropAndResize for the boxes.
#[inline]
#[track_caller]
pub fn crop_and_resize_grad_boxes(
    grads: &Output,
    image: &Output,
    boxes: &Output,
    box_ind: &Output,
) -> Output {
    crop_and_resize_grad_boxes_with(
        grads,
        image,
        boxes,
        box_ind,
        CropAndResizeGradBoxesOptions::default(),
    )
}

/// [`crop_and_resize_grad_boxes()`] with other attributes.
#[inline]
#[track_caller]
pub fn crop_and_resize_grad_boxes_with(
    grads: &Output,
    image: &Output,
    boxes: &Output,
    box_ind: &Output,
    options: CropAndResizeGradBoxesOptions<'_>,
) -> Output {
    grads
        .graph()
        .op("CropAndResizeGradBoxes")
        .input(grads)
        .input(image)
        .input(boxes)
        .input(box_ind)
        .attr("method", options.method)
        .output()
}

/// The attributes of [`crop_and_resize_grad_image_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CropAndResizeGradImageOptions<'a> {
    /// `method`: string, `"bilinear"` by default.
    pub method: &'a str,
}

impl Default for CropAndResizeGradImageOptions<'_> {
    fn default() -> Self {
        CropAndResizeGradImageOptions { method: "bilinear" }
    }
}

/// `CropAndResizeGradImage`: Gradient of CropAndResize for the images.
#[inline]
#[track_caller]
pub fn crop_and_resize_grad_image(
    grads: &Output,
    boxes: &Output,
    box_ind: &Output,
    image_size: &Output,
    t: DType,
) -> Output {
    crop_and_resize_grad_image_with(
        grads,
        boxes,
        box_ind,
        image_size,
        t,
        CropAndResizeGradImageOptions::default(),
    )
}

/// [`crop_and_resize_grad_image()`] with other attributes.
#[inline]
#[track_caller]
pub fn crop_and_resize_grad_image_with(
    grads: &Output,
    boxes: &Output,
    box_ind: &Output,
    image_size: &Output,
    t: DType,
    options: CropAndResizeGradImageOptions<'_>,
) -> Output {
    grads
        .graph()
        .op("CropAndResizeGradImage")
        .input(grads)
        .input(boxes)
        .input(box_ind)
        .input(image_size)
        .attr("T", t)
        .attr("method", options.method)
        .output()
}

/// The attributes of [`decode_and_crop_jpeg_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeAndCropJpegOptions<'a> {
    /// `channels`: int, `0` by default.
    pub channels: i64,
    /// `ratio`: int, `1` by default.
    pub ratio: i64,
    /// `fancy_upscaling`: bool, `true` by default.
    pub fancy_upscaling: bool,
    /// `try_recover_truncated`: bool, `false` by default.
    pub try_recover_truncated: bool,
    /// `acceptable_fraction`: float, `1.0` by default.
    pub acceptable_fraction: f32,
    /// `dct_method`: string, empty by default.
    pub dct_method: &'a str,
}

impl Default for DecodeAndCropJpegOptions<'_> {
    fn default() -> Self {
        DecodeAndCropJpegOptions {
            channels: 0,
            ratio: 1,
            fancy_upscaling: true,
            try_recover_truncated: false,
            acceptable_fraction: 1.0,
            dct_method: "",
        }
    }
}

/// `DecodeAndCropJpeg`: A part of a JPEG file.
#[inline]
#[track_caller]
pub fn decode_and_crop_jpeg(contents: &Output, crop_window: &Output) -> Output {
    decode_and_crop_jpeg_with(contents, crop_window, DecodeAndCropJpegOptions::default())
}

/// [`decode_and_crop_jpeg()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_and_crop_jpeg_with(
    contents: &Output,
    crop_window: &Output,
    options: DecodeAndCropJpegOptions<'_>,
) -> Output {
    contents
        .graph()
        .op("DecodeAndCropJpeg")
        .input(contents)
        .input(crop_window)
        .attr("channels", options.channels)
        .attr("ratio", options.ratio)
        .attr("fancy_upscaling", options.fancy_upscaling)
        .attr("try_recover_truncated", options.try_recover_truncated)
        .attr("acceptable_fraction", options.acceptable_fraction)
        .attr("dct_method", options.dct_method)
        .output()
}

/// The attributes of [`decode_bmp_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeBmpOptions {
    /// `channels`: int, `0` by default.
    pub channels: i64,
}

impl Default for DecodeBmpOptions {
    fn default() -> Self {
        DecodeBmpOptions { channels: 0 }
    }
}

/// `DecodeBmp`: The pixels of a BMP file.
#[inline]
#[track_caller]
pub fn decode_bmp(contents: &Output) -> Output {
    decode_bmp_with(contents, DecodeBmpOptions::default())
}

/// [`decode_bmp()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_bmp_with(contents: &Output, options: DecodeBmpOptions) -> Output {
    contents.graph().op("DecodeBmp").input(contents).attr("channels", options.channels).output()
}

/// `DecodeGif`: The frames of a GIF file.
#[inline]
#[track_caller]
pub fn decode_gif(contents: &Output) -> Output {
    contents.graph().op("DecodeGif").input(contents).output()
}

/// The attributes of [`decode_image_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeImageOptions {
    /// `channels`: int, `0` by default.
    pub channels: i64,
    /// `dtype`: type, `UInt8` by default.
    pub dtype: DType,
    /// `expand_animations`: bool, `true` by default.
    pub expand_animations: bool,
}

impl Default for DecodeImageOptions {
    fn default() -> Self {
        DecodeImageOptions { channels: 0, dtype: DType::UInt8, expand_animations: true }
    }
}

/// `DecodeImage`: The pixels of an image file of one of several formats.
#[inline]
#[track_caller]
pub fn decode_image(contents: &Output) -> Output {
    decode_image_with(contents, DecodeImageOptions::default())
}

/// [`decode_image()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_image_with(contents: &Output, options: DecodeImageOptions) -> Output {
    contents
        .graph()
        .op("DecodeImage")
        .input(contents)
        .attr("channels", options.channels)
        .attr("dtype", options.dtype)
        .attr("expand_animations", options.expand_animations)
        .output()
}

/// The attributes of [`decode_jpeg_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodeJpegOptions<'a> {
    /// `channels`: int, `0` by default.
    pub channels: i64,
    /// `ratio`: int, `1` by default.
    pub ratio: i64,
    /// `fancy_upscaling`: bool, `true` by default.
    pub fancy_upscaling: bool,
    /// `try_recover_truncated`: bool, `false` by default.
    pub try_recover_truncated: bool,
    /// `acceptable_fraction`: float, `1.0` by default.
    pub acceptable_fraction: f32,
    /// `dct_method`: string, empty by default.
    pub dct_method: &'a str,
}

impl Default for DecodeJpegOptions<'_> {
    fn default() -> Self {
        DecodeJpegOptions {
            channels: 0,
            ratio: 1,
            fancy_upscaling: true,
            try_recover_truncated: false,
            acceptable_fraction: 1.0,
            dct_method: "",
        }
    }
}

/// `DecodeJpeg`: The pixels of a JPEG file.
#[inline]
#[track_caller]
pub fn decode_jpeg(contents: &Output) -> Output {
    decode_jpeg_with(contents, DecodeJpegOptions::default())
}

/// [`decode_jpeg()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_jpeg_with(contents: &Output, options: DecodeJpegOptions<'_>) -> Output {
    contents
        .graph()
        .op("DecodeJpeg")
        .input(contents)
        .attr("channels", options.channels)
        .attr("ratio", options.ratio)
        .attr("fancy_upscaling", options.fancy_upscaling)
        .attr("try_recover_truncated", options.try_recover_truncated)
        .attr("acceptable_fraction", options.acceptable_fraction)
        .attr("dct_method", options.dct_method)
        .output()
}

/// The attributes of [`decode_png_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DecodePngOptions {
    /// `channels`: int, `0` by default.
    pub channels: i64,
    /// `dtype`: type, `UInt8` by default.
    pub dtype: DType,
}

impl Default for DecodePngOptions {
    fn default() -> Self {
        DecodePngOptions { channels: 0, dtype: DType::UInt8 }
    }
}

/// `DecodePng`: The pixels of a PNG file.
#[inline]
#[track_caller]
pub fn decode_png(contents: &Output) -> Output {
    decode_png_with(contents, DecodePngOptions::default())
}

/// [`decode_png()`] with other attributes.
#[inline]
#[track_caller]
pub fn decode_png_with(contents: &Output, options: DecodePngOptions) -> Output {
    contents
        .graph()
        .op("DecodePng")
        .input(contents)
        .attr("channels", options.channels)
        .attr("dtype", options.dtype)
        .output()
}

/// `DrawBoundingBoxes`: Images with the frames of boxes drawn into them.
#[inline]
#[track_caller]
pub fn draw_bounding_boxes(images: &Output, boxes: &Output) -> Output {
    images.graph().op("DrawBoundingBoxes").input(images).input(boxes).output()
}

/// `DrawBoundingBoxesV2`: Images with the frames of boxes drawn into them.
#[inline]
#[track_caller]
pub fn draw_bounding_boxes_v2(images: &Output, boxes: &Output, colors: &Output) -> Output {
    images.graph().op("DrawBoundingBoxesV2").input(images).input(boxes).input(colors).output()
}

/// The attributes of [`encode_jpeg_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EncodeJpegOptions<'a> {
    /// `format`: string, empty by default.
    pub format: &'a str,
    /// `quality`: int, `95` by default.
    pub quality: i64,
    /// `progressive`: bool, `false` by default.
    pub progressive: bool,
    /// `optimize_size`: bool, `false` by default.
    pub optimize_size: bool,
    /// `chroma_downsampling`: bool, `true` by default.
    pub chroma_downsampling: bool,
    /// `density_unit`: string, `"in"` by default.
    pub density_unit: &'a str,
    /// `x_density`: int, `300` by default.
    pub x_density: i64,
    /// `y_density`: int, `300` by default.
    pub y_density: i64,
    /// `xmp_metadata`: string, empty by default.
    pub xmp_metadata: &'a str,
}

impl Default for EncodeJpegOptions<'_> {
    fn default() -> Self {
        EncodeJpegOptions {
            format: "",
            quality: 95,
            progressive: false,
            optimize_size: false,
            chroma_downsampling: true,
            density_unit: "in",
            x_density: 300,
            y_density: 300,
            xmp_metadata: "",
        }
    }
}

/// `EncodeJpeg`: An image as a JPEG file.
#[inline]
#[track_caller]
pub fn encode_jpeg(image: &Output) -> Output {
    encode_jpeg_with(image, EncodeJpegOptions::default())
}

/// [`encode_jpeg()`] with other attributes.
#[inline]
#[track_caller]
pub fn encode_jpeg_with(image: &Output, options: EncodeJpegOptions<'_>) -> Output {
    image
        .graph()
        .op("EncodeJpeg")
        .input(image)
        .attr("format", options.format)
        .attr("quality", options.quality)
        .attr("progressive", options.progressive)
        .attr("optimize_size", options.optimize_size)
        .attr("chroma_downsampling", options.chroma_downsampling)
        .attr("density_unit", options.density_unit)
        .attr("x_density", options.x_density)
        .attr("y_density", options.y_density)
        .attr("xmp_metadata", options.xmp_metadata)
        .output()
}

/// `EncodeJpegVariableQuality`: An image as a JPEG file of a quality that is an input.
#[inline]
#[track_caller]
pub fn encode_jpeg_variable_quality(images: &Output, quality: &Output) -> Output {
    images.graph().op("EncodeJpegVariableQuality").input(images).input(quality).output()
}

/// The attributes of [`encode_png_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EncodePngOptions {
    /// `compression`: int, `-1` by default.
    pub compression: i64,
}

impl Default for EncodePngOptions {
    fn default() -> Self {
        EncodePngOptions { compression: -1 }
    }
}

/// `EncodePng`: Images as PNG files.
#[inline]
#[track_caller]
pub fn encode_png(image: &Output) -> Output {
    encode_png_with(image, EncodePngOptions::default())
}

/// [`encode_png()`] with other attributes.
#[inline]
#[track_caller]
pub fn encode_png_with(image: &Output, options: EncodePngOptions) -> Output {
    image.graph().op("EncodePng").input(image).attr("compression", options.compression).output()
}

/// The attributes of [`extract_glimpse_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExtractGlimpseOptions<'a> {
    /// `centered`: bool, `true` by default.
    pub centered: bool,
    /// `normalized`: bool, `true` by default.
    pub normalized: bool,
    /// `uniform_noise`: bool, `true` by default.
    pub uniform_noise: bool,
    /// `noise`: string, `"uniform"` by default.
    pub noise: &'a str,
}

impl Default for ExtractGlimpseOptions<'_> {
    fn default() -> Self {
        ExtractGlimpseOptions {
            centered: true,
            normalized: true,
            uniform_noise: true,
            noise: "uniform",
        }
    }
}

/// `ExtractGlimpse`: A window of each image, with noise where it looks beyond the edge.
#[inline]
#[track_caller]
pub fn extract_glimpse(input: &Output, size: &Output, offsets: &Output) -> Output {
    extract_glimpse_with(input, size, offsets, ExtractGlimpseOptions::default())
}

/// [`extract_glimpse()`] with other attributes.
#[inline]
#[track_caller]
pub fn extract_glimpse_with(
    input: &Output,
    size: &Output,
    offsets: &Output,
    options: ExtractGlimpseOptions<'_>,
) -> Output {
    input
        .graph()
        .op("ExtractGlimpse")
        .input(input)
        .input(size)
        .input(offsets)
        .attr("centered", options.centered)
        .attr("normalized", options.normalized)
        .attr("uniform_noise", options.uniform_noise)
        .attr("noise", options.noise)
        .output()
}

/// The attributes of [`extract_glimpse_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExtractGlimpseV2Options<'a> {
    /// `centered`: bool, `true` by default.
    pub centered: bool,
    /// `normalized`: bool, `true` by default.
    pub normalized: bool,
    /// `uniform_noise`: bool, `true` by default.
    pub uniform_noise: bool,
    /// `noise`: string, `"uniform"` by default.
    pub noise: &'a str,
}

impl Default for ExtractGlimpseV2Options<'_> {
    fn default() -> Self {
        ExtractGlimpseV2Options {
            centered: true,
            normalized: true,
            uniform_noise: true,
            noise: "uniform",
        }
    }
}

/// `ExtractGlimpseV2`: A window of each image, with noise where it looks beyond the edge.
#[inline]
#[track_caller]
pub fn extract_glimpse_v2(input: &Output, size: &Output, offsets: &Output) -> Output {
    extract_glimpse_v2_with(input, size, offsets, ExtractGlimpseV2Options::default())
}

/// [`extract_glimpse_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn extract_glimpse_v2_with(
    input: &Output,
    size: &Output,
    offsets: &Output,
    options: ExtractGlimpseV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("ExtractGlimpseV2")
        .input(input)
        .input(size)
        .input(offsets)
        .attr("centered", options.centered)
        .attr("normalized", options.normalized)
        .attr("uniform_noise", options.uniform_noise)
        .attr("noise", options.noise)
        .output()
}

/// The attributes of [`extract_jpeg_shape_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ExtractJpegShapeOptions {
    /// `output_type`: type, `Int32` by default.
    pub output_type: DType,
}

impl Default for ExtractJpegShapeOptions {
    fn default() -> Self {
        ExtractJpegShapeOptions { output_type: DType::Int32 }
    }
}

/// `ExtractJpegShape`: Height, width and channels of a JPEG file.
#[inline]
#[track_caller]
pub fn extract_jpeg_shape(contents: &Output) -> Output {
    extract_jpeg_shape_with(contents, ExtractJpegShapeOptions::default())
}

/// [`extract_jpeg_shape()`] with other attributes.
#[inline]
#[track_caller]
pub fn extract_jpeg_shape_with(contents: &Output, options: ExtractJpegShapeOptions) -> Output {
    contents
        .graph()
        .op("ExtractJpegShape")
        .input(contents)
        .attr("output_type", options.output_type)
        .output()
}

/// `HSVToRGB`: Colours from hue, saturation and value.
#[inline]
#[track_caller]
pub fn hsv_to_rgb(images: &Output) -> Output {
    images.graph().op("HSVToRGB").input(images).output()
}

/// The attributes of [`image_projective_transform_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ImageProjectiveTransformV2Options<'a> {
    /// `fill_mode`: string, `"CONSTANT"` by default.
    pub fill_mode: &'a str,
}

impl Default for ImageProjectiveTransformV2Options<'_> {
    fn default() -> Self {
        ImageProjectiveTransformV2Options { fill_mode: "CONSTANT" }
    }
}

/// `ImageProjectiveTransformV2`: Images seen through projective transforms.
#[inline]
#[track_caller]
pub fn image_projective_transform_v2(
    images: &Output,
    transforms: &Output,
    output_shape: &Output,
    interpolation: &str,
) -> Output {
    image_projective_transform_v2_with(
        images,
        transforms,
        output_shape,
        interpolation,
        ImageProjectiveTransformV2Options::default(),
    )
}

/// [`image_projective_transform_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn image_projective_transform_v2_with(
    images: &Output,
    transforms: &Output,
    output_shape: &Output,
    interpolation: &str,
    options: ImageProjectiveTransformV2Options<'_>,
) -> Output {
    images
        .graph()
        .op("ImageProjectiveTransformV2")
        .input(images)
        .input(transforms)
        .input(output_shape)
        .attr("interpolation", interpolation)
        .attr("fill_mode", options.fill_mode)
        .output()
}

/// The attributes of [`image_projective_transform_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ImageProjectiveTransformV3Options<'a> {
    /// `fill_mode`: string, `"CONSTANT"` by default.
    pub fill_mode: &'a str,
}

impl Default for ImageProjectiveTransformV3Options<'_> {
    fn default() -> Self {
        ImageProjectiveTransformV3Options { fill_mode: "CONSTANT" }
    }
}

/// `ImageProjectiveTransformV3`: Images seen through projective transforms.
#[inline]
#[track_caller]
pub fn image_projective_transform_v3(
    images: &Output,
    transforms: &Output,
    output_shape: &Output,
    fill_value: &Output,
    interpolation: &str,
) -> Output {
    image_projective_transform_v3_with(
        images,
        transforms,
        output_shape,
        fill_value,
        interpolation,
        ImageProjectiveTransformV3Options::default(),
    )
}

/// [`image_projective_transform_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn image_projective_transform_v3_with(
    images: &Output,
    transforms: &Output,
    output_shape: &Output,
    fill_value: &Output,
    interpolation: &str,
    options: ImageProjectiveTransformV3Options<'_>,
) -> Output {
    images
        .graph()
        .op("ImageProjectiveTransformV3")
        .input(images)
        .input(transforms)
        .input(output_shape)
        .input(fill_value)
        .attr("interpolation", interpolation)
        .attr("fill_mode", options.fill_mode)
        .output()
}

/// The attributes of [`non_max_suppression_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct NonMaxSuppressionOptions {
    /// `iou_threshold`: float, `0.5` by default.
    pub iou_threshold: f32,
}

impl Default for NonMaxSuppressionOptions {
    fn default() -> Self {
        NonMaxSuppressionOptions { iou_threshold: 0.5 }
    }
}

/// `NonMaxSuppression`: Indices of the boxes that are kept when of boxes that overlap too much only
/// the best is.
#[inline]
#[track_caller]
pub fn non_max_suppression(boxes: &Output, scores: &Output, max_output_size: &Output) -> Output {
    non_max_suppression_with(boxes, scores, max_output_size, NonMaxSuppressionOptions::default())
}

/// [`non_max_suppression()`] with other attributes.
#[inline]
#[track_caller]
pub fn non_max_suppression_with(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    options: NonMaxSuppressionOptions,
) -> Output {
    boxes
        .graph()
        .op("NonMaxSuppression")
        .input(boxes)
        .input(scores)
        .input(max_output_size)
        .attr("iou_threshold", options.iou_threshold)
        .output()
}

/// `NonMaxSuppressionV2`: Indices of the boxes that are kept when of boxes that overlap too much
/// only the best is.
#[inline]
#[track_caller]
pub fn non_max_suppression_v2(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    iou_threshold: &Output,
) -> Output {
    boxes
        .graph()
        .op("NonMaxSuppressionV2")
        .input(boxes)
        .input(scores)
        .input(max_output_size)
        .input(iou_threshold)
        .output()
}

/// `NonMaxSuppressionV3`: Indices of the boxes that are kept when of boxes that overlap too much
/// only the best is.
#[inline]
#[track_caller]
pub fn non_max_suppression_v3(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
) -> Output {
    boxes
        .graph()
        .op("NonMaxSuppressionV3")
        .input(boxes)
        .input(scores)
        .input(max_output_size)
        .input(iou_threshold)
        .input(score_threshold)
        .output()
}

/// The attributes of [`non_max_suppression_v4_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct NonMaxSuppressionV4Options {
    /// `pad_to_max_output_size`: bool, `false` by default.
    pub pad_to_max_output_size: bool,
}

impl Default for NonMaxSuppressionV4Options {
    fn default() -> Self {
        NonMaxSuppressionV4Options { pad_to_max_output_size: false }
    }
}

/// `NonMaxSuppressionV4`: Indices of the boxes that are kept when of boxes that overlap too much
/// only the best is.
///
/// Returns (`selected_indices`, `valid_outputs`).
#[inline]
#[track_caller]
pub fn non_max_suppression_v4(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
) -> (Output, Output) {
    non_max_suppression_v4_with(
        boxes,
        scores,
        max_output_size,
        iou_threshold,
        score_threshold,
        NonMaxSuppressionV4Options::default(),
    )
}

/// [`non_max_suppression_v4()`] with other attributes.
#[inline]
#[track_caller]
pub fn non_max_suppression_v4_with(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
    options: NonMaxSuppressionV4Options,
) -> (Output, Output) {
    let [selected_indices, valid_outputs] = boxes
        .graph()
        .op("NonMaxSuppressionV4")
        .input(boxes)
        .input(scores)
        .input(max_output_size)
        .input(iou_threshold)
        .input(score_threshold)
        .attr("pad_to_max_output_size", options.pad_to_max_output_size)
        .split();
    (selected_indices, valid_outputs)
}

/// The attributes of [`non_max_suppression_v5_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct NonMaxSuppressionV5Options {
    /// `pad_to_max_output_size`: bool, `false` by default.
    pub pad_to_max_output_size: bool,
}

impl Default for NonMaxSuppressionV5Options {
    fn default() -> Self {
        NonMaxSuppressionV5Options { pad_to_max_output_size: false }
    }
}

/// `NonMaxSuppressionV5`: Like NonMaxSuppressionV4, but overlap may lower scores instead.
///
/// Returns (`selected_indices`, `selected_scores`, `valid_outputs`).
#[inline]
#[track_caller]
pub fn non_max_suppression_v5(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
    soft_nms_sigma: &Output,
) -> (Output, Output, Output) {
    non_max_suppression_v5_with(
        boxes,
        scores,
        max_output_size,
        iou_threshold,
        score_threshold,
        soft_nms_sigma,
        NonMaxSuppressionV5Options::default(),
    )
}

/// [`non_max_suppression_v5()`] with other attributes.
#[inline]
#[track_caller]
pub fn non_max_suppression_v5_with(
    boxes: &Output,
    scores: &Output,
    max_output_size: &Output,
    iou_threshold: &Output,
    score_threshold: &Output,
    soft_nms_sigma: &Output,
    options: NonMaxSuppressionV5Options,
) -> (Output, Output, Output) {
    let [selected_indices, selected_scores, valid_outputs] = boxes
        .graph()
        .op("NonMaxSuppressionV5")
        .input(boxes)
        .input(scores)
        .input(max_output_size)
        .input(iou_threshold)
        .input(score_threshold)
        .input(soft_nms_sigma)
        .attr("pad_to_max_output_size", options.pad_to_max_output_size)
        .split();
    (selected_indices, selected_scores, valid_outputs)
}

/// `NonMaxSuppressionWithOverlaps`: Like NonMaxSuppressionV3, for overlaps that are given.
#[inline]
#[track_caller]
pub fn non_max_suppression_with_overlaps(
    overlaps: &Output,
    scores: &Output,
    max_output_size: &Output,
    overlap_threshold: &Output,
    score_threshold: &Output,
) -> Output {
    overlaps
        .graph()
        .op("NonMaxSuppressionWithOverlaps")
        .input(overlaps)
        .input(scores)
        .input(max_output_size)
        .input(overlap_threshold)
        .input(score_threshold)
        .output()
}

/// The attributes of [`quantized_resize_bilinear_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QuantizedResizeBilinearOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for QuantizedResizeBilinearOptions {
    fn default() -> Self {
        QuantizedResizeBilinearOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `QuantizedResizeBilinear`: Quantised images resized by bilinear interpolation.
///
/// Returns (`resized_images`, `out_min`, `out_max`).
#[inline]
#[track_caller]
pub fn quantized_resize_bilinear(
    images: &Output,
    size: &Output,
    min: &Output,
    max: &Output,
) -> (Output, Output, Output) {
    quantized_resize_bilinear_with(
        images,
        size,
        min,
        max,
        QuantizedResizeBilinearOptions::default(),
    )
}

/// [`quantized_resize_bilinear()`] with other attributes.
#[inline]
#[track_caller]
pub fn quantized_resize_bilinear_with(
    images: &Output,
    size: &Output,
    min: &Output,
    max: &Output,
    options: QuantizedResizeBilinearOptions,
) -> (Output, Output, Output) {
    let [resized_images, out_min, out_max] = images
        .graph()
        .op("QuantizedResizeBilinear")
        .input(images)
        .input(size)
        .input(min)
        .input(max)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .split();
    (resized_images, out_min, out_max)
}

/// `RGBToHSV`: Colours as hue, saturation and value.
#[inline]
#[track_caller]
pub fn rgb_to_hsv(images: &Output) -> Output {
    images.graph().op("RGBToHSV").input(images).output()
}

/// The attributes of [`resize_area_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeAreaOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
}

impl Default for ResizeAreaOptions {
    fn default() -> Self {
        ResizeAreaOptions { align_corners: false }
    }
}

/// `ResizeArea`: Images resized by taking the mean of the area under each pixel.
#[inline]
#[track_caller]
pub fn resize_area(images: &Output, size: &Output) -> Output {
    resize_area_with(images, size, ResizeAreaOptions::default())
}

/// [`resize_area()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_area_with(images: &Output, size: &Output, options: ResizeAreaOptions) -> Output {
    images
        .graph()
        .op("ResizeArea")
        .input(images)
        .input(size)
        .attr("align_corners", options.align_corners)
        .output()
}

/// The attributes of [`resize_bicubic_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeBicubicOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for ResizeBicubicOptions {
    fn default() -> Self {
        ResizeBicubicOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `ResizeBicubic`: Images resized by bicubic interpolation.
#[inline]
#[track_caller]
pub fn resize_bicubic(images: &Output, size: &Output) -> Output {
    resize_bicubic_with(images, size, ResizeBicubicOptions::default())
}

/// [`resize_bicubic()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_bicubic_with(
    images: &Output,
    size: &Output,
    options: ResizeBicubicOptions,
) -> Output {
    images
        .graph()
        .op("ResizeBicubic")
        .input(images)
        .input(size)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .output()
}

/// The attributes of [`resize_bicubic_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeBicubicGradOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for ResizeBicubicGradOptions {
    fn default() -> Self {
        ResizeBicubicGradOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `ResizeBicubicGrad`: Gradient of ResizeBicubic.
#[inline]
#[track_caller]
pub fn resize_bicubic_grad(grads: &Output, original_image: &Output) -> Output {
    resize_bicubic_grad_with(grads, original_image, ResizeBicubicGradOptions::default())
}

/// [`resize_bicubic_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_bicubic_grad_with(
    grads: &Output,
    original_image: &Output,
    options: ResizeBicubicGradOptions,
) -> Output {
    grads
        .graph()
        .op("ResizeBicubicGrad")
        .input(grads)
        .input(original_image)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .output()
}

/// The attributes of [`resize_bilinear_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeBilinearOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for ResizeBilinearOptions {
    fn default() -> Self {
        ResizeBilinearOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `ResizeBilinear`: Images resized by bilinear interpolation.
#[inline]
#[track_caller]
pub fn resize_bilinear(images: &Output, size: &Output) -> Output {
    resize_bilinear_with(images, size, ResizeBilinearOptions::default())
}

/// [`resize_bilinear()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_bilinear_with(
    images: &Output,
    size: &Output,
    options: ResizeBilinearOptions,
) -> Output {
    images
        .graph()
        .op("ResizeBilinear")
        .input(images)
        .input(size)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .output()
}

/// The attributes of [`resize_bilinear_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeBilinearGradOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for ResizeBilinearGradOptions {
    fn default() -> Self {
        ResizeBilinearGradOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `ResizeBilinearGrad`: Gradient of ResizeBilinear.
#[inline]
#[track_caller]
pub fn resize_bilinear_grad(grads: &Output, original_image: &Output) -> Output {
    resize_bilinear_grad_with(grads, original_image, ResizeBilinearGradOptions::default())
}

/// [`resize_bilinear_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_bilinear_grad_with(
    grads: &Output,
    original_image: &Output,
    options: ResizeBilinearGradOptions,
) -> Output {
    grads
        .graph()
        .op("ResizeBilinearGrad")
        .input(grads)
        .input(original_image)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .output()
}

/// The attributes of [`resize_nearest_neighbor_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeNearestNeighborOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for ResizeNearestNeighborOptions {
    fn default() -> Self {
        ResizeNearestNeighborOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `ResizeNearestNeighbor`: Images resized by taking the nearest pixels.
#[inline]
#[track_caller]
pub fn resize_nearest_neighbor(images: &Output, size: &Output) -> Output {
    resize_nearest_neighbor_with(images, size, ResizeNearestNeighborOptions::default())
}

/// [`resize_nearest_neighbor()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_nearest_neighbor_with(
    images: &Output,
    size: &Output,
    options: ResizeNearestNeighborOptions,
) -> Output {
    images
        .graph()
        .op("ResizeNearestNeighbor")
        .input(images)
        .input(size)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .output()
}

/// The attributes of [`resize_nearest_neighbor_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResizeNearestNeighborGradOptions {
    /// `align_corners`: bool, `false` by default.
    pub align_corners: bool,
    /// `half_pixel_centers`: bool, `false` by default.
    pub half_pixel_centers: bool,
}

impl Default for ResizeNearestNeighborGradOptions {
    fn default() -> Self {
        ResizeNearestNeighborGradOptions { align_corners: false, half_pixel_centers: false }
    }
}

/// `ResizeNearestNeighborGrad`: Gradient of ResizeNearestNeighbor.
#[inline]
#[track_caller]
pub fn resize_nearest_neighbor_grad(grads: &Output, size: &Output) -> Output {
    resize_nearest_neighbor_grad_with(grads, size, ResizeNearestNeighborGradOptions::default())
}

/// [`resize_nearest_neighbor_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resize_nearest_neighbor_grad_with(
    grads: &Output,
    size: &Output,
    options: ResizeNearestNeighborGradOptions,
) -> Output {
    grads
        .graph()
        .op("ResizeNearestNeighborGrad")
        .input(grads)
        .input(size)
        .attr("align_corners", options.align_corners)
        .attr("half_pixel_centers", options.half_pixel_centers)
        .output()
}

/// The attributes of [`sample_distorted_bounding_box_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SampleDistortedBoundingBoxOptions<'a> {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `min_object_covered`: float, `0.1` by default.
    pub min_object_covered: f32,
    /// `aspect_ratio_range`: list of floats, `[0.75, 1.33]` by default.
    pub aspect_ratio_range: &'a [f32],
    /// `area_range`: list of floats, `[0.05, 1.0]` by default.
    pub area_range: &'a [f32],
    /// `max_attempts`: int, `100` by default.
    pub max_attempts: i64,
    /// `use_image_if_no_bounding_boxes`: bool, `false` by default.
    pub use_image_if_no_bounding_boxes: bool,
}

impl Default for SampleDistortedBoundingBoxOptions<'_> {
    fn default() -> Self {
        SampleDistortedBoundingBoxOptions {
            seed: 0,
            seed2: 0,
            min_object_covered: 0.1,
            aspect_ratio_range: &[0.75, 1.33],
            area_range: &[0.05, 1.0],
            max_attempts: 100,
            use_image_if_no_bounding_boxes: false,
        }
    }
}

/// `SampleDistortedBoundingBox`: A random part of an image that shows enough of an object in it.
///
/// Returns (`begin`, `size`, `bboxes`).
#[inline]
#[track_caller]
pub fn sample_distorted_bounding_box(
    image_size: &Output,
    bounding_boxes: &Output,
) -> (Output, Output, Output) {
    sample_distorted_bounding_box_with(
        image_size,
        bounding_boxes,
        SampleDistortedBoundingBoxOptions::default(),
    )
}

/// [`sample_distorted_bounding_box()`] with other attributes.
#[inline]
#[track_caller]
pub fn sample_distorted_bounding_box_with(
    image_size: &Output,
    bounding_boxes: &Output,
    options: SampleDistortedBoundingBoxOptions<'_>,
) -> (Output, Output, Output) {
    let [begin, size, bboxes] = image_size
        .graph()
        .op("SampleDistortedBoundingBox")
        .input(image_size)
        .input(bounding_boxes)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("min_object_covered", options.min_object_covered)
        .attr("aspect_ratio_range", list(options.aspect_ratio_range))
        .attr("area_range", list(options.area_range))
        .attr("max_attempts", options.max_attempts)
        .attr("use_image_if_no_bounding_boxes", options.use_image_if_no_bounding_boxes)
        .split();
    (begin, size, bboxes)
}

/// The attributes of [`sample_distorted_bounding_box_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SampleDistortedBoundingBoxV2Options<'a> {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `aspect_ratio_range`: list of floats, `[0.75, 1.33]` by default.
    pub aspect_ratio_range: &'a [f32],
    /// `area_range`: list of floats, `[0.05, 1.0]` by default.
    pub area_range: &'a [f32],
    /// `max_attempts`: int, `100` by default.
    pub max_attempts: i64,
    /// `use_image_if_no_bounding_boxes`: bool, `false` by default.
    pub use_image_if_no_bounding_boxes: bool,
}

impl Default for SampleDistortedBoundingBoxV2Options<'_> {
    fn default() -> Self {
        SampleDistortedBoundingBoxV2Options {
            seed: 0,
            seed2: 0,
            aspect_ratio_range: &[0.75, 1.33],
            area_range: &[0.05, 1.0],
            max_attempts: 100,
            use_image_if_no_bounding_boxes: false,
        }
    }
}

/// `SampleDistortedBoundingBoxV2`: A random part of an image that shows enough of an object in it.
///
/// Returns (`begin`, `size`, `bboxes`).
#[inline]
#[track_caller]
pub fn sample_distorted_bounding_box_v2(
    image_size: &Output,
    bounding_boxes: &Output,
    min_object_covered: &Output,
) -> (Output, Output, Output) {
    sample_distorted_bounding_box_v2_with(
        image_size,
        bounding_boxes,
        min_object_covered,
        SampleDistortedBoundingBoxV2Options::default(),
    )
}

/// [`sample_distorted_bounding_box_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn sample_distorted_bounding_box_v2_with(
    image_size: &Output,
    bounding_boxes: &Output,
    min_object_covered: &Output,
    options: SampleDistortedBoundingBoxV2Options<'_>,
) -> (Output, Output, Output) {
    let [begin, size, bboxes] = image_size
        .graph()
        .op("SampleDistortedBoundingBoxV2")
        .input(image_size)
        .input(bounding_boxes)
        .input(min_object_covered)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("aspect_ratio_range", list(options.aspect_ratio_range))
        .attr("area_range", list(options.area_range))
        .attr("max_attempts", options.max_attempts)
        .attr("use_image_if_no_bounding_boxes", options.use_image_if_no_bounding_boxes)
        .split();
    (begin, size, bboxes)
}

/// The attributes of [`scale_and_translate_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScaleAndTranslateOptions<'a> {
    /// `kernel_type`: string, `"lanczos3"` by default.
    pub kernel_type: &'a str,
    /// `antialias`: bool, `true` by default.
    pub antialias: bool,
}

impl Default for ScaleAndTranslateOptions<'_> {
    fn default() -> Self {
        ScaleAndTranslateOptions { kernel_type: "lanczos3", antialias: true }
    }
}

/// `ScaleAndTranslate`: Images scaled and moved, resampled with one of several filters.
#[inline]
#[track_caller]
pub fn scale_and_translate(
    images: &Output,
    size: &Output,
    scale: &Output,
    translation: &Output,
) -> Output {
    scale_and_translate_with(images, size, scale, translation, ScaleAndTranslateOptions::default())
}

/// [`scale_and_translate()`] with other attributes.
#[inline]
#[track_caller]
pub fn scale_and_translate_with(
    images: &Output,
    size: &Output,
    scale: &Output,
    translation: &Output,
    options: ScaleAndTranslateOptions<'_>,
) -> Output {
    images
        .graph()
        .op("ScaleAndTranslate")
        .input(images)
        .input(size)
        .input(scale)
        .input(translation)
        .attr("kernel_type", options.kernel_type)
        .attr("antialias", options.antialias)
        .output()
}

/// The attributes of [`scale_and_translate_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScaleAndTranslateGradOptions<'a> {
    /// `kernel_type`: string, `"lanczos3"` by default.
    pub kernel_type: &'a str,
    /// `antialias`: bool, `true` by default.
    pub antialias: bool,
}

impl Default for ScaleAndTranslateGradOptions<'_> {
    fn default() -> Self {
        ScaleAndTranslateGradOptions { kernel_type: "lanczos3", antialias: true }
    }
}

/// `ScaleAndTranslateGrad`: Gradient of ScaleAndTranslate.
#[inline]
#[track_caller]
pub fn scale_and_translate_grad(
    grads: &Output,
    original_image: &Output,
    scale: &Output,
    translation: &Output,
) -> Output {
    scale_and_translate_grad_with(
        grads,
        original_image,
        scale,
        translation,
        ScaleAndTranslateGradOptions::default(),
    )
}

/// [`scale_and_translate_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn scale_and_translate_grad_with(
    grads: &Output,
    original_image: &Output,
    scale: &Output,
    translation: &Output,
    options: ScaleAndTranslateGradOptions<'_>,
) -> Output {
    grads
        .graph()
        .op("ScaleAndTranslateGrad")
        .input(grads)
        .input(original_image)
        .input(scale)
        .input(translation)
        .attr("kernel_type", options.kernel_type)
        .attr("antialias", options.antialias)
        .output()
}

/// The attributes of [`stateless_sample_distorted_bounding_box_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessSampleDistortedBoundingBoxOptions<'a> {
    /// `aspect_ratio_range`: list of floats, `[0.75, 1.33]` by default.
    pub aspect_ratio_range: &'a [f32],
    /// `area_range`: list of floats, `[0.05, 1.0]` by default.
    pub area_range: &'a [f32],
    /// `max_attempts`: int, `100` by default.
    pub max_attempts: i64,
    /// `use_image_if_no_bounding_boxes`: bool, `false` by default.
    pub use_image_if_no_bounding_boxes: bool,
}

impl Default for StatelessSampleDistortedBoundingBoxOptions<'_> {
    fn default() -> Self {
        StatelessSampleDistortedBoundingBoxOptions {
            aspect_ratio_range: &[0.75, 1.33],
            area_range: &[0.05, 1.0],
            max_attempts: 100,
            use_image_if_no_bounding_boxes: false,
        }
    }
}

/// `StatelessSampleDistortedBoundingBox`: A random part of an image that shows enough of an object
/// in it.
///
/// Returns (`begin`, `size`, `bboxes`).
#[inline]
#[track_caller]
pub fn stateless_sample_distorted_bounding_box(
    image_size: &Output,
    bounding_boxes: &Output,
    min_object_covered: &Output,
    seed: &Output,
) -> (Output, Output, Output) {
    stateless_sample_distorted_bounding_box_with(
        image_size,
        bounding_boxes,
        min_object_covered,
        seed,
        StatelessSampleDistortedBoundingBoxOptions::default(),
    )
}

/// [`stateless_sample_distorted_bounding_box()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_sample_distorted_bounding_box_with(
    image_size: &Output,
    bounding_boxes: &Output,
    min_object_covered: &Output,
    seed: &Output,
    options: StatelessSampleDistortedBoundingBoxOptions<'_>,
) -> (Output, Output, Output) {
    let [begin, size, bboxes] = image_size
        .graph()
        .op("StatelessSampleDistortedBoundingBox")
        .input(image_size)
        .input(bounding_boxes)
        .input(min_object_covered)
        .input(seed)
        .attr("aspect_ratio_range", list(options.aspect_ratio_range))
        .attr("area_range", list(options.area_range))
        .attr("max_attempts", options.max_attempts)
        .attr("use_image_if_no_bounding_boxes", options.use_image_if_no_bounding_boxes)
        .split();
    (begin, size, bboxes)
}
