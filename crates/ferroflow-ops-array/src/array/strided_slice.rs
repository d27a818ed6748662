//! StridedSlice, its gradient, and updates of a tensor through a slice.

use super::args::to_shape;
use super::slice::block;
use super::walk::{self, Walk};
use crate::prelude::*;
use ferroflow_graph::Attrs;

/// The bit masks of a slice. Bit `i` belongs to entry `i` of begin, end and strides.
#[derive(Clone, Copy, Debug)]
pub struct SliceMasks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink_axis: i64,
}

impl SliceMasks {
    /// The masks that the attributes of a node say.
    pub fn new(attrs: &Attrs) -> Result<SliceMasks> {
        let masks = SliceMasks {
            begin: attrs.int("begin_mask")?,
            end: attrs.int("end_mask")?,
            ellipsis: attrs.int("ellipsis_mask")?,
            new_axis: attrs.int("new_axis_mask")?,
            shrink_axis: attrs.int("shrink_axis_mask")?,
        };
        ensure!(
            masks.ellipsis.count_ones() <= 1,
            InvalidArgument,
            "Multiple ellipses in slice spec not allowed"
        );
        Ok(masks)
    }
}

/// How one dimension of the input is sliced.
#[derive(Clone, Copy, Debug)]
struct Dim {
    begin: i64,
    stride: i64,
    /// Unknown only during shape inference.
    len: Option<usize>,
}

/// One dimension of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Dim(usize),
    NewAxis,
}

/// A slice resolved for a shape.
#[derive(Debug)]
pub struct Slicing {
    dims: Vec<Dim>,
    places: Vec<Place>,
    shape: Shape,
}

/// `begin`, `end` and `stride` of one entry.
type Triple = (i64, i64, i64);

/// For each dimension of an input of this rank, the entry of the slice that applies to it, if any;
/// and the dimensions of the result.
fn places(n: usize, masks: SliceMasks, rank: usize) -> Result<(Vec<Option<usize>>, Vec<Place>)> {
    let has = |mask: i64, i: usize| mask >> i & 1 == 1;
    // A slice without an ellipsis has one at the end.
    let ellipsis = (0..n).find(|&i| has(masks.ellipsis, i)).unwrap_or(n);
    let taken = (0..n).filter(|&i| i != ellipsis && !has(masks.new_axis, i)).count();
    let (mut spoken_for, mut places) = (Vec::with_capacity(rank), Vec::new());
    for i in 0..n.max(ellipsis + 1) {
        if i == ellipsis {
            for _ in taken..rank {
                places.push(Place::Dim(spoken_for.len()));
                spoken_for.push(None);
            }
        } else if has(masks.new_axis, i) {
            places.push(Place::NewAxis);
        } else {
            ensure!(rank > 0, InvalidArgument, "Attempting to slice scalar input.");
            ensure!(
                spoken_for.len() < rank,
                InvalidArgument,
                "Index out of range using input dim {rank}; input has only {rank} dims"
            );
            if !has(masks.shrink_axis, i) {
                places.push(Place::Dim(spoken_for.len()));
            }
            spoken_for.push(Some(i));
        }
    }
    Ok((spoken_for, places))
}

/// One dimension of size `size`, sliced by entry `i`.
fn slice_dim(
    size: usize,
    (begin, end, stride): Triple,
    i: usize,
    at: usize,
    masks: SliceMasks,
) -> Result<Dim> {
    let size = size as i64;
    let has = |mask: i64| mask >> i & 1 == 1;
    let forward = |x: i64| if x < 0 { x + size } else { x };
    if has(masks.shrink_axis) {
        let begin = forward(begin);
        ensure!(
            0 <= begin && begin < size,
            InvalidArgument,
            "slice index {begin} of dimension {at} out of bounds."
        );
        return Ok(Dim { begin, stride: 1, len: Some(1) });
    }
    let (low, high) = if stride > 0 { (0, size) } else { (-1, size - 1) };
    let (first, last) = if stride > 0 { (low, high) } else { (high, low) };
    let begin = if has(masks.begin) { first } else { forward(begin).clamp(low, high) };
    let end = if has(masks.end) { last } else { forward(end).clamp(low, high) };
    let way = end - begin;
    let len = if way == 0 || (way < 0) != (stride < 0) {
        0
    } else {
        way / stride + i64::from(way % stride != 0)
    };
    Ok(Dim { begin, stride, len: Some(len as usize) })
}

