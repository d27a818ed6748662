//! Variables: named, shared, mutable tensors. Reference edges and resource handles both lead here.

use crate::{DType, PartialShape, Result, Tensor, err};
use parking_lot::RwLock;

/// A variable. Reads are snapshots: they share the storage until the next update, which copies it
/// only if a snapshot is still held.
pub struct Variable {
    name: String,
    dtype: DType,
    /// The shape declared in the graph, which an unvalidated assignment may leave.
    declared: PartialShape,
    value: RwLock<Option<Tensor>>,
}

impl Variable {
    /// An uninitialised variable; `name` appears in errors.
    pub fn new(name: impl Into<String>, dtype: DType, declared: PartialShape) -> Variable {
        Variable { name: name.into(), dtype, declared, value: RwLock::new(None) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn declared_shape(&self) -> &PartialShape {
        &self.declared
    }

    pub fn is_initialized(&self) -> bool {
        self.value.read().is_some()
    }

    /// The current value, if it has one.
    pub fn snapshot(&self) -> Option<Tensor> {
        self.value.read().clone()
    }

    /// The current value; `FailedPrecondition` if it has none.
    pub fn read(&self) -> Result<Tensor> {
        self.snapshot().ok_or_else(|| {
            err!(FailedPrecondition, "Attempting to use uninitialized value {}", self.name)
        })
    }

    /// Replaces the value.
    pub fn assign(&self, value: Tensor) {
        let old = self.value.write().replace(value);
        // Freeing a large tensor takes time that the lock need not be held for.
        drop(old);
    }

    /// Makes it uninitialised again.
    pub fn clear(&self) {
        let old = self.value.write().take();
        drop(old);
    }

    /// Runs `change` on the value slot with everybody else kept out: for read-modify-write.
    /// An error leaves whatever `change` left.
    pub fn update<R>(&self, change: impl FnOnce(&mut Option<Tensor>) -> Result<R>) -> Result<R> {
        change(&mut self.value.write())
    }

    /// [`Variable::update`] of an initialised variable.
    pub fn modify<R>(&self, change: impl FnOnce(&mut Tensor) -> Result<R>) -> Result<R> {
        self.update(|slot| match slot {
            Some(value) => change(value),
            None => {
                Err(err!(FailedPrecondition, "Attempting to use uninitialized value {}", self.name))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_does_not_see_later_updates() {
        let v = Variable::new("v", DType::Float, PartialShape::scalar());
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
