//! Variables: named tensors that steps share and change. Reference edges and resource handles both
//! refer to one.

use crate::{DType, Gpu, PartialShape, Result, Tensor, err};
use parking_lot::RwLock;
use std::sync::Arc;

/// A variable. A read is a snapshot that shares the storage. The next update copies the storage
/// only if a snapshot still exists.
pub struct StoredVariable {
    name: String,
    dtype: DType,
    /// The shape declared in the graph. An assignment without shape validation may give the value
    /// another one.
    declared: PartialShape,
    value: RwLock<Option<Tensor>>,
}

impl StoredVariable {
    /// An uninitialized variable. Errors contain `name`.
    pub fn new(name: impl Into<String>, dtype: DType, declared: PartialShape) -> StoredVariable {
        StoredVariable { name: name.into(), dtype, declared, value: RwLock::new(None) }
    }

    /// The name that errors contain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape declared in the graph.
    pub fn declared_shape(&self) -> &PartialShape {
        &self.declared
    }

    /// Whether it has a value.
    pub fn is_initialized(&self) -> bool {
        self.value.read().is_some()
    }

    /// The current value, or `None` if the variable is uninitialized.
    pub fn snapshot(&self) -> Option<Tensor> {
        self.value.read().clone()
    }

    /// The current value. `FailedPrecondition` if the variable is uninitialized.
    pub fn read(&self) -> Result<Tensor> {
        self.snapshot().ok_or_else(|| {
            err!(FailedPrecondition, "Attempting to use uninitialized value {}", self.name)
        })
    }

    /// Replaces the value.
    pub fn assign(&self, value: Tensor) {
        let old = self.value.write().replace(value);
        // Drop the old value after the lock is released: freeing a large tensor takes time.
        drop(old);
    }

    /// Moves the value to the memory that a kernel works in: that of `gpu`, or the host's. Kernels
    /// of one graph share a memory. Functions run on the host, and other sessions may place the
    /// variable elsewhere; then this waits for the copy.
    pub fn move_to(&self, gpu: Option<&Arc<dyn Gpu>>) -> Result<()> {
        if self.value.read().as_ref().is_none_or(|value| is_in(value, gpu)) {
            return Ok(());
        }
        self.update(|slot| {
            if let Some(value) = slot.as_mut().filter(|value| !is_in(value, gpu)) {
                let on_host = value.to_host_blocking()?;
                *value = match gpu {
                    Some(gpu) => on_host.to_device(gpu)?,
                    None => on_host,
                };
            }
            Ok(())
        })
    }

    /// Makes the variable uninitialized again.
    pub fn clear(&self) {
        let old = self.value.write().take();
        drop(old);
    }

    /// Runs `change` on the value with the lock held, for read-modify-write. An error does not undo
    /// what `change` did.
    pub fn update<R>(&self, change: impl FnOnce(&mut Option<Tensor>) -> Result<R>) -> Result<R> {
        change(&mut self.value.write())
    }

    /// Replaces the value in the slot of an [`update`](StoredVariable::update), and returns the
    /// tensor that is not needed any more. On a GPU that records steps, the value is copied to
    /// where the old one is: a recorded step uses the variable there.
    pub fn replace(slot: &mut Option<Tensor>, value: Tensor) -> Result<Option<Tensor>> {
        if let (Some(now), Some(gpu)) = (slot.as_mut(), value.gpu())
            && gpu.records_steps()
            && now.gpu().is_some_and(|its| Arc::ptr_eq(its, gpu))
            && (now.dtype(), now.shape()) == (value.dtype(), value.shape())
            && now.is_unique()
        {
            gpu.copy(value.device_address()?, now.device_address()?, value.byte_len())?;
            return Ok(Some(value));
        }
        Ok(slot.replace(value))
    }

    /// Runs `change` on the values of all `variables` under all their locks. The variables must be
    /// distinct and in the order of their addresses, so that two such calls cannot deadlock.
    pub fn with_all<R>(
        variables: &[Arc<StoredVariable>],
        change: impl FnOnce(&mut [&mut Option<Tensor>]) -> R,
    ) -> R {
        let mut locks: Vec<_> = variables.iter().map(|v| v.value.write()).collect();
        let mut values: Vec<&mut Option<Tensor>> =
            locks.iter_mut().map(|lock| &mut **lock).collect();
        change(&mut values)
    }

    /// [`StoredVariable::update`] of an initialized variable.
    pub fn modify<R>(&self, change: impl FnOnce(&mut Tensor) -> Result<R>) -> Result<R> {
        self.update(|slot| match slot {
            Some(value) => change(value),
            None => {
                Err(err!(FailedPrecondition, "Attempting to use uninitialized value {}", self.name))
            }
        })
    }
}

/// Whether kernels of `gpu`, or of the host, find `value` in their memory. Some values, such as
/// `int32` counters, are always in host memory.
fn is_in(value: &Tensor, gpu: Option<&Arc<dyn Gpu>>) -> bool {
    match (value.gpu(), gpu) {
        (Some(is), Some(wanted)) => Arc::ptr_eq(is, wanted),
        (None, Some(_)) => !value.dtype().is_plain() || value.dtype() == DType::Int32,
        (Some(_), None) => false,
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_does_not_see_later_updates() {
        let v = StoredVariable::new("v", DType::Float, PartialShape::scalar());
        assert!(v.read().is_err());
        v.assign(Tensor::scalar(1.0f32));
        let before = v.read().unwrap();
        v.modify(|t| {
            t.as_mut_slice::<f32>()?[0] += 1.0;
            Ok(())
        })
        .unwrap();
        assert_eq!(before.scalar_value::<f32>().unwrap(), 1.0);
        assert_eq!(v.read().unwrap().scalar_value::<f32>().unwrap(), 2.0);
    }
}
