//! Removes pairs of nodes that undo each other, such as `-(-x)`. Gradients often make them.

use super::Pruned;
use super::bypass::{bypass, resolve};

/// Connects the consumers of `f(f(x))` with `x`, if the op `f` is its own inverse. `bypass` says
/// which nodes stay.
pub fn remove_involutions(step: &mut Pruned) {
    bypass(step, |graph, node, source| {
        let [input] = node.inputs[..] else { return None };
        let inner = graph.node(resolve(source, input).node);
        let is_pair = node.op.is_involution
            && inner.op.name == node.op.name
            && inner.attrs == node.attrs
            && inner.device == node.device
            && inner.controls.is_empty();
        is_pair.then(|| inner.inputs[0])
    });
}
