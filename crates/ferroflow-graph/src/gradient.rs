//! Gradients: adds nodes to a graph that compute derivatives of some of its tensors.
//!
//! [`gradients`] walks the graph backwards from the `ys` and calls the gradient function of each op
//! between them and the `xs`. A gradient function is declared beside its op; it adds nodes and is
//! written over [`Term`]s. Gradients that reach a tensor along several paths are summed. A v1 loop
//! gets a loop that runs backwards. A call of a function gets a call of a gradient function that is
//! made here.
//!
//! The nodes differ from those of TensorFlow's `tf.gradients`; their values do not.

mod backprop;
mod broadcast;
mod calls;
mod context;
mod frames;
mod function;
mod function_loop;
mod history;
mod scope;
mod slices;
mod tape;
mod term;
mod while_loop;

pub(crate) use function::symbolic;
pub use scope::GradientScope;
pub use slices::EndpointSlices;
pub use tape::Tape;
pub use term::Term;

use crate::catalog::Catalog;
use crate::graph::{Endpoint, GraphIr};
use ferroflow_core::{DType, Result, ensure};
use std::sync::Arc;

/// The gradient function of an op. It takes the gradient of each output and returns the gradient of
/// each input, or [`GradientScope::none`] for an input without one.
///
/// An output that nothing depends on has a gradient of zeros, which are made when they are used. An
/// output of a dtype without gradients has none.
pub type GradientFn =
    Arc<dyn for<'g> Fn(&GradientScope<'g>, &[Term<'g>]) -> Result<Vec<Term<'g>>> + Send + Sync>;

/// The declared gradient of an op.
#[derive(Clone)]
pub enum OpGradient {
    /// None: gradients stop here without an error.
    Stops,
    /// Made by a function.
    Function(GradientFn),
}

/// How gradients are made; the defaults are TensorFlow's.
#[derive(Clone, Debug, Default)]
pub struct GradientOptions {
    /// The gradient of each y, ones where it is `None`. Empty means ones for all.
    pub grad_ys: Vec<Option<Endpoint>>,
    /// Tensors that count as constants.
    pub stop_gradients: Vec<Endpoint>,
    /// Places each new node on the device of the node whose gradient it computes.
    pub colocate: bool,
    /// The name scope of the new nodes; `gradients` when empty.
    pub name: String,
}

/// The gradient of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointGradient {
    /// A dense gradient.
    Tensor(Endpoint),
    /// Some rows of a gradient; the other rows are zero.
    Slices(EndpointSlices),
}

impl EndpointGradient {
    /// The tensor, unless the gradient is [`EndpointSlices`].
    pub fn tensor(self) -> Option<Endpoint> {
        match self {
            EndpointGradient::Tensor(e) => Some(e),
            EndpointGradient::Slices(_) => None,
        }
    }
}

/// Adds nodes to `graph` that compute the sum of the derivatives of `ys` by each of `xs`. Returns
/// `None` for an x on which no y depends. On an error the graph is unchanged.
///
/// A resource handle among `xs` stands for its variable.
///
/// A call of a function on the way is replaced by a call of a function with more outputs.
pub fn gradients(
    graph: &mut GraphIr,
    catalog: &Catalog,
    ys: &[Endpoint],
    xs: &[Endpoint],
    options: &GradientOptions,
) -> Result<Vec<Option<EndpointGradient>>> {
    ensure!(
        options.grad_ys.is_empty() || options.grad_ys.len() == ys.len(),
        InvalidArgument,
        "Must pass one grad_y for each y in ys: {} for {}",
        options.grad_ys.len(),
        ys.len()
    );
    let all = ys.iter().chain(xs).chain(&options.stop_gradients);
    for e in all.chain(options.grad_ys.iter().flatten()) {
        ensure!(
            e.node.index() < graph.len()
                && (e.slot as usize) < graph.node(e.node).output_types.len(),
            InvalidArgument,
            "{e:?} is not a tensor of the graph"
        );
    }
    let before = graph.clone();
    let tape = Tape::new(std::mem::take(graph), catalog, options);
    match backprop::all(&tape, ys, xs, options) {
        Ok(found) => {
            *graph = tape.into_graph();
            Ok(found)
        }
        Err(e) => {
            *graph = before;
            Err(e)
        }
    }
}

/// Whether tensors of this type have gradients. A resource stands for its variable.
pub fn is_differentiable(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Half | BFloat16 | Float | Double | Complex64 | Complex128 | Resource | Variant)
}
