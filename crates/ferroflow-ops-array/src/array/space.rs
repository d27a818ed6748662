//! SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace: move blocks of space to another
//! dimension and back.

use super::walk::{self, Walk};
use crate::prelude::*;

/// The direction in which blocks are moved.
#[derive(Clone, Copy, PartialEq)]
enum To {
    Batch,
    Space,
}

/// The checked input of a conversion.
struct Blocks {
    block: Vec<i64>,
    /// Paddings or crops: before and after each spatial dimension.
    edges: Vec<(i64, i64)>,
}

impl Blocks {
    /// `block_size` is set for the old ops, which have two spatial dimensions only.
    fn new(x: &Tensor, block: &Tensor, edges: &Tensor, old: bool, to: To) -> Result<Blocks> {
        let what = if to == To::Batch { "paddings" } else { "crops" };
        if old {
            ensure!(
                x.rank() == 4,
                InvalidArgument,
                "Input rank should be: 4instead of: {}",
                x.rank()
            );
        }
        ensure!(
            block.rank() == 1,
            InvalidArgument,
            "block_shape rank should be 1 instead of {}",
            block.rank()
        );
        let n = block.elements();
        ensure!(
            x.rank() > n,
            InvalidArgument,
            "input rank should be >= {} instead of {}",
            n + 1,
            x.rank()
        );
        ensure!(
            edges.shape()[..] == [n, 2],
            InvalidArgument,
            "{what} should have shape [{n}, 2] instead of {}",
            edges.shape()
        );
        let block = block.to_indices()?;
        for (i, &b) in block.iter().enumerate() {
            if to == To::Batch {
                ensure!(
                    b >= 1,
                    InvalidArgument,
                    "All values in block_shape must be positive, got value, {b} at index {i}."
                );
            } else {
                ensure!(
                    b >= 1,
                    InvalidArgument,
                    "Product of block sizes must be positive, got {}",
                    block.iter().fold(1i64, |n, &b| n.saturating_mul(b))
                );
            }
        }
        let edges: Vec<(i64, i64)> =
            edges.to_indices()?.chunks_exact(2).map(|e| (e[0], e[1])).collect();
        ensure!(
            edges.iter().all(|(a, b)| *a >= 0 && *b >= 0),
            InvalidArgument,
            "{} must be non-negative",
            if to == To::Batch { "Paddings" } else { "Crops" }
        );
        Ok(Blocks { block, edges })
    }

    /// The shape of the output for an input of this shape.
    fn shape(&self, dims: &[i64], to: To) -> Result<Vec<i64>> {
        let product = self.block.iter().fold(1i64, |n, &b| n.saturating_mul(b));
        let mut out = dims.to_vec();
        for (i, (&b, &(before, after))) in self.block.iter().zip(&self.edges).enumerate() {
            let dim = dims[i + 1];
            out[i + 1] = if to == To::Batch {
                let padded = dim.saturating_add(before).saturating_add(after);
                ensure!(
                    padded % b == 0,
                    InvalidArgument,
                    "padded_shape[{i}]={padded} is not divisible by block_shape[{i}]={b}"
                );
                padded / b
            } else {
                let cropped = dim.saturating_mul(b).saturating_sub(before.saturating_add(after));
                ensure!(
                    cropped >= 0,
                    InvalidArgument,
                    "cropped_shape[{i}]={cropped} must be non-negative"
                );
                cropped
            };
        }
        out[0] = if to == To::Batch {
            dims[0].saturating_mul(product)
        } else {
            ensure!(
                dims[0] % product == 0,
                InvalidArgument,
                "Input batch dimension ({}) is not divisible by product of block sizes ({product})",
                dims[0]
            );
            dims[0] / product
        };
        Ok(out)
    }

