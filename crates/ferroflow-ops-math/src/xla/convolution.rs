//! XlaConv, XlaConvV2: convolutions over any number of spatial dimensions, in any layout.

use super::{check_dimensions, dimension_numbers, for_each_index, integers};
use crate::linalg::gemm::{Mat, Product, ProductThreads, product};
use crate::math::cast::cast_to;
use crate::prelude::*;
use std::marker::PhantomData;

/// Which dimension of a tensor is which.
#[derive(Clone, Debug, Default)]
pub struct TensorLayout {
    /// Of images the batch, of filters the input channels.
    pub batch: usize,
    /// Of images the channels, of filters the output channels.
    pub feature: usize,
    pub spatial: Vec<usize>,
}

impl TensorLayout {
    fn check(&self, name: &str, rank: usize) -> Result<()> {
        let all = [&[self.batch, self.feature][..], &self.spatial].concat();
        ensure!(
            all.len() == rank,
            InvalidArgument,
            "dimension_numbers name {} dimensions of the {name}, which has {rank}",
            all.len()
        );
        check_dimensions(name, &all, rank)
    }
}

/// The layouts of images, filters and results.
#[derive(Clone, Debug, Default)]
pub struct ConvolutionLayout {
    pub image: TensorLayout,
    pub filter: TensorLayout,
    pub output: TensorLayout,
}

impl ConvolutionLayout {
    /// From the fields of a message; `fields` are their numbers: of images batch, feature and
    /// spatial dimensions, then of filters, then of results.
    pub fn new(attrs: &Attrs, fields: [usize; 9]) -> Result<ConvolutionLayout> {
        let lists = dimension_numbers::<13>(attrs)?;
        let layout = |at: usize| TensorLayout {
            // Proto3 leaves out zeros.
            batch: lists[fields[at]].last().copied().unwrap_or(0),
            feature: lists[fields[at + 1]].last().copied().unwrap_or(0),
            spatial: lists[fields[at + 2]].clone(),
        };
        Ok(ConvolutionLayout { image: layout(0), filter: layout(3), output: layout(6) })
    }
}

/// A convolution whose window and sizes are known.
#[derive(Clone, Debug)]
pub struct GeneralConvolution<'a> {
    pub layout: &'a ConvolutionLayout,
    pub strides: Vec<i64>,
    /// Before and after, of each spatial dimension; negative padding crops.
    pub padding: Vec<(i64, i64)>,
    pub image_dilation: Vec<i64>,
    pub filter_dilation: Vec<i64>,
    pub feature_groups: i64,
    pub batch_groups: i64,
}

/// The number of elements that dilation by `by` spreads `n` over.
fn dilated(n: usize, by: i64) -> i64 {
    Ord::max((n as i64 - 1).saturating_mul(by).saturating_add(1), 0)
}

