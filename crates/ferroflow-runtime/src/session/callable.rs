//! Callables: compiled steps with a handle, for clients that run the same step again and again.

use crate::session::compiled::{Compiled, Signature};
use crate::session::{RunOptions, SessionDone, TaskSession};
use ferroflow_core::{
    CancelToken, HashMap, InlineScope, Result, Tensor, bail, count_heap, ensure, limits,
};
use ferroflow_graph::{GraphIr, OpRole};
use parking_lot::Mutex;
use std::sync::Arc;

/// The feeds, fetches and targets of a callable.
#[derive(Clone, Debug, Default)]
pub struct CallableSpec {
    pub feeds: Vec<String>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
    /// Pairs `(from, to)`: all consumers of `to` take `from` instead.
    pub connections: Vec<(String, String)>,
    pub options: RunOptions,
}

/// The callables of a session.
#[derive(Default)]
pub(crate) struct Callables {
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    by_handle: HashMap<i64, (Arc<Compiled>, RunOptions)>,
    /// The next handle.
    next: i64,
}

impl Made {
    /// Whether a callable has had this handle.
    fn has_had(&self, handle: i64) -> bool {
        (0..self.next).contains(&handle)
    }
}

impl Callables {
    pub fn clear(&self) {
        let released = std::mem::take(&mut self.made.lock().by_handle);
        drop(released);
    }
}

impl TaskSession {
    /// Compiles a callable and returns its handle; handles count from 0. Fails if the session has
    /// too many.
    pub fn make_callable(&self, spec: &CallableSpec) -> Result<i64> {
        self.ensure_open()?;
        limits().graphs.admit(self.callables.made.lock().by_handle.len() + 1, "the session")?;
        let signature = Signature {
            feeds: spec.feeds.clone(),
            fetches: spec.fetches.clone(),
            targets: spec.targets.clone(),
        };
        let compiled = if spec.connections.is_empty() {
            let slot = self.compiled.lock().get(&signature).cloned();
            self.compiled(signature, slot)?
        } else {
            let graph = self.graph.read();
            let compile = || {
                let mut graph = graph.clone();
                connect(&mut graph, &spec.connections)?;
                Compiled::new(&graph, &signature, self)
            };
            let (mut compiled, memory) = self.memory.run(|| count_heap(compile))?;
            compiled.memory = memory;
            Arc::new(compiled)
        };
        let mut made = self.callables.made.lock();
        let handle = made.next;
        made.next += 1;
        made.by_handle.insert(handle, (compiled, spec.options.clone()));
        Ok(handle)
    }

    /// Runs a callable with feeds in the order it was made with. Without a `step_id` the step gets
    /// one of its own.
    pub fn run_callable(
        &self,
        handle: i64,
        step_id: Option<i64>,
        feeds: Vec<Tensor>,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        match self.callable(handle) {
            Ok((compiled, options)) => {
                let options = RunOptions { step_id, ..options };
                InlineScope::network(|scope| {
                    self.run_compiled(scope, &compiled, feeds, &options, cancel, done);
                });
            }
            Err(e) => done(Err(e)),
        }
    }

    fn callable(&self, handle: i64) -> Result<(Arc<Compiled>, RunOptions)> {
        self.ensure_open()?;
        let made = self.callables.made.lock();
        match made.by_handle.get(&handle) {
            Some(callable) => Ok(callable.clone()),
            None if made.has_had(handle) => bail!(
                InvalidArgument,
                "Attempted to run callable after handle was released: {handle}"
            ),
            None => bail!(InvalidArgument, "No such callable handle: {handle}"),
        }
    }

    pub fn release_callable(&self, handle: i64) -> Result<()> {
        let mut made = self.callables.made.lock();
        let is_known = made.has_had(handle);
        let released = made.by_handle.remove(&handle);
        drop(made);
        drop(released);
        ensure!(is_known, InvalidArgument, "No such callable handle: {handle}");
        Ok(())
    }
}

/// Redirects the consumers of each `to` to `from`. As with a feed, a placeholder passes on its
/// control edges too, so that it need not run.
fn connect(graph: &mut GraphIr, connections: &[(String, String)]) -> Result<()> {
    for (from, to) in connections {
        let (source, replaced) = (graph.endpoint(from)?, graph.endpoint(to)?);
        ensure!(
            graph.type_of(source).dtype == graph.type_of(replaced).dtype,
            InvalidArgument,
            "cannot connect {from} to {to}: their types differ"
        );
        let is_placeholder = graph.node(replaced.node).op.role == OpRole::Placeholder;
        for id in graph.ids() {
            let node = graph.node_mut(id);
            for input in node.inputs.iter_mut().filter(|input| **input == replaced) {
                *input = source;
            }
            if is_placeholder {
                for control in node.controls.iter_mut().filter(|c| **c == replaced.node) {
                    *control = source.node;
                }
            }
        }
    }
    graph.check_acyclic()
}
