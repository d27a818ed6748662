//! XlaGather: blocks of a tensor that start where indices say.

use super::{check_dimensions, dimension_numbers, for_each_index, integers};
use crate::prelude::*;
use ferroflow_op_kit::dispatch::NUMBERS_AND_BOOL;

/// How indices, blocks and results fit together.
struct Dimensions {
    /// The dimensions of the output that run over a block.
    offset: Vec<usize>,
    /// The dimensions of blocks that the output does not have.
    collapsed: Vec<usize>,
    /// The dimension of the operand that each component of an index starts.
    start_map: Vec<usize>,
    /// The dimension of the indices whose elements make one index.
    index_vector: usize,
}

impl Dimensions {
    fn new(attrs: &Attrs) -> Result<Dimensions> {
        let [_, offset, collapsed, start_map, index_vector] = dimension_numbers::<5>(attrs)?;
        let index_vector = index_vector.last().copied().unwrap_or(0);
        Ok(Dimensions { offset, collapsed, start_map, index_vector })
    }

    /// The dimensions of the output, given those of the batch and of a block.
    fn output<D: Copy>(&self, batch: &[D], block: &[D]) -> Result<Vec<D>> {
        let kept = block.iter().enumerate().filter(|(d, _)| !self.collapsed.contains(d));
        let (mut kept, mut batch) = (kept.map(|(_, d)| *d), batch.iter().copied());
        let rank = self.offset.len() + batch.len();
        check_dimensions("offset_dims", &self.offset, rank)?;
        let dims = (0..rank).map(|d| match self.offset.contains(&d) {
            true => kept.next(),
            false => batch.next(),
        });
        let dims: Option<Vec<D>> = dims.collect();
        match (dims, kept.next()) {
            (Some(dims), None) => Ok(dims),
            _ => bail!(
                InvalidArgument,
                "offset_dims must name a dimension of the output for each of a block that is not \
                 collapsed"
            ),
        }
    }
}

fn gather<W: Movable>(dims: &Dimensions, ctx: &mut Ctx<'_>) -> Result<()> {
    let (operand, indices) = (ctx.input(0)?, ctx.input(1)?);
    let rank = operand.rank();
    let block = Shape::from_dims(&integers(ctx, 2, "slice_sizes", rank)?)?;
    ensure!(
        block.iter().zip(operand.shape().iter()).all(|(size, dim)| size <= dim),
        InvalidArgument,
        "slice_sizes {block} exceed the shape of the operand, {}",
        operand.shape()
    );
    check_dimensions("collapsed_slice_dims", &dims.collapsed, rank)?;
    check_dimensions("start_index_map", &dims.start_map, rank)?;
    ensure!(
        dims.collapsed.iter().all(|&d| block[d] <= 1),
        InvalidArgument,
        "only dimensions of size 1 can be collapsed, slice_sizes are {block}"
    );
    ensure!(
        dims.index_vector <= indices.rank(),
        InvalidArgument,
        "index_vector_dim {} exceeds the rank of start_indices, {}",
        dims.index_vector,
        indices.rank()
    );
    // Without a dimension for its components, an index is one number.
    let components = indices.shape().get(dims.index_vector).copied().unwrap_or(1);
    ensure!(
        components == dims.start_map.len(),
        InvalidArgument,
        "an index has {components} components, start_index_map names {}",
        dims.start_map.len()
    );
    let batch_dims: Vec<usize> = (0..indices.rank()).filter(|&d| d != dims.index_vector).collect();
    let batch: Vec<usize> = batch_dims.iter().map(|&d| indices.shape()[d]).collect();
    let shape: Shape = dims.output(&batch, &block)?.into_iter().collect();
    shape.checked_elements()?;
    let kept: Vec<usize> = (0..rank).filter(|d| !dims.collapsed.contains(d)).collect();
    let places: Vec<usize> = (0..shape.rank()).filter(|d| !dims.offset.contains(d)).collect();
    let (index_strides, strides) = (indices.shape().strides(), operand.shape().strides());
    let component_stride = index_strides.get(dims.index_vector).copied().unwrap_or(1);
    let starts = indices.to_indices()?;
    let mut out = Tensor::zeros(operand.dtype(), shape.clone())?;
    let (from, to) = (W::of(operand)?, W::of_mut(&mut out)?);
    let mut next = 0;
    for_each_index(&shape, |index| {
        let at = places.iter().zip(&batch_dims).map(|(&p, &d)| index[p] * index_strides[d]);
        let at: usize = at.sum();
        let mut element = 0;
        for (c, &d) in dims.start_map.iter().enumerate() {
            let last = (operand.shape()[d] - block[d]) as i64;
            element += starts[at + c * component_stride].clamp(0, last) as usize * strides[d];
        }
        element +=
            dims.offset.iter().zip(&kept).map(|(&o, &d)| index[o] * strides[d]).sum::<usize>();
        to[next] = from[element].clone();
        next += 1;
    });
    ctx.set(0, out)
}

fn gather_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let dims = Dimensions::new(c.attrs)?;
    let indices = c.input(1);
    let (Some(batch), Some(sizes)) = (indices.dims(), c.constant_ints(2)) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let batch: Vec<Option<usize>> = batch
        .iter()
        .enumerate()
        .filter(|(d, _)| *d != dims.index_vector)
        .map(|(_, dim)| *dim)
        .collect();
    let sizes: Vec<Option<usize>> = sizes.iter().map(|&s| usize::try_from(s).ok()).collect();
    Ok(vec![PartialShape::new(dims.output(&batch, &sizes)?)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaGather")
        .doc("Blocks of a tensor that start where indices say.")
        .input("operand: T")
        .input("start_indices: Tindices")
        .input("slice_sizes: Tindices")
        .output("output: T")
        .attr("dimension_numbers: string")
        .attr("indices_are_sorted: bool")
        .attr(NUMBERS_AND_BOOL)
        .attr("Tindices: {int32, int64}")
        .shape(gather_shape)
        .cpu(per_width!(init, W => {
            let dims = Dimensions::new(init)?;
            move |ctx: &mut Ctx<'_>| gather::<W>(&dims, ctx)
        }));
}
