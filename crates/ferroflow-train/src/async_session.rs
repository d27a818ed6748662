//! Asynchronous sessions.

use crate::fetch::{Feeds, Fetch};
use crate::graph::Graph;
use crate::graph_def_session::{LocalOptions, open_local, to_output, to_run};
use crate::output::Output;
use crate::step::{Prepared, Sent, Settled, StepOptions, StepOutput, StepRequest};
use ferroflow_cluster::{ConnectOptions, RemoteSession};
use ferroflow_core::{CancelToken, Result, Tensor, err};
use ferroflow_graph::{GraphDef, RunMetadata};
use ferroflow_runtime::{RunOutput, SessionDone};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// A session whose steps are futures of a Tokio runtime. Steps may run concurrently. Dropping the
/// future of a step cancels the step.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use ferroflow_train::{AsyncSession, Graph};
/// let g = Graph::new();
/// let x = g.placeholder::<f32>("x", ());
/// let (double, square) = (&x * 2.0, x.square());
/// let session = AsyncSession::local(&g).await?; // or AsyncSession::connect("grpc://…", &g)
/// let (a, b) = tokio::join!(
///     session.run_fed((&x, 3.0), double.scalar::<f32>()),
///     session.run_fed((&x, 4.0), square.scalar::<f32>()),
/// );
/// assert_eq!((a?, b?), (6.0, 16.0));
/// # Ok::<(), ferroflow_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct AsyncSession {
    graph: Graph,
    backend: Backend,
    sent: Arc<Mutex<Sent>>,
    timeout: Option<Duration>,
}

#[derive(Clone)]
enum Backend {
    Local(Arc<ferroflow_runtime::TaskSession>),
    Remote(Arc<RemoteSession>),
}

impl AsyncSession {
    /// A session in this process.
    pub async fn local(graph: &Graph) -> Result<AsyncSession> {
        let catalog = graph.catalog().clone();
        let session = open_local(catalog, &GraphDef::default(), &LocalOptions::default())?;
        AsyncSession::new(graph, Backend::Local(Arc::new(session))).await
    }

    /// A session on the server at `target`, `grpc://host:port`.
    pub async fn connect(target: &str, graph: &Graph) -> Result<AsyncSession> {
        AsyncSession::connect_with(target, graph, &ConnectOptions::default()).await
    }

    /// [`AsyncSession::connect`] with a time limit, or with only some of the cluster's tasks.
    pub async fn connect_with(
        target: &str,
        graph: &Graph,
        options: &ConnectOptions,
    ) -> Result<AsyncSession> {
        let session = RemoteSession::connect_with(target, &GraphDef::default(), options).await?;
        AsyncSession::new(graph, Backend::Remote(Arc::new(session))).await
    }

    async fn new(graph: &Graph, backend: Backend) -> Result<AsyncSession> {
        let sent = Arc::new(Mutex::new(Sent::nothing_of(graph)));
        let session = AsyncSession { graph: graph.clone(), backend, sent, timeout: None };
        session.catch_up().await?;
        Ok(session)
    }

    /// The same session with a time limit for each step, which fails with `DeadlineExceeded`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> AsyncSession {
        self.timeout = Some(timeout);
        self
    }

    /// The graph of this session.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The default options of its steps.
    pub fn options(&self) -> StepOptions {
        StepOptions { timeout: self.timeout, ..StepOptions::default() }
    }

    async fn catch_up(&self) -> Result<()> {
        let mut sent = self.sent.lock().await;
        if let Some((def, now)) = sent.missing(&self.graph)? {
            self.backend.extend(&def).await?;
            *sent = now;
        }
        Ok(())
    }

    /// Runs a step and returns the values of `fetches`; see [`crate::Session::run`].
    pub async fn run<F: Fetch>(&self, fetches: F) -> Result<F::Value> {
        self.run_fed((), fetches).await
    }

    /// [`AsyncSession::run`] with feeds.
    pub async fn run_fed<F: Fetch>(&self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        Ok(self.run_with(feeds, fetches, self.options()).await?.0)
    }

    /// [`AsyncSession::run_fed`] with options; also returns the trace of the step.
    pub async fn run_with<F: Fetch>(
        &self,
        feeds: impl Feeds,
        fetches: F,
        options: StepOptions,
    ) -> Result<(F::Value, RunMetadata)> {
        let step = Prepared::new(feeds, fetches, options)?;
        self.catch_up().await?;
        self.step(step).await
    }

    async fn step<F: Fetch>(&self, mut step: Prepared<F>) -> Result<(F::Value, RunMetadata)> {
        if step.is_empty() {
            return step.answer(StepOutput::default());
        }
        let output = self.backend.run_step(step.take_request()).await;
        step.answer(output.map_err(|e| self.graph.explain(e))?)
    }

    /// Prepares a step that runs many times; see [`crate::Session::callable`].
    pub async fn callable<F: Fetch>(
        &self,
        feeds: &[&Output],
        fetches: F,
    ) -> Result<AsyncCallable<F>> {
        let settled = Settled::new(feeds, fetches);
        self.catch_up().await?;
        Ok(AsyncCallable { session: self.clone(), settled })
    }

    /// Sets up a partial run; see [`crate::Session::partial_run`].
    pub async fn partial_run(
        &self,
        feeds: &[&Output],
        fetches: impl Fetch,
    ) -> Result<AsyncPartialRun> {
        let (feeds, fetches, targets) = Settled::new(feeds, fetches).into_names();
        self.catch_up().await?;
        let handle = self.backend.partial_run_setup(feeds, fetches, targets).await;
        let handle = handle.map_err(|e| self.graph.explain(e))?;
        Ok(AsyncPartialRun { session: self.clone(), handle })
    }

    /// Closes the session and cancels its running steps.
    pub async fn close(&self) -> Result<()> {
        match &self.backend {
            Backend::Local(session) => {
                session.close(Box::new(|| {}));
                Ok(())
            }
            Backend::Remote(session) => session.close().await,
        }
    }
}

