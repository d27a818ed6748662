//! ExtractImagePatches and ExtractVolumePatches.

use super::walk::{self, Walk};
use crate::prelude::*;

/// The windows along one spatial dimension.
#[derive(Clone, Copy, Debug)]
struct Window {
    size: i64,
    stride: i64,
    rate: i64,
    /// The number of windows, and the start of the first.
    count: i64,
    begin: i64,
}

/// A window over `input` elements, placed by the padding scheme. If windows do not cover the input,
/// a `centred` scheme leaves the rest on both sides, as TensorFlow does for volumes.
fn window(
    input: usize,
    [size, stride, rate]: [i64; 3],
    same: bool,
    centred: bool,
) -> Result<Window> {
    let input = input as i64;
    let reach = (size - 1).saturating_mul(rate).saturating_add(1);
    let (count, begin) = if same {
        let count = input / stride + i64::from(input % stride != 0);
        let needed = (count - 1).saturating_mul(stride).saturating_add(reach);
        let missing = needed.saturating_sub(input);
        (count, -(if centred { missing } else { Ord::max(missing, 0) } / 2))
    } else {
        let count = (input.saturating_sub(reach).saturating_add(stride)) / stride;
        ensure!(
            count >= 0,
            InvalidArgument,
            "Computed output size would be negative: {count} [input_size: {input}, \
             effective_filter_size: {reach}, stride: {stride}]"
        );
        (count, 0)
    };
    Ok(Window { size, stride, rate, count, begin })
}

/// The attributes of the op, for `n` spatial dimensions.
struct Patches {
    /// Size, stride and rate in each dimension.
    spec: Vec<[i64; 3]>,
    same: bool,
}

impl Patches {
    fn new(attrs: &ferroflow_graph::Attrs, n: usize) -> Result<Patches> {
        let read = |name: &str| -> Result<Vec<i64>> {
            let list = if attrs.contains(name) { attrs.ints(name)? } else { vec![1; n + 2] };
            let (first, last) = (list.first(), list.get(n + 1));
            ensure!(
                first == Some(&1) && last == Some(&1),
                Unimplemented,
                "Only support {name} across space."
            );
            ensure!(
                list.iter().all(|&v| (1..=i32::MAX as i64).contains(&v)),
                OutOfRange,
                "{name} is out of range."
            );
            Ok(list[1..=n].to_vec())
        };
        let (sizes, strides, rates) = (read("ksizes")?, read("strides")?, read("rates")?);
        let spec = (0..n).map(|i| [sizes[i], strides[i], rates[i]]).collect();
        Ok(Patches { spec, same: attrs.string("padding")? == "SAME" })
    }

    /// The windows over an input of this shape, and the shape of the output.
    fn plan(&self, x: &Shape) -> Result<(Vec<Window>, Shape)> {
        let n = self.spec.len();
        ensure!(x.rank() == n + 2, InvalidArgument, "input must be {}-dimensional{x}", n + 2);
        let mut windows = Vec::with_capacity(n);
        for (&dim, &spec) in x[1..].iter().zip(&self.spec) {
            windows.push(window(dim, spec, self.same, n == 3)?);
        }
        let mut dims = vec![x[0] as i64];
        dims.extend(windows.iter().map(|w| w.count));
        let depth = x[n + 1] as i64;
        dims.push(windows.iter().fold(depth, |d, w| d.saturating_mul(w.size)));
        Ok((windows, Shape::from_dims(&dims)?))
    }
}

fn extract(init: &KernelInit<'_>, n: usize) -> Result<KernelBox> {
    let patches = Patches::new(init, n)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let (windows, shape) = patches.plan(x.shape())?;
        let mut out = Tensor::zeros(x.dtype(), shape.clone())?;
        if x.elements() > 0 && out.elements() > 0 {
            copy_patches(x, &windows, &mut out)?;
        }
        ctx.set(0, out)
    }))
}

