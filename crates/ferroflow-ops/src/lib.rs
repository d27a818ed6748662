//! The standard ops: signature, shape function, gradient and CPU kernel of each, together in one
//! place. They lie in several crates, which compile side by side; this one registers them all.
#![forbid(unsafe_code)]

pub use ferroflow_ops_data::CheckpointFile;

mod precision;

use ferroflow_graph::Catalog;

/// Adds every standard op to a catalog.
pub fn register(c: &mut Catalog) {
    ferroflow_ops_array::register(c);
    ferroflow_ops_data::register(c);
    ferroflow_ops_math::register(c);
    ferroflow_ops_nn::register(c);
    ferroflow_ops_state::register(c);
    precision::register(c);
    c.fuse_on_gpus_with(ferroflow_op_kit::gpu::elementwise::fused);
    c.move_on_gpus_with(ferroflow_op_kit::gpu::copy::moved);
}
