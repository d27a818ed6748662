//! Estimates of the work of a call, for ops whose outputs can be much larger than their inputs.

use ferroflow_core::{Tensor, Value};

/// Any amount: it depends on more than shapes.
pub fn any(_: &[Value]) -> u64 {
    u64::MAX
}

/// An output of the shape that input `I` holds.
pub fn of_shape<const I: usize>(inputs: &[Value]) -> u64 {
    let dims = tensor(inputs, I).and_then(|t| t.to_indices().ok());
    let Some(dims) = dims else { return u64::MAX };
    dims.iter().fold(ELEMENT, |n, d| n.saturating_mul(u64::try_from(*d).unwrap_or(0)))
}

/// An output of the shape to which the inputs are broadcast.
pub fn broadcast(inputs: &[Value]) -> u64 {
    let mut shapes = inputs.iter().filter_map(|value| match value {
        Value::Tensor(t) => Some(t.shape()),
        _ => None,
    });
    let Some(first) = shapes.next() else { return 0 };
    // Nearly always the shapes are equal, or all but one are scalars.
    let (mut shape, mut is_first) = (first, true);
    for other in shapes {
        if other == shape || other.rank() == 0 {
            continue;
        }
        if shape.rank() > 0 || !is_first {
            return broadcast_any(inputs);
        }
        (shape, is_first) = (other, false);
    }
    0
}

fn broadcast_any(inputs: &[Value]) -> u64 {
    let mut dims: Vec<usize> = Vec::new();
    for t in (0..inputs.len()).filter_map(|i| tensor(inputs, i)) {
        let missing = t.rank().saturating_sub(dims.len());
        dims.splice(0..0, std::iter::repeat_n(1, missing));
        let skipped = dims.len() - t.rank();
        dims[skipped..].iter_mut().zip(t.shape().iter()).for_each(|(d, n)| *d = (*d).max(*n));
    }
    dims.iter().fold(ELEMENT, |n, d| n.saturating_mul(*d as u64))
}

/// A slice of input `X`, of some dimensions or of none, for each index in input `I`.
pub fn gather<const X: usize, const I: usize>(inputs: &[Value]) -> u64 {
    let (Some(x), Some(indices)) = (tensor(inputs, X), tensor(inputs, I)) else { return u64::MAX };
    // The largest slice: without the smallest dimension.
    let least = x.shape().iter().copied().filter(|d| *d > 0).min().unwrap_or(1);
    let slice = (x.elements() / least).max(1) as u64;
    slice.saturating_mul(indices.elements() as u64).saturating_mul(ELEMENT)
}

/// What a step copies of an element.
const ELEMENT: u64 = 8;

fn tensor(inputs: &[Value], i: usize) -> Option<&Tensor> {
    match inputs.get(i) {
        Some(Value::Tensor(t)) => Some(t),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{DType, Shape};

    fn values<const N: usize>(shapes: [&[usize]; N]) -> Vec<Value> {
        shapes.map(|s| Tensor::zeros(DType::Float, Shape::from(s)).unwrap().into()).to_vec()
    }

    #[test]
    fn outputs_larger_than_inputs_are_work() {
        assert_eq!(broadcast(&values([&[3, 4], &[3, 4]])), 0);
        assert_eq!(broadcast(&values([&[], &[3, 4]])), 0);
        assert_eq!(broadcast(&values([&[3, 4], &[]])), 0);
        assert_eq!(broadcast(&values([&[100, 1], &[100]])), 8 * 10_000);
        assert_eq!(broadcast(&values([&[100, 1], &[1, 100], &[7, 1, 1]])), 8 * 70_000);
        assert_eq!(gather::<0, 1>(&values([&[2, 1000], &[50]])), 8 * 50_000);
        let dims = [Value::from(Tensor::vector(&[1000i32, 1000]))];
        assert_eq!(of_shape::<0>(&dims), 8_000_000);
        assert_eq!(of_shape::<1>(&dims), u64::MAX);
    }
}
