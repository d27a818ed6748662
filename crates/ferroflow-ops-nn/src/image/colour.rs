//! RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation.

use crate::prelude::*;
use ferroflow_op_kit::gpu::{GpuKernel, GpuTypes, address, c_type, length};
use ferroflow_op_kit::parallel::for_rows;

/// Hue, saturation and value of a colour, each between 0 and 1 if the colour is.
fn hsv<T: Float>([r, g, b]: [T; 3]) -> [T; 3] {
    let number = |x: f64| T::from_f64(x);
    let largest = |x: T, y: T| if y > x { y } else { x };
    let smallest = |x: T, y: T| if y < x { y } else { x };
    let value = largest(largest(r, g), b);
    let range = value.sub(smallest(smallest(r, g), b));
    let saturation = if value > T::ZERO { range.div(value) } else { T::ZERO };
    let norm = T::ONE.div(number(6.0).mul(range));
    let mut hue = if r == value {
        norm.mul(g.sub(b))
    } else if g == value {
        norm.mul(b.sub(r)).add(number(2.0 / 6.0))
    } else {
        norm.mul(r.sub(g)).add(number(4.0 / 6.0))
    };
    if range.is_nan() || range <= T::ZERO {
        hue = T::ZERO;
    }
    if hue < T::ZERO {
        hue = hue.add(T::ONE);
    }
    [hue, saturation, value]
}

/// The colour with a hue, saturation and value.
fn rgb<T: Float>([hue, saturation, value]: [T; 3]) -> [T; 3] {
    let number = |x: f64| T::from_f64(x);
    let clamp = |x: T| {
        if x < T::ZERO {
            T::ZERO
        } else if x > T::ONE {
            T::ONE
        } else {
            x
        }
    };
    let six = hue.mul(number(6.0));
    let shares = [
        clamp(six.sub(number(3.0)).abs().sub(T::ONE)),
        clamp(number(2.0).sub(six.sub(number(2.0)).abs())),
        clamp(number(2.0).sub(six.sub(number(4.0)).abs())),
    ];
    shares.map(|share| T::ONE.sub(saturation).add(saturation.mul(share)).mul(value))
}

/// The hue, between 0 and 6, and the smallest and largest component of a colour.
fn hue_and_range([r, g, b]: [f32; 3]) -> (f32, f32, f32) {
    // The indices of the largest, middle and smallest component, for each of the six sectors.
    let (sector, large, middle, small) = if r < g {
        if b < r {
            (1, g, r, b)
        } else if b > g {
            (3, b, g, r)
        } else {
            (2, g, b, r)
        }
    } else if b < g {
        (0, r, g, b)
    } else if b > r {
        (4, b, r, g)
    } else {
        (5, r, b, g)
    };
    if large == small {
        return (0.0, small, large);
    }
    let ratio = (middle - small) / (large - small);
    let along = if sector % 2 == 0 { ratio } else { 1.0 - ratio };
    (sector as f32 + along, small, large)
}

fn with_hue_and_range(hue: f32, small: f32, large: f32) -> [f32; 3] {
    let sector = hue as i32;
    let ratio = hue - sector as f32;
    let ratio = if sector % 2 == 0 { ratio } else { 1.0 - ratio };
    let middle = small + ratio * (large - small);
    match sector {
        0 => [large, middle, small],
        1 => [middle, large, small],
        2 => [small, large, middle],
        3 => [small, middle, large],
        4 => [middle, small, large],
        _ => [large, small, middle],
    }
}

fn turned(colour: [f32; 3], delta: f32) -> [f32; 3] {
    let (hue, small, large) = hue_and_range(colour);
    let mut hue = hue + delta * 6.0;
    if !(0.0..6.0).contains(&hue) {
        hue = hue.rem_euclid(6.0);
    }
    with_hue_and_range(hue, small, large)
}

fn saturated(colour: [f32; 3], scale: f32) -> [f32; 3] {
    let [hue, saturation, value] = hsv(colour);
    // NaN counts as zero.
    let scaled = saturation * scale;
    let saturation = if scaled > 0.0 { scaled.min(1.0) } else { 0.0 };
    let chroma = saturation * value;
    let rest = value - chroma;
    let six = hue * 6.0;
    let wave = chroma * (1.0 - (six.rem_euclid(2.0) - 1.0).abs());
    let parts = match six as i32 {
        0 => [chroma, wave, 0.0],
        1 => [wave, chroma, 0.0],
        2 => [0.0, chroma, wave],
        3 => [0.0, wave, chroma],
        4 => [wave, 0.0, chroma],
        5 => [chroma, 0.0, wave],
        _ => [0.0; 3],
    };
    parts.map(|part| part + rest)
}

