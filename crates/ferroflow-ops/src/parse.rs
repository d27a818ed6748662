//! Records to tensors and back.

pub(crate) mod tensor_proto;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    tensor_proto::register(c);
}
