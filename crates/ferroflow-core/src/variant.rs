//! Elements of variant tensors: tensor lists, datasets, optionals.

use crate::{Result, Tensor, err};
use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a variant may hold. Objects are immutable once shared: an op that changes one makes
/// another.
pub trait VariantObject: Any + Send + Sync {
    /// TensorFlow's name for the type, such as `tensorflow::TensorList`.
    fn type_name(&self) -> &str;

    /// The object as metadata and tensors, for files and other tasks; `None` if it cannot leave
    /// this process.
    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        None
    }

    /// An object like this one with zeros in place of its values, for gradients.
    fn zeros_like(&self) -> Result<Variant> {
        Err(err!(Unimplemented, "no zeros like a {}", self.type_name()))
    }

    /// The sum of this and another object of its type, for gradients.
    fn plus(&self, _other: &Variant) -> Result<Variant> {
        Err(err!(Unimplemented, "no sum of {}s", self.type_name()))
    }
}

/// One element of a variant tensor; empty until set.
#[derive(Clone, Default)]
pub struct Variant(Option<Arc<dyn VariantObject>>);

impl Variant {
    pub fn new(object: impl VariantObject) -> Variant {
        Variant(Some(Arc::new(object)))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn object(&self) -> Option<&Arc<dyn VariantObject>> {
        self.0.as_ref()
    }

    /// The object, if it is a `T`.
    pub fn get<T: VariantObject>(&self) -> Option<&T> {
        let object: &dyn Any = self.0.as_deref()?;
        object.downcast_ref()
    }

    /// The object for changing in place, if it is a `T` that nobody else holds.
    pub fn get_mut<T: VariantObject>(&mut self) -> Option<&mut T> {
        let object: &mut dyn Any = Arc::get_mut(self.0.as_mut()?)?;
        object.downcast_mut()
    }
}

/// The same object, not an equal one.
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
