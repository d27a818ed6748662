//! Neural-network ops.

mod activation;
mod bias;
mod loss;
mod softmax;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    bias::register(c);
    loss::register(c);
    softmax::register(c);
}
