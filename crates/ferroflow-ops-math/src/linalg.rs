//! Matrix products, factorisations and solvers.

pub mod gemm;
#[cfg(target_arch = "x86_64")]
mod skinny;
pub mod tile;
#[cfg(target_arch = "x86_64")]
mod wide;

mod cross;
mod eigen;
pub(crate) mod einsum;
mod factor;
mod functions;
mod least_squares;
mod lu;
mod matmul;
mod pieces;
mod problem;
mod triangular;
mod tridiagonal;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    cross::register(c);
    eigen::register(c);
    einsum::register(c);
    factor::register(c);
    functions::register(c);
    least_squares::register(c);
    lu::register(c);
    matmul::register(c);
    triangular::register(c);
    tridiagonal::register(c);
}
