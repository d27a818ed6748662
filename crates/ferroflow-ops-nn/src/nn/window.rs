//! Windows that slide over images: strides, dilations and padding of convolutions and pools.

use crate::prelude::*;
use ferroflow_graph::Attrs;

/// How the edges of an image are treated.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Padding {
    Same,
    Valid,
    /// Before and after, for every spatial dimension.
    Explicit(Vec<(i64, i64)>),
}

/// Whether channels are the last dimension, or the one after the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    ChannelsLast,
    ChannelsFirst,
}

impl Layout {
    pub fn new(attrs: &Attrs) -> Result<Layout> {
        let format =
            if attrs.contains("data_format") { attrs.string("data_format")? } else { "".into() };
        match format.as_str() {
            "" | "NHWC" | "NDHWC" | "CHANNELS_LAST" => Ok(Layout::ChannelsLast),
            "NCHW" | "NCDHW" | "CHANNELS_FIRST" => Ok(Layout::ChannelsFirst),
            other => bail!(InvalidArgument, "Invalid data format {other}"),
        }
    }

    pub fn channels(self, rank: usize) -> usize {
        if self == Layout::ChannelsLast { rank - 1 } else { 1 }
    }

    /// The index of the first spatial dimension.
    pub fn first_spatial(self) -> usize {
        if self == Layout::ChannelsLast { 1 } else { 2 }
    }

    /// The shape with batch first and channels last.
    pub fn to_last(self, dims: &[usize]) -> Shape {
        let mut dims = dims.to_vec();
        if self == Layout::ChannelsFirst {
            dims[1..].rotate_left(1);
        }
        Shape::from(dims)
    }

    /// The shape in the stored layout, from one with channels last.
    pub fn stored(self, dims: &[usize]) -> Shape {
        let mut dims = dims.to_vec();
        if self == Layout::ChannelsFirst {
            dims[1..].rotate_right(1);
        }
        Shape::from(dims)
    }
}

/// One spatial dimension of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub input: usize,
    pub window: usize,
    pub output: usize,
    pub stride: usize,
    pub dilation: usize,
    /// The number of positions before the input that the first window covers.
    pub before: usize,
}

impl Axis {
    /// A dimension that does not exist.
    pub const NONE: Axis =
        Axis { input: 1, window: 1, output: 1, stride: 1, dilation: 1, before: 0 };

    /// The input position under element `k` of window `i`, if it is inside.
    pub fn at(&self, i: usize, k: usize) -> Option<usize> {
        (i * self.stride + k * self.dilation).checked_sub(self.before).filter(|&p| p < self.input)
    }

    /// First and last element of window `i` that lie inside, without dilation.
    pub fn inside(&self, i: usize) -> std::ops::Range<usize> {
        let start = (i * self.stride) as isize - self.before as isize;
        let from = start.max(0) as usize;
        let to = (start + self.window as isize).clamp(0, self.input as isize) as usize;
        from.min(to)..to
    }

    /// Whether windows map positions to themselves.
    pub fn is_identity(&self) -> bool {
        self.window == 1 && self.stride == 1 && self.before == 0 && self.output == self.input
    }
}

/// Strides, dilations and padding of a node, spatial dimensions only.
#[derive(Clone, Debug)]
pub(super) struct Sliding {
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub padding: Padding,
    pub layout: Layout,
}

impl Sliding {
    /// Reads the attributes of a convolution over `spatial` dimensions.
    pub fn of_convolution(attrs: &Attrs, spatial: usize) -> Result<Sliding> {
        let layout = Layout::new(attrs)?;
        let strides = attrs.ints("strides")?;
        let dilations = match attrs.ints("dilations")? {
            none if none.is_empty() => vec![1; spatial + 2],
            all => all,
        };
        ensure!(
            strides.len() == spatial + 2,
            InvalidArgument,
            "Sliding window strides field must specify {} dimensions",
            spatial + 2
        );
        let one_outside = |x: &[i64]| x[0] == 1 && x[layout.channels(spatial + 2)] == 1;
        ensure!(
            one_outside(&strides),
            Unimplemented,
            "Current implementation does not yet support strides in the batch and depth dimensions."
        );
        ensure!(
            dilations.len() == spatial + 2,
            InvalidArgument,
            "Sliding window dilations field must specify {} dimensions",
            spatial + 2
        );
        ensure!(
            one_outside(&dilations),
            Unimplemented,
            "Current implementation does not yet support dilations in the batch and depth dimensions."
        );
        let inside = |x: &[i64]| x[layout.first_spatial()..][..spatial].to_vec();
        let (strides, dilations) = (inside(&strides), inside(&dilations));
        let what = if spatial == 2 { "Row and column strides" } else { "Spatial strides" };
        ensure!(strides.iter().all(|&s| s > 0), InvalidArgument, "{what} should be larger than 0.");
        ensure!(
            dilations.iter().all(|&d| d > 0),
            InvalidArgument,
            "Dilated rates should be larger than 0."
        );
        let padding = padding_of(attrs, spatial, layout)?;
        Ok(Sliding { strides, dilations, padding, layout })
    }

