"""Images: files, colours, sizes, crops, boxes."""

import struct
import zlib

import numpy as np

from case import STRING, NotApplicable, array

from . import recipe


def images(c, channels=None, low=1, high=6):
    """The shape of a batch."""
    return [c.int(1, 2), c.int(low, high), c.int(low, high), channels or c.int(1, 3)]


def near(c, times=4.0, singles=False):
    """`singles` are ops that TensorFlow computes in single precision even for float64."""
    if singles and c.types.get("T") == "float64":
        times *= 1e6
    c.mode, c.tolerance, c.style = "norm", times, c.pick(["small", "whole", "unit"])


# Files.

def picture(c, channels, dtype="uint8", least=1, most=20):
    """A smooth image with some noise, like a photograph."""
    h, w = c.int(least, most), c.int(least, most)
    y, x = np.mgrid[:h, :w]
    top = np.iinfo(dtype).max
    base = (np.sin(y[..., None] * c.rng.rand(channels) + x[..., None] * c.rng.rand(channels)) + 1) * top / 2
    return np.clip(base + c.rng.randn(h, w, channels) * top / 40, 0, top).astype(dtype)


def written(op, image, **attrs):
    """A file as TensorFlow writes it."""
    import tensorflow as tf
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(getattr(tf.raw_ops, op)(image=tf.constant(image), **attrs))


def jpeg(c):
    channels = c.pick([1, 3, 3])
    return written("EncodeJpeg", picture(c, channels, most=40), quality=c.pick([10, 50, 75, 95, 100]), progressive=c.chance(0.3),
                   chroma_downsampling=c.chance(0.6), optimize_size=c.chance(0.3))