    fn convert(&self, x: &Tensor, to: To) -> Result<Tensor> {
        let shape = Shape::from_dims(&self.shape(&x.shape().to_i64s(), to)?)?;
        let mut out = x.zeros_beside(x.dtype(), shape.clone())?;
        if out.elements() == 0 || x.elements() == 0 {
            return Ok(out);
        }
        // `few` has the blocks in its batch dimension, `wide` in its spatial dimensions.
        let (few, wide) = if to == To::Batch { (&shape, x.shape()) } else { (x.shape(), &shape) };
        let (few_strides, wide_strides) = (walk::strides(few), walk::strides(wide));
        let batch = wide[0];
        let n = self.block.len();
        let mut offset = vec![0i64; n];
        for group in 0..few[0] / batch {
            let mut few_at = group * batch * few_strides[0] as usize;
            let mut wide_at = 0usize;
            let mut lens = Vec::with_capacity(n);
            for i in 0..n {
                // Position `j` of the block grid is position `j * block + shift` of the wide side.
                let (b, shift) = (self.block[i], offset[i] - self.edges[i].0);
                let first = if shift < 0 { (-shift + b - 1) / b } else { 0 };
                let end = Ord::max(wide[i + 1] as i64 - shift + b - 1, 0) / b;
                let end = Ord::min(end, few[i + 1] as i64);
                lens.push(usize::try_from(end - first).unwrap_or(0));
                if end > first {
                    few_at += first as usize * few_strides[i + 1] as usize;
                    wide_at += (first * b + shift) as usize * wide_strides[i + 1] as usize;
                }
            }
            let (from, into) = if to == To::Batch { (wide_at, few_at) } else { (few_at, wide_at) };
            let mut walk = Walk::new(from, into);
            let mut then = |len: usize, few: isize, wide: isize| {
                let (from, into) = if to == To::Batch { (wide, few) } else { (few, wide) };
                walk.then(len, from, into);
            };
            then(batch, few_strides[0], wide_strides[0]);
            for (i, &len) in lens.iter().enumerate() {
                then(len, few_strides[i + 1], wide_strides[i + 1] * self.block[i] as isize);
            }
            then(x.shape()[n + 1..].iter().product(), 1, 1);
            walk.copy(x, &mut out)?;
            for (o, b) in offset.iter_mut().zip(&self.block).rev() {
                *o += 1;
                if *o < *b {
                    break;
                }
                *o = 0;
            }
        }
        Ok(out)
    }
}

/// The kernel of the ops with a `block_shape` input.
fn convert(to: To) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (x, block, edges) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let out = Blocks::new(x, block, edges, false, to)?.convert(x, to)?;
        ctx.set(0, out)
    }
}

/// The kernel of the ops with a `block_size` attribute.
fn convert_old(to: To, init: &KernelInit<'_>) -> Result<KernelBox> {
    let size = init.int("block_size")?;
    let block = Tensor::vector(&[size, size]);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (x, edges) = (ctx.input(0)?, ctx.input(1)?);
        let out = Blocks::new(x, &block, edges, true, to)?.convert(x, to)?;
        ctx.set(0, out)
    }))
}

/// The shape of the output if everything is known, otherwise its rank.
fn convert_shape(
    c: &ShapeCtx<'_>,
    block: Option<Vec<i64>>,
    edges: usize,
    to: To,
) -> Result<Vec<PartialShape>> {
    let Some(rank) = c.input(0).rank() else { return shape::unknown(c) };
    if let Some(block) = &block {
        let positive = block.iter().all(|&b| b >= 1);
        ensure!(positive, InvalidArgument, "block_shape {block:?} must be positive");
        ensure!(
            rank > block.len(),
            InvalidArgument,
            "Shape must be at least rank {} but is rank {rank}",
            block.len() + 1
        );
        PartialShape::new([Some(block.len()), Some(2)]).merge(&c.input(edges))?;
    }
    let (Some(known), Some(block), Some(edges)) =
        (c.input(0).known(), block, c.constant_ints(edges))
    else {
        return Ok(vec![PartialShape::of_rank(rank)]);
    };
    let edges: Vec<(i64, i64)> = edges.chunks_exact(2).map(|e| (e[0], e[1])).collect();
    let fits = rank > block.len() && block.len() == edges.len() && block.iter().all(|&b| b >= 1);
    ensure!(fits, InvalidArgument, "block_shape {block:?} does not fit an input of rank {rank}");
    let dims = Blocks { block, edges }.shape(&known.to_i64s(), to)?;
    Ok(vec![Shape::from_dims(&dims)?.into()])
}

