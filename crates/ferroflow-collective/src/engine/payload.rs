//! The buffers of submissions.

use crate::number::{Number, bytes_of_mut};
use ferroflow_core::{Result, Tensor};
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
