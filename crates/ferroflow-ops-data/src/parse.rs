//! Records to tensors and back.

mod csv;
pub(crate) mod delimited;
mod descriptor;
pub(crate) mod example;
pub(crate) mod features;
mod json;
mod proto;
mod sequence;
mod tensor_proto;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    csv::register(c);
    example::register(c);
    json::register(c);
    proto::register(c);
    sequence::register(c);
    tensor_proto::register(c);
}