    /// The spatial dimensions for an input and a window of these sizes.
    pub fn axes(&self, input: &[usize], window: &[usize]) -> Result<Vec<Axis>> {
        (0..input.len())
            .map(|i| {
                let explicit = match &self.padding {
                    Padding::Explicit(sides) => Some(sides[i]),
                    _ => None,
                };
                let same = self.padding == Padding::Same;
                axis(input[i], window[i], self.strides[i], self.dilations[i], same, explicit)
            })
            .collect()
    }

    /// Output sizes, as far as input sizes are known.
    pub fn outputs(
        &self,
        input: &[Option<usize>],
        window: &[Option<usize>],
    ) -> Result<Vec<Option<usize>>> {
        (0..input.len())
            .map(|i| {
                let one = Sliding {
                    strides: vec![self.strides[i]],
                    dilations: vec![self.dilations[i]],
                    padding: match &self.padding {
                        Padding::Explicit(sides) => Padding::Explicit(vec![sides[i]]),
                        other => other.clone(),
                    },
                    layout: self.layout,
                };
                match (input[i], window[i]) {
                    (Some(n), Some(w)) => Ok(Some(one.axes(&[n], &[w])?[0].output)),
                    (Some(n), None) if self.padding == Padding::Same => {
                        Ok(Some(one.axes(&[n], &[1])?[0].output))
                    }
                    _ => Ok(None),
                }
            })
            .collect()
    }
}

/// Attribute `padding`, with `explicit_paddings` where there are some.
pub(super) fn padding_of(attrs: &Attrs, spatial: usize, layout: Layout) -> Result<Padding> {
    let explicit = match attrs.contains("explicit_paddings") {
        true => attrs.ints("explicit_paddings")?,
        false => Vec::new(),
    };
    if let Some(sides) = padding_list(attrs, spatial, layout)? {
        return Ok(Padding::Explicit(sides));
    }
    let padding = match attrs.string("padding")?.as_str() {
        "SAME" => Padding::Same,
        "VALID" => Padding::Valid,
        "EXPLICIT" => {
            let (is, want) = (explicit.len(), 2 * (spatial + 2));
            ensure!(
                is == want,
                InvalidArgument,
                "explicit_paddings attribute must contain {want} values, but got: {is}"
            );
            ensure!(
                explicit.iter().all(|&p| p >= 0),
                InvalidArgument,
                "All elements of explicit_paddings must be nonnegative"
            );
            let sides: Vec<(i64, i64)> = explicit.chunks_exact(2).map(|p| (p[0], p[1])).collect();
            let outside = [sides[0], sides[layout.channels(spatial + 2)]];
            ensure!(
                outside == [(0, 0); 2],
                InvalidArgument,
                "Nonzero explicit padding in the batch or depth dimensions is not supported"
            );
            return Ok(Padding::Explicit(sides[layout.first_spatial()..][..spatial].to_vec()));
        }
        other => bail!(InvalidArgument, "Invalid padding {other}"),
    };
    ensure!(
        explicit.is_empty(),
        InvalidArgument,
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
    );
    Ok(padding)
}

/// Attribute `padding_list` of a convolution that was fused with a Pad, unless it pads nothing.
fn padding_list(attrs: &Attrs, spatial: usize, layout: Layout) -> Result<Option<Vec<(i64, i64)>>> {
    if !attrs.contains("padding_list") {
        return Ok(None);
    }
    let list = attrs.ints("padding_list")?;
    if list.iter().all(|&p| p == 0) {
        return Ok(None);
    }
    let want = 2 * (spatial + 2);
    ensure!(
        list.len() == want && list.iter().all(|&p| p >= 0),
        InvalidArgument,
        "padding_list must be {want} values that are not negative, got {list:?}"
    );
    let sides: Vec<(i64, i64)> = list.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    Ok(Some(sides[layout.first_spatial()..][..spatial].to_vec()))
}

