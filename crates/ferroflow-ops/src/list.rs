//! Lists of tensors: tensor lists and maps, tensor arrays, stacks, optionals.

use crate::prelude::*;

mod array;
mod array_ops;
pub(crate) mod pack;
mod stack;

pub(crate) fn register(c: &mut Catalog) {
    array_ops::register(c);
    stack::register(c);
}
