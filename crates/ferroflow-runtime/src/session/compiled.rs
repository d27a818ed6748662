//! A compiled step: the part of a session's graph that one set of feeds, fetches and targets needs.

use crate::optimize::optimize;
use crate::plan::{Plan, PlanContext};
use crate::session::Session;
use ferroflow_core::{DType, Result, Tensor, ensure, err};
use ferroflow_graph::{Functions, Graph, Node, passes};
use std::sync::Arc;

/// What a step is asked for, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    pub feeds: Vec<String>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
}

pub(crate) struct Compiled {
    pub plan: Arc<Plan>,
    /// The graph as it is run.
    pub graph: Graph,
    feeds: Vec<(String, DType)>,
}

impl Compiled {
    pub fn new(graph: &Graph, signature: &Signature, session: &Session) -> Result<Compiled> {
        let pruned = passes::prune(
            graph,
            &signature.feeds,
            &signature.fetches,
            &signature.targets,
            &session.task.catalog,
        )?;
        let (mut graph, mut args, mut rets) = (pruned.graph, pruned.args, pruned.rets);
        let feeds = signature
            .feeds
            .iter()
            .zip(&args)
            .map(|(name, id)| (name.clone(), graph.node(*id).output_types[0].dtype))
            .collect();
        let functions: Arc<dyn Functions> = session.functions.clone();
        let devices = session.devices();
        if !session.options.disable_optimizer {
            optimize(&mut graph, &mut args, &mut rets, &devices[0], &functions)?;
        }
        let device_of = |node: &Node| {
            let found = devices.iter().find(|d| d.text == node.device || node.device.is_empty());
            found.cloned().ok_or_else(|| err!(Internal, "no device {}", node.device))
        };
        let context =
            PlanContext { device_of: &device_of, functions: &functions, kernels: &session.kernels };
        let plan = Arc::new(Plan::compile(&graph, &args, &rets, &context)?);
        Ok(Compiled { plan, graph, feeds })
    }

    /// Feeds must have the dtypes of the tensors they replace.
    pub fn check_feeds(&self, values: &[Tensor]) -> Result<()> {
        for ((name, dtype), value) in self.feeds.iter().zip(values) {
            ensure!(
                *dtype == value.dtype(),
                InvalidArgument,
                "The feed '{name}' has dtype {}, the graph expects {dtype}",
                value.dtype()
            );
        }
        Ok(())
    }
}
