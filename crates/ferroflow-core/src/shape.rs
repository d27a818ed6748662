//! Shapes: fully known ([`Shape`]) and with unknown parts ([`PartialShape`]).

use crate::{Result, bail, ensure};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// The dimensions of a tensor; a scalar has none. Dereferences to `[usize]`.
///
/// ```
/// use ferroflow_core::Shape;
/// let shape = Shape::from([2, 3]);
/// assert_eq!((shape.len(), shape[1], shape.elements()), (2, 3, 6));
/// assert_eq!(shape.to_string(), "[2,3]");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

/// TensorFlow's limit on the rank of a tensor.
const MAX_RANK: usize = 254;

/// What a kernel may take for a row that has no elements.
const ROW_BYTES: usize = 256;

impl Shape {
    /// The shape of a scalar, which has no dimensions.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// The shape of a vector of `len` elements.
    pub fn vector(len: usize) -> Shape {
        Shape::from([len])
    }

    /// The shape with these dimensions. An error if one is negative or the number of elements does
    /// not fit into an `i64`. Use it for all dimensions that come from a peer, a file or a user.
    pub fn from_dims(dims: &[i64]) -> Result<Shape> {
        ensure!(
            dims.len() <= MAX_RANK,
            InvalidArgument,
            "shape has {} dimensions, more than {MAX_RANK}",
            dims.len()
        );
        let mut shape = SmallVec::with_capacity(dims.len());
        for &d in dims {
            match usize::try_from(d) {
                Ok(d) => shape.push(d),
                Err(_) => bail!(InvalidArgument, "Dimension {d} must be >= 0"),
            }
        }
        let shape = Shape(shape);
        shape.checked_elements()?;
        Ok(shape)
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The dimensions, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Number of elements. Saturates on overflow, which [`Shape::from_dims`] rules out.
    pub fn elements(&self) -> usize {
        self.0.iter().fold(1usize, |n, &d| n.saturating_mul(d))
    }

    /// Number of elements, or an error if it does not fit into an `i64`. As in TensorFlow, the
    /// product of the other dimensions must fit even if one dimension is zero.
    pub fn checked_elements(&self) -> Result<usize> {
        let mut product: i64 = 1;
        for &d in &self.0 {
            if d == 0 {
                continue;
            }
            let next = i64::try_from(d).ok().and_then(|d| product.checked_mul(d));
            match next {
                Some(n) => product = n,
                None => {
                    bail!(InvalidArgument, "shape {self} would have more than 2**63 - 1 elements")
                }
            }
        }
        Ok(if self.0.contains(&0) { 0 } else { product as usize })
    }

    /// Number of elements of a tensor of this shape. An error too if it has no elements, but more
    /// rows than there is memory for: kernels do some work for each row, and keep something of it.
    pub(crate) fn elements_of_tensor(&self) -> Result<usize> {
        let elements = self.checked_elements()?;
        if elements == 0 {
            let rows: usize = self.0.iter().filter(|d| **d > 0).product();
            let most = crate::memory_limit() / ROW_BYTES;
            ensure!(
                rows <= most,
                ResourceExhausted,
                "shape {self} has no elements, but {rows} rows; at most {most} are allowed \
                 (--max-memory)"
            );
        }
        Ok(elements)
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.rank());
        for i in (0..self.rank().saturating_sub(1)).rev() {
            strides[i] = strides[i + 1].saturating_mul(self.0[i + 1]);
        }
        strides
    }

    /// Adds an innermost dimension.
    pub fn push(&mut self, dim: usize) {
        self.0.push(dim);
    }

    /// The dimensions as TensorFlow's signed integers.
    pub fn to_i64s(&self) -> Vec<i64> {
        self.0.iter().map(|&d| d as i64).collect()
    }

    /// The index of a possibly negative axis: -1 is the innermost dimension.
    pub fn axis(&self, axis: i64) -> Result<usize> {
        let rank = self.rank() as i64;
        ensure!(
            -rank <= axis && axis < rank,
            InvalidArgument,
            "axis {axis} is out of range for rank {rank}"
        );
        Ok(if axis < 0 { axis + rank } else { axis } as usize)
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape(SmallVec::from_slice(&dims))
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(SmallVec::from_vec(dims))
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

/// `[2,3]`, as TensorFlow prints it.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dims(f, self.0.iter().map(|&d| Some(d)))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A shape whose rank, or single dimensions, may be unknown. An unknown dimension is `None`.
///
/// ```
/// use ferroflow_core::{PartialShape, Shape};
/// let rows_of_three = PartialShape::from([None, Some(3)]);
/// assert!(rows_of_three.admits(&Shape::from([7, 3])) && rows_of_three.known().is_none());
/// assert_eq!(rows_of_three.to_string(), "[?,3]");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PartialShape(Option<SmallVec<[Option<usize>; 4]>>);

impl PartialShape {
    /// A shape of unknown rank.
    pub fn unknown() -> PartialShape {
        PartialShape(None)
    }

    /// The shape of a scalar.
    pub fn scalar() -> PartialShape {
        PartialShape(Some(SmallVec::new()))
    }

    /// `rank` dimensions, all unknown.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(SmallVec::from_elem(None, rank)))
    }

    /// The shape with these dimensions.
    pub fn new(dims: impl IntoIterator<Item = Option<usize>>) -> PartialShape {
        PartialShape(Some(dims.into_iter().collect()))
    }

    /// The shape in TensorFlow's wire notation, where -1 is an unknown dimension.
    pub fn from_i64s(dims: &[i64]) -> Result<PartialShape> {
        ensure!(
            dims.len() <= MAX_RANK,
            InvalidArgument,
            "shape has {} dimensions, more than {MAX_RANK}",
            dims.len()
        );
        let mut out = SmallVec::new();
        let mut product = Some(1i64);
        for &d in dims {
            ensure!(
                d >= -1,
                InvalidArgument,
                "Shape {dims:?} has dimensions with values below -1 (where -1 means unknown)"
            );
            out.push(usize::try_from(d).ok());
            if d > 0 {
                product = product.and_then(|n| n.checked_mul(d));
            }
        }
        ensure!(
            product.is_some(),
            InvalidArgument,
            "Shape {dims:?} is too large (more than 2**63 - 1 entries)"
        );
        Ok(PartialShape(Some(out)))
    }

    /// The number of dimensions, when it is known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(|d| d.len())
    }

