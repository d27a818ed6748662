//! Ops that make, join, cut, turn and look up tensors, mostly without reading their elements.

use crate::prelude::*;

mod args;
mod broadcast;
mod check_numerics;
mod concat;
mod dims;
mod fill;
mod gather;
mod gather_nd;
mod identity;
mod nonzero;
mod one_hot;
mod pad;
mod partition;
mod range;
mod reshape;
mod reverse;
mod scatter_nd;
mod segments;
mod slice;
mod space;
mod split;
mod strided_slice;
mod tile;
mod transpose;
mod unique;
mod walk;

pub(crate) fn register(c: &mut Catalog) {
    broadcast::register(c);
    check_numerics::register(c);
    concat::register(c);
    dims::register(c);
    fill::register(c);
    gather::register(c);
    gather_nd::register(c);
    identity::register(c);
    nonzero::register(c);
    one_hot::register(c);
    pad::register(c);
    partition::register(c);
    range::register(c);
    reshape::register(c);
    reverse::register(c);
    scatter_nd::register(c);
    slice::register(c);
    space::register(c);
    split::register(c);
    strided_slice::register(c);
    tile::register(c);
    transpose::register(c);
    unique::register(c);
}
