//! Sessions of a graph: steps, callables, partial runs, traces.

use crate::fetch::{Feeds, Fetch};
use crate::graph::Graph;
use crate::graph_def_session::{GraphDefSession, LocalOptions};
use crate::output::Output;
use crate::step::{Prepared, Sent, Settled, StepOptions, StepOutput, StepRequest};
use ferroflow_cluster::ConnectOptions;
use ferroflow_core::{Result, Tensor};
use ferroflow_graph::{GraphDef, RunMetadata};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Runs steps: in this process or on a server.
pub trait StepRunner: Send + Sync {
    /// Adds nodes and functions to the session's graph.
    fn extend(&self, graph: &GraphDef) -> Result<()>;

    /// Runs a step and waits for it.
    fn run_step(&self, request: StepRequest) -> Result<StepOutput>;

    /// Sets up a partial run; returns its handle.
    fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String>;

    /// Feeds and fetches one part of a partial run.
    fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>>;

    /// Closes the session and cancels its running steps.
    fn close(&self) -> Result<()>;
}

/// A handle of a session that others use too.
impl<R: StepRunner + ?Sized> StepRunner for Arc<R> {
    fn extend(&self, graph: &GraphDef) -> Result<()> {
        (**self).extend(graph)
    }

    fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        (**self).run_step(request)
    }

    fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        (**self).partial_run_setup(feeds, fetches, targets)
    }

    fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        (**self).partial_run(handle, feeds, fetches, timeout)
    }

    fn close(&self) -> Result<()> {
        (**self).close()
    }
}

/// A session of a [`Graph`], which may still grow: the next step sends new nodes along. Clones are
/// handles of the same session.
///
/// ```
/// # fn run(session: &ferroflow_train::Session, x: &ferroflow_train::Output,
/// #     loss: &ferroflow_train::Output, train: &ferroflow_train::Operation,
/// # ) -> ferroflow_core::Result<()> {
/// let (loss, ()) = session.run_fed((x, [1.0, 2.0]), (loss.scalar::<f32>(), train))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    graph: Graph,
    runner: Arc<dyn StepRunner>,
    sent: Arc<Mutex<Sent>>,
    timeout: Option<Duration>,
}

impl Session {
    /// A session in this process.
    ///
    /// ```
    /// use ferroflow_train::{Graph, Session};
    /// let g = Graph::new();
    /// let w = g.variable("w", 1.5);
    /// let init = g.global_initializer();
    /// let session = Session::local(&g)?;
    /// session.run(&init)?;
    /// assert_eq!(session.run(w.scalar::<f32>())?, 1.5);
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    pub fn local(graph: &Graph) -> Result<Session> {
        Session::local_with(graph, &LocalOptions::default())
    }

    /// A session in this process in which all variables of the graph have their initial values.
    ///
    /// ```
    /// use ferroflow_train::{Graph, Session};
    /// let g = Graph::new();
    /// let w = g.variable("w", 1.5);
    /// assert_eq!(Session::initialized(&g)?.run(w.scalar::<f32>())?, 1.5);
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    pub fn initialized(graph: &Graph) -> Result<Session> {
        let init = [graph.global_initializer(), graph.local_initializer()];
        let session = Session::local(graph)?;
        session.run(init)?;
        Ok(session)
    }

    /// [`Session::local`] with other devices or rules.
    ///
    /// ```
    /// use ferroflow_train::{Graph, LocalOptions, Session, StepOptions};
    /// let g = Graph::new();
    /// let x = g.device("/cpu:1", || g.random_uniform([3]));
    /// let options = LocalOptions { cpu_devices: 2, ..LocalOptions::default() };
    /// let session = Session::local_with(&g, &options)?;
    /// let trace = StepOptions { trace: true, ..StepOptions::default() };
    /// let (_, metadata) = session.run_with((), &x, trace)?;
    /// assert!(metadata.nodes()?.iter().any(|node| node.device.ends_with("CPU:1")));
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    pub fn local_with(graph: &Graph, options: &LocalOptions) -> Result<Session> {
        let nothing = GraphDef::default();
        let runner = GraphDefSession::with_options(graph.catalog().clone(), &nothing, options)?;
        Session::with_runner(graph, Arc::new(runner))
    }

    /// A session on the server at `target`, `grpc://host:port`: Ferroflow's or TensorFlow's.
    ///
    /// ```no_run
    /// use ferroflow_train::{Graph, Session};
    /// let g = Graph::new();
    /// let hello = g.constant("hello");
    /// let session = Session::connect("grpc://127.0.0.1:2222", &g)?;
    /// println!("{:?}", session.run(&hello)?);
    /// # Ok::<(), ferroflow_core::Error>(())
    /// ```
    pub fn connect(target: &str, graph: &Graph) -> Result<Session> {
        Session::connect_with(target, graph, &ConnectOptions::default())
    }