/// Converts every colour in place.
fn map_colours<T: Float>(pixels: &mut [T], cost: usize, convert: impl Fn([T; 3]) -> [T; 3] + Sync) {
    for_rows(pixels, 3, cost, |_, pixels| {
        for p in pixels.chunks_exact_mut(3) {
            p.copy_from_slice(&convert([p[0], p[1], p[2]]));
        }
    });
}

/// Checks that the last dimension has the three parts of colours.
fn ensure_colours(shape: &Shape) -> Result<()> {
    let Some(&channels) = shape.last() else {
        bail!(InvalidArgument, "input must be at least 1D{shape}");
    };
    ensure!(
        channels == 3,
        FailedPrecondition,
        "input must have 3 channels but input only has {channels} channels."
    );
    Ok(())
}

fn convert<T: Float>(to_hsv: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        ensure_colours(ctx.input(0)?.shape())?;
        let mut out = ctx.take_or_copy(0)?;
        let convert = if to_hsv { hsv::<T> } else { rgb::<T> };
        map_colours(out.as_mut_slice::<T>()?, 8, convert);
        ctx.set(0, out)
    }
}

const ON_GPU: GpuTypes = &[("T", &[DType::Float, DType::Double])];

const TEXT: &str = r#"
extern "C" __global__ void to_hsv(i64 n, const T *in, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        T r = in[3 * i], g = in[3 * i + 1], b = in[3 * i + 2];
        T most = g > r ? g : r, least = g < r ? g : r;
        most = b > most ? b : most, least = b < least ? b : least;
        T range = most - least, norm = 1 / (6 * range);
        T hue = r == most ? norm * (g - b) : g == most ? norm * (b - r) + (T)(2.0 / 6) : norm * (r - g) + (T)(4.0 / 6);
        if (!(range > 0)) hue = 0;
        out[3 * i] = hue < 0 ? hue + 1 : hue;
        out[3 * i + 1] = most > 0 ? range / most : 0;
        out[3 * i + 2] = most;
    }
}
__device__ inline T unit(T x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
extern "C" __global__ void to_rgb(i64 n, const T *in, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        T six = in[3 * i] * 6, saturation = in[3 * i + 1], value = in[3 * i + 2];
        T red = unit(magnitude(six - 3) - 1), green = unit(2 - magnitude(six - 2)), blue = unit(2 - magnitude(six - 4));
        out[3 * i] = (1 - saturation + saturation * red) * value;
        out[3 * i + 1] = (1 - saturation + saturation * green) * value;
        out[3 * i + 2] = (1 - saturation + saturation * blue) * value;
    }
}
"#;

fn convert_on_device(init: &KernelInit<'_>, to_hsv: bool) -> Result<KernelBox> {
    let text = format!("typedef {} T;\n{TEXT}", c_type(init.dtype("T")?)?);
    let name = if to_hsv { "to_hsv" } else { "to_rgb" };
    let kernel = GpuKernel::new(text, name).prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        ensure_colours(x.shape())?;
        let gpu = ctx.gpu()?.clone();
        let out = Tensor::on_device(&gpu, x.dtype(), x.shape().clone())?;
        let n = out.elements() / 3;
        kernel.over(gpu.as_ref(), n, &[length(n), address(x)?, address(&out)?])?;
        ctx.set(0, out)
    }))
}

/// Adjusts every colour of input 0 by the scalar in input 1.
fn adjust(what: &'static str, by: fn([f32; 3], f32) -> [f32; 3]) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (shape, amount) = (ctx.input(0)?.shape(), ctx.input(1)?);
        ensure!(shape.rank() >= 3, InvalidArgument, "input must be at least 3-D, got shape{shape}");
        ensure!(amount.rank() == 0, InvalidArgument, "{what} must be scalar: {}", amount.shape());
        let channels = shape[shape.rank() - 1];
        ensure!(
            channels == 3,
            InvalidArgument,
            "input must have 3 channels but instead has {channels} channels."
        );
        let amount = amount.scalar_value::<f32>()?;
        let mut out = ctx.take_or_copy(0)?;
        map_colours::<f32>(out.as_mut_slice()?, 15, |colour| by(colour, amount));
        ctx.set(0, out)
    }
}

