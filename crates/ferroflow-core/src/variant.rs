//! Elements of variant tensors: tensor lists, datasets, optionals.

use crate::{Result, Tensor, err};
use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The content of a variant. Shared objects are immutable: an op that changes one makes a new one.
pub trait VariantObject: Any + Send + Sync {
    /// TensorFlow's name for the type, such as `tensorflow::TensorList`.
    fn type_name(&self) -> &str;

    /// The object as metadata and tensors, for files and other tasks. `None` if it cannot leave
    /// this process.
    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        None
    }

    /// An object of this type with zeros as values, for gradients.
    fn zeros_like(&self) -> Result<Variant> {
        Err(err!(Unimplemented, "cannot make zeros of type {}", self.type_name()))
    }

    /// The sum of this object and another one of its type, for gradients.
    fn plus(&self, _other: &Variant) -> Result<Variant> {
        Err(err!(Unimplemented, "cannot add values of type {}", self.type_name()))
    }
}

/// One element of a variant tensor. It is empty until it is set.
#[derive(Clone, Default)]
pub struct Variant(Option<Arc<dyn VariantObject>>);

impl Variant {
    /// A variant that holds `object`.
    pub fn new(object: impl VariantObject) -> Variant {
        Variant(Some(Arc::new(object)))
    }

    /// Whether it holds no object.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The object, if there is one.
    pub fn object(&self) -> Option<&Arc<dyn VariantObject>> {
        self.0.as_ref()
    }

    /// The object, if it is a `T`.
    pub fn get<T: VariantObject>(&self) -> Option<&T> {
        let object: &dyn Any = self.0.as_deref()?;
        object.downcast_ref()
    }

    /// The object for changing in place, if it is a `T` without other owners.
    pub fn get_mut<T: VariantObject>(&mut self) -> Option<&mut T> {
        let object: &mut dyn Any = Arc::get_mut(self.0.as_mut()?)?;
        object.downcast_mut()
    }
}

/// Equal if both hold the same object in memory.
impl PartialEq for Variant {
    fn eq(&self, other: &Variant) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("(empty)", |o| o.type_name()))
    }
}
