//! Ops that make, join, cut, turn and look up tensors, mostly without reading their elements.

use crate::prelude::*;

mod args;
mod check_numerics;
mod concat;
mod dims;
mod fill;
mod identity;
mod range;
mod reshape;
mod slice;
mod split;
mod strided_slice;
mod walk;

pub(crate) fn register(c: &mut Catalog) {
    check_numerics::register(c);
    concat::register(c);
    dims::register(c);
    fill::register(c);
    identity::register(c);
    range::register(c);
    reshape::register(c);
    slice::register(c);
    split::register(c);
    strided_slice::register(c);
}
