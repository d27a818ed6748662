//! Attributes as the functions of ops take them.

use crate::function::Function;
use bytes::Bytes;
use ferroflow_core::{DType, PartialShape, Tensor};
use ferroflow_graph::AttrList;

/// An item of a list attribute.
pub(crate) trait AttrItem: Sized {
    fn list(items: &[Self]) -> AttrList;
}

macro_rules! items {
    ($($t:ty, $variant:ident, $item:expr;)*) => {$(
        impl AttrItem for $t {
            fn list(items: &[Self]) -> AttrList {
                AttrList::$variant(items.iter().map($item).collect())
            }
        }
    )*};
}

items! {
    i64, Ints, |x| *x;
    f32, Floats, |x| *x;
    bool, Bools, |x| *x;
    DType, Types, |x| *x;
    PartialShape, Shapes, PartialShape::clone;
    Tensor, Tensors, Tensor::clone;
    &str, Strs, |s| Bytes::copy_from_slice(s.as_bytes());
    &Function, Funcs, |f| f.reference();
}

/// A list attribute.
pub(crate) fn list<T: AttrItem>(items: &[T]) -> AttrList {
    T::list(items)
}
