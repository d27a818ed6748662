//! Fourier transforms, and what is heard through them.

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