    /// The dimensions, when the rank is known.
    pub fn dims(&self) -> Option<&[Option<usize>]> {
        self.0.as_deref()
    }

    /// Dimension `i`, when it is known.
    pub fn dim(&self, i: usize) -> Option<usize> {
        self.0.as_ref().and_then(|d| d.get(i).copied().flatten())
    }

    /// The shape, when all of it is known.
    pub fn known(&self) -> Option<Shape> {
        self.0.as_ref()?.iter().copied().collect::<Option<Shape>>()
    }

    /// The number of elements, when all dimensions are known.
    pub fn elements(&self) -> Option<usize> {
        self.known().map(|s| s.elements())
    }

    /// Whether `shape` agrees with all that is known.
    pub fn admits(&self, shape: &Shape) -> bool {
        match &self.0 {
            None => true,
            Some(dims) => {
                dims.len() == shape.rank()
                    && dims.iter().zip(shape.iter()).all(|(d, s)| d.is_none_or(|d| d == *s))
            }
        }
    }

    /// Combines what both shapes know. An error if they contradict each other.
    pub fn merge(&self, other: &PartialShape) -> Result<PartialShape> {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Ok(if self.0.is_some() { self.clone() } else { other.clone() });
        };
        ensure!(
            a.len() == b.len(),
            InvalidArgument,
            "Shapes must be equal rank, but are {} and {}",
            a.len(),
            b.len()
        );
        let mut out = SmallVec::new();
        for (x, y) in a.iter().zip(b) {
            match (x, y) {
                (Some(x), Some(y)) if x != y => bail!(
                    InvalidArgument,
                    "Dimensions must be equal, but are {x} and {y} for shapes {self} and {other}"
                ),
                _ => out.push(x.or(*y)),
            }
        }
        Ok(PartialShape(Some(out)))
    }
}

impl From<Shape> for PartialShape {
    fn from(shape: Shape) -> PartialShape {
        PartialShape::new(shape.iter().map(|&d| Some(d)))
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> PartialShape {
        PartialShape::new(shape.iter().map(|&d| Some(d)))
    }
}

impl<const N: usize> From<[usize; N]> for PartialShape {
    fn from(dims: [usize; N]) -> PartialShape {
        PartialShape::new(dims.map(Some))
    }
}

impl<const N: usize> From<[Option<usize>; N]> for PartialShape {
    fn from(dims: [Option<usize>; N]) -> PartialShape {
        PartialShape::new(dims)
    }
}

impl From<&[Option<usize>]> for PartialShape {
    fn from(dims: &[Option<usize>]) -> PartialShape {
        PartialShape::new(dims.iter().copied())
    }
}

impl FromIterator<Option<usize>> for PartialShape {
    fn from_iter<I: IntoIterator<Item = Option<usize>>>(dims: I) -> PartialShape {
        PartialShape::new(dims)
    }
}

/// `[2,?]`, or `<unknown>`, as TensorFlow prints it.
impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("<unknown>"),
            Some(dims) => write_dims(f, dims.iter().copied()),
        }
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn write_dims(
    f: &mut fmt::Formatter<'_>,
    dims: impl Iterator<Item = Option<usize>>,
) -> fmt::Result {
    f.write_str("[")?;
    for (i, d) in dims.enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        match d {
            Some(d) => write!(f, "{d}")?,
            None => f.write_str("?")?,
        }
    }
    f.write_str("]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_dims_refuses_negative_dimensions_and_overflow() {
        assert!(Shape::from_dims(&[-1]).is_err());
        assert!(Shape::from_dims(&[1 << 40, 1 << 40]).is_err());
        assert!(Shape::from_dims(&[0, i64::MAX, 2]).is_err());
        assert_eq!(Shape::from_dims(&[0, 1 << 40]).unwrap().elements(), 0);
        assert!(Shape::from_dims(&[1; 255]).is_err());
    }

    #[test]
    fn merge_keeps_the_known_dimensions_of_both_shapes() {
        let a = PartialShape::new([Some(2), None]);
        let b = PartialShape::new([None, Some(3)]);
        assert_eq!(a.merge(&b).unwrap().known(), Some(Shape::from([2, 3])));
        assert!(a.merge(&PartialShape::of_rank(3)).is_err());
        assert_eq!(a.to_string(), "[2,?]");
        assert!(a.admits(&Shape::from([2, 9])));
        assert!(!a.admits(&Shape::from([3, 9])));
    }

    #[test]
    fn unknown_dimensions_are_written_as_none() {
        let shape = PartialShape::from([None, Some(3)]);
        assert_eq!(shape, PartialShape::from_i64s(&[-1, 3]).unwrap());
        assert_eq!(shape, shape.dims().unwrap().into());
        assert_eq!(shape, [None, Some(3)].into_iter().collect());
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(Shape::from([2, 3, 4]).strides().as_slice(), [12, 4, 1]);
    }
}
