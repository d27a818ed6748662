//! The buffers of submissions.

use crate::foreign::ForeignTensor;
use crate::number::{Number, bytes_of_mut};
use ferroflow_core::{DType, Result, Tensor};
use std::any::Any;

/// A buffer that the engine works on without knowing its type.
pub(super) trait Payload: Send {
    fn bytes(&mut self) -> Result<&mut [u8]>;
    /// Replaces the values by others, of which there may be more or fewer.
    fn replace(&mut self, bytes: &[u8]) -> Result<()>;
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl<T: Number> Payload for Vec<T> {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        Ok(bytes_of_mut(self))
    }
    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        self.resize(bytes.len() / size_of::<T>(), T::default());
        bytes_of_mut(self).copy_from_slice(bytes);
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// A tensor that is the only owner of its storage is changed in place. Replacing its values by
/// another number of values makes it flat.
impl Payload for Tensor {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        self.bytes_mut()
    }
    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.byte_len() {
            let width = self.dtype().size().unwrap_or(1);
            *self = Tensor::alloc(self.dtype(), [bytes.len() / width])?;
        }
        self.bytes_mut()?.copy_from_slice(bytes);
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// The owner's memory is changed in place, unless the number of values changes.
impl Payload for ForeignTensor {
    fn bytes(&mut self) -> Result<&mut [u8]> {
        Ok(self.bytes_mut())
    }
    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        ForeignTensor::replace(self, bytes);
        Ok(())
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// A payload that knows its type and shape.
pub(super) trait ShapedPayload: Payload + Sized + 'static {
    fn dtype(&self) -> DType;
    fn shape(&self) -> Vec<usize>;
    /// Makes the bytes of other ranks valid values: only 0 and 1 are booleans.
    fn make_valid(&mut self) -> Result<()> {
        if ShapedPayload::dtype(self) == DType::Bool {
            self.bytes()?.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(())
    }
}

impl ShapedPayload for Tensor {
    fn dtype(&self) -> DType {
        Tensor::dtype(self)
    }
    fn shape(&self) -> Vec<usize> {
        Tensor::shape(self).to_vec()
    }
}

impl ShapedPayload for ForeignTensor {
    fn dtype(&self) -> DType {
        ForeignTensor::dtype(self)
    }
    fn shape(&self) -> Vec<usize> {
        ForeignTensor::shape(self).to_vec()
    }
}
