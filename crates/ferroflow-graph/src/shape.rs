//! Shape inference: derives a node's output shapes from its attributes and from the shapes and
//! constant values of its inputs.

use crate::attr::Attrs;
use ferroflow_core::{PartialShape, Result, Tensor, bail};

/// A node whose output shapes are inferred.
pub struct ShapeCtx<'a> {
    /// The node's attributes.
    pub attrs: &'a Attrs,
    /// The shapes of the inputs.
    pub inputs: &'a [PartialShape],
    /// The values of inputs that are constants.
    pub constants: &'a [Option<Tensor>],
    /// How many outputs the node has.
    pub outputs: usize,
}

impl ShapeCtx<'_> {
    /// The shape of input `i`.
    pub fn input(&self, i: usize) -> PartialShape {
        self.inputs.get(i).cloned().unwrap_or_default()
    }

    /// Input `i`, when it is a constant.
    pub fn constant(&self, i: usize) -> Option<&Tensor> {
        self.constants.get(i)?.as_ref()
    }

    /// The integers in input `i`, when it is a constant.
    pub fn constant_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.constant(i)?.to_indices().ok()
    }

    /// The shape that input `i` holds. It is known if the input is a constant; its rank is known if
    /// the input's length is. -1 is an unknown dimension.
    pub fn shape_from(&self, i: usize) -> PartialShape {
        match self.constant_ints(i) {
            Some(dims) => PartialShape::from_i64s(&dims).unwrap_or_default(),
            None => match self.input(i).dim(0) {
                Some(rank) if rank <= 254 => PartialShape::of_rank(rank),
                _ => PartialShape::unknown(),
            },
        }
    }
}

/// All outputs have the shape of input 0.
pub fn same_as_input(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.input(0); c.outputs])
}

/// The output has the shape on which all inputs agree.
pub fn merged_inputs(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let mut shape = PartialShape::unknown();
    for s in c.inputs {
        shape = shape.merge(s)?;
    }
    Ok(vec![shape; c.outputs])
}

/// Output `i` has the shape of input `i`.
pub fn like_inputs(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok((0..c.outputs).map(|i| c.input(i)).collect())
}

/// All outputs have unknown shapes.
pub fn unknown(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::unknown(); c.outputs])
}

/// All outputs are scalars.
pub fn scalar(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::scalar(); c.outputs])
}

/// All outputs are vectors of unknown length.
pub fn vector(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1); c.outputs])
}

/// The output has the shape in attribute `shape`.
pub fn from_attr(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.attrs.shape("shape")?; c.outputs])
}

/// The output has the shape that input 0 holds.
pub fn from_input_0(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.shape_from(0); c.outputs])
}

/// Inputs 0 and 1 broadcast against each other.
pub fn broadcast(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![broadcast_shapes(&c.input(0), &c.input(1))?; c.outputs])
}

/// The shape two shapes broadcast to; an error where they cannot.
pub fn broadcast_shapes(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    let (Some(x), Some(y)) = (a.dims(), b.dims()) else {
        return Ok(PartialShape::unknown());
    };
    let rank = x.len().max(y.len());
    let at = |dims: &[Option<usize>], i: usize| -> Option<usize> {
        (i + dims.len()).checked_sub(rank).map_or(Some(1), |i| dims[i])
    };
    let mut out = Vec::with_capacity(rank);
    for i in 0..rank {
        out.push(match (at(x, i), at(y, i)) {
            (Some(1), d) | (d, Some(1)) => d,
            (Some(p), Some(q)) if p == q => Some(p),
            (Some(_), Some(_)) => {
                bail!(InvalidArgument, "Incompatible shapes: {a} vs. {b}")
            }
            // One is unknown: the result is the known one; a mismatch is an error at run time.
            (p, q) => p.or(q),
        });
    }
    Ok(PartialShape::new(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast() {
        let s = |dims: &[i64]| PartialShape::from_i64s(dims).unwrap();
        assert_eq!(broadcast_shapes(&s(&[2, 1]), &s(&[3])).unwrap(), s(&[2, 3]));
        assert_eq!(broadcast_shapes(&s(&[-1]), &s(&[3])).unwrap(), s(&[3]));
        assert_eq!(broadcast_shapes(&s(&[-1]), &s(&[1])).unwrap(), s(&[-1]));
        assert!(broadcast_shapes(&s(&[2]), &s(&[3])).is_err());
    }
}