    /// [`Session::connect`] with a time limit, with state of its own, or with only some of the
    /// cluster's tasks. A worker of between-graph training uses the device filters `["/job:ps",
    /// "/job:worker/task:0"]`.
    pub fn connect_with(target: &str, graph: &Graph, options: &ConnectOptions) -> Result<Session> {
        let runner = GraphDefSession::connect_with(target, &GraphDef::default(), options)?;
        Session::with_runner(graph, Arc::new(runner))
    }

    /// A session of `graph` whose steps `runner` runs. The runner's graph is still empty.
    pub fn with_runner(graph: &Graph, runner: Arc<dyn StepRunner>) -> Result<Session> {
        let sent = Arc::new(Mutex::new(Sent::nothing_of(graph)));
        let session = Session { graph: graph.clone(), runner, sent, timeout: None };
        session.catch_up()?;
        Ok(session)
    }

    /// The same session with a time limit for each step, which fails with `DeadlineExceeded`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Session {
        self.timeout = Some(timeout);
        self
    }

    /// The graph of this session.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    fn catch_up(&self) -> Result<()> {
        // The lock is held over the call: a concurrent step may need the same nodes.
        let mut sent = self.sent.lock();
        if let Some((def, now)) = sent.missing(&self.graph)? {
            self.runner.extend(&def)?;
            *sent = now;
        }
        Ok(())
    }

    /// The default options of its steps.
    pub fn options(&self) -> StepOptions {
        StepOptions { timeout: self.timeout, ..StepOptions::default() }
    }

    /// Runs a step and returns the values of `fetches`: outputs, variables, operations, tuples,
    /// arrays, vectors and maps of them, structs of [`crate::fetch_struct`]. [`Output::scalar`]
    /// gives a number.
    pub fn run<F: Fetch>(&self, fetches: F) -> Result<F::Value> {
        self.run_fed((), fetches)
    }

    /// [`Session::run`] with feeds: pairs `(&x, value)`, alone or in a tuple, array or vector.
    pub fn run_fed<F: Fetch>(&self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        Ok(self.run_with(feeds, fetches, self.options())?.0)
    }

    /// [`Session::run_fed`] with options; also returns the trace of the step.
    pub fn run_with<F: Fetch>(
        &self,
        feeds: impl Feeds,
        fetches: F,
        options: StepOptions,
    ) -> Result<(F::Value, RunMetadata)> {
        self.catch_up()?;
        self.step(Prepared::new(feeds, fetches, options)?)
    }

    fn step<F: Fetch>(&self, mut step: Prepared<F>) -> Result<(F::Value, RunMetadata)> {
        if step.is_empty() {
            return step.answer(StepOutput::default());
        }
        let output = self.runner.run_step(step.take_request());
        step.answer(output.map_err(|e| self.graph.explain(e))?)
    }

    /// Prepares a step that runs many times with the same fetches. Feeds are given by position.
    pub fn callable<F: Fetch>(&self, feeds: &[&Output], fetches: F) -> Result<Callable<F>> {
        self.catch_up()?;
        Ok(Callable { session: self.clone(), settled: Settled::new(feeds, fetches) })
    }

    /// Sets up a partial run, a step that is fed and fetched in parts. Names the feeds and fetches
    /// of all parts.
    ///
    /// ```
    /// # use ferroflow_train::{Output, Session};
    /// # fn run(session: &Session, x: &Output, y: &Output, z: &Output)
    /// #     -> ferroflow_core::Result<()> {
    /// let step = session.partial_run(&[x, y], (x, z))?; // z is made of y and what is made of x
    /// let half = step.run_fed((x, 1.0), x.scalar::<f32>())?;
    /// let whole = step.run_fed((y, half + 1.0), z)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn partial_run(&self, feeds: &[&Output], fetches: impl Fetch) -> Result<PartialRun> {
        self.catch_up()?;
        let (feeds, fetches, targets) = Settled::new(feeds, fetches).into_names();
        let handle = self
            .runner
            .partial_run_setup(feeds, fetches, targets)
            .map_err(|e| self.graph.explain(e))?;
        Ok(PartialRun { session: self.clone(), handle })
    }

    /// Closes the session and cancels its running steps.
    pub fn close(&self) -> Result<()> {
        self.runner.close()
    }
}

