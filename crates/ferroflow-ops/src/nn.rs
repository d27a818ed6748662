//! Neural-network ops.

mod activation;
mod bias;
mod conv;
mod conv_ops;
mod depthwise;
mod dilation;
mod direct;
mod loss;
mod lrn;
mod norm;
mod pool;
mod pool_avg;
mod pool_max;
mod softmax;
mod window;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    bias::register(c);
    conv_ops::register(c);
    depthwise::register(c);
    dilation::register(c);
    loss::register(c);
    lrn::register(c);
    norm::register(c);
    pool_avg::register(c);
    pool_max::register(c);
    softmax::register(c);
}
