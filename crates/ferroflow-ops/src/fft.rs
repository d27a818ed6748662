//! Fourier transforms.

mod complex;
mod plan;
mod real;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    complex::register(c);
    real::register(c);
}