impl GeneralConvolution<'_> {
    /// The shape of the result.
    pub fn output_shape(&self, image: &Shape, filter: &Shape) -> Result<Shape> {
        let layout = &self.layout;
        layout.image.check("input", image.rank())?;
        layout.filter.check("filter", filter.rank())?;
        let spatial = layout.image.spatial.len();
        let lengths = [
            layout.filter.spatial.len(),
            layout.output.spatial.len(),
            self.strides.len(),
            self.padding.len(),
            self.image_dilation.len(),
            self.filter_dilation.len(),
        ];
        ensure!(
            lengths.iter().all(|&n| n == spatial),
            InvalidArgument,
            "strides, padding and dilations must have an element for each of {spatial} spatial \
             dimensions"
        );
        layout.output.check("output", spatial + 2)?;
        let positive = [&self.strides, &self.image_dilation, &self.filter_dilation];
        ensure!(
            positive.iter().all(|list| list.iter().all(|&x| x > 0)),
            InvalidArgument,
            "strides and dilations must be positive"
        );
        let (channels, inputs) = (image[layout.image.feature], filter[layout.filter.batch]);
        let (batch, outputs) = (image[layout.image.batch], filter[layout.filter.feature]);
        let groups = [self.feature_groups, self.batch_groups].map(usize::try_from);
        let (Ok(by_feature @ 1..), Ok(by_batch @ 1..)) = (groups[0], groups[1]) else {
            bail!(InvalidArgument, "the numbers of groups must be positive");
        };
        ensure!(
            by_feature == 1 || by_batch == 1,
            InvalidArgument,
            "a convolution has groups of features or of batches, not both"
        );
        ensure!(
            inputs.checked_mul(by_feature) == Some(channels),
            InvalidArgument,
            "the input has {channels} channels, expected {by_feature} groups of {inputs}"
        );
        ensure!(
            outputs % by_feature == 0 && outputs % by_batch == 0 && batch % by_batch == 0,
            InvalidArgument,
            "{outputs} output channels and a batch of {batch} cannot be divided into {} groups",
            by_feature * by_batch
        );
        let mut dims = vec![0; spatial + 2];
        dims[layout.output.batch] = (batch / by_batch) as i64;
        dims[layout.output.feature] = outputs as i64;
        for d in 0..spatial {
            let (low, high) = self.padding[d];
            let base = dilated(image[layout.image.spatial[d]], self.image_dilation[d]);
            let base = base.saturating_add(low).saturating_add(high);
            let window = dilated(filter[layout.filter.spatial[d]], self.filter_dilation[d]);
            dims[layout.output.spatial[d]] = match base < window {
                true => 0,
                false => (base - window) / self.strides[d] + 1,
            };
        }
        Shape::from_dims(&dims)
    }

    /// Convolves. The elements of both tensors are of type `T`.
    pub fn run<T: Product>(&self, image: &Tensor, filter: &Tensor) -> Result<Tensor> {
        let mut out = Tensor::zeros(T::DTYPE, self.output_shape(image.shape(), filter.shape())?)?;
        let layout = &self.layout;
        let places: Vec<usize> = layout.output.spatial.iter().map(|&d| out.shape()[d]).collect();
        let window: Vec<usize> = layout.filter.spatial.iter().map(|&d| filter.shape()[d]).collect();
        let inputs = filter.shape()[layout.filter.batch];
        let groups = (self.feature_groups * self.batch_groups) as usize;
        let outputs = filter.shape()[layout.filter.feature] / groups;
        let batch = out.shape()[layout.output.batch];
        let depth = window.iter().product::<usize>() * inputs;
        let positions = places.iter().product::<usize>();
        if out.elements() == 0 || depth == 0 {
            return Ok(out);
        }
        let out_strides = out.shape().strides();
        let (x, y) = (image.as_slice::<T>()?, out.as_mut_slice::<T>()?);
        // A block of rows at a time, each a window of the image.
        let rows = Ord::clamp((1 << 20) / depth, 1, positions);
        let mut patches = vec![T::ZERO; rows * depth];
        let mut products = vec![T::ZERO; rows * outputs];
        for group in 0..groups {
            let weights = self.weights::<T>(filter, &window, group * outputs, outputs)?;
            let weights = Mat::new(&weights, depth, outputs);
            // Groups divide the features of the image or its batch.
            let by_batch = self.batch_groups > 1;
            let (first_image, first_channel) =
                if by_batch { (group * batch, 0) } else { (0, group * inputs) };
            for item in 0..batch {
                let from = Start { item: first_image + item, channel: first_channel };
                let mut starts = Vec::with_capacity(rows);
                for_each_index(&places, |place| {
                    let row = starts.len() * depth;
                    self.patch(x, image.shape(), from, place, (&window, inputs), {
                        &mut patches[row..row + depth]
                    });
                    let at = place.iter().zip(&layout.output.spatial);
                    let at: usize = at.map(|(p, &d)| p * out_strides[d]).sum();
                    starts.push(at + item * out_strides[layout.output.batch]);
                    let is_last = place.iter().zip(&places).all(|(p, n)| p + 1 == *n);
                    if starts.len() < rows && !is_last {
                        return;
                    }
                    let n = starts.len();
                    let block = Mat::new(&patches[..n * depth], n, depth);
                    product(block, weights, &mut products[..n * outputs], ProductThreads::All);
                    let step = out_strides[layout.output.feature];
                    for (at, row) in starts.drain(..).zip(products.chunks_exact(outputs)) {
                        for (o, &value) in row.iter().enumerate() {
                            y[at + (group * outputs + o) * step] = value;
                        }
                    }
                });
            }
        }
        Ok(out)
    }

    /// The filter of some output channels, as a matrix of window and input channel by output.
    fn weights<T: Product>(
        &self,
        filter: &Tensor,
        window: &[usize],
        first: usize,
        outputs: usize,
    ) -> Result<Vec<T>> {
        let (layout, strides) = (&self.layout.filter, filter.shape().strides());
        let data = filter.as_slice::<T>()?;
        let inputs = filter.shape()[layout.batch];
        let mut out = Vec::with_capacity(window.iter().product::<usize>() * inputs * outputs);
        for_each_index(window, |w| {
            let at: usize = w.iter().zip(&layout.spatial).map(|(w, &d)| w * strides[d]).sum();
            for i in 0..inputs {
                let at = at + i * strides[layout.batch];
                out.extend((0..outputs).map(|o| data[at + (first + o) * strides[layout.feature]]));
            }
        });
        Ok(out)
    }

    /// The elements under the window at a place of the output; zeros where there are none.
    fn patch<T: Product>(
        &self,
        x: &[T],
        shape: &Shape,
        from: Start,
        place: &[usize],
        (window, inputs): (&[usize], usize),
        out: &mut [T],
    ) {
        let (layout, strides) = (&self.layout.image, shape.strides());
        let start = from.item * strides[layout.batch] + from.channel * strides[layout.feature];
        let mut rows = out.chunks_exact_mut(inputs);
        for_each_index(window, |w| {
            let mut at = Some(start);
            for (d, &dim) in layout.spatial.iter().enumerate() {
                let under = place[d] as i64 * self.strides[d]
                    + w[d] as i64 * self.filter_dilation[d]
                    - self.padding[d].0;
                let dilation = self.image_dilation[d];
                let is_there =
                    under >= 0 && under % dilation == 0 && under / dilation < shape[dim] as i64;
                at =
                    at.filter(|_| is_there).map(|a| a + (under / dilation) as usize * strides[dim]);
            }
            let Some(row) = rows.next() else { return };
            match at {
                None => row.fill(T::ZERO),
                Some(at) => row
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, r)| *r = x[at + i * strides[layout.feature]]),
            }
        });
    }
}

