//! Quantised numbers: conversions between floats and small integers, and arithmetic on the
//! integers.

mod activation;
mod affine;
mod arithmetic;
mod dequantize;
mod fake;
mod fused;
mod fused_product;
mod normalize;
mod per_channel;
mod product;
mod quantize_op;
mod rearrange;
mod requantize;
mod round_trip;
mod uniform;
mod uniform_products;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    arithmetic::register(c);
    dequantize::register(c);
    fake::register(c);
    fused::register(c);
    fused_product::register(c);
    normalize::register(c);
    per_channel::register(c);
    product::register(c);
    quantize_op::register(c);
    rearrange::register(c);
    requantize::register(c);
    round_trip::register(c);
    uniform::register(c);
    uniform_products::register(c);
}

/// The number of slices that `x` has along a valid `axis` (-1: one slice), each with its own range
/// in `min` and `max`. Also the number of elements for each index of the axis.
fn slices_of(x: &Tensor, axis: i64, min: &Tensor, max: &Tensor) -> Result<(usize, usize)> {
    let (slices, inner) = match usize::try_from(axis) {
        Ok(axis) => (x.shape()[axis], x.shape()[axis + 1..].iter().product()),
        Err(_) => (1, x.elements().max(1)),
    };
    for (name, t) in [("min_range", min), ("max_range", max)] {
        ensure!(
            t.elements() == slices,
            InvalidArgument,
            "{name} must have as many elements as input on the dequantization axis ({axis}), got \
             {}, expected {slices}",
            t.elements()
        );
    }
    Ok((slices, inner))
}

#[cfg(test)]
mod tests {
    use crate::testing::check_recorded;

    #[test]
    fn recorded_numbers_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/quantize.txt"));
    }

    #[test]
    fn recorded_sums_and_products_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/quantized_arithmetic.txt"));
    }

    #[test]
    fn recorded_uniform_numbers_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/uniform.txt"));
    }

    #[test]
    fn recorded_norms_and_uniform_products_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/quantized_products.txt"));
    }
}
