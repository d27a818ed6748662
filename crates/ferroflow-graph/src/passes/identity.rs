//! Removes nodes that only pass their input on.

use super::Pruned;
use super::bypass::bypass;
use crate::op_def::OpRole;

/// Connects the consumers of an identity with the identity's input. `bypass` says which
/// identities stay.
pub fn remove_identities(step: &mut Pruned) {
    bypass(step, |_, node, _| match node.inputs[..] {
        [input] if node.op.role == OpRole::Identity => Some(input),
        _ => None,
    });
}