/// The resolved dimensions. Lengths are unknown where `spec` or a size is unknown.
fn dims(
    shape: &[Option<usize>],
    spoken_for: &[Option<usize>],
    spec: Option<&[Triple]>,
    masks: SliceMasks,
) -> Result<Vec<Dim>> {
    let mut dims = Vec::with_capacity(shape.len());
    for (at, (&size, place)) in shape.iter().zip(spoken_for).enumerate() {
        let dim = match (place, spec) {
            (None, _) => Dim { begin: 0, stride: 1, len: size },
            (Some(_), None) => Dim { begin: 0, stride: 1, len: None },
            (&Some(i), Some(spec)) => {
                let triple = spec[i];
                ensure!(triple.2 != 0, InvalidArgument, "strides[{at}] must be non-zero");
                ensure!(
                    masks.shrink_axis >> i & 1 == 0 || triple.2 > 0,
                    InvalidArgument,
                    "only stride 1 allowed on non-range indexing."
                );
                match size {
                    Some(size) => slice_dim(size, triple, i, at, masks)?,
                    None => Dim { begin: 0, stride: 1, len: None },
                }
            }
        };
        dims.push(dim);
    }
    Ok(dims)
}

impl Slicing {
    /// The slice that these inputs of an op describe, for a tensor of shape `input`.
    pub fn new(
        input: &[usize],
        begin: &Tensor,
        end: &Tensor,
        strides: &Tensor,
        masks: SliceMasks,
    ) -> Result<Slicing> {
        let n = begin.elements();
        ensure!(
            [begin, end, strides].iter().all(|t| t.shape()[..] == [n]) && n < 32,
            InvalidArgument,
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes {}, {}, \
             and {} instead.",
            begin.shape(),
            end.shape(),
            strides.shape()
        );
        let spec = triples(&begin.to_indices()?, &end.to_indices()?, &strides.to_indices()?);
        let (spoken_for, places) = places(n, masks, input.len())?;
        let known: Vec<Option<usize>> = input.iter().map(|&d| Some(d)).collect();
        let dims = dims(&known, &spoken_for, Some(&spec), masks)?;
        let shape = places.iter().map(|p| len_of(&dims, *p).unwrap_or(0)).collect();
        Ok(Slicing { dims, places, shape })
    }

    /// The shape of the slice.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements of the slice of `x`; shares storage with `x` where it can.
    pub(crate) fn of(&self, x: &Tensor) -> Result<Tensor> {
        if self.shape.contains(&0) {
            return x.alloc_beside(x.dtype(), self.shape.clone());
        }
        let size: Vec<usize> = self.dims.iter().map(|d| d.len.unwrap_or(0)).collect();
        if self.dims.iter().all(|d| d.stride == 1) {
            let begin: Vec<usize> = self.dims.iter().map(|d| d.begin as usize).collect();
            return block(x, &begin, &size)?.into_shape(self.shape.clone());
        }
        let (from, strides) = self.strides(x.shape());
        let mut out = x.alloc_beside(x.dtype(), self.shape.clone())?;
        Walk::gather(&size, &strides, from).copy(x, &mut out)?;
        Ok(out)
    }

    /// Writes `value`, broadcast to the slice's shape, to the slice of `x`.
    pub fn assign(&self, x: &mut Tensor, value: &Tensor) -> Result<()> {
        let (have, want) = (value.shape(), &self.shape);
        let broadcasts = have.rank() <= want.rank()
            && have.iter().rev().zip(want.iter().rev()).all(|(h, w)| h == w || *h == 1);
        ensure!(
            broadcasts,
            InvalidArgument,
            "Cannot broadcast input shape {have} into final shape {want}"
        );
        if want.contains(&0) {
            return Ok(());
        }
        let missing = want.rank() - have.rank();
        let (to, strides) = self.strides(x.shape());
        let mut walk = Walk::new(0, to);
        for (i, place) in self.places.iter().enumerate() {
            let from = match i.checked_sub(missing) {
                Some(i) if have[i] > 1 => have.strides()[i] as isize,
                _ => 0,
            };
            match *place {
                Place::NewAxis => {}
                Place::Dim(d) => {
                    walk.then(self.dims[d].len.unwrap_or(0), from, strides[d]);
                }
            }
        }
        walk.copy(value, x)
    }

    /// The start of the slice in a tensor of shape `input`, and the strides between its elements.
    fn strides(&self, input: &[usize]) -> (usize, Vec<isize>) {
        let mut from = 0;
        let mut strides = Vec::with_capacity(self.dims.len());
        for (dim, stride) in self.dims.iter().zip(walk::strides(input)) {
            from += dim.begin as usize * stride as usize;
            // A stride that is never used may be too large to multiply.
            strides.push(if dim.len == Some(1) { 0 } else { dim.stride as isize * stride });
        }
        (from, strides)
    }
}

