//! Element-wise mathematics.
//!
//! Formulas are rows of tables. [`ferroflow_op_kit::vector`] runs them over slices, [`lanes`]
//! widens narrow types, and `broadcast` aligns shapes. [`elementwise`] makes kernels of them,
//! `stream` writes large results past the caches, and [`blocks`] offers them to the passes for
//! fusion.

use crate::prelude::*;

pub mod blocks;
pub(crate) mod broadcast;
pub mod elementwise;
pub mod fast;
pub mod lanes;

mod add_n;
pub mod arithmetic;
mod bitcast;
mod bucketize;
pub(crate) mod cast;
mod clip;
mod compare;
mod complex;
mod composition;
mod division;
mod functions;
mod gradients;
mod logic;
mod select;
mod special;
mod stream;

pub(crate) fn register(c: &mut Catalog) {
    add_n::register(c);
    arithmetic::register(c);
    bitcast::register(c);
    bucketize::register(c);
    cast::register(c);
    clip::register(c);
    compare::register(c);
    complex::register(c);
    composition::register(c);
    division::register(c);
    functions::register(c);
    gradients::register(c);
    logic::register(c);
    select::register(c);
    special::register(c);
}

/// Fails unless inputs `i` and `j` have the same shape.
pub fn same_shapes(ctx: &Ctx<'_>, i: usize, j: usize) -> Result<()> {
    let (a, b) = (ctx.input(i)?.shape(), ctx.input(j)?.shape());
    ensure!(
        a == b,
        InvalidArgument,
        "Inputs to operation {} of type {} must have the same size and shape.  \
         Input {i}: {a} != input {j}: {b}",
        ctx.name(),
        ctx.node().op
    );
    Ok(())
}