/// One dimension; `stride` and `dilation` are positive.
fn axis(
    input: usize,
    window: usize,
    stride: i64,
    dilation: i64,
    same: bool,
    explicit: Option<(i64, i64)>,
) -> Result<Axis> {
    let (n, s) = (input as i128, stride as i128);
    let extent = (window as i128 - 1).max(0) * dilation as i128 + 1;
    let (output, before) = if same {
        let output = (n + s - 1) / s;
        (output, ((output - 1) * s + extent - n).max(0) / 2)
    } else {
        let (before, after) = explicit.unwrap_or((0, 0));
        let output = (n + before as i128 + after as i128 - extent + s).div_euclid(s);
        ensure!(
            output >= 0,
            InvalidArgument,
            "Computed output size would be negative: {output} [input_size: {input}, \
             effective_filter_size: {extent}, stride: {stride}]"
        );
        (output, before as i128)
    };
    // Bounded, so that window positions do not overflow.
    let small = |x: i128| u32::try_from(x).is_ok();
    ensure!(
        small(output) && small(before) && small(extent) && small(n) && small(s),
        InvalidArgument,
        "a window of {window} with stride {stride} and dilation {dilation} over {input} is too large"
    );
    Ok(Axis {
        input,
        window,
        output: output as usize,
        stride: stride as usize,
        dilation: dilation as usize,
        before: before as usize,
    })
}

/// Up to three spatial dimensions as three; missing ones come first.
pub(super) fn three(axes: &[Axis]) -> [Axis; 3] {
    let mut out = [Axis::NONE; 3];
    out[3 - axes.len()..].copy_from_slice(axes);
    out
}

/// The tensor with channels last, copied if necessary.
pub(super) fn channels_last<W: Movable>(t: &Tensor, layout: Layout) -> Result<Tensor> {
    if layout == Layout::ChannelsLast {
        return Ok(t.clone());
    }
    let shape = layout.to_last(t.shape());
    let (c, inner) = (t.shape()[1], t.shape()[2..].iter().product());
    transposed::<W>(t, c, inner, shape)
}

/// The inverse of [`channels_last`].
pub(super) fn from_channels_last<W: Movable>(t: Tensor, layout: Layout) -> Result<Tensor> {
    if layout == Layout::ChannelsLast {
        return Ok(t);
    }
    let shape = layout.stored(t.shape());
    let (c, inner) = (shape[1], shape[2..].iter().product());
    transposed::<W>(&t, inner, c, shape)
}

/// Transposes matrices of `rows` by `cols`, batch by batch.
fn transposed<W: Movable>(t: &Tensor, rows: usize, cols: usize, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::alloc(t.dtype(), shape)?;
    let x = W::of(t)?;
    if x.is_empty() {
        return Ok(out);
    }
    let to = W::of_mut(&mut out)?;
    for (x, to) in x.chunks_exact(rows * cols).zip(to.chunks_exact_mut(rows * cols)) {
        for i in 0..rows {
            for j in 0..cols {
                to[j * rows + i] = x[i * cols + j].clone();
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fit_as_the_padding_says() {
        let same = axis(9, 3, 2, 1, true, None).unwrap();
        assert_eq!((same.output, same.before), (5, 1));
        let valid = axis(9, 3, 2, 2, false, None).unwrap();
        assert_eq!((valid.output, valid.before), (3, 0));
        let explicit = axis(3, 2, 1, 1, false, Some((2, 1))).unwrap();
        assert_eq!((explicit.output, explicit.before), (5, 2));
        assert_eq!(
            (explicit.at(0, 0), explicit.at(2, 0), explicit.at(4, 1)),
            (None, Some(0), None)
        );
        assert_eq!(
            (explicit.inside(0), explicit.inside(1), explicit.inside(4)),
            (0..0, 0..1, 2..3)
        );
        assert_eq!(axis(1, 2, 1, 1, false, None).unwrap().output, 0);
        assert!(axis(1, 9, 1, 1, false, None).is_err());
        assert!(axis(1 << 20, 2, 1, i64::MAX, true, None).is_err());
    }
}