def png(c):
    """All kinds of pixels, including those that TensorFlow does not write: few bits, palettes, transparent colours, interlacing."""
    kind, depth = c.pick([(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16)])
    h, w = c.int(1, 9), c.int(1, 9)
    per = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    bits = c.rng.randint(0, 1 << min(depth, 8), size=[h, w * per * max(depth // 8, 1)])
    interlaced = c.chance(0.25)

    def packed(rows):
        out = b""
        for row in rows:
            if depth < 8:
                text = "".join(f"{v:0{depth}b}" for v in row)
                row = [int(text[i:i + 8].ljust(8, "0"), 2) for i in range(0, len(text), 8)]
            out += b"\0" + bytes(int(v) for v in row)
        return out
    if interlaced:
        unit = per * max(depth // 8, 1)
        pixels = bits.reshape(h, w, unit)
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        parts = [pixels[y::dy, x::dx] for y, x, dy, dx in passes]
        data = b"".join(packed(p.reshape(p.shape[0], -1)) for p in parts if p.size)
    else:
        data = packed(bits)

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, kind, 0, 0, interlaced))
    if kind == 3:
        out += chunk(b"PLTE", bytes(c.ints(0, 255, 3 << depth)))
        if c.chance(0.4):
            out += chunk(b"tRNS", bytes(c.ints(0, 255, c.int(1, 1 << depth))))
    elif kind in (0, 2) and c.chance(0.2):
        out += chunk(b"tRNS", b"".join(struct.pack(">H", c.int(0, (1 << depth) - 1)) for _ in range(per)))
    return out + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def bmp(c):
    channels = c.pick([1, 3, 4])
    h, w = c.int(1, 7), c.int(1, 7)
    row = w * channels + -(w * channels) % 4
    body = bytes(c.ints(0, 255, row * h))
    head = struct.pack("<IiiHHIIiiII", 40, w, h if c.chance(0.7) else -h, 1, 8 * channels, 0, len(body), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(body), 0, 0, 14 + len(head)) + head + body


def gif(c):
    w, h, bits = c.int(1, 6), c.int(1, 6), c.int(1, 4)
    out = b"GIF89a" + struct.pack("<HHBBB", w, h, 0x80 | (bits - 1), 0, 0) + bytes(c.ints(0, 255, 3 << bits))
    for k in range(c.int(1, 3)):
        if c.chance(0.3):
            out += b"\x21\xf9\x04" + struct.pack("<BHB", c.pick([0, 1, 4]), 0, 0) + b"\0"
        x, y = (c.int(0, w - 1), c.int(0, h - 1)) if k and c.chance(0.5) else (0, 0)
        iw, ih = (c.int(1, w - x), c.int(1, h - y)) if k else (w, h)
        out += b"\x2c" + struct.pack("<HHHHB", x, y, iw, ih, 0x40 if c.chance(0.2) else 0)
        out += lzw(max(bits, 2), c.ints(0, (1 << bits) - 1, iw * ih))
    return out + b"\x3b"


def lzw(size, pixels):
    """LZW codes with one pixel each, and a clear code before the code width would grow."""
    clear, width = 1 << size, size + 1
    codes, since = [clear], 0
    for p in pixels:
        if since == (1 << size) - 2:
            codes.append(clear)
            since = 0
        codes.append(p)
        since += 1
    codes.append(clear + 1)
    total = 0
    for i, code in enumerate(codes):
        total |= code << (i * width)
    data = total.to_bytes(-(-len(codes) * width // 8), "little")
    out = bytes([size])
    for i in range(0, len(data), 255):
        part = data[i:i + 255]
        out += bytes([len(part)]) + part
    return out + b"\0"


def damaged(c, contents):
    if c.chance(0.9):
        return contents
    return c.pick([contents[:len(contents) // 2], contents[:-3], b"", b"nothing", contents[:4]])


@recipe("DecodeJpeg")
def decode_jpeg(c):
    c.call(contents=array(damaged(c, jpeg(c)), STRING), channels=c.pick([0, 1, 3]), ratio=c.pick([1, 1, 2, 4, 8]), dct_method=c.pick(["", "INTEGER_FAST", "INTEGER_ACCURATE"]),
           try_recover_truncated=False, fancy_upscaling=c.chance(0.7))


@recipe("DecodeAndCropJpeg")
def crop_jpeg(c):
    window = [c.int(0, 6), c.int(0, 6), c.int(1, 10), c.int(1, 10)]
    c.call(contents=array(jpeg(c), STRING), crop_window=window, channels=c.pick([0, 1, 3]), try_recover_truncated=False, fancy_upscaling=c.chance(0.7))


@recipe("ExtractJpegShape")
def jpeg_shape(c):
    c.call(contents=array(damaged(c, jpeg(c)), STRING))


@recipe("DecodePng")
def decode_png(c):
    c.call(contents=array(damaged(c, png(c)), STRING), channels=c.int(0, 4))


@recipe("DecodeBmp")
def decode_bmp(c):
    c.call(contents=array(damaged(c, bmp(c)), STRING), channels=c.pick([0, 0, 1, 3, 4]))


@recipe("DecodeGif")
def decode_gif(c):
    c.call(contents=array(damaged(c, gif(c)), STRING))


@recipe("DecodeImage")
def decode_image(c):
    make = c.pick([jpeg, png, bmp, gif])
    c.call(contents=array(damaged(c, make(c)), STRING), channels=c.pick([0, 0, 1, 3, 4]), expand_animations=c.chance(0.7))


@recipe("EncodeJpeg")
def encode_jpeg(c):
    channels = c.pick([1, 3])
    c.call(image=picture(c, channels), format=c.pick(["", {1: "grayscale", 3: "rgb"}[channels]]), quality=c.pick([5, 50, 95, 100]), density_unit=c.pick(["in", "cm"]),
           x_density=c.int(1, 300), y_density=c.int(1, 300), xmp_metadata=c.pick(["", "<x/>"]))


@recipe("EncodeJpegVariableQuality")
def encode_jpeg_quality(c):
    c.call(images=picture(c, c.pick([1, 3])), quality=c.int(0, 100))


@recipe("EncodePng")
def encode_png(c):
    # Two encoders may write different bytes, so compare the decoded images.
    t = c.types["T"]
    image = picture(c, c.int(1, 4), t)
    if c.chance(0.3):
        image = np.stack([image, image[::-1]])
    out = c.node(c.op, image=c.feed(image, t), compression=c.int(-1, 9))[0]
    if image.ndim == 3:
        c.fetch(*c.node("DecodePng", contents=out, dtype=t))
    else:
        first = c.node("StridedSlice", input=out, begin=c.const([1], "int32"), end=c.const([2], "int32"), strides=c.const([1], "int32"), shrink_axis_mask=1)[0]
        c.fetch(*c.node("DecodePng", contents=first, dtype=t), *c.node("Shape", input=out))


# Colours.

@recipe("AdjustContrast")
def contrast_v1(c):
    near(c)
    c.call(images=c.of("T", images(c)), contrast_factor=float(c.rng.uniform(0, 2)), min_value=-2.0, max_value=c.pick([2.0, 9.0]))


@recipe("AdjustContrastv2")
def contrast(c):
    near(c)
    c.call(images=c.of("T", c.shape(0, 1) + images(c)[1:]), contrast_factor=float(c.rng.uniform(0, 2)))


@recipe("AdjustHue", "AdjustSaturation")
def adjust(c):
    near(c, 20)
    c.style = "unit"
    change = {"delta": float(c.rng.uniform(-1, 1))} if c.op == "AdjustHue" else {"scale": float(c.rng.uniform(0, 3))}
    c.call(images=c.of("T", c.shape(0, 2) + [c.int(1, 3), 3]), **change)


@recipe("RGBToHSV", "HSVToRGB")
def colours(c):
    near(c, 20)
    c.style = c.pick(["unit", "unit", "nonnegative"] if c.op == "RGBToHSV" else ["unit"])
    c.call(images=c.of("T", c.shape(0, 2) + [c.int(1, 3), 3]))


# Sizes.

def resize_attrs(c):
    align = c.chance(0.3)
    return {"align_corners": align, "half_pixel_centers": not align and c.chance(0.5)}


@recipe("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor")
def resize(c):
    near(c, 8)
    c.call(images=c.of("T", images(c)), size=c.ints(1, 9, 2), **resize_attrs(c))


@recipe("ResizeArea")
def resize_area(c):
    near(c, 8)
    c.call(images=c.of("T", images(c)), size=c.ints(1, 9, 2), align_corners=c.chance(0.3))


@recipe("ResizeBilinearGrad", "ResizeBicubicGrad")
def resize_grad(c):
    near(c, 20, singles=True)
    s = images(c)
    c.call(grads=c.values("float32", [s[0], c.int(1, 9), c.int(1, 9), s[3]], "small"), original_image=c.of("T", s), **resize_attrs(c))


@recipe("ResizeNearestNeighborGrad")
def resize_nearest_grad(c):
    near(c)
    c.call(grads=c.of("T", images(c)), size=c.ints(1, 9, 2), **resize_attrs(c))


KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]


def moved(c):
    per = lambda low, high: c.rng.uniform(low, high, size=2).astype(np.float32)
    return dict(scale=c.feed(per(0.3, 2.5), "float32"), translation=c.feed(per(-2, 2), "float32"), kernel_type=c.pick(KERNELS), antialias=c.chance(0.6))


@recipe("ScaleAndTranslate")
def scale_and_translate(c):
    near(c, 20)
    c.call(images=c.of("T", images(c)), size=c.ints(1, 9, 2), **moved(c))


@recipe("ScaleAndTranslateGrad")
def scale_and_translate_grad(c):
    near(c, 20)
    s = images(c)
    c.call(grads=c.of("T", [s[0], c.int(1, 8), c.int(1, 8), s[3]]), original_image=c.of("T", s), **moved(c))


@recipe("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective(c):
    near(c, 20)
    s = images(c)
    n = c.pick([1, s[0]])
    rows = np.array([[1, 0, 0, 0, 1, 0, 0, 0]] * n) + c.rng.uniform(-0.5, 0.5, size=[n, 8]) * [1, 1, 4, 1, 1, 4, 0.05, 0.05]
    given = {"fill_value": c.pick([0.0, 2.0])} if c.op.endswith("3") else {}
    c.call(images=c.of("dtype", s), transforms=rows.astype(np.float32), output_shape=c.ints(1, 7, 2), interpolation=c.pick(["NEAREST", "BILINEAR"]),
           fill_mode=c.pick(["CONSTANT", "REFLECT", "WRAP", "NEAREST"]), **given)


# Crops.

def boxes(c, n):
    a = c.rng.uniform(-0.2, 1.2, size=[n, 4])
    return np.sort(a.reshape(n, 2, 2), axis=1).reshape(n, 4).astype(np.float32) if c.chance(0.8) else a.astype(np.float32)


@recipe("CropAndResize")
def crop_and_resize(c):
    near(c, 20)
    s, n = images(c), c.int(0, 4)
    c.call(image=c.of("T", s), boxes=boxes(c, n), box_ind=c.rng.randint(0, s[0], size=n), crop_size=c.ints(1, 5, 2), method=c.pick(["bilinear", "nearest"]),
           extrapolation_value=c.pick([0.0, -1.0]))


@recipe("CropAndResizeGradBoxes")
def crop_grad_boxes(c):
    near(c, 100)
    s, n = images(c, low=2), c.int(1, 4)
    c.call(grads=c.values("float32", [n, c.int(1, 4), c.int(1, 4), s[3]], "small"), image=c.of("T", s), boxes=boxes(c, n), box_ind=c.rng.randint(0, s[0], size=n))


@recipe("CropAndResizeGradImage")
def crop_grad_image(c):
    near(c, 20, singles=True)
    s, n = images(c), c.int(1, 4)
    c.call(grads=c.values("float32", [n, c.int(1, 4), c.int(1, 4), s[3]], "small"), boxes=boxes(c, n), box_ind=c.rng.randint(0, s[0], size=n), image_size=s,
           method=c.pick(["bilinear", "nearest"]))


@recipe("ExtractGlimpse", "ExtractGlimpseV2")
def glimpse(c):
    near(c)
    s = images(c)
    noise = c.pick(["zero", "uniform", "gaussian"])
    if noise != "zero":
        c.mode = "shape"
    c.call(input=c.values("float32", s), size=c.ints(1, 6, 2), offsets=c.rng.uniform(-1.5, 1.5, size=[s[0], 2]).astype(np.float32), noise=noise,
           uniform_noise=noise == "uniform", centered=c.chance(0.6), normalized=c.chance(0.6))


# Boxes.

@recipe("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw(c):
    c.style = "unit"
    s = images(c, channels=c.pick([1, 3, 4]), low=3, high=9)
    given = {} if c.op.endswith("Boxes") else {"colors": c.values("float32", [c.int(1, 3), 4], "unit")}
    n = c.int(1, 3)
    c.call(images=c.of("T", s), boxes=boxes(c, s[0] * n).reshape(s[0], n, 4), **given)


def crowd(c, n):
    """Boxes that overlap, and scores without ties."""
    corner = c.rng.uniform(0, 4, size=[n, 2])
    found = np.concatenate([corner, corner + c.rng.uniform(0.5, 3, size=[n, 2])], 1)
    return found, (c.rng.permutation(n) + 1.0) / (n + 1)


@recipe("NonMaxSuppression")
def suppression_v1(c):
    n = c.int(0, 8)
    b, s = crowd(c, n)
    c.call(boxes=b, scores=s, max_output_size=c.int(0, 6), iou_threshold=c.pick([0.1, 0.3, 0.5, 0.9]))


@recipe("NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def suppression(c):
    n = c.int(0, 8)
    b, s = crowd(c, n)
    given = {"iou_threshold": c.pick([0.1, 0.3, 0.5, 0.9])}
    if c.op[-1] > "2":
        given["score_threshold"] = c.pick([0.0, 0.25, 0.6])
    if c.op[-1] == "5":
        given["soft_nms_sigma"] = c.pick([0.0, 0.5])
        c.tolerance = 4
    c.call(boxes=b, scores=s, max_output_size=c.int(0, 6), **given)


@recipe("NonMaxSuppressionWithOverlaps")
def suppression_overlaps(c):
    n = c.int(0, 6)
    a = c.rng.rand(n, n)
    c.call(overlaps=(a + a.T) / 2, scores=(c.rng.permutation(n) + 1.0) / (n + 1), max_output_size=c.int(0, 6), overlap_threshold=c.pick([0.2, 0.5]), score_threshold=c.pick([0.0, 0.4]))


@recipe("CombinedNonMaxSuppression")
def combined(c):
    batch, n, classes = c.int(1, 2), c.int(1, 6), c.int(1, 3)
    found = [crowd(c, n)[0] / 7 for _ in range(batch)]
    b = np.stack(found)[:, :, None, :]
    if c.chance(0.4):
        b = np.repeat(b, classes, 2)
    scores = (c.rng.permutation(batch * n * classes) + 1.0).reshape(batch, n, classes) / (batch * n * classes + 1)
    c.call(boxes=b, scores=scores, max_output_size_per_class=c.int(1, 4), max_total_size=c.int(1, 8), iou_threshold=c.pick([0.3, 0.5]), score_threshold=c.pick([0.0, 0.4]))


@recipe("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox")
def sample_box(c):
    top = 60 if c.types["T"] in ("int8", "uint8") else 300
    n = c.int(0, 3)
    given = {"min_object_covered": c.pick([0.0, 0.3, 0.9])}
    if c.op.startswith("Stateless"):
        given["seed"] = c.ints(0, 1000, 2)
    else:
        given |= {"seed": c.int(1, 1000), "seed2": c.int(1, 1000)}
    b = np.clip(boxes(c, n), 0, 1).reshape(1, n, 4) if c.chance(0.7) else np.clip(boxes(c, 2 * n), 0, 1).reshape(2, n, 4)
    if not n and not c.chance(0.8):
        raise NotApplicable
    c.call(image_size=[c.int(10, top), c.int(10, top), 3], bounding_boxes=b, use_image_if_no_bounding_boxes=n == 0 or c.chance(0.5),
           aspect_ratio_range=c.pick([[0.75, 1.33], [0.5, 2.0]]), area_range=c.pick([[0.05, 1.0], [0.3, 0.9]]), max_attempts=c.pick([10, 100]), **given)
