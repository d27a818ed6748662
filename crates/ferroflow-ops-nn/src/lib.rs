//! Ops of neural networks, of images and of quantized tensors.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod fuzzing;
mod image;
mod nn;
mod quantize;
#[cfg(test)]
mod testing;

use ferroflow_graph::Catalog;
use ferroflow_op_kit::prelude;

/// Adds the ops of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    image::register(c);
    nn::register(c);
    quantize::register(c);
}
