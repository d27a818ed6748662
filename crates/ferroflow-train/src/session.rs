//! What is run in a step: feeds, fetches, and the trait of whatever runs steps.

use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::value::IntoTensor;
use crate::variable::Variable;
use ferroflow_core::{Element, Error, Result, Tensor, err};
use ferroflow_graph::GraphDef;
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Where steps run: a session of this process or of a server.
pub trait Steps: Send + Sync {
    /// Adds nodes and functions to the session's graph.
    fn extend(&self, graph: &GraphDef) -> Result<()>;

    /// Runs a step: tensors in `feeds` replace those of their names, nodes in `targets` run for
    /// their effect, the values of `fetches` are returned in order.
    fn run_step(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: &[String],
        targets: &[String],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>>;

    /// Ends the session; running steps are cancelled.
    fn close(&self) -> Result<()>;
}

/// A session that follows a graph under construction: nodes added later are sent along with the next
/// step. Clones are handles of the same session.
#[derive(Clone)]
pub struct GraphSession {
    graph: Graph,
    steps: Arc<dyn Steps>,
    sent: Arc<Mutex<Sent>>,
    timeout: Option<Duration>,
}

/// How much of the graph the session has.
#[derive(Default)]
struct Sent {
    nodes: usize,
    rewrites: u64,
}

impl GraphSession {
    /// A session of `graph` on `steps`, which has nothing of it yet.
    pub fn new(graph: &Graph, steps: Arc<dyn Steps>) -> Result<GraphSession> {
        let session =
            GraphSession { graph: graph.clone(), steps, sent: Arc::default(), timeout: None };
        session.sent.lock().rewrites = graph.version().1;
        session.catch_up()?;
        Ok(session)
    }

    /// The same session with a limit on the time a step takes; it fails with `DeadlineExceeded`.
    pub fn with_timeout(mut self, timeout: Duration) -> GraphSession {
        self.timeout = Some(timeout);
        self
    }

    /// The graph this is a session of.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    fn catch_up(&self) -> Result<()> {
        let mut sent = self.sent.lock();
        self.graph.check()?;
        let (nodes, rewrites) = self.graph.version();
        if (nodes, rewrites) == (sent.nodes, sent.rewrites) {
            return Ok(());
        }
        if rewrites != sent.rewrites {
            return Err(err!(
                FailedPrecondition,
                "nodes of the graph were changed after the session was opened; open it after all \
                 gradients are made"
            ));
        }
        let (def, nodes, _) = self.graph.additions(sent.nodes)?;
        self.steps.extend(&def)?;
        sent.nodes = nodes;
        Ok(())
    }

    /// The values of `fetches`: outputs, variables, operations, tuples, arrays and vectors of them,
    /// and [`Output::scalar`]s that come as numbers.
    pub fn run<F: Fetch>(&self, fetches: F) -> Result<F::Value> {
        self.run_fed((), fetches)
    }

    /// [`GraphSession::run`] with values for some tensors: pairs `(&x, value)`, alone or in a tuple,
    /// array or vector.
    pub fn run_fed<F: Fetch>(&self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        self.catch_up()?;
        let mut wanted = Wanted::default();
        fetches.ask(&mut wanted);
        let mut fed = Vec::new();
        feeds.collect_into(&mut fed)?;
        self.step(fed, wanted, &fetches)
    }

    fn step<F: Fetch>(
        &self,
        feeds: Vec<(String, Tensor)>,
        wanted: Wanted,
        fetches: &F,
    ) -> Result<F::Value> {
        if wanted.fetches.is_empty() && wanted.targets.is_empty() {
            return fetches.answer(&mut std::iter::empty());
        }
        let tensors = self
            .steps
            .run_step(feeds, &wanted.fetches, &wanted.targets, self.timeout)
            .map_err(|e| self.explain(e))?;
        let asked: Option<Vec<Tensor>> =
            wanted.order.iter().map(|&i| tensors.get(i).cloned()).collect();
        let asked = asked.ok_or_else(|| err!(Internal, "a step returned too few tensors"))?;
        fetches.answer(&mut asked.into_iter())
    }

    /// The error with the source line that made the node it names.
    fn explain(&self, error: Error) -> Error {
        let text = error.message();
        let node = text.split("{{node ").nth(1).and_then(|rest| rest.split("}}").next());
        match node.and_then(|node| self.graph.made_at(node)) {
            Some(at) => {
                let text = format!("{text}\n\t made at {}:{}", at.file(), at.line());
                let same = Error::new(error.code(), text);
                if error.is_derived() { same.derived() } else { same }
            }
            None => error,
        }
    }

    /// A step whose feeds and fetches are settled once, to be run many times. Feeds are given by
    /// position.
    pub fn callable<F: Fetch>(&self, feeds: &[&Output], fetches: F) -> Result<Callable<F>> {
        self.catch_up()?;
        let mut wanted = Wanted::default();
        fetches.ask(&mut wanted);
        let feeds = feeds.iter().map(|f| f.name()).collect();
        Ok(Callable { session: self.clone(), feeds, wanted, fetches })
    }

    /// Ends the session; running steps are cancelled.
    pub fn close(&self) -> Result<()> {
        self.steps.close()
    }
}

/// A step to be run many times; see [`GraphSession::callable`].
pub struct Callable<F: Fetch> {
    session: GraphSession,
    feeds: Vec<String>,
    wanted: Wanted,
    fetches: F,
}

