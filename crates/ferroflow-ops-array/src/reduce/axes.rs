//! Reduction axes: which dimensions are reduced, and which remain.

use crate::prelude::*;

/// Marks the dimensions that `axes` names. Axes out of range or named twice are errors.
pub(crate) fn reduced_dims(rank: usize, axes: &[i64]) -> Result<Vec<bool>> {
    let mut reduced = vec![false; rank];
    for &axis in axes {
        let r = rank as i64;
        ensure!(
            -r <= axis && axis < r,
            InvalidArgument,
            "Invalid reduction dimension ({axis} for input with {rank} dimension(s)"
        );
        let axis = if axis < 0 { axis + r } else { axis } as usize;
        ensure!(
            !reduced[axis],
            InvalidArgument,
            "Invalid reduction arguments: Axes contains duplicate dimension: {axis}"
        );
        reduced[axis] = true;
    }
    Ok(reduced)
}

/// The shape that remains of `shape`.
pub(crate) fn reduced_shape(shape: &Shape, reduced: &[bool], keep_dims: bool) -> Shape {
    shape
        .iter()
        .zip(reduced)
        .filter_map(|(&d, &gone)| match (gone, keep_dims) {
            (false, _) => Some(d),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect()
}

/// The output shape of an op that reduces input 0 over the axes in input 1.
pub(crate) fn reduction(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let keep_dims = c.attrs.bool("keep_dims")?;
    let input = c.input(0);
    let Some(dims) = input.dims() else {
        let scalar = !keep_dims && c.constant(1).is_some_and(|a| a.elements() == 0);
        return Ok(vec![if scalar { input } else { PartialShape::unknown() }]);
    };
    let Some(axes) = c.constant_ints(1) else {
        // Only the rank is known, and only if dimensions are kept.
        let same_rank = PartialShape::of_rank(dims.len());
        return Ok(vec![if keep_dims { same_rank } else { PartialShape::unknown() }]);
    };
    let reduced = reduced_dims(dims.len(), &axes)?;
    let left = dims.iter().zip(&reduced).filter_map(|(&d, &gone)| match (gone, keep_dims) {
        (false, _) => Some(d),
        (true, true) => Some(Some(1)),
        (true, false) => None,
    });
    Ok(vec![PartialShape::new(left)])
}

/// The output shape of an op that drops one dimension of input 0, named by input 1.
pub(crate) fn without_dimension(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let Some(dims) = input.dims() else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let Some(axis) = c.constant_ints(1).filter(|a| a.len() == 1) else {
        return Ok(vec![PartialShape::of_rank(dims.len().max(1) - 1)]);
    };
    let axis = dimension(dims.len(), axis[0])?;
    let left = dims.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, &d)| d);
    Ok(vec![PartialShape::new(left)])
}

/// Resolves the one dimension that an op works along.
pub(crate) fn dimension(rank: usize, axis: i64) -> Result<usize> {
    let r = rank as i64;
    ensure!(
        -r <= axis && axis < r,
        InvalidArgument,
        "Expected dimension in the range [{}, {r}), but got {axis}",
        -r
    );
    Ok(if axis < 0 { axis + r } else { axis } as usize)
}

/// A shape as `[outer, dim, inner]` around dimension `axis`.
pub(crate) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_resolved_or_refused() {
        assert_eq!(reduced_dims(3, &[-1, 0]).unwrap(), [true, false, true]);
        assert!(reduced_dims(2, &[0, -2]).is_err());
        assert!(reduced_dims(0, &[0]).is_err());
        assert!(dimension(2, i64::MIN).is_err());
    }
}
