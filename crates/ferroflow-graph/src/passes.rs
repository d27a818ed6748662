//! Passes over the graph of one step. [`prune`] comes first: it removes the nodes that the feeds,
//! fetches and targets do not need, and with them any errors of those nodes, as TensorFlow does.
//! A later pass never changes a fetched value, a stateful op, or an error that the user would see.
//! Nodes that stay keep their names, their devices and their order.

mod bypass;
mod cost;
mod cse;
mod ends;
mod fold;
mod fuse;
mod identity;
mod idle;
mod infer;
mod involution;
mod lower;
mod memory;
mod mixed_precision;
mod order;
mod partition;
mod place;
mod prune;
mod read_order;
mod sets;
mod simulate;
mod variables;
mod waits;

pub use cost::{CostModel, LinkCost, MeasuredCosts};
pub use cse::merge_common;
pub use ends::transfer_ends;
pub use fold::{EvaluateFn, fold, has_nodes_to_fold};
pub use fuse::{
    fuse_biases_on_gpus, fuse_elementwise, fuse_epilogues, fuse_moves_on_gpus, fuse_on_gpus,
    join_updates_on_gpus,
};
pub use identity::remove_identities;
pub use infer::infer;
pub(crate) use infer::{constant, node_shapes};
pub use involution::remove_involutions;
pub use lower::lower;
pub use memory::{copies_between_memories, copy_between_memories};
pub use mixed_precision::{MixedPrecision, PrecisionClass, mix_precision};
pub(crate) use order::closes_loop;
pub use order::topological_order;
pub use partition::{Partition, partition};
pub use place::{
    Devices, PlacementOption, PlacementReason, explain_place_by_cost, place, place_by_cost, predict,
};
pub use prune::{Pruned, prune};
pub use read_order::reads_before_writes;
pub use simulate::{DeviceLoad, PredictedNode, Prediction, Transfer};
pub use variables::VariableUses;

use crate::catalog::Catalog;

/// The passes that may make a step cheaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrites {
    /// Computes what depends on constants alone.
    pub folds: bool,
    /// Removes nodes that only pass a value on.
    pub removes_identities: bool,
    /// Removes pairs of nodes that undo each other.
    pub removes_involutions: bool,
    /// Makes one node of equal ones.
    pub merges: bool,
    /// Makes one node of element-wise ones, and of a product and what follows it.
    pub fuses: bool,
    /// Computes with 16-bit floats where that is safe. Changes results, so it is off by default.
    pub mixed_precision: Option<MixedPrecision>,
}

impl Rewrites {
    /// All of them.
    pub const ALL: Rewrites = Rewrites {
        folds: true,
        removes_identities: true,
        removes_involutions: true,
        merges: true,
        fuses: true,
        mixed_precision: None,
    };
    /// The graph runs as it was built.
    pub const NONE: Rewrites = Rewrites {
        folds: false,
        removes_identities: false,
        removes_involutions: false,
        merges: false,
        fuses: false,
        mixed_precision: None,
    };
}

impl Default for Rewrites {
    fn default() -> Rewrites {
        Rewrites::ALL
    }
}

/// Runs the wanted passes that make a step cheaper, in order. The last ones make nodes whose ops
/// exist only in memory and not in a GraphDef, so this runs on the task that compiles the step.
pub fn optimize(step: &mut Pruned, catalog: &Catalog, wanted: Rewrites, evaluate: EvaluateFn<'_>) {
    // Before folding, which computes the casts of constants.
    if let Some(precision) = wanted.mixed_precision {
        mix_precision(step, catalog, precision);
    }
    // Before merging: the constants that it makes can be merged too.
    if wanted.folds {
        fold(step, catalog, evaluate);
    }
    // Before merging: nodes that read the same value through identities become equal.
    if wanted.removes_identities {
        remove_identities(step);
    }
    // After identities, which can stand between the two nodes of a pair; before merging, because
    // more nodes become equal.
    if wanted.removes_involutions {
        remove_involutions(step);
    }
    // Before fusing: a node inside a fused one cannot be merged with another.
    if wanted.merges {
        merge_common(step);
    }
    if wanted.fuses {
        // Before element-wise fusion, which would take the bias and the activation.
        fuse_epilogues(step);
        fuse_elementwise(step);
        // Before formulas are fused, which is last because fused formulas tell no shapes.
        fuse_moves_on_gpus(step, catalog);
        fuse_biases_on_gpus(step);
        fuse_on_gpus(step, catalog);
        join_updates_on_gpus(step);
    }
}
