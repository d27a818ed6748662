//! Neural-network ops.

mod loss;
mod softmax;

use crate::prelude::*;

mod activation;
mod bias;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    bias::register(c);
    loss::register(c);
    softmax::register(c);
}