/// A prepared step, whose calls may run concurrently; see [`AsyncSession::callable`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use ferroflow_core::Tensor;
/// use ferroflow_train::{AsyncSession, Graph};
/// let g = Graph::new();
/// let x = g.placeholder::<f32>("x", ());
/// let session = AsyncSession::local(&g).await?;
/// let square = session.callable(&[&x], x.square().scalar::<f32>()).await?;
/// let (four, nine) = ([Tensor::scalar(2.0f32)], [Tensor::scalar(3.0f32)]);
/// let both = tokio::try_join!(square.call(&four), square.call(&nine))?;
/// assert_eq!(both, (4.0, 9.0));
/// # Ok::<(), ferroflow_core::Error>(())
/// # }).unwrap();
/// ```
pub struct AsyncCallable<F: Fetch> {
    session: AsyncSession,
    settled: Settled<F>,
}

impl<F: Fetch> AsyncCallable<F> {
    /// Runs the step with these feeds, in the order of [`AsyncSession::callable`].
    pub async fn call(&self, feeds: &[Tensor]) -> Result<F::Value> {
        let step = self.settled.step(feeds, self.session.options())?;
        Ok(self.session.step(step).await?.0)
    }
}

/// A step that runs in parts; see [`AsyncSession::partial_run`]. Dropping the future of a part
/// cancels the whole step.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use ferroflow_train::{AsyncSession, Graph};
/// let g = Graph::new();
/// let (x, y) = (g.placeholder::<f32>("x", ()), g.placeholder::<f32>("y", ()));
/// let double = &x * 2.0;
/// let sum = &double + &y;
/// let session = AsyncSession::local(&g).await?;
/// let step = session.partial_run(&[&x, &y], (&double, &sum)).await?;
/// let half = step.run_fed((&x, 3.0), double.scalar::<f32>()).await?;
/// assert_eq!(step.run_fed((&y, half + 1.0), sum.scalar::<f32>()).await?, 13.0);
/// # Ok::<(), ferroflow_core::Error>(())
/// # }).unwrap();
/// ```
pub struct AsyncPartialRun {
    session: AsyncSession,
    handle: String,
}

impl AsyncPartialRun {
    /// Runs one part. Each tensor can be fed and fetched once.
    pub async fn run_fed<F: Fetch>(&self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        let AsyncSession { graph, backend, .. } = &self.session;
        let mut part = Prepared::part(feeds, fetches, self.session.options())?;
        let tensors = backend.partial_run(self.handle.clone(), part.take_request()).await;
        let tensors = tensors.map_err(|e| graph.explain(e))?;
        Ok(part.answer(StepOutput { tensors, ..StepOutput::default() })?.0)
    }
}

impl Backend {
    async fn extend(&self, graph: &GraphDef) -> Result<()> {
        match self {
            Backend::Local(session) => session.extend(graph, None).map(|_| ()),
            Backend::Remote(session) => session.extend(graph).await,
        }
    }

    async fn run_step(&self, request: StepRequest) -> Result<StepOutput> {
        match self {
            Backend::Local(session) => {
                let (session, timeout) = (session.clone(), request.options.timeout);
                let start = move |cancel, done| session.run(to_run(request), cancel, done);
                to_output(started(timeout, start).await?)
            }
            Backend::Remote(session) => {
                let answer = session.run_step(to_run(request)).await?;
                Ok(StepOutput { tensors: answer.tensors, metadata: answer.metadata })
            }
        }
    }

    async fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        match self {
            Backend::Local(session) => {
                let session = session.clone();
                aside(move || session.partial_run_setup(feeds, fetches, targets)).await?
            }
            Backend::Remote(session) => session.partial_run_setup(feeds, fetches, targets).await,
        }
    }

    async fn partial_run(&self, handle: String, part: StepRequest) -> Result<Vec<Tensor>> {
        let StepRequest { feeds, fetches, options, .. } = part;
        match self {
            Backend::Local(session) => {
                let session = session.clone();
                let start = move |cancel, done| {
                    session.partial_run(&handle, feeds, fetches, cancel, done);
                };
                Ok(started(options.timeout, start).await?.tensors)
            }
            Backend::Remote(session) => {
                session.partial_run(&handle, feeds, fetches, options.timeout).await
            }
        }
    }
}

/// Cancels a step whose future is dropped.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel(err!(Cancelled, "the step's future was dropped"));
    }
}

/// Runs CPU-bound work on a blocking thread.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| err!(Internal, "cannot start the step: {e}"))
}

/// Starts a step, or a part of a partial run, in this process, and waits for its end.
async fn started(
    timeout: Option<Duration>,
    start: impl FnOnce(CancelToken, SessionDone) + Send + 'static,
) -> Result<RunOutput> {
    let cancel = CancelToken::new();
    let guard = CancelOnDrop(cancel.clone());
    let (tell, mut told) = oneshot::channel();
    let done = Box::new(move |result| drop(tell.send(result)));
    // The first start of a step compiles it.
    aside(move || start(cancel, done)).await?;
    let ended = |_| err!(Internal, "a step ended without a result");
    match timeout {
        None => told.await.map_err(ended)?,
        Some(timeout) => match tokio::time::timeout(timeout, &mut told).await {
            Ok(result) => result.map_err(ended)?,
            Err(_) => {
                guard.0.cancel(err!(DeadlineExceeded, "the step took longer than {timeout:?}"));
                told.await.map_err(ended)?
            }
        },
    }
}
