//! Code that pools share: windows without dilation over images with channels last.

pub(super) mod device;

use super::window::{Axis, Layout, Padding, Sliding, padding_of, three};
use crate::prelude::*;
use ferroflow_graph::Attrs;

/// Window sizes and strides of a node, including those over batch and channels.
#[derive(Clone, Debug)]
pub(super) struct PoolAttrs {
    /// Spatial dimensions: two or three.
    pub spatial: usize,
    /// Window sizes and strides; `None` if they are inputs.
    pub window: Option<(Vec<i64>, Vec<i64>)>,
    pub padding: Padding,
    pub layout: Layout,
}

/// Sizes of a pool.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub batch: usize,
    pub axes: [Axis; 3],
    pub channels: usize,
    /// Channels that are pooled together: one, unless the pool covers channels.
    pub depth_window: usize,
}

impl PoolAttrs {
    pub fn new(attrs: &Attrs, spatial: usize) -> Result<PoolAttrs> {
        let layout = Layout::new(attrs)?;
        let padding = padding_of(attrs, spatial, layout)?;
        let window = match attrs.contains("ksize") {
            true => Some((attrs.ints("ksize")?, attrs.ints("strides")?)),
            false => None,
        };
        let attrs = PoolAttrs { spatial, window, padding, layout };
        if let Some((window, strides)) = &attrs.window {
            attrs.check_window(window, strides)?;
        }
        Ok(attrs)
    }

    fn check_window(&self, window: &[i64], strides: &[i64]) -> Result<()> {
        let rank = self.spatial + 2;
        for (name, values) in [("ksize", window), ("strides", strides)] {
            ensure!(
                values.len() == rank,
                InvalidArgument,
                "Sliding window {name} field must specify {rank} dimensions"
            );
        }
        for (i, &k) in window.iter().enumerate() {
            ensure!(k > 0, InvalidArgument, "Sliding window ksize for dimension {i} was zero.");
        }
        for &s in strides {
            ensure!(s > 0, InvalidArgument, "Stride must be > 0, but got {s}");
        }
        ensure!(
            window[0] == 1 && strides[0] == 1,
            Unimplemented,
            "Pooling is not yet supported on the batch dimension."
        );
        Ok(())
    }

    /// Window and strides: the node's own, or those in inputs `i` and `i + 1`.
    pub fn window(&self, ctx: &Ctx<'_>, i: usize) -> Result<(Vec<i64>, Vec<i64>)> {
        if let Some(window) = &self.window {
            return Ok(window.clone());
        }
        let (window, strides) = (ctx.input(i)?.to_indices()?, ctx.input(i + 1)?.to_indices()?);
        self.check_window(&window, &strides)?;
        Ok((window, strides))
    }

    /// The pool over images of this shape, in their stored layout.
    pub fn over(&self, shape: &Shape, (window, strides): &(Vec<i64>, Vec<i64>)) -> Result<Pool> {
        let rank = self.spatial + 2;
        ensure!(shape.rank() == rank, InvalidArgument, "tensor_in must be {rank}-dimensional");
        let last = self.layout.to_last(shape);
        let (first, channel) = (self.layout.first_spatial(), self.layout.channels(rank));
        let inside = |x: &[i64]| x[first..first + self.spatial].to_vec();
        let (spatial_window, spatial_strides) = (inside(window), inside(strides));
        let (depth_window, depth_stride) = (window[channel], strides[channel]);
        if depth_window != 1 || depth_stride != 1 {
            ensure!(
                self.spatial == 2,
                Unimplemented,
                "Pooling is not yet supported on the depth dimension."
            );
            ensure!(
                spatial_window.iter().chain(&spatial_strides).all(|&x| x == 1),
                Unimplemented,
                "MaxPooling supports exactly one of pooling across depth or pooling across \
                 width/height."
            );
            ensure!(
                last[rank - 1] as i64 % depth_window == 0,
                Unimplemented,
                "Depthwise max pooling requires the depth window to evenly divide the input depth"
            );
            ensure!(
                depth_stride == depth_window,
                Unimplemented,
                "Depthwise max pooling requires the depth window to equal the depth stride"
            );
        }
        if let Padding::Explicit(sides) = &self.padding {
            let names = [("Top", "Bottom"), ("Left", "Right")];
            for ((&(before, after), &size), name) in sides.iter().zip(&spatial_window).zip(names) {
                for (side, padding) in [(name.0, before), (name.1, after)] {
                    ensure!(
                        padding < size,
                        InvalidArgument,
                        "{side} padding {padding} needs to be smaller than the window size {size}"
                    );
                }
            }
        }
        let sizes: Vec<usize> = spatial_window.iter().map(|&k| k as usize).collect();
        let sliding = Sliding {
            strides: spatial_strides,
            dilations: vec![1; self.spatial],
            padding: self.padding.clone(),
            layout: self.layout,
        };
        let axes = sliding.axes(&last[1..=self.spatial], &sizes)?;
        Ok(Pool {
            batch: last[0],
            axes: three(&axes),
            channels: last[rank - 1],
            depth_window: depth_window as usize,
        })
    }
}

