//! The standard ops: signature, shape function and CPU kernel of each, together in one place.

mod dispatch;
mod num;
mod prelude;
#[cfg(test)]
mod testing;

mod array;
mod control;
mod io;
mod linalg;
mod math;
mod nn;
mod parse;
mod queue;
mod random;
mod sparse;
mod state;
mod string;

use ferroflow_graph::Catalog;

/// Adds every op of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    array::register(c);
    control::register(c);
    io::register(c);
    linalg::register(c);
    math::register(c);
    nn::register(c);
    parse::register(c);
    queue::register(c);
    random::register(c);
    sparse::register(c);
    state::register(c);
    string::register(c);
}