/// For each position within the window, copies that position of all windows at once.
fn copy_patches(x: &Tensor, windows: &[Window], out: &mut Tensor) -> Result<()> {
    let (from, to) = (walk::strides(x.shape()), walk::strides(out.shape()));
    let depth = x.shape()[windows.len() + 1];
    let mut place = vec![0i64; windows.len()];
    // One per window position, at most the number of output channels.
    for channel in (0..out.shape()[windows.len() + 1]).step_by(depth) {
        let (mut from_at, mut to_at) = (0usize, channel);
        let mut loops = Vec::with_capacity(windows.len());
        for (i, (w, &p)) in windows.iter().zip(&place).enumerate() {
            let dim = x.shape()[i + 1] as i64;
            // Window `j` reads input position `j * stride + shift`. This is the range of `j` that
            // lies within the input.
            let shift = w.begin + p * w.rate;
            let first = if shift < 0 { (-shift + w.stride - 1) / w.stride } else { 0 };
            let end = Ord::max(dim - shift + w.stride - 1, 0) / w.stride;
            let end = Ord::min(end, w.count);
            let len = usize::try_from(end - first).unwrap_or(0);
            if len > 0 {
                from_at += (first * w.stride + shift) as usize * from[i + 1] as usize;
                to_at += first as usize * to[i + 1] as usize;
            }
            // A stride that is never used may be too large to multiply.
            let step = if len > 1 { from[i + 1] * w.stride as isize } else { 0 };
            loops.push((len, step, to[i + 1]));
        }
        let mut walk = Walk::new(from_at, to_at);
        walk.then(x.shape()[0], from[0], to[0]);
        for (len, from, to) in loops {
            walk.then(len, from, to);
        }
        walk.then(depth, 1, 1);
        walk.copy(x, out)?;
        for (p, w) in place.iter_mut().zip(windows).rev() {
            *p += 1;
            if *p < w.size {
                break;
            }
            *p = 0;
        }
    }
    Ok(())
}

fn extract_shape(c: &ShapeCtx<'_>, n: usize) -> Result<Vec<PartialShape>> {
    let patches = Patches::new(c.attrs, n)?;
    Ok(vec![match c.input(0).known() {
        Some(x) => patches.plan(&x)?.1.into(),
        None => PartialShape::of_rank(n + 2),
    }])
}