/// SpaceToDepth or its inverse.
fn depth(init: &KernelInit<'_>, deeper: bool) -> Result<KernelBox> {
    let block = init.int("block_size")?;
    let format = init.string("data_format")?;
    ensure!(
        format != "NCHW_VECT_C",
        Unimplemented,
        "{} does not support data_format {format} on the CPU",
        init.node.op
    );
    let channels_last = format == "NHWC";
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let shape = depth_shape(x.shape(), block, channels_last, deeper)?;
        let mut out = x.alloc_beside(x.dtype(), shape.clone())?;
        if out.elements() > 0 {
            // `shallow` has the large spatial dimensions, `deep` the many channels.
            let (shallow, deep) = if deeper { (x.shape(), &shape) } else { (&shape, x.shape()) };
            let (s, d) = (walk::strides(shallow), walk::strides(deep));
            let [h, w, ch] = if channels_last { [1, 2, 3] } else { [2, 3, 1] };
            let (b, depth) = (block as usize, shallow[ch]);
            let loops = [
                (shallow[0], s[0], d[0]),
                (deep[h], s[h] * b as isize, d[h]),
                (deep[w], s[w] * b as isize, d[w]),
                (b, s[h], d[ch] * (b * depth) as isize),
                (b, s[w], d[ch] * depth as isize),
                (depth, s[ch], d[ch]),
            ];
            let mut walk = Walk::new(0, 0);
            for (len, shallow, deep) in loops {
                let (from, to) = if deeper { (shallow, deep) } else { (deep, shallow) };
                walk.then(len, from, to);
            }
            walk.copy(x, &mut out)?;
        }
        ctx.set(0, out)
    }))
}

fn depth_shape(x: &[usize], block: i64, channels_last: bool, deeper: bool) -> Result<Shape> {
    ensure!(
        x.len() == 4,
        InvalidArgument,
        "Input rank should be{} 4 instead of{} {}",
        if deeper { "" } else { ":" },
        if deeper { "" } else { ":" },
        x.len()
    );
    let [h, w, ch] = if channels_last { [1, 2, 3] } else { [2, 3, 1] };
    let square = block.saturating_mul(block);
    let mut dims: Vec<i64> = x.iter().map(|&d| d as i64).collect();
    if deeper {
        ensure!(
            dims[h] % block == 0 && dims[w] % block == 0,
            InvalidArgument,
            "Image width {} and height {} should be divisible by block_size: {block}",
            dims[w],
            dims[h]
        );
        (dims[h], dims[w]) = (dims[h] / block, dims[w] / block);
        dims[ch] = dims[ch].saturating_mul(square);
    } else {
        ensure!(
            dims[ch] % square == 0,
            InvalidArgument,
            "Input depth dimension {} should be divisible by: {square}",
            dims[ch]
        );
        dims[ch] /= square;
        (dims[h], dims[w]) = (dims[h].saturating_mul(block), dims[w].saturating_mul(block));
    }
    Shape::from_dims(&dims)
}

fn infer_depth(c: &ShapeCtx<'_>, deeper: bool) -> Result<Vec<PartialShape>> {
    let format = c.attrs.string("data_format")?;
    match c.input(0).known() {
        Some(x) if format != "NCHW_VECT_C" => {
            let block = c.attrs.int("block_size")?;
            Ok(vec![depth_shape(&x, block, format == "NHWC", deeper)?.into()])
        }
        _ => Ok(vec![PartialShape::of_rank(if format == "NCHW_VECT_C" { 5 } else { 4 })]),
    }
}

