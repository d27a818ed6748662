//! Control flow and the nodes that hold a graph together: constants, identities, placeholders,
//! switches and loops, sends and receives, function calls.

use crate::prelude::*;

mod asking;
mod basic;
mod branch;
mod call;
mod flow;
mod transfer;
mod while_loop;

pub(crate) fn register(c: &mut Catalog) {
    asking::register(c);
    basic::register(c);
    branch::register(c);
    call::register(c);
    flow::register(c);
    transfer::register(c);
    while_loop::register(c);
}