/// Patches of pixel indices give the source position of each element of a patch.
fn patches_gradient<'g>(
    g: &GradientScope<'g>,
    dy: &[Term<'g>],
    dims: usize,
) -> Result<Vec<Term<'g>>> {
    let (x, y) = (g.input(0), g.output(0));
    let op = if dims == 2 { "ExtractImagePatches" } else { "ExtractVolumePatches" };
    let dims = dims as i64;
    let space = g.call("Slice", &[x.shape(), g.ints(&[1]), g.ints(&[dims])]);
    let one = g.ints(&[1]);
    let batch = x.shape().element(0).expand_dims(0);
    let channels = x.shape().element(dims + 1).expand_dims(0);
    let count = g.call("Prod", &[space, g.ints(&[0])]);
    // Numbers start at 1, because positions outside the input are 0.
    let numbers = g.call("Range", &[g.int(1), count + 1.0, g.int(1)]);
    let numbers = numbers.cast(DType::Int64).reshape(g.concat(&[one, space, one], 0));
    let sources = g.call_like(op, &[numbers]).cast(DType::Int32);
    let ids = sources.reshape(g.ints(&[-1])) - 1.0;
    let places = g.call("Slice", &[y.shape(), g.ints(&[1]), g.ints(&[dims])]);
    let places = g.call("Prod", &[places, g.ints(&[0])]).expand_dims(0);
    let ksizes = g.attrs().ints("ksizes")?;
    let size: i64 = ksizes.get(1..=dims as usize).unwrap_or_default().iter().product();
    let split = dy[0].reshape(g.concat(&[batch, places, g.ints(&[size]), channels], 0));
    let moved = g.call("Transpose", &[split, g.ints(&[1, 2, 0, 3])]);
    let flat = moved.reshape(g.concat(&[g.ints(&[-1]), batch * channels], 0));
    let summed = g.call("UnsortedSegmentSum", &[flat, ids, count]);
    let apart = summed.reshape(g.concat(&[space, batch, channels], 0));
    let mut back = vec![dims];
    back.extend(0..dims);
    back.push(dims + 1);
    Ok(vec![g.call("Transpose", &[apart, g.ints(&back)])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ExtractImagePatches").work(work::any)
        .doc("The patches that a sliding window sees in images, each put into the channels.")
        .input("images: T")
        .output("patches: T")
        .attr("ksizes: list(int) >= 4")
        .attr("strides: list(int) >= 4")
        .attr("rates: list(int) >= 4")
        .attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}")
        .attr("padding: {'SAME', 'VALID'}")
        .shape(|c| extract_shape(c, 2))
        .cpu(|init| extract(init, 2));
    c.op("ExtractVolumePatches")
        .work(work::any)
        .doc("The patches that a sliding window sees in volumes, each put into the channels.")
        .input("input: T")
        .output("patches: T")
        .attr("ksizes: list(int) >= 5")
        .attr("strides: list(int) >= 5")
        .attr("T: realnumbertype")
        .attr("padding: {'SAME', 'VALID'}")
        .shape(|c| extract_shape(c, 3))
        .cpu(|init| extract(init, 3));
    c.gradient("ExtractImagePatches", |g, dy| patches_gradient(g, dy, 2));
    c.gradient("ExtractVolumePatches", |g, dy| patches_gradient(g, dy, 3));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn count(dims: &[usize]) -> Tensor {
        let shape = Shape::from(dims);
        let values: Vec<f32> = (0..shape.elements()).map(|x| x as f32).collect();
        Tensor::from_slice(shape, &values).unwrap()
    }

    fn images(
        sizes: [i64; 4],
        strides: [i64; 4],
        rates: [i64; 4],
        padding: &str,
    ) -> Check<'static> {
        check("ExtractImagePatches")
            .input(count(&[1, 3, 4, 1]))
            .attr("ksizes", sizes.to_vec())
            .attr("strides", strides.to_vec())
            .attr("rates", rates.to_vec())
            .attr("padding", padding)
    }

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    #[test]
    fn windows_slide_over_images() {
        images([1, 2, 2, 1], [1, 1, 2, 1], [1; 4], "VALID").gives(t(
            &[1, 2, 2, 4],
            &[0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0, 4.0, 5.0, 8.0, 9.0, 6.0, 7.0, 10.0, 11.0],
        ));
        images([1, 2, 2, 1], [1, 2, 2, 1], [1, 2, 2, 1], "SAME").gives(t(
            &[1, 2, 2, 4],
            &[0.0, 0.0, 4.0, 6.0, 0.0, 0.0, 6.0, 0.0, 4.0, 6.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0],
        ));
    }

    #[test]
    fn windows_slide_over_volumes() {
        let volumes = |strides: [i64; 5], padding: &str| {
            check("ExtractVolumePatches")
                .input(count(&[1, 2, 2, 3, 1]))
                .attr("ksizes", vec![1, 2, 1, 2, 1])
                .attr("strides", strides.to_vec())
                .attr("padding", padding)
        };
        volumes([1; 5], "VALID").gives(t(
            &[1, 1, 2, 2, 4],
            &[0.0, 1.0, 6.0, 7.0, 1.0, 2.0, 7.0, 8.0, 3.0, 4.0, 9.0, 10.0, 4.0, 5.0, 10.0, 11.0],
        ));
        volumes([1, 2, 1, 2, 1], "SAME").gives(t(
            &[1, 1, 2, 2, 4],
            &[0.0, 1.0, 6.0, 7.0, 2.0, 0.0, 8.0, 0.0, 3.0, 4.0, 9.0, 10.0, 5.0, 0.0, 11.0, 0.0],
        ));
    }

    #[test]
    fn volumes_are_seen_from_the_middle() {
        check("ExtractVolumePatches")
            .input(count(&[1, 1, 3, 1, 1]))
            .attr("ksizes", vec![1; 5])
            .attr("strides", vec![1, 1, 3, 1, 1])
            .attr("padding", "SAME")
            .gives(t(&[1, 1, 1, 1, 1], &[1.0]));
    }

    #[test]
    fn bad_windows_are_refused() {
        images([1, 5, 2, 1], [1, 2, 2, 1], [1, 2, 2, 1], "VALID").fails(
            Code::InvalidArgument,
            "Computed output size would be negative: -2 [input_size: 3, effective_filter_size: 9, \
             stride: 2]",
        );
        images([2, 2, 2, 1], [1; 4], [1; 4], "VALID")
            .fails(Code::Unimplemented, "Only support ksizes across space.");
        images([1, 2, 2, 1], [1, 0, 2, 1], [1; 4], "VALID")
            .fails(Code::OutOfRange, "strides is out of range.");
        images([1, i32::MAX as i64, i32::MAX as i64, 1], [1; 4], [1; 4], "SAME")
            .fails(Code::InvalidArgument, "elements");
    }
}
