//! Graphs as data: GraphDefs that were read from a file or that another program built, sessions
//! that run them by name, and what the graph builder is made of.

pub use ferroflow_graph::wire::graph::{decode_graph, encode_graph};
pub use ferroflow_graph::{AttrList, AttrValue, Attrs, Catalog, FuncRef, GraphDef, NodeDef};
pub use ferroflow_runtime::SessionOptions;
pub use ferroflow_train::{
    AsyncCallable, AsyncPartialRun, Callable, Feeds, Fetch, Function, GraphDefSession, IntoOutput,
    IntoShape, IntoTensor, NodeBuilder, NodeTiming, PartialRun, PartitionedVariable, Reuse, Scalar,
    StepRunner, TensorArray, VariableOptions, WhileOptions, default_catalog, fetch_struct,
    graph_of_meta_graph, keys,
};

use ferroflow_core::Result;
use ferroflow_graph::{Endpoint, EndpointGradient, GradientOptions, GraphIr};

/// The gradient of a tensor in a GraphDef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GradientName {
    /// The tensor of this name.
    Tensor(String),
    /// A sparse gradient: `values[i]` is added to row `indices[i]` of a tensor of shape `shape`.
    Slices {
        /// The tensor of values.
        values: String,
        /// The tensor of row numbers.
        indices: String,
        /// The tensor with the shape of the whole gradient.
        shape: String,
    },
}

/// Adds nodes that compute the derivatives of the sum of `ys` by each of `xs`, and returns their
/// names. The name is `None` if no y depends on the x. A resource handle among `xs` stands for its
/// variable.
///
/// ```
/// use ferroflow::Graph;
/// use ferroflow::graph::{GradientName, GraphDefSession, gradients};
///
/// let g = Graph::new();
/// let y = g.named_constant("x", 3.0).square();
/// let mut def = g.to_def()?;
/// let found = gradients(&mut def, &[&y.name()], &["x"])?;
/// let Some(GradientName::Tensor(dx)) = &found[0] else { panic!("y depends on x") };
/// let session = GraphDefSession::local(&def)?;
/// assert_eq!(session.run(&[], &[dx])?[0].scalar_value::<f32>()?, 6.0);
/// # Ok::<(), ferroflow::Error>(())
/// ```
pub fn gradients(
    graph: &mut GraphDef,
    ys: &[&str],
    xs: &[&str],
) -> Result<Vec<Option<GradientName>>> {
    let catalog = default_catalog();
    let mut read = GraphIr::from_def(graph, &catalog)?;
    let ends = |read: &GraphIr, names: &[&str]| {
        names.iter().map(|name| read.endpoint(name)).collect::<Result<Vec<Endpoint>>>()
    };
    let (ys, xs) = (ends(&read, ys)?, ends(&read, xs)?);
    let found =
        ferroflow_graph::gradients(&mut read, &catalog, &ys, &xs, &GradientOptions::default())?;
    let name = |e: Endpoint| match e.slot {
        0 => read.node(e.node).name.clone(),
        slot => format!("{}:{slot}", read.node(e.node).name),
    };
    let named = found.into_iter().map(|gradient| {
        Some(match gradient? {
            EndpointGradient::Tensor(e) => GradientName::Tensor(name(e)),
            EndpointGradient::Slices(s) => GradientName::Slices {
                values: name(s.values),
                indices: name(s.indices),
                shape: name(s.shape),
            },
        })
    });
    let named = named.collect();
    *graph = read.to_def();
    Ok(named)
}
