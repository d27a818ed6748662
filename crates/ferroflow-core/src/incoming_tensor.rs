//! Tensors whose bytes come from outside: from the network or a file.

use crate::{Buffer, DType, Result, Shape, Tensor, bail, err};

/// A tensor of plain elements that is being filled with bytes from outside. It takes memory as the
/// bytes arrive, however large it claims to be, and its `bool`s are valid whatever the bytes.
///
/// ```
/// use ferroflow_core::{DType, IncomingTensor, Shape};
/// let mut incoming = IncomingTensor::new(DType::Bool, Shape::from([3]))?;
/// while let Some(piece) = incoming.next_piece()? {
///     piece.fill(7);
/// }
/// assert_eq!(incoming.finish()?.as_slice::<bool>()?, [true; 3]);
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct IncomingTensor {
    dtype: DType,
    shape: Shape,
    buffer: Buffer,
    /// Bytes that were handed out to be filled.
    given: usize,
}

/// The most bytes of a piece.
const PIECE: usize = 8 << 20;

impl IncomingTensor {
    /// A tensor of this dtype and shape. An error if the dtype is not plain.
    pub fn new(dtype: DType, shape: Shape) -> Result<IncomingTensor> {
        let elements = shape.elements_of_tensor()?;
        let Some(size) = dtype.size() else {
            bail!(InvalidArgument, "a {dtype} tensor has no plain bytes");
        };
        let len = elements.checked_mul(size).ok_or_else(|| {
            err!(ResourceExhausted, "OOM when allocating tensor with shape{shape} and type {dtype}")
        })?;
        Ok(IncomingTensor { dtype, shape, buffer: Buffer::arriving(len)?, given: 0 })
    }

    /// The next bytes to fill; `None` when all have been. An error if there is no memory for them.
    pub fn next_piece(&mut self) -> Result<Option<&mut [u8]>> {
        let (from, len) = (self.given, self.buffer.len());
        if from == len {
            return Ok(None);
        }
        let to = len.min(from + PIECE);
        self.buffer.arrives(to)?;
        self.given = to;
        let bytes = self.buffer.bytes_mut().expect("a new buffer is ours");
        Ok(Some(&mut bytes[from..to]))
    }

    /// Bytes that were not yet handed out.
    pub fn missing(&self) -> usize {
        self.buffer.len() - self.given
    }

    /// The tensor. An error unless all pieces were handed out.
    pub fn finish(mut self) -> Result<Tensor> {
        if self.missing() > 0 {
            bail!(Internal, "{} bytes of a tensor are missing", self.missing());
        }
        self.buffer.arrives(self.buffer.len())?;
        if self.dtype == DType::Bool {
            let bytes = self.buffer.bytes_mut().expect("a new buffer is ours");
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(Tensor::of_buffer(self.dtype, self.shape, self.buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fill_the_tensor_in_order() {
        let elements = PIECE + 5;
        let mut incoming = IncomingTensor::new(DType::UInt8, Shape::from([elements])).unwrap();
        let mut sizes = Vec::new();
        while let Some(piece) = incoming.next_piece().unwrap() {
            piece.fill(sizes.len() as u8 + 1);
            sizes.push(piece.len());
        }
        assert_eq!(sizes, [PIECE, 5]);
        let tensor = incoming.finish().unwrap();
        let bytes = tensor.as_slice::<u8>().unwrap();
        assert_eq!((bytes[0], bytes[PIECE - 1], bytes[PIECE], bytes.len()), (1, 1, 2, elements));
    }

    #[test]
    fn a_tensor_that_is_not_whole_is_refused() {
        let incoming = IncomingTensor::new(DType::Float, Shape::from([2])).unwrap();
        assert!(incoming.finish().is_err());
        let empty = IncomingTensor::new(DType::Float, Shape::from([0])).unwrap();
        assert_eq!(empty.finish().unwrap().elements(), 0);
        assert!(IncomingTensor::new(DType::String, Shape::from([2])).is_err());
        assert!(IncomingTensor::new(DType::Float, Shape::from([1 << 62])).is_err());
    }
}
