//! Variables, and the ops that change them.

use crate::prelude::*;

mod assign;
mod gather;
mod optimizer;
mod ref_variable;
mod resource_variable;
mod scatter;
mod scatter_nd;
mod sdca;
mod session_tensor;
mod strided;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) fn register(c: &mut Catalog) {
    assign::register(c);
    gather::register(c);
    optimizer::register(c);
    ref_variable::register(c);
    resource_variable::register(c);
    scatter::register(c);
    sdca::register(c);
    session_tensor::register(c);
    strided::register(c);
}
