//! Control flow and the nodes that hold a graph together: constants, identities, placeholders,
//! switches and loops, sends and receives, function calls.

use crate::prelude::*;

mod asking;
mod basic;
mod batching;
mod branch;
mod call;
mod flow;
mod transfer;
mod unbatching;
mod while_loop;

pub(crate) fn register(c: &mut Catalog) {
    asking::register(c);
    basic::register(c);
    batching::register(c);
    branch::register(c);
    call::register(c);
    flow::register(c);
    transfer::register(c);
    unbatching::register(c);
    while_loop::register(c);
}