fn triples(begin: &[i64], end: &[i64], strides: &[i64]) -> Vec<Triple> {
    begin.iter().zip(end).zip(strides).map(|((b, e), s)| (*b, *e, *s)).collect()
}

fn len_of(dims: &[Dim], place: Place) -> Option<usize> {
    match place {
        Place::Dim(d) => dims[d].len,
        Place::NewAxis => Some(1),
    }
}

fn strided_slice(init: &KernelInit<'_>) -> Result<KernelBox> {
    let masks = SliceMasks::new(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let slicing = Slicing::new(x.shape(), ctx.input(1)?, ctx.input(2)?, ctx.input(3)?, masks)?;
        let out = slicing.of(x)?;
        ctx.set(0, out)
    }))
}

fn strided_slice_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let masks = SliceMasks::new(c.attrs)?;
    let input = c.input(0);
    let n = (1..4).find_map(|i| c.input(i).dim(0));
    let (Some(sizes), Some(n)) = (input.dims(), n.filter(|&n| n < 32)) else {
        return shape::unknown(c);
    };
    let spec = match (c.constant_ints(1), c.constant_ints(2), c.constant_ints(3)) {
        (Some(b), Some(e), Some(s)) if [b.len(), e.len(), s.len()] == [n; 3] => {
            Some(triples(&b, &e, &s))
        }
        _ => None,
    };
    let (spoken_for, places) = places(n, masks, sizes.len())?;
    let dims = dims(sizes, &spoken_for, spec.as_deref(), masks)?;
    Ok(vec![PartialShape::new(places.iter().map(|p| len_of(&dims, *p)))])
}

fn strided_slice_grad(init: &KernelInit<'_>) -> Result<KernelBox> {
    let masks = SliceMasks::new(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let shape = ctx.input(0)?;
        ensure!(
            shape.rank() == 1,
            InvalidArgument,
            "shape must be 1-D, got shape.shape = {}",
            shape.shape()
        );
        let shape = to_shape(&shape.to_indices()?)?;
        let slicing = Slicing::new(&shape, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?, masks)?;
        let dy = ctx.input(4)?;
        ensure!(
            dy.shape() == slicing.shape(),
            InvalidArgument,
            "shape of dy was {} instead of {}",
            dy.shape(),
            slicing.shape()
        );
        let mut out = dy.zeros_beside(dy.dtype(), shape)?;
        slicing.assign(&mut out, dy)?;
        ctx.set(0, out)
    }))
}

fn tensor_strided_slice_update(init: &KernelInit<'_>) -> Result<KernelBox> {
    let masks = SliceMasks::new(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let shape = ctx.input(0)?.shape();
        let slicing = Slicing::new(shape, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?, masks)?;
        let mut out = ctx.take_or_copy(0)?;
        slicing.assign(&mut out, ctx.input(4)?)?;
        ctx.set(0, out)
    }))
}

/// The attributes with the masks of a slice.
pub const MASKS: [&str; 5] = [
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
];

