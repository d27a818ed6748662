//! Neural-network ops.

mod activation;
mod bias;
mod conv;
mod conv_ops;
mod ctc_decode;
mod ctc_loss;
mod data_format;
mod depthwise;
mod dilation;
mod direct;
mod fractional_pool;
mod fused;
mod fused_conv;
mod gru;
mod isotonic;
mod loss;
mod lrn;
mod lstm;
mod lstm_ops;
mod norm;
mod norm_global;
mod pool;
mod pool_avg;
mod pool_max;
pub(crate) mod quantized_conv;
mod quantized_pool;
mod softmax;
mod window;

pub(crate) use fused::fused_ops;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    activation::register(c);
    bias::register(c);
    conv_ops::register(c);
    ctc_decode::register(c);
    ctc_loss::register(c);
    data_format::register(c);
    depthwise::register(c);
    dilation::register(c);
    fractional_pool::register(c);
    fused::register(c);
    fused_conv::register(c);
    gru::register(c);
    isotonic::register(c);
    loss::register(c);
    lrn::register(c);
    lstm_ops::register(c);
    norm::register(c);
    norm_global::register(c);
    pool_avg::register(c);
    pool_max::register(c);
    quantized_pool::register(c);
    softmax::register(c);
}

#[cfg(test)]
mod tests {
    use crate::testing::check_recorded;

    #[test]
    fn recorded_cells_and_pools_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/nn.txt"));
    }

    #[test]
    fn recorded_fused_convolutions_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/fused_conv.txt"));
    }
}
