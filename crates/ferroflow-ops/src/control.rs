//! Control flow and the nodes that hold a graph together: constants, identities, placeholders,
//! switches and loops, sends and receives, function calls.

use crate::prelude::*;

mod basic;

pub(crate) fn register(c: &mut Catalog) {
    basic::register(c);
}