/// Where in the image a group begins.
#[derive(Clone, Copy)]
struct Start {
    item: usize,
    channel: usize,
}

/// The numbers of the fields of ConvolutionDimensionNumbers.
const FIELDS: [usize; 9] = [7, 8, 11, 3, 4, 6, 9, 10, 12];

struct Conv<T> {
    layout: ConvolutionLayout,
    batch_groups: i64,
    marker: PhantomData<T>,
}

impl<T: Product> Conv<T> {
    fn new(init: &KernelInit<'_>) -> Result<Conv<T>> {
        let batch_groups =
            if init.contains("batch_group_count") { init.int("batch_group_count")? } else { 1 };
        let layout = ConvolutionLayout::new(init, FIELDS)?;
        Ok(Conv { layout, batch_groups, marker: PhantomData })
    }
}

impl<T: Product> Kernel for Conv<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let spatial = self.layout.image.spatial.len();
        let padding = ctx.input(3)?;
        ensure!(
            padding.shape()[..] == [spatial, 2],
            InvalidArgument,
            "padding must have shape [{spatial},2], got {}",
            padding.shape()
        );
        let padding = padding.to_indices()?;
        let convolution = GeneralConvolution {
            layout: &self.layout,
            strides: integers(ctx, 2, "window_strides", spatial)?,
            padding: padding.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
            image_dilation: integers(ctx, 4, "lhs_dilation", spatial)?,
            filter_dilation: integers(ctx, 5, "rhs_dilation", spatial)?,
            feature_groups: ctx.input(6)?.scalar_index()?,
            batch_groups: self.batch_groups,
        };
        let (lhs, rhs) = (cast_to(ctx.input(0)?, T::DTYPE)?, cast_to(ctx.input(1)?, T::DTYPE)?);
        let out = convolution.run::<T>(&lhs, &rhs)?;
        ctx.set(0, out)
    }
}

