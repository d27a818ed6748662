//! Matrix products, factorisations and solvers.

pub(crate) mod gemm;

mod cross;
mod einsum;
mod matmul;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    cross::register(c);
    einsum::register(c);
    matmul::register(c);
}
