//! Lists of tensors: tensor lists and maps, tensor arrays, stacks, optionals.

use crate::prelude::*;

mod array;
mod array_ops;
mod composite;
pub mod foreign;
mod list_ops;
mod list_pack;
pub mod optional;
mod stack;
mod tensor_list;
mod tensor_map;

pub(crate) fn register(c: &mut Catalog) {
    array_ops::register(c);
    composite::register(c);
    list_ops::register(c);
    list_pack::register(c);
    optional::register(c);
    stack::register(c);
    tensor_map::register(c);
}
