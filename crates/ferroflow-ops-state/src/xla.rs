//! XLA's operations that take functions of scalars: reductions, windows, scatters and sorts. XLA's
//! other operations are in `ferroflow-ops-math`.

mod calls;
mod elements;
mod reduce;
mod scatter;
mod sort;
mod window;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    reduce::register(c);
    scatter::register(c);
    sort::register(c);
    window::register(c);
}