const INPUTS: [&str; 5] = [
    "window_strides: Tindices",
    "padding: Tindices",
    "lhs_dilation: Tindices",
    "rhs_dilation: Tindices",
    "feature_group_count: Tindices",
];

fn shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.input(0).rank().map(PartialShape::of_rank).unwrap_or_default()])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaConv")
        .doc("A convolution in any layout, with dilations and groups.")
        .input("lhs: T")
        .input("rhs: T")
        .inputs(&INPUTS)
        .output("output: T")
        .attr("T: numbertype")
        .attr("Tindices: {int32, int64}")
        .attr("dimension_numbers: string")
        .attr("precision_config: string")
        .expensive()
        .shape(shape)
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int16 i16, Int32 i32,
                Int64 i64, Complex64 Complex32, Complex128 Complex64],
            init, T => Conv::<T>::new(init)?));
    c.op("XlaConvV2")
        .doc("A convolution in any layout, with dilations and groups, in a given dtype.")
        .input("lhs: LhsT")
        .input("rhs: RhsT")
        .inputs(&INPUTS)
        .output("output: preferred_element_type")
        .attr("LhsT: numbertype")
        .attr("RhsT: numbertype")
        .attr("Tindices: {int32, int64}")
        .attr("dimension_numbers: string")
        .attr("precision_config: string")
        .attr("preferred_element_type: numbertype")
        .attr("batch_group_count: int = 1")
        .expensive()
        .shape(shape)
        .cpu(per_dtype!([Half f16, BFloat16 bf16, Float f32, Double f64, Int16 i16, Int32 i32,
                Int64 i64, Complex64 Complex32, Complex128 Complex64],
            "preferred_element_type", init, T => Conv::<T>::new(init)?));
}

#[cfg(test)]
mod tests {
    use super::{ConvolutionLayout, GeneralConvolution, TensorLayout};
    use crate::prelude::*;

    fn layout() -> ConvolutionLayout {
        let layout = |batch, feature, spatial| TensorLayout { batch, feature, spatial };
        ConvolutionLayout {
            image: layout(0, 2, vec![1]),
            filter: layout(1, 2, vec![0]),
            output: layout(0, 2, vec![1]),
        }
    }

    fn convolution(layout: &ConvolutionLayout) -> GeneralConvolution<'_> {
        GeneralConvolution {
            layout,
            strides: vec![1],
            padding: vec![(1, 1)],
            image_dilation: vec![2],
            filter_dilation: vec![1],
            feature_groups: 1,
            batch_groups: 1,
        }
    }

    #[test]
    fn dilated_images_have_zeros_between_their_elements() {
        let layout = layout();
        let image = Tensor::from_slice([1, 2, 1], &[3f32, 5.0]).unwrap();
        let filter = Tensor::from_slice([2, 1, 1], &[1f32, 10.0]).unwrap();
        let got = convolution(&layout).run::<f32>(&image, &filter).unwrap();
        // 0 3 0 5 0 under a window of two.
        assert_eq!(got, Tensor::from_slice([1, 4, 1], &[30f32, 3.0, 50.0, 5.0]).unwrap());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let layout = layout();
        let image = Shape::from([1, 2, 3]);
        let wrong = |change: &dyn Fn(&mut GeneralConvolution<'_>)| {
            let mut convolution = convolution(&layout);
            change(&mut convolution);
            convolution.output_shape(&image, &Shape::from([2, 3, 1])).unwrap_err().code()
        };
        assert_eq!(wrong(&|c| c.strides = vec![0]), Code::InvalidArgument);
        assert_eq!(wrong(&|c| c.strides = vec![1, 1]), Code::InvalidArgument);
        assert_eq!(wrong(&|c| c.feature_groups = 2), Code::InvalidArgument);
        assert_eq!(wrong(&|c| c.batch_groups = 2), Code::InvalidArgument);
        assert!(convolution(&layout).output_shape(&image, &Shape::from([2, 3])).is_err());
    }
}
