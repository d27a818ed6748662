//! Elements of variant tensors: tensor lists, datasets, optionals.

use crate::{Result, Tensor, ensure, err};
use bytes::Bytes;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

/// How deep objects may hold each other where a function walks through all of them.
const MAX_DEPTH: u32 = 200;

thread_local! {
    /// Whether this thread is dropping an object.
    static IS_DROPPING: Cell<bool> = const { Cell::new(false) };
    /// Objects inside of it, which are dropped after it.
    static DROPPED_LATER: RefCell<Vec<Arc<dyn VariantObject>>> = const { RefCell::new(Vec::new()) };
    /// How deep this thread is in nested objects.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

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

    /// A variant with zeros as values. An error if objects are nested too deep.
    pub fn zeros_like(&self) -> Result<Variant> {
        let Some(object) = &self.0 else { return Ok(Variant::default()) };
        let depth = DEPTH.get();
        ensure!(depth < MAX_DEPTH, InvalidArgument, "variants are nested deeper than {MAX_DEPTH}");
        DEPTH.set(depth + 1);
        let zeros = object.zeros_like();
        DEPTH.set(depth);
        zeros
    }

    /// The object for changing in place, if it is a `T` without other owners.
    pub fn get_mut<T: VariantObject>(&mut self) -> Option<&mut T> {
        let object: &mut dyn Any = Arc::get_mut(self.0.as_mut()?)?;
        object.downcast_mut()
    }
}

/// Objects can hold each other to any depth: a loop may put a list into a list. So an object inside
/// of another is dropped after it, not by it, and the stack does not grow.
impl Drop for Variant {
    fn drop(&mut self) {
        let Some(object) = self.0.take() else { return };
        let later = IS_DROPPING.try_with(Cell::get) == Ok(true);
        if later {
            let mut object = Some(object);
            let _ = DROPPED_LATER.try_with(|list| list.borrow_mut().extend(object.take()));
            return;
        }
        struct Dropping;
        impl Drop for Dropping {
            fn drop(&mut self) {
                let _ = IS_DROPPING.try_with(|is_dropping| is_dropping.set(false));
            }
        }
        let _ = IS_DROPPING.try_with(|is_dropping| is_dropping.set(true));
        let _dropping = Dropping;
        let mut next = Some(object);
        while let Some(object) = next {
            drop(object);
            next = DROPPED_LATER.try_with(|list| list.borrow_mut().pop()).ok().flatten();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Box(Tensor);

    impl VariantObject for Box {
        fn type_name(&self) -> &str {
            "box"
        }

        fn zeros_like(&self) -> Result<Variant> {
            let zeros: Result<Vec<Variant>> =
                self.0.variants()?.iter().map(Variant::zeros_like).collect();
            Ok(Variant::new(Box(Tensor::from_variants([1], zeros?)?)))
        }
    }

    fn nested(depth: usize) -> Variant {
        (0..depth).fold(Variant::default(), |inner, _| Variant::new(Box(Tensor::variant(inner))))
    }

    #[test]
    fn objects_in_each_other_are_dropped_without_recursion() {
        drop(nested(if cfg!(miri) { 100 } else { 500_000 }));
        let shared = nested(10);
        drop((shared.clone(), nested(10)));
        assert!(shared.get::<Box>().is_some());
    }

    #[test]
    fn zeros_of_objects_that_are_nested_too_deep_are_an_error() {
        assert!(nested(150).zeros_like().is_ok());
        let e = nested(if cfg!(miri) { 300 } else { 100_000 }).zeros_like().err().unwrap();
        assert!(e.message().contains("nested deeper"), "{e}");
        assert!(nested(150).zeros_like().is_ok());
    }
}
