//! Variables: named tensors that steps share and change. Reference edges and resource handles both
//! refer to one.

use crate::{DType, PartialShape, Result, Tensor, err};
use parking_lot::RwLock;

/// A variable. A read is a snapshot that shares the storage. The next update copies the storage
/// only if a snapshot still exists.
pub struct Variable {
    name: String,
    dtype: DType,
    /// The shape declared in the graph. An assignment without shape validation may give the value
    /// another one.
    declared: PartialShape,
    value: RwLock<Option<Tensor>>,
}

impl Variable {
    /// An uninitialized variable. Errors contain `name`.
    pub fn new(name: impl Into<String>, dtype: DType, declared: PartialShape) -> Variable {
        Variable { name: name.into(), dtype, declared, value: RwLock::new(None) }
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

    /// [`Variable::update`] of an initialized variable.
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
