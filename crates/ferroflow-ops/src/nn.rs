//! Neural-network ops.

mod activation;
mod bias;
mod conv;
mod conv_ops;
mod depthwise;
mod loss;
mod softmax;
mod window;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    bias::register(c);
    conv_ops::register(c);
    depthwise::register(c);
    loss::register(c);
    softmax::register(c);
}
