//! Neural-network ops.

use crate::prelude::*;

mod activation;
mod bias;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    bias::register(c);
}
