//! Ops that compute: element-wise mathematics, linear algebra, Fourier transforms, random numbers
//! and XLA's operations.

mod fft;
pub mod linalg;
pub mod math;
pub mod random;
#[cfg(test)]
mod testing;
pub mod xla;

use ferroflow_graph::Catalog;
use ferroflow_op_kit::prelude;

/// Adds the ops of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    fft::register(c);
    linalg::register(c);
    math::register(c);
    random::register(c);
    xla::register(c);
}