impl Pool {
    /// Whether windows are two by two and tile an image, in one plane.
    pub fn is_in_fours(&self) -> bool {
        let [depth, rows, columns] = self.axes;
        let is_halved =
            |a: Axis| a.window == 2 && a.stride == 2 && a.before == 0 && a.input == 2 * a.output;
        depth.is_identity() && is_halved(rows) && is_halved(columns) && self.depth_window == 1
    }

    /// Shape of the output, channels last.
    pub fn output_shape(&self, spatial: usize) -> Shape {
        let outputs = self.axes[3 - spatial..].iter().map(|a| a.output);
        let channels = self.channels / self.depth_window;
        std::iter::once(self.batch).chain(outputs).chain([channels]).collect()
    }

    /// Positions of one output image.
    pub fn positions(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// Pixels of one input image.
    pub fn pixels(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    /// About how many nanoseconds an output position takes.
    pub fn cost(&self) -> usize {
        self.axes.iter().map(|a| a.window.min(a.input)).product::<usize>() * self.channels / 2 + 1
    }

    /// Calls `visit` with every pixel under the window at an output position.
    pub fn pixels_at(&self, position: usize, mut visit: impl FnMut(usize)) {
        let [d, h, w] = self.axes;
        let ranges = [
            d.inside(position / (h.output * w.output)),
            h.inside(position / w.output % h.output),
            w.inside(position % w.output),
        ];
        for id in ranges[0].clone() {
            for ih in ranges[1].clone() {
                for iw in ranges[2].clone() {
                    visit((id * h.input + ih) * w.input + iw);
                }
            }
        }
    }

    /// How many pixels lie under the window at an output position.
    pub fn count_at(&self, position: usize) -> usize {
        let [d, h, w] = self.axes;
        d.inside(position / (h.output * w.output)).len()
            * h.inside(position / w.output % h.output).len()
            * w.inside(position % w.output).len()
    }
}

/// Output shape of a pool over input 0, whose window is in attributes or in inputs `at` and
/// `at + 1`.
pub(super) fn pool_shape(c: &ShapeCtx<'_>, spatial: usize, at: usize) -> Result<Vec<PartialShape>> {
    let attrs = PoolAttrs::new(c.attrs, spatial)?;
    let rank = spatial + 2;
    let input = c.input(0).merge(&PartialShape::of_rank(rank))?;
    let window = match &attrs.window {
        Some(window) => Some(window.clone()),
        None => c.constant_ints(at).zip(c.constant_ints(at + 1)),
    };
    let Some((window, strides)) = window else {
        return Ok(vec![PartialShape::of_rank(rank); c.outputs]);
    };
    attrs.check_window(&window, &strides)?;
    let dims = input.dims().unwrap_or_default();
    // Computes each dimension; a channel window divides like any other.
    let mut out = vec![dims[0]];
    for i in 1..rank {
        let channel = i == attrs.layout.channels(rank);
        let padding = match &attrs.padding {
            Padding::Explicit(sides) if !channel => {
                Padding::Explicit(vec![sides[i - attrs.layout.first_spatial()]])
            }
            Padding::Explicit(_) => Padding::Valid,
            other => other.clone(),
        };
        let (strides, dilations) = (vec![strides[i]], vec![1]);
        let sliding = Sliding { strides, dilations, padding, layout: attrs.layout };
        let size = usize::try_from(window[i]).ok();
        out.push(sliding.outputs(&[dims[i]], &[size])?[0]);
    }
    Ok(vec![PartialShape::new(out); c.outputs])
}
