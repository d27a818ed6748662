//! Sparse tensors in coordinate form (indices, values and a dense shape), and sparse matrices by
//! compressed rows.

mod add;
mod coo;
mod count;
mod cross;
mod csr;
mod csr_gradient;
mod csr_math;
mod dense_math;
mod fill_empty_rows;
mod matmul;
mod rearrange;
mod reduce;
pub(crate) mod serialize;
mod sets;
mod tensors_map;
mod to_dense;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    add::register(c);
    count::register(c);
    cross::register(c);
    csr::register(c);

    csr_math::register(c);
    csr_gradient::register(c);
    dense_math::register(c);
    fill_empty_rows::register(c);
    matmul::register(c);
    rearrange::register(c);
    reduce::register(c);
    serialize::register(c);
    sets::register(c);
    tensors_map::register(c);
    to_dense::register(c);
}
