//! Ops that make, join, cut, turn and look up tensors, mostly without reading their elements.

use crate::prelude::*;

mod args;
mod broadcast;
mod check_numerics;
mod concat;
mod dims;
mod fill;
mod identity;
mod pad;
mod range;
mod reshape;
mod reverse;
mod segments;
mod slice;
mod split;
mod strided_slice;
mod tile;
mod transpose;
mod walk;

pub(crate) fn register(c: &mut Catalog) {
    broadcast::register(c);
    check_numerics::register(c);
    concat::register(c);
    dims::register(c);
    fill::register(c);
    identity::register(c);
    pad::register(c);
    range::register(c);
    reshape::register(c);
    reverse::register(c);
    slice::register(c);
    split::register(c);
    strided_slice::register(c);
    tile::register(c);
    transpose::register(c);
}