/// The bounds of a slice.
const BOUNDS: [&str; 3] = ["begin: Index", "end: Index", "strides: Index"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("StridedSlice")
        .doc("Every `strides`-th element from `begin` to before `end`, in each dimension.")
        .input("input: T")
        .inputs(&BOUNDS)
        .output("output: T")
        .attr("T: type")
        .attr("Index: {int16, int32, int64}")
        .attrs(&MASKS)
        .shape(strided_slice_shape)
        .anywhere()
        .host_inputs(&["begin", "end", "strides"])
        .cpu(strided_slice);
    c.op("StridedSliceGrad")
        .work(work::of_shape::<0>)
        .doc("Zeros of the given shape with `dy` where a StridedSlice would have taken it from.")
        .input("shape: Index")
        .inputs(&BOUNDS)
        .input("dy: T")
        .output("output: T")
        .attr("T: type")
        .attr("Index: {int32, int64}")
        .attrs(&MASKS)
        .shape(shape::from_input_0)
        .anywhere()
        .host_inputs(&["shape", "begin", "end", "strides"])
        .cpu(strided_slice_grad);
    c.op("TensorStridedSliceUpdate")
        .doc("Its input with a strided slice of it replaced by `value`.")
        .input("input: T")
        .inputs(&BOUNDS)
        .input("value: T")
        .output("output: T")
        .attr("T: type")
        .attr("Index: {int32, int64}")
        .attrs(&MASKS)
        .shape(shape::same_as_input)
        .cpu(tensor_strided_slice_update);
    c.gradient("StridedSlice", |g, dy| {
        let (begin, end, strides) = (g.input(1), g.input(2), g.input(3));
        let shape = g.input(0).shape_as(begin.dtype());
        let inputs = [shape, begin, end, strides, dy[0]];
        Ok(g.only(g.call_like("StridedSliceGrad", &inputs)))
    });
    c.gradient("StridedSliceGrad", |g, dy| {
        let inputs = [dy[0], g.input(1), g.input(2), g.input(3)];
        Ok(g.at(4, g.call_like("StridedSlice", &inputs)))
    });
    c.gradient("TensorStridedSliceUpdate", |g, dy| {
        let (begin, end, strides, value) = (g.input(1), g.input(2), g.input(3), g.input(4));
        let d_value = g.call_like("StridedSlice", &[dy[0], begin, end, strides]);
        let inputs = [dy[0], begin, end, strides, d_value.zeros_like()];
        let mut all = g.only(g.call_like("TensorStridedSliceUpdate", &inputs));
        all[4] = g.unbroadcast_one(d_value, value, d_value);
        Ok(all)
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn cube() -> Tensor {
        Tensor::from_slice([2, 3, 4], &(0..24).collect::<Vec<i32>>()).unwrap()
    }

    /// Sets the named masks to the numbers that follow them.
    fn slice(x: Tensor, spec: [&[i64]; 3], masks: &[(&str, i64)]) -> Check<'static> {
        let mut check = check("StridedSlice").input(x);
        for part in spec {
            check = check.input(Tensor::vector(part));
        }
        masks.iter().fold(check, |c, (name, mask)| c.attr(&format!("{name}_mask"), *mask))
    }

    fn t(dims: &[usize], values: &[i32]) -> Tensor {
        Tensor::from_slice(Shape::from(dims), values).unwrap()
    }

    #[test]
    fn slices_step_both_ways() {
        let v = || Tensor::vector(&[1i32, 2, 3]);
        slice(v(), [&[-100], &[100], &[1]], &[]).gives(v());
        slice(v(), [&[100], &[-100], &[-2]], &[]).gives(t(&[2], &[3, 1]));
        slice(v(), [&[1], &[1], &[1]], &[]).gives(t(&[0], &[]));
        slice(v(), [&[i64::MIN], &[i64::MAX], &[i64::MAX]], &[]).gives(t(&[1], &[1]));
        slice(v(), [&[i64::MAX], &[i64::MIN], &[i64::MIN]], &[]).gives(t(&[1], &[3]));
        slice(cube(), [&[0, 1], &[1, 3], &[1, -1]], &[("begin", 2), ("end", 2)])
            .gives(t(&[1, 3, 4], &[8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]));
        slice(cube(), [&[0, 0, 0], &[1, 2, 4], &[1, 1, 3]], &[("begin", 7), ("end", 7)])
            .gives(t(&[2, 3, 2], &[0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23]));
    }

    #[test]
    fn masks_add_and_drop_dimensions() {
        slice(cube(), [&[0, 1], &[1, 3], &[1, 2]], &[("ellipsis", 1)])
            .gives(t(&[2, 3, 1], &[1, 5, 9, 13, 17, 21]));
        slice(cube(), [&[1, 0, 0], &[2, 0, 0], &[1, 1, 1]], &[("shrink_axis", 5), ("ellipsis", 2)])
            .gives(t(&[3], &[12, 16, 20]));
        slice(cube(), [&[0, 0], &[0, 0], &[1, 1]], &[("new_axis", 1), ("shrink_axis", 2)])
            .gives(t(&[1, 3, 4], &(0..12).collect::<Vec<_>>()));
        slice(cube(), [&[0, 0], &[0, 0], &[1, 1]], &[("new_axis", 1), ("shrink_axis", 1)])
            .gives(t(&[1, 0, 3, 4], &[]));
        slice(Tensor::scalar(1i32), [&[0], &[1], &[1]], &[("new_axis", 1)]).gives(t(&[1], &[1]));
        slice(Tensor::scalar(1i32), [&[], &[], &[]], &[]).gives(Tensor::scalar(1i32));
        slice(cube(), [&[0, 0], &[2, 2], &[1, 1]], &[("ellipsis", 1), ("new_axis", 1)])
            .gives(t(&[2, 3, 2], &[0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21]));
    }

    #[test]
    fn whole_rows_share_the_storage() {
        let x = cube();
        let spec: [&[i64]; 3] = [&[1], &[2], &[1]];
        let out = slice(x.clone(), spec, &[("shrink_axis", 1)]).run().unwrap();
        assert!(out[0].shares_storage(&x));
    }

    #[test]
    fn bad_slices_are_refused() {
        let fails = |x, spec, masks: &[(&str, i64)], text| {
            slice(x, spec, masks).fails(Code::InvalidArgument, text)
        };
        let shrink = &[("shrink_axis", 1)];
        fails(
            cube(),
            [&[0; 4], &[1; 4], &[1; 4]],
            &[],
            "Index out of range using input dim 3; input has only 3 dims",
        );
        fails(cube(), [&[0], &[1], &[0]], &[], "strides[0] must be non-zero");
        fails(
            cube(),
            [&[0, 0], &[1], &[1]],
            &[],
            "1D equal size tensors, but got shapes [2], [1], and [1] instead.",
        );
        fails(cube(), [&[5], &[6], &[1]], shrink, "slice index 5 of dimension 0 out of bounds.");
        fails(cube(), [&[-3], &[6], &[1]], shrink, "slice index -1 of dimension 0 out of bounds.");
        fails(cube(), [&[0], &[6], &[-1]], shrink, "only stride 1 allowed on non-range indexing.");
        fails(
            cube(),
            [&[0, 0], &[1, 1], &[1, 1]],
            &[("ellipsis", 3)],
            "Multiple ellipses in slice spec not allowed",
        );
        fails(Tensor::scalar(1i32), [&[0], &[1], &[1]], &[], "Attempting to slice scalar input.");
        fails(cube(), [&[0; 40], &[0; 40], &[1; 40]], &[], "1D equal size tensors");
    }

    fn grad(shape: &[i32], spec: [&[i32]; 3], dy: Tensor) -> Check<'static> {
        let mut check = check("StridedSliceGrad").input(Tensor::vector(shape));
        for part in spec {
            check = check.input(Tensor::vector(part));
        }
        check.input(dy)
    }

    #[test]
    fn the_gradient_goes_back_to_its_place() {
        grad(&[4], [&[0], &[4], &[2]], t(&[2], &[1, 2])).gives(t(&[4], &[1, 0, 2, 0]));
        grad(&[2, 3], [&[0, 2], &[2, 0], &[1, -1]], t(&[2, 2], &[1, 2, 3, 4]))
            .gives(t(&[2, 3], &[0, 2, 1, 0, 4, 3]));
        grad(&[2, 3], [&[1], &[2], &[1]], t(&[3], &[1, 2, 3]))
            .attr("shrink_axis_mask", 1i64)
            .gives(t(&[2, 3], &[0, 0, 0, 1, 2, 3]));
        grad(&[4], [&[0], &[4], &[2]], t(&[3], &[1, 2, 3]))
            .fails(Code::InvalidArgument, "shape of dy was [3] instead of [2]");
        grad(&[-2], [&[0], &[2], &[1]], t(&[1], &[1]))
            .fails(Code::InvalidArgument, "Dimension -2 must be >= 0");
    }

    #[test]
    fn a_slice_is_replaced() {
        let update = |x: Tensor, spec: [&[i32]; 3], value: Tensor| {
            let mut check = check("TensorStridedSliceUpdate").input(x);
            for part in spec {
                check = check.input(Tensor::vector(part));
            }
            check.input(value)
        };
        let v = || Tensor::vector(&[1i32, 2, 3, 4]);
        update(v(), [&[0], &[4], &[2]], t(&[2], &[8, 9])).gives(t(&[4], &[8, 2, 9, 4]));
        update(v(), [&[0], &[4], &[2]], Tensor::scalar(8i32)).gives(t(&[4], &[8, 2, 8, 4]));
        update(v(), [&[3], &[0], &[-2]], t(&[2], &[8, 9])).gives(t(&[4], &[1, 9, 3, 8]));
        update(v(), [&[0], &[4], &[2]], t(&[3], &[8, 9, 10]))
            .fails(Code::InvalidArgument, "Cannot broadcast input shape [3] into final shape [2]");
        update(t(&[2, 2], &[1, 2, 3, 4]), [&[0], &[2], &[1]], t(&[2], &[8, 9]))
            .gives(t(&[2, 2], &[8, 9, 8, 9]));
    }

    #[test]
    fn gradients_go_where_elements_came_from() {
        let x = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        let check = check("StridedSlice").input(x).attr("shrink_axis_mask", 1i64);
        let ends = [[1i32, 0], [2, 3], [1, 2]].map(|v| Tensor::vector(&v));
        ends.into_iter().fold(check, |check, v| check.input(v)).gradient();
    }
}