/// A prepared step; see [`Session::callable`].
///
/// ```
/// # fn run(session: &ferroflow_train::Session, x: &ferroflow_train::Output,
/// #     y: &ferroflow_train::Output) -> ferroflow_core::Result<()> {
/// use ferroflow_core::Tensor;
/// let f = session.callable(&[x], y.scalar::<f32>())?;
/// for i in 0..10 {
///     let y: f32 = f.call(&[Tensor::scalar(i as f32)])?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Callable<F: Fetch> {
    session: Session,
    settled: Settled<F>,
}

impl<F: Fetch> Callable<F> {
    /// Runs the step with these feeds, in the order of [`Session::callable`].
    pub fn call(&self, feeds: &[Tensor]) -> Result<F::Value> {
        Ok(self.session.step(self.settled.step(feeds, self.session.options())?)?.0)
    }
}

/// A step that runs in parts; see [`Session::partial_run`].
pub struct PartialRun {
    session: Session,
    handle: String,
}

impl PartialRun {
    /// Runs one part. Each tensor can be fed and fetched once.
    pub fn run_fed<F: Fetch>(&self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        let mut part = Prepared::part(feeds, fetches, self.session.options())?;
        let StepRequest { feeds, fetches, options, .. } = part.take_request();
        let tensors = self
            .session
            .runner
            .partial_run(&self.handle, feeds, fetches, options.timeout)
            .map_err(|e| self.session.graph.explain(e))?;
        Ok(part.answer(StepOutput { tensors, metadata: RunMetadata::default() })?.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{graph, initialized, session};
    use crate::{Fetch, Output, Scalar, StepOptions, fetch_struct};
    use std::collections::BTreeMap;

    #[test]
    fn a_partial_run_feeds_and_fetches_in_parts() {
        let g = graph();
        let (a, b) = (g.placeholder::<f32>("a", ()), g.placeholder::<f32>("b", ()));
        let double = &a * 2.0;
        let sum = &double + &b;
        let s = session(&g).unwrap();
        let step = s.partial_run(&[&a, &b], (&double, &sum)).unwrap();
        let half = step.run_fed((&a, 3.0), double.scalar::<f32>()).unwrap();
        assert_eq!(half, 6.0);
        assert_eq!(step.run_fed((&b, half), sum.scalar::<f32>()).unwrap(), 12.0);
        assert!(step.run_fed((), double.scalar::<f32>()).is_err());
    }

    fetch_struct! {
        /// The fetches of a step.
        struct Wanted => Told {
            loss: Scalar<f32>,
            all: Vec<Output>,
        }
    }

    #[test]
    fn structs_and_maps_are_fetched() {
        let g = graph();
        let x = g.constant([1.0, 2.0]);
        let wanted = Wanted { loss: x.sum_all().scalar(), all: vec![x.clone(), &x * 2.0] };
        let by_name = BTreeMap::from([("x", x.clone()), ("y", -&x)]);
        let s = session(&g).unwrap();
        let (told, values) = s.run((&wanted, &by_name)).unwrap();
        assert_eq!((told.loss, told.all.len()), (3.0, 2));
        assert_eq!(values["y"].as_slice::<f32>().unwrap(), [-1.0, -2.0]);
    }

    #[test]
    fn a_trace_names_the_nodes_that_ran() {
        let g = graph();
        let w = g.variable("w", [1.0, 2.0]);
        let y = w.square().sum_all();
        let s = initialized(&g).unwrap();
        let options = StepOptions { trace: true, ..StepOptions::default() };
        let (value, metadata) = s.run_with((), y.scalar::<f32>(), options).unwrap();
        assert_eq!(value, 5.0);
        let nodes = metadata.nodes().unwrap();
        assert!(nodes.iter().any(|n| n.name.contains("ReadVariableOp")), "{nodes:?}");
        let timeline = metadata.timeline().unwrap();
        assert!(timeline.starts_with("{\"traceEvents\"") && timeline.contains("\"ph\":\"X\""));
        let (_, nothing) = s.run_with((), &y, StepOptions::default()).unwrap();
        assert!(nothing.nodes().unwrap().is_empty());
    }

    fn assert_fetch<F: Fetch>(_: &F) {}

    #[test]
    fn tuples_nest() {
        let g = graph();
        let x = g.constant(1.0);
        let nested = ((x.scalar::<f32>(), &x), [x.scalar::<f32>()], Some(x.clone()), ());
        assert_fetch(&nested);
        let ((a, _), b, c, ()) = session(&g).unwrap().run(&nested).unwrap();
        assert_eq!((a, b, c.is_some()), (1.0, vec![1.0], true));
    }
}
