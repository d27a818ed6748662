//! All-reduce and the other collectives between processes, on plain buffers. [`crate::hvd`] trains
//! with them.

pub use ferroflow_collective::{
    Algorithm, Collective, Engine, EngineOptions, EngineStats, Group, GroupOptions, LinkCostModel,
    Membership, ReduceAlgorithm, ReduceOp, SetId, TransportChoice, bench, elastic, explain,
    simulate,
};
