//! Steps, for blocking and asynchronous sessions: the request, the result, and how much of the
//! graph the session already has.

use crate::fetch::{Feeds, Fetch, Wanted};
use crate::graph::Graph;
use crate::output::Output;
use ferroflow_core::{Error, Result, Tensor, ensure, err};
use ferroflow_graph::{GraphDef, RunMetadata};
use std::time::Duration;

/// A step by names.
#[derive(Clone, Debug, Default)]
pub struct StepRequest {
    /// Tensors that replace those of their names.
    pub feeds: Vec<(String, Tensor)>,
    /// Tensors to return, in order.
    pub fetches: Vec<String>,
    /// Nodes that run for their effect.
    pub targets: Vec<String>,
    /// The options.
    pub options: StepOptions,
}

/// The options of a step.
///
/// ```
/// # fn run(session: &ferroflow_train::Session, y: &ferroflow_train::Output)
/// #     -> ferroflow_core::Result<()> {
/// use ferroflow_train::StepOptions;
/// let options = StepOptions { trace: true, ..StepOptions::default() };
/// let (value, metadata) = session.run_with((), y, options)?;
/// std::fs::write("timeline.json", metadata.timeline()?).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepOptions {
    /// A step that takes longer fails with `DeadlineExceeded`.
    pub timeout: Option<Duration>,
    /// Whether to trace the step.
    pub trace: bool,
}

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub struct StepOutput {
    /// The fetched tensors.
    pub tensors: Vec<Tensor>,
    /// The trace; empty if none was requested.
    pub metadata: RunMetadata,
}

/// How much of a graph a session already has.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    nodes: usize,
    rewrites: u64,
}

impl Sent {
    /// The state of a new session, which has no nodes.
    pub fn nothing_of(graph: &Graph) -> Sent {
        Sent { nodes: 0, rewrites: graph.version().1 }
    }

    /// The nodes that the session lacks, and the state after they are sent; `None` if it lacks
    /// nothing.
    pub fn missing(&self, graph: &Graph) -> Result<Option<(GraphDef, Sent)>> {
        graph.check()?;
        let (nodes, rewrites) = graph.version();
        if (nodes, rewrites) == (self.nodes, self.rewrites) {
            return Ok(None);
        }
        if rewrites != self.rewrites {
            return Err(err!(
                FailedPrecondition,
                "nodes of the graph were changed after the session was opened; open it after all \
                 gradients are made"
            ));
        }
        let (def, nodes, _) = graph.additions(self.nodes)?;
        Ok(Some((def, Sent { nodes, rewrites })))
    }
}

impl Graph {
    /// Adds the source line of the node to the error of a step.
    pub fn explain(&self, error: Error) -> Error {
        let text = error.message();
        let node = text.split("{{node ").nth(1).and_then(|rest| rest.split("}}").next());
        match node.and_then(|node| self.made_at(node)) {
            Some(at) => {
                let text = format!("{text}\n\t made at {}:{}", at.file(), at.line());
                let same = Error::new(error.code(), text);
                if error.is_derived() { same.derived() } else { same }
            }
            None => error,
        }
    }
}

/// A step that is ready to run, and can interpret its result.
pub struct Prepared<F> {
    request: StepRequest,
    order: Vec<usize>,
    fetches: F,
}

impl<F: Fetch> Prepared<F> {
    pub fn new(feeds: impl Feeds, fetches: F, options: StepOptions) -> Result<Prepared<F>> {
        let mut wanted = Wanted::default();
        fetches.ask(&mut wanted);
        let mut fed = Vec::new();
        feeds.collect_into(&mut fed)?;
        Ok(Prepared::from_parts(fed, wanted, fetches, options))
    }

    /// A part of a partial run.
    pub fn part(feeds: impl Feeds, fetches: F, options: StepOptions) -> Result<Prepared<F>> {
        let part = Prepared::new(feeds, fetches, options)?;
        ensure!(
            part.request.targets.is_empty(),
            InvalidArgument,
            "the first part of a partial run runs all operations; a later part cannot fetch one"
        );
        Ok(part)
    }

    fn from_parts(
        feeds: Vec<(String, Tensor)>,
        wanted: Wanted,
        fetches: F,
        options: StepOptions,
    ) -> Prepared<F> {
        let Wanted { fetches: names, order, targets } = wanted;
        let request = StepRequest { feeds, fetches: names, targets, options };
        Prepared { request, order, fetches }
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.request.fetches.is_empty() && self.request.targets.is_empty()
    }

    /// Takes the request.
    pub fn take_request(&mut self) -> StepRequest {
        std::mem::take(&mut self.request)
    }

    /// The fetched values, and the trace.
    pub fn answer(&self, output: StepOutput) -> Result<(F::Value, RunMetadata)> {
        let StepOutput { tensors, metadata } = output;
        let asked: Option<Vec<Tensor>> =
            self.order.iter().map(|&i| tensors.get(i).cloned()).collect();
        let asked = asked.ok_or_else(|| err!(Internal, "a step returned too few tensors"))?;
        let value = self.fetches.answer(&mut asked.into_iter())?;
        Ok((value, metadata))
    }
}

/// The feeds and fetches of a callable, or of all parts of a partial run.
pub struct Settled<F> {
    feeds: Vec<String>,
    wanted: Wanted,
    fetches: F,
}

impl<F: Fetch> Settled<F> {
    pub fn new(feeds: &[&Output], fetches: F) -> Settled<F> {
        let mut wanted = Wanted::default();
        fetches.ask(&mut wanted);
        Settled { feeds: feeds.iter().map(|f| f.name()).collect(), wanted, fetches }
    }

    /// A step with these values for the feeds, in their order.
    pub fn step(&self, values: &[Tensor], options: StepOptions) -> Result<Prepared<&F>> {
        ensure!(
            values.len() == self.feeds.len(),
            InvalidArgument,
            "{} feeds for a callable that takes {}",
            values.len(),
            self.feeds.len()
        );
        let feeds = self.feeds.iter().cloned().zip(values.iter().cloned()).collect();
        Ok(Prepared::from_parts(feeds, self.wanted.clone(), &self.fetches, options))
    }

    /// The names of feeds, fetches and targets.
    pub fn into_names(self) -> (Vec<String>, Vec<String>, Vec<String>) {
        (self.feeds, self.wanted.fetches, self.wanted.targets)
    }
}
