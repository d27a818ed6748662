//! Family nn.

mod loss;
mod softmax;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    loss::register(c);
    softmax::register(c);
}
