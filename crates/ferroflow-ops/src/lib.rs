//! The standard ops: signature, shape function and CPU kernel of each, together in one place.

mod checkpoint_files;
mod dispatch;
mod gradient;
mod num;
mod parallel;
mod prelude;
#[cfg(test)]
mod testing;

mod array;
mod collective;
mod control;
mod data;
mod fft;
mod image;
mod io;
mod linalg;
mod list;
mod math;
mod nn;
mod parse;
mod quantize;
mod queue;
mod random;
mod reduce;
mod sparse;
mod state;
mod string;
mod table;

pub use checkpoint_files::CheckpointFile;

use ferroflow_graph::Catalog;

/// Adds every op of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    array::register(c);
    collective::register(c);
    control::register(c);
    data::register(c);
    fft::register(c);
    image::register(c);
    io::register(c);
    linalg::register(c);
    list::register(c);
    math::register(c);
    nn::register(c);
    parse::register(c);
    quantize::register(c);
    queue::register(c);
    random::register(c);
    reduce::register(c);
    sparse::register(c);
    state::register(c);
    string::register(c);
    table::register(c);
}
