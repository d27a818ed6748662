//! Gradients: from a graph, the part that computes derivatives of some of its tensors by others.
//!
//! [`gradients`] walks the graph backwards from the `ys` and asks each op between them and the `xs`
//! for its gradient, which is declared beside the op: a function that adds nodes, written over
//! [`Term`]s. What several paths bring to one tensor is added up. Loops of v1 control flow become
//! loops that run backwards; calls of functions become calls of functions made here.
//!
//! Where TensorFlow's `tf.gradients` and this differ, it is in the nodes that are made, not in their
//! values.

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

/// What the gradient of an op does: given what the gradient of each output is, makes those of the
/// inputs, one [`Term`] each, [`GradientScope::none`] for inputs that have none.
///
/// Outputs that nothing depends on have a gradient of zeros, made when it is used; outputs of types
/// that have no gradients have none.
pub type GradientFn =
    Arc<dyn for<'g> Fn(&GradientScope<'g>, &[Term<'g>]) -> Result<Vec<Term<'g>>> + Send + Sync>;

/// What is known of an op's gradient.
#[derive(Clone)]
pub enum OpGradient {
    /// Declared to have none: what comes in stops here, silently.
    Stops,
    Function(GradientFn),
}

/// How gradients are made; the default is what TensorFlow's is.
#[derive(Clone, Debug, Default)]
pub struct GradientOptions {
    /// The gradient of each y; ones where there is none. Empty: ones for all.
    pub grad_ys: Vec<Option<Endpoint>>,
    /// Tensors that are taken for constants.
    pub stop_gradients: Vec<Endpoint>,
    /// Asks for the nodes that are made to be on the devices of those they are made for.
    pub colocate: bool,
    /// The name scope of the nodes that are made; `gradients` when empty.
    pub name: String,
}

/// The gradient of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointGradient {
    Tensor(Endpoint),
    /// Rows of a gradient that is zero elsewhere.
    Slices(EndpointSlices),
}

impl EndpointGradient {
    /// The tensor of a gradient that is not [`EndpointSlices`].
    pub fn tensor(self) -> Option<Endpoint> {
        match self {
            EndpointGradient::Tensor(e) => Some(e),
            EndpointGradient::Slices(_) => None,
        }
    }
}

/// Adds to `graph` what computes the sum of the derivatives of `ys` by each of `xs`; none for those
/// on which no y depends. On an error the graph is as it was.
///
/// A resource handle among `xs` stands for the variable behind it.
///
/// Gradients through calls of functions replace such calls in the graph by others with more outputs.
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

/// Whether tensors of this type have gradients. A resource stands for the variable behind it.
pub fn is_differentiable(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Half | BFloat16 | Float | Double | Complex64 | Complex128 | Resource | Variant)
}
