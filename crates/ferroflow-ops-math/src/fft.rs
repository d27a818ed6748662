//! Fourier transforms and audio ops.

mod complex;
mod plan;
mod real;
mod sound;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    complex::register(c);
    real::register(c);
    sound::register(c);
}
