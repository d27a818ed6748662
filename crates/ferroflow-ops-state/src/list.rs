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

/// Sets output 0, which must have the declared dtype.
fn set_typed(ctx: &mut Ctx<'_>, value: Tensor, dtype: DType) -> Result<()> {
    ensure!(
        value.dtype() == dtype,
        Internal,
        "Output 0 of type {} does not match declared output type {dtype}",
        value.dtype()
    );
    ctx.set(0, value)
}

pub(crate) fn register(c: &mut Catalog) {
    array_ops::register(c);
    composite::register(c);
    list_ops::register(c);
    list_pack::register(c);
    optional::register(c);
    stack::register(c);
    tensor_map::register(c);
}