/// The gradient of hue, saturation and value for a colour. X is the largest component; Y and Z
/// follow it in the order red, green, blue, red. The hue is (Y - Z) / range / 6 plus a constant,
/// the saturation range / X, the value X. Of equal components, the first is the largest and the
/// last the smallest, as in TensorFlow.
fn hsv_gradient<'g>(g: &GradientScope<'g>, dy: Term<'g>) -> Term<'g> {
    let x = g.input(0);
    let (last, zero, one) = (g.int(-1), x.number(0.0), x.number(1.0));
    let is = |which: Term<'g>| g.call("OneHot", &[which, g.int(3), one, zero]);
    let largest = is(g.call("ArgMax", &[x, last]));
    let backwards = g.call("ReverseV2", &[x, g.ints(&[-1])]);
    let smallest = is(g.int(2).cast(DType::Int64) - g.call("ArgMin", &[backwards, last]));
    let over_parts = |t: Term<'g>| t.sum(g.ints(&[-1]), true);
    let rolled = |t: Term<'g>, by: i64| g.call("Roll", &[t, g.int(by), last]);
    let over = |a: Term<'g>, b: Term<'g>| g.call("DivNoNan", &[a, b]);
    let positive = |t: Term<'g>| g.call("Greater", &[t, zero]).cast(x.dtype());
    let (most, least) = (over_parts(x * largest), over_parts(x * smallest));
    let range = most - least;
    let ahead = over_parts(largest * (rolled(x, -1) - rolled(x, -2)));
    let of_hue = over((smallest - largest) * ahead, range.square())
        + over(rolled(largest, 1) - rolled(largest, 2), range);
    let of_hue = positive(most) * of_hue * x.number(1.0 / 6.0);
    let of_saturation = positive(x) * (over(largest * least, most.square()) - over(smallest, most));
    let parts = g.calls_with("Split", &[last, dy], Attrs::new().with("num_split", 3i64));
    parts[0] * of_hue + parts[1] * of_saturation + parts[2] * largest
}

/// A shape of at least `rank` dimensions, like input 0.
fn at_least(rank: usize) -> impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    move |c| {
        let shape = c.input(0);
        if let Some(is) = shape.rank() {
            ensure!(
                is >= rank,
                InvalidArgument,
                "Shape must be at least rank {rank} but is rank {is}"
            );
        }
        Ok(vec![shape])
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, to_hsv, doc) in [
        ("RGBToHSV", true, "Colours as hue, saturation and value."),
        ("HSVToRGB", false, "Colours from hue, saturation and value."),
    ] {
        c.op(op)
            .doc(doc)
            .input("images: T")
            .output("output: T")
            .attr("T: {half, bfloat16, float, double} = DT_FLOAT")
            .shape(at_least(1))
            .gpu(ON_GPU, move |init| convert_on_device(init, to_hsv))
            .cpu(move |init| per_dtype!(FLOAT, T => convert::<T>(to_hsv))(init));
    }
    for (op, what, by, doc) in [
        (
            "AdjustHue",
            "delta",
            turned as fn([f32; 3], f32) -> [f32; 3],
            "Images with the hue of every pixel turned.",
        ),
        (
            "AdjustSaturation",
            "scale",
            saturated,
            "Images with the saturation of every pixel scaled.",
        ),
    ] {
        c.op(op)
            .doc(doc)
            .input("images: T")
            .input(&format!("{what}: float"))
            .output("output: T")
            .attr("T: {half, float} = DT_FLOAT")
            .shape(at_least(3))
            .cpu(move |init| match init.dtype("T")? {
                DType::Float => Ok(KernelBox::new(adjust(what, by))),
                other => Err(unsupported(init, "T", other)),
            });
    }
    c.no_gradient(&["HSVToRGB"]);
    c.gradient("RGBToHSV", |g, dy| Ok(vec![hsv_gradient(g, dy[0])]));
}
