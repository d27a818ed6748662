//! Values in memory that another library owns, such as a numpy array or a torch tensor.

use ferroflow_core::{DType, Result, ensure};
use std::any::Any;
use std::ptr::NonNull;

/// A tensor in memory that another library owns. Collectives work on it in place. It keeps the
/// memory's owner alive until it is dropped.
pub struct ForeignTensor {
    data: NonNull<u8>,
    bytes: usize,
    dtype: DType,
    shape: Vec<usize>,
    /// The result of a collective that does not belong into the memory.
    replaced: Option<Vec<u8>>,
    keeps_values: bool,
    owner: Box<dyn Any + Send>,
}

// SAFETY: the caller of `new` promises that the memory may be used from any thread.
unsafe impl Send for ForeignTensor {}

impl ForeignTensor {
    /// The tensor of this type and shape whose values start at `data`. Values are stored in
    /// row-major order without gaps.
    ///
    /// # Safety
    ///
    /// `data` is valid for reads and writes of all values of `shape`, from any thread, as long as
    /// `owner` is not dropped. Until then nothing else writes to the memory, and nothing else reads
    /// it while a collective writes. `data` needs no alignment. It may be null if there are no
    /// values.
    pub unsafe fn new(
        data: *mut u8,
        dtype: DType,
        shape: Vec<usize>,
        owner: Box<dyn Any + Send>,
    ) -> Result<ForeignTensor> {
        let width = dtype.size();
        ensure!(width.is_some(), Unimplemented, "collectives do not move values of type {dtype}");
        let bytes = shape.iter().try_fold(width.unwrap_or(1), |n, &d| n.checked_mul(d));
        let bytes = bytes.filter(|&b| isize::try_from(b).is_ok());
        let Some(bytes) = bytes else {
            ferroflow_core::bail!(InvalidArgument, "shape {shape:?} has too many values");
        };
        let Some(data) = NonNull::new(data).or((bytes == 0).then_some(NonNull::dangling())) else {
            ferroflow_core::bail!(InvalidArgument, "a tensor of {bytes} bytes has no memory");
        };
        Ok(ForeignTensor { data, bytes, dtype, shape, replaced: None, keeps_values: false, owner })
    }

    /// Gathers, all-to-all and reduce-scatter then never write to the memory, even if the result
    /// has as many values. All-reduce, adasum and broadcast still work in place.
    pub fn keep_values(mut self) -> ForeignTensor {
        self.keeps_values = true;
        self
    }

    /// The type of the values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape of the tensor in the owner's memory.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of values in the owner's memory.
    pub fn elements(&self) -> usize {
        self.bytes / self.dtype.size().unwrap_or(1)
    }

    /// The values in the owner's memory.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `new` was promised that the memory is valid while the owner lives, and that no
        // one writes to it.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.bytes) }
    }

    /// The values in the owner's memory, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`. The exclusive borrow of `self` makes the slice the only one.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.bytes) }
    }

    /// The result, if it is not in the owner's memory because it has another number of values or
    /// because of [`ForeignTensor::keep_values`].
    pub fn replaced(&self) -> Option<&[u8]> {
        self.replaced.as_deref()
    }

    /// Takes the result, if it is not in the owner's memory.
    pub fn take_replaced(&mut self) -> Option<Vec<u8>> {
        self.replaced.take()
    }

    /// Replaces the values by `bytes`, in the owner's memory if their number is the same and they
    /// need not be kept.
    pub(crate) fn replace(&mut self, bytes: &[u8]) {
        if bytes.len() == self.bytes && !self.keeps_values {
            self.bytes_mut().copy_from_slice(bytes);
        } else {
            self.replaced = Some(bytes.to_vec());
        }
    }

    /// The owner of the memory.
    pub fn into_owner(self) -> Box<dyn Any + Send> {
        self.owner
    }
}

/// For tests: a tensor over values that are never freed, and the values. A test may lock the values
/// only while no collective uses the tensor.
#[cfg(test)]
pub(crate) fn kept<T: crate::Number>(
    shape: &[usize],
    values: &[T],
) -> (ForeignTensor, &'static parking_lot::Mutex<Vec<T>>) {
    let kept = &*Box::leak(Box::new(parking_lot::Mutex::new(values.to_vec())));
    let data = kept.lock().as_mut_ptr().cast();
    assert_eq!(shape.iter().product::<usize>(), values.len());
    // SAFETY: the values are never freed, and tests lock them only after the collective.
    let tensor = unsafe { ForeignTensor::new(data, T::DTYPE, shape.to_vec(), Box::new(())) };
    (tensor.unwrap(), kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &mut Vec<f32>, owner: Box<dyn Any + Send>) -> ForeignTensor {
        let shape = vec![values.len()];
        // SAFETY: the vector outlives the tensor in every test below and is not used meanwhile.
        unsafe { ForeignTensor::new(values.as_mut_ptr().cast(), DType::Float, shape, owner) }
            .unwrap()
    }

    #[test]
    fn values_are_changed_in_place_unless_their_number_changes() {
        let mut values = vec![1f32, 2.0];
        let mut t = tensor(&mut values, Box::new(()));
        t.replace(&[0; 8]);
        assert!(t.replaced().is_none());
        t.replace(&[1; 12]);
        assert_eq!(t.take_replaced(), Some(vec![1; 12]));
        let mut t = t.keep_values();
        t.replace(&[1; 8]);
        assert_eq!(t.take_replaced(), Some(vec![1; 8]));
        drop(t);
        assert_eq!(values, [0.0, 0.0]);
    }

    #[test]
    fn the_owner_lives_as_long_as_the_tensor() {
        let owner = std::sync::Arc::new(());
        let mut values = vec![1f32];
        let t = tensor(&mut values, Box::new(owner.clone()));
        assert_eq!(std::sync::Arc::strong_count(&owner), 2);
        drop(t);
        assert_eq!(std::sync::Arc::strong_count(&owner), 1);
    }

    #[test]
    fn null_and_absurd_shapes_are_refused() {
        let make = |shape: Vec<usize>| {
            // SAFETY: there is no memory, so either there are no values or `new` refuses.
            unsafe { ForeignTensor::new(std::ptr::null_mut(), DType::Float, shape, Box::new(())) }
        };
        assert!(make(vec![0, 3]).unwrap().bytes().is_empty());
        assert!(make(vec![1]).is_err_and(|e| e.message().contains("no memory")));
        assert!(make(vec![usize::MAX, 2]).is_err_and(|e| e.message().contains("too many")));
    }
}