/// The block shape of the old ops.
fn block_attr(c: &ShapeCtx<'_>) -> Option<Vec<i64>> {
    c.attrs.int("block_size").ok().map(|b| vec![b, b])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SpaceToBatchND")
        .work(work::any)
        .doc("Moves blocks of space, after padding, into the batch dimension.")
        .input("input: T")
        .input("block_shape: Tblock_shape")
        .input("paddings: Tpaddings")
        .output("output: T")
        .attr("T: type")
        .attr("Tblock_shape: {int32, int64} = DT_INT32")
        .attr("Tpaddings: {int32, int64} = DT_INT32")
        .shape(|c| convert_shape(c, c.constant_ints(1), 2, To::Batch))
        .anywhere()
        .host_inputs(&["block_shape", "paddings"])
        .cpu(|_| Ok(KernelBox::new(convert(To::Batch))));
    c.op("BatchToSpaceND")
        .doc("Moves blocks from the batch dimension back into space, and crops it.")
        .input("input: T")
        .input("block_shape: Tblock_shape")
        .input("crops: Tcrops")
        .output("output: T")
        .attr("T: type")
        .attr("Tblock_shape: {int32, int64} = DT_INT32")
        .attr("Tcrops: {int32, int64} = DT_INT32")
        .shape(|c| convert_shape(c, c.constant_ints(1), 2, To::Space))
        .anywhere()
        .host_inputs(&["block_shape", "crops"])
        .cpu(|_| Ok(KernelBox::new(convert(To::Space))));
    c.op("SpaceToBatch")
        .work(work::any)
        .doc("Moves square blocks of images, after padding, into the batch dimension.")
        .input("input: T")
        .input("paddings: Tpaddings")
        .output("output: T")
        .attr("T: type")
        .attr("Tpaddings: {int32, int64} = DT_INT32")
        .attr("block_size: int >= 2")
        .shape(|c| convert_shape(c, block_attr(c), 1, To::Batch))
        .anywhere()
        .host_inputs(&["paddings"])
        .cpu(|init| convert_old(To::Batch, init));
    c.op("BatchToSpace")
        .doc("Moves square blocks from the batch dimension back into images, and crops them.")
        .input("input: T")
        .input("crops: Tidx")
        .output("output: T")
        .attr("T: type")
        .attr("block_size: int >= 2")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .shape(|c| convert_shape(c, block_attr(c), 1, To::Space))
        .anywhere()
        .host_inputs(&["crops"])
        .cpu(|init| convert_old(To::Space, init));
    c.op("SpaceToDepth")
        .doc("Moves square blocks of images into the channels.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("block_size: int >= 2")
        .attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
        .shape(|c| infer_depth(c, true))
        .anywhere()
        .cpu(|init| depth(init, true));
    c.op("DepthToSpace")
        .doc("Moves channels back into square blocks of images.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("block_size: int >= 2")
        .attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
        .shape(|c| infer_depth(c, false))
        .anywhere()
        .cpu(|init| depth(init, false));
    for (op, back) in [
        ("SpaceToBatchND", "BatchToSpaceND"),
        ("BatchToSpaceND", "SpaceToBatchND"),
        ("SpaceToBatch", "BatchToSpace"),
        ("BatchToSpace", "SpaceToBatch"),
        ("SpaceToDepth", "DepthToSpace"),
        ("DepthToSpace", "SpaceToDepth"),
    ] {
        c.gradient(op, move |g, dy| {
            let mut inputs = g.inputs();
            inputs[0] = dy[0];
            Ok(g.only(g.call_like(back, &inputs)))
        });
    }
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

    fn t(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    fn nd(op: &str, x: Tensor, block: &[i32], edges: &[i32]) -> Check<'static> {
        check(op)
            .input(x)
            .input(Tensor::vector(block))
            .input(Tensor::from_slice([edges.len() / 2, 2], edges).unwrap())
    }

    #[test]
    fn space_goes_into_the_batch() {
        nd("SpaceToBatchND", count(&[1, 4, 4, 1]), &[2, 2], &[0, 0, 2, 0]).gives(t(
            &[4, 2, 3, 1],
            &[
                0.0, 0.0, 2.0, 0.0, 8.0, 10.0, 0.0, 1.0, 3.0, 0.0, 9.0, 11.0, 0.0, 4.0, 6.0, 0.0,
                12.0, 14.0, 0.0, 5.0, 7.0, 0.0, 13.0, 15.0,
            ],
        ));
        nd("SpaceToBatchND", t(&[1, 3], &[1.0, 2.0, 3.0]), &[2], &[1, 0])
            .gives(t(&[2, 2], &[0.0, 2.0, 1.0, 3.0]));
        nd("SpaceToBatchND", t(&[1, 3], &[1.0, 2.0, 3.0]), &[], &[])
            .gives(t(&[1, 3], &[1.0, 2.0, 3.0]));
        check("SpaceToBatch")
            .input(count(&[1, 2, 2, 1]))
            .input(Tensor::zeros(DType::Int32, [2, 2]).unwrap())
            .attr("block_size", 2i64)
            .gives(t(&[4, 1, 1, 1], &[0.0, 1.0, 2.0, 3.0]));
    }

    #[test]
    fn the_batch_goes_back_into_space() {
        nd("BatchToSpaceND", t(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), &[2], &[1, 0])
            .gives(t(&[1, 3], &[3.0, 2.0, 4.0]));
        check("BatchToSpace")
            .input(count(&[8, 1, 1, 1]))
            .input(Tensor::from_slice([2, 2], &[0i32, 0, 1, 0]).unwrap())
            .attr("block_size", 2i64)
            .gives(t(&[2, 2, 1, 1], &[2.0, 6.0, 3.0, 7.0]));
        let x = count(&[2, 4, 6, 3]);
        let out = nd("SpaceToBatchND", x.clone(), &[2, 3], &[1, 1, 0, 3]).run().unwrap().remove(0);
        nd("BatchToSpaceND", out, &[2, 3], &[1, 1, 0, 3]).gives(x);
    }

    #[test]
    fn blocks_that_do_not_fit_are_refused() {
        let x = || count(&[1, 4, 4, 1]);
        let fails = |c: Check<'_>, text: &str| c.fails(Code::InvalidArgument, text);
        fails(
            nd("SpaceToBatchND", x(), &[3], &[0, 0]),
            "padded_shape[0]=4 is not divisible by block_shape[0]=3",
        );
        fails(
            nd("SpaceToBatchND", x(), &[0], &[0, 0]),
            "must be positive, got value, 0 at index 0.",
        );
        fails(nd("SpaceToBatchND", x(), &[2], &[0, -2]), "Paddings must be non-negative");
        fails(
            nd("SpaceToBatchND", x(), &[2, 2], &[0, 0]),
            "paddings should have shape [2, 2] instead of [1,2]",
        );
        fails(
            nd("SpaceToBatchND", count(&[2]), &[2, 2], &[0; 4]),
            "input rank should be >= 3 instead of 1",
        );
        let m = || count(&[2, 2]);
        fails(
            nd("BatchToSpaceND", m(), &[3], &[1, 0]),
            "Input batch dimension (2) is not divisible by product of block sizes (3)",
        );
        fails(
            nd("BatchToSpaceND", m(), &[0], &[1, 0]),
            "Product of block sizes must be positive, got 0",
        );
        fails(nd("BatchToSpaceND", m(), &[2], &[5, 0]), "cropped_shape[0]=-1 must be non-negative");
    }

    #[test]
    fn space_and_depth_are_exchanged() {
        let to = |op: &str, x: Tensor| check(op).input(x).attr("block_size", 2i64);
        to("SpaceToDepth", count(&[1, 2, 4, 1]))
            .gives(t(&[1, 1, 2, 4], &[0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]));
        to("DepthToSpace", count(&[1, 1, 1, 8]))
            .gives(t(&[1, 2, 2, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
        to("SpaceToDepth", count(&[1, 1, 2, 2]))
            .attr("data_format", "NCHW")
            .gives(t(&[1, 4, 1, 1], &[0.0, 1.0, 2.0, 3.0]));
        to("SpaceToDepth", count(&[1, 0, 4, 1])).gives(t(&[1, 0, 2, 4], &[]));
        to("SpaceToDepth", count(&[1, 4, 3, 1])).fails(
            Code::InvalidArgument,
            "Image width 3 and height 4 should be divisible by block_size: 2",
        );
        to("SpaceToDepth", count(&[4, 4]))
            .fails(Code::InvalidArgument, "Input rank should be 4 instead of 2");
        to("DepthToSpace", count(&[1, 6]))
            .fails(Code::InvalidArgument, "Input rank should be: 4 instead of: 2");
        to("DepthToSpace", count(&[1, 1, 1, 6]))
            .fails(Code::InvalidArgument, "Input depth dimension 6 should be divisible by: 4");
    }
}