impl<F: Fetch> Callable<F> {
    /// Runs the step with these feeds, in the order given when it was made.
    pub fn call(&self, feeds: &[Tensor]) -> Result<F::Value> {
        ferroflow_core::ensure!(
            feeds.len() == self.feeds.len(),
            InvalidArgument,
            "{} feeds for a callable that takes {}",
            feeds.len(),
            self.feeds.len()
        );
        let feeds = self.feeds.iter().cloned().zip(feeds.iter().cloned()).collect();
        self.session.step(feeds, self.wanted.clone(), &self.fetches)
    }
}

/// What a step is to fetch and run.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Each name once.
    fetches: Vec<String>,
    /// Which of `fetches` was asked for, in the order they were asked for.
    order: Vec<usize>,
    targets: Vec<String>,
}

impl Wanted {
    fn fetch(&mut self, name: String) {
        let known = self.fetches.iter().position(|f| *f == name);
        self.order.push(known.unwrap_or(self.fetches.len()));
        if known.is_none() {
            self.fetches.push(name);
        }
    }
}

/// What can be fetched.
pub trait Fetch {
    /// What comes back.
    type Value;

    /// Says what it needs.
    fn ask(&self, wanted: &mut Wanted);

    /// Takes what it asked for, in order.
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value>;
}

fn next(values: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
    values.next().ok_or_else(|| err!(Internal, "a step returned too few tensors"))
}

impl Fetch for Output {
    type Value = Tensor;
    fn ask(&self, wanted: &mut Wanted) {
        wanted.fetch(self.name());
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
        next(values)
    }
}

impl Fetch for Variable {
    type Value = Tensor;
    fn ask(&self, wanted: &mut Wanted) {
        (**self).ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
        next(values)
    }
}

impl Fetch for Operation {
    type Value = ();
    fn ask(&self, wanted: &mut Wanted) {
        wanted.targets.push(self.name());
    }
    fn answer(&self, _: &mut dyn Iterator<Item = Tensor>) -> Result<()> {
        Ok(())
    }
}

impl Fetch for () {
    type Value = ();
    fn ask(&self, _: &mut Wanted) {}
    fn answer(&self, _: &mut dyn Iterator<Item = Tensor>) -> Result<()> {
        Ok(())
    }
}

impl<F: Fetch + ?Sized> Fetch for &F {
    type Value = F::Value;
    fn ask(&self, wanted: &mut Wanted) {
        (**self).ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<F::Value> {
        (**self).answer(values)
    }
}

impl<F: Fetch> Fetch for [F] {
    type Value = Vec<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.iter().for_each(|f| f.ask(wanted));
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.iter().map(|f| f.answer(values)).collect()
    }
}

impl<F: Fetch> Fetch for Vec<F> {
    type Value = Vec<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.as_slice().ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.as_slice().answer(values)
    }
}

impl<F: Fetch, const N: usize> Fetch for [F; N] {
    type Value = Vec<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.as_slice().ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.as_slice().answer(values)
    }
}

impl<F: Fetch> Fetch for Option<F> {
    type Value = Option<F::Value>;
    fn ask(&self, wanted: &mut Wanted) {
        self.iter().for_each(|f| f.ask(wanted));
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
        self.as_ref().map(|f| f.answer(values)).transpose()
    }
}

macro_rules! tuples {
    ($($($f:ident)+;)*) => {$(
        impl<$($f: Fetch),+> Fetch for ($($f,)+) {
            type Value = ($($f::Value,)+);
            #[allow(non_snake_case)]
            fn ask(&self, wanted: &mut Wanted) {
                let ($($f,)+) = self;
                $($f.ask(wanted);)+
            }
            #[allow(non_snake_case)]
            fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<Self::Value> {
                let ($($f,)+) = self;
                Ok(($($f.answer(values)?,)+))
            }
        }
    )*};
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

/// A scalar that is fetched as a Rust number; see [`Output::scalar`].
pub struct Scalar<T>(Output, PhantomData<T>);

impl Output {
    /// Fetches a scalar as a number: `session.run(loss.scalar::<f32>())`.
    pub fn scalar<T: Element>(&self) -> Scalar<T> {
        Scalar(self.clone(), PhantomData)
    }
}

impl<T: Element> Fetch for Scalar<T> {
    type Value = T;
    fn ask(&self, wanted: &mut Wanted) {
        self.0.ask(wanted);
    }
    fn answer(&self, values: &mut dyn Iterator<Item = Tensor>) -> Result<T> {
        next(values)?.scalar_value()
    }
}

/// What can be fed: pairs of a tensor of the graph and its value.
pub trait Feeds {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()>;
}

impl Feeds for () {
    fn collect_into(self, _: &mut Vec<(String, Tensor)>) -> Result<()> {
        Ok(())
    }
}

impl<V: IntoTensor> Feeds for (&Output, V) {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        let (name, dtype) = (self.0.name(), self.0.dtype());
        let value = crate::value::number_as(self.1.into_tensor()?, dtype)?;
        feeds.push((name, value));
        Ok(())
    }
}

impl<F: Feeds, const N: usize> Feeds for [F; N] {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        self.into_iter().try_for_each(|f| f.collect_into(feeds))
    }
}

impl<F: Feeds> Feeds for Vec<F> {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        self.into_iter().try_for_each(|f| f.collect_into(feeds))
    }
}

/// Feeds that were collected before.
impl Feeds for &[(String, Tensor)] {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        feeds.extend_from_slice(self);
        Ok(())
    }
}

impl Feeds for (String, Tensor) {
    fn collect_into(self, feeds: &mut Vec<(String, Tensor)>) -> Result<()> {
        feeds.push(self);
        Ok(())
    }
}
