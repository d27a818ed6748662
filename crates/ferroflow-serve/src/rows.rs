//! Joins the rows of tensors, pads them and splits them. The first dimension is the batch's.

use bytes::{Bytes, BytesMut};
use ferroflow_core::{Result, Shape, Tensor, bail, ensure};

/// Concatenates the rows of all tensors. They have the same dtype, and the same shape except for
/// the first dimension.
pub(crate) fn join(tensors: &[&Tensor]) -> Result<Tensor> {
    let [first, ..] = tensors else { bail!(Internal, "no tensors to join") };
    let rows = tensors.iter().map(|t| t.shape().dims()[0]).sum();
    let shape = with_rows(first, rows);
    if first.dtype().is_plain() {
        let mut bytes = BytesMut::with_capacity(tensors.iter().map(|t| t.byte_len()).sum());
        for tensor in tensors {
            bytes.extend_from_slice(tensor.bytes()?);
        }
        return Tensor::from_bytes(first.dtype(), shape, bytes.freeze());
    }
    let mut strings = Vec::with_capacity(shape.elements());
    for tensor in tensors {
        strings.extend_from_slice(tensor.strings()?);
    }
    Tensor::from_strings(shape, strings)
}

/// The shape of `tensor` with another number of rows.
fn with_rows(tensor: &Tensor, rows: usize) -> Shape {
    let mut dims = tensor.shape().dims().to_vec();
    dims[0] = rows;
    dims.into_iter().collect()
}

/// The bytes of tensors with one dtype.
pub(crate) fn bytes(tensors: &[Tensor]) -> usize {
    let each = element_bytes(tensors);
    tensors.iter().map(|tensor| tensor.shape().elements().saturating_mul(each)).sum()
}

/// The bytes of one element; those of the reference to it, if it is a string.
pub(crate) fn element_bytes(tensors: &[Tensor]) -> usize {
    let plain = tensors.first().map(Tensor::dtype).filter(|dtype| dtype.is_plain());
    plain.and_then(|dtype| dtype.size()).unwrap_or(size_of::<Bytes>())
}

/// The number of rows that all tensors have.
pub(crate) fn count<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<usize> {
    let mut rows: Option<(usize, &str)> = None;
    for (name, tensor) in tensors {
        let Some(&here) = tensor.shape().dims().first() else {
            bail!(InvalidArgument, "input {name:?} is a scalar; a batched input needs a dimension")
        };
        match rows {
            None => rows = Some((here, name)),
            Some((there, other)) => ensure!(
                here == there,
                InvalidArgument,
                "inputs of a batch need the same first dimension: {other:?} has {there}, {name:?} \
                 has {here}"
            ),
        }
    }
    let Some((rows, _)) = rows else { bail!(InvalidArgument, "a batched request has no inputs") };
    Ok(rows)
}

/// Pads `tensor` at the end of all dimensions but the first, with its first element.
pub(crate) fn pad(tensor: &Tensor, to: &[usize]) -> Result<Tensor> {
    let from = tensor.shape().dims();
    if from == to {
        return Ok(tensor.clone());
    }
    let (size, source): (usize, Elements<'_>) = match tensor.dtype().size() {
        Some(size) if tensor.dtype().is_plain() => (size, Elements::Plain(tensor.bytes()?)),
        _ => (1, Elements::Strings(tensor.strings()?)),
    };
    let total: usize = to.iter().product();
    let shape: Shape = to.iter().copied().collect();
    let positions = (0..total).map(|at| position(at, from, to));
    match source {
        Elements::Plain(bytes) => {
            let fill = bytes.get(..size).map_or_else(|| vec![0; size], <[u8]>::to_vec);
            let mut padded = BytesMut::with_capacity(total * size);
            for at in positions {
                padded.extend_from_slice(at.map_or(&fill, |i| &bytes[i * size..(i + 1) * size]));
            }
            Tensor::from_bytes(tensor.dtype(), shape, padded.freeze())
        }
        Elements::Strings(strings) => {
            let fill = strings.first().cloned().unwrap_or_default();
            let padded =
                positions.map(|at| at.map_or_else(|| fill.clone(), |i| strings[i].clone()));
            Tensor::from_strings(shape, padded.collect())
        }
    }
}

enum Elements<'a> {
    Plain(&'a [u8]),
    Strings(&'a [Bytes]),
}

/// The element of the smaller tensor that is at `at` in the larger one.
fn position(mut at: usize, from: &[usize], to: &[usize]) -> Option<usize> {
    let mut stride = from.iter().product::<usize>();
    let mut inner: usize = to.iter().product();
    let mut index = 0;
    for (&small, &large) in from.iter().zip(to) {
        inner /= large;
        let here = at / inner;
        at %= inner;
        if here >= small {
            return None;
        }
        stride /= small;
        index += here * stride;
    }
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_and_split() {
        let a = Tensor::from_slice([1, 2], &[1.0f32, 2.0]).unwrap();
        let b = Tensor::from_slice([2, 2], &[3.0f32, 4.0, 5.0, 6.0]).unwrap();
        let all = join(&[&a, &b]).unwrap();
        assert_eq!(all.shape().dims(), [3, 2]);
        assert_eq!(all.rows(1, 2).unwrap().as_slice::<f32>().unwrap(), [3.0, 4.0, 5.0, 6.0]);
        let text = |s: &'static str| Tensor::from_strings([1], vec![Bytes::from(s)]).unwrap();
        assert_eq!(join(&[&text("a"), &text("b")]).unwrap().strings().unwrap(), ["a", "b"]);
        assert_eq!(count([("a", &a), ("b", &a)]).unwrap(), 1);
        assert!(count([("a", &a), ("b", &b)]).is_err());
        assert!(count([("s", &Tensor::scalar(1.0f32))]).is_err());
    }

    #[test]
    fn shorter_rows_are_padded_with_the_first_element() {
        let short = Tensor::from_slice([2, 1, 2], &[7, 8, 9, 10]).unwrap();
        let padded = pad(&short, &[2, 2, 3]).unwrap();
        assert_eq!(padded.as_slice::<i32>().unwrap(), [7, 8, 7, 7, 7, 7, 9, 10, 7, 7, 7, 7]);
        let text = Tensor::from_strings([1, 1], vec![Bytes::from("x")]).unwrap();
        assert_eq!(pad(&text, &[1, 2]).unwrap().strings().unwrap(), ["x", "x"]);
    }
}
