//! A sparse tensor as three inputs of an op, checked for consistency; and moving its values.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Variant;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A sparse tensor: value `i` stands at `indices[i * rank..][..rank]`. Indices need be neither in
/// range nor in order unless a method says so.
pub(super) struct Coo<'a> {
    pub indices: Cow<'a, [i64]>,
    pub values: &'a Tensor,
    pub shape: Vec<i64>,
}

impl<'a> Coo<'a> {
    /// The sparse tensor in inputs `at`, `at + 1`, `at + 2`.
    pub fn input(ctx: &'a Ctx<'_>, at: usize) -> Result<Coo<'a>> {
        Coo::new(ctx.input(at)?, ctx.input(at + 1)?, ctx.input(at + 2)?)
    }

    pub fn new(indices: &'a Tensor, values: &'a Tensor, shape: &'a Tensor) -> Result<Coo<'a>> {
        ensure!(
            indices.rank() == 2,
            InvalidArgument,
            "Sparse indices must be rank 2 but is rank {}",
            indices.rank()
        );
        ensure!(
            values.rank() == 1,
            InvalidArgument,
            "Sparse values must be rank 1 but is rank {}",
            values.rank()
        );
        ensure!(
            shape.rank() == 1,
            InvalidArgument,
            "Sparse shape must be rank 1 but is rank {}",
            shape.rank()
        );
        ensure!(
            indices.shape()[0] == values.elements(),
            InvalidArgument,
            "Number of elements in indices ({}) and values ({}) do not match",
            indices.shape()[0],
            values.elements()
        );
        ensure!(
            indices.shape()[1] == shape.elements(),
            InvalidArgument,
            "Index rank ({}) and shape rank ({}) do not match",
            indices.shape()[1],
            shape.elements()
        );
        let indices = match indices.dtype() {
            DType::Int64 => Cow::Borrowed(indices.as_slice::<i64>()?),
            _ => Cow::Owned(indices.to_indices()?),
        };
        let shape = shape.to_indices()?;
        // The product of the dimensions must not overflow; the op checks the dimensions themselves.
        Shape::from_dims(&shape)?;
        Ok(Coo { indices, values, shape })
    }

    pub fn len(&self) -> usize {
        self.values.elements()
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Where value `i` stands.
    pub fn at(&self, i: usize) -> &[i64] {
        &self.indices[i * self.rank()..(i + 1) * self.rank()]
    }

    /// All places, in the order of the values.
    pub fn places(&self) -> impl Iterator<Item = &[i64]> {
        (0..self.len()).map(|i| self.at(i))
    }

    /// Fails unless every place lies within the shape.
    pub fn ensure_in_bounds(&self) -> Result<()> {
        for (i, place) in self.places().enumerate() {
            ensure!(
                place.iter().zip(&self.shape).all(|(x, dim)| (0..*dim).contains(x)),
                InvalidArgument,
                "indices[{i}] = {} is out of bounds: need 0 <= index < {}",
                list(place),
                list(&self.shape)
            );
        }
        Ok(())
    }

    /// Fails unless the places lie within the shape and each comes after the one before.
    pub fn ensure_in_order(&self) -> Result<()> {
        self.ensure_in_bounds()?;
        for i in 1..self.len() {
            match self.at(i - 1).cmp(self.at(i)) {
                Ordering::Less => {}
                Ordering::Equal => {
                    bail!(InvalidArgument, "indices[{i}] = {} is repeated", list(self.at(i)))
                }
                Ordering::Greater => bail!(
                    InvalidArgument,
                    "indices[{i}] = {} is out of order. Many sparse ops require sorted indices.\n    \
                     Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n",
                    list(self.at(i))
                ),
            }
        }
        Ok(())
    }

    /// The numbers of the values in the order of their places.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&a, &b| self.at(a).cmp(self.at(b)));
        order
    }
}

/// `[1,2]`, as TensorFlow prints an index.
pub(super) fn list(values: &[i64]) -> String {
    let texts: Vec<String> = values.iter().map(i64::to_string).collect();
    format!("[{}]", texts.join(","))
}

/// An index matrix of these rows.
pub(super) fn index_matrix(indices: &[i64], rank: usize, rows: usize) -> Result<Tensor> {
    Tensor::from_slice([rows, rank], indices)
}

/// The elements of a vector with these numbers, which are in range.
pub(super) fn pick(values: &Tensor, numbers: &[usize]) -> Result<Tensor> {
    gather(&[values], &numbers.iter().map(|&i| (0, i)).collect::<Vec<_>>())
}

/// Elements of several vectors of one dtype, each as (which vector, which element), in range.
pub(super) fn gather(sources: &[&Tensor], from: &[(usize, usize)]) -> Result<Tensor> {
    fn of<W: Movable>(sources: &[&Tensor], from: &[(usize, usize)]) -> Result<Tensor> {
        let mut out = Tensor::alloc(sources[0].dtype(), [from.len()])?;
        let sources = sources.iter().map(|t| W::of(t)).collect::<Result<Vec<_>>>()?;
        for (to, &(s, i)) in W::of_mut(&mut out)?.iter_mut().zip(from) {
            *to = sources[s][i].clone();
        }
        Ok(out)
    }
    let dtype = match sources.first() {
        Some(t) => t.dtype(),
        None => bail!(Internal, "no tensor to gather from"),
    };
    match (dtype.size(), dtype) {
        (Some(1), _) => of::<u8>(sources, from),
        (Some(2), _) => of::<u16>(sources, from),
        (Some(4), _) => of::<u32>(sources, from),
        (Some(8), _) => of::<u64>(sources, from),
        (Some(16), _) => of::<[u64; 2]>(sources, from),
        (_, DType::String) => of::<Bytes>(sources, from),
        (_, DType::Resource) => of::<ResourceHandle>(sources, from),
        (_, DType::Variant) => of::<Variant>(sources, from),
        _ => bail!(Internal, "no elements of {dtype} to move"),
    }
}

/// For shape functions: a sparse tensor of unknown length, with as many dimensions as input `at`
/// has index columns.
pub(super) fn sparse_like(c: &ShapeCtx<'_>, at: usize) -> Vec<PartialShape> {
    let rank = c.input(at).dim(1).or(c.input(at + 2).dim(0));
    vec![PartialShape::new([None, rank]), PartialShape::of_rank(1), PartialShape::new([rank])]
}
