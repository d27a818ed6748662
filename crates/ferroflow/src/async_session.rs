//! Sessions for programs that wait for many things at once.

use crate::default_catalog;
use crate::session::{to_output, to_run};
use ferroflow_cluster::{ConnectOptions, RemoteSession};
use ferroflow_core::{CancelToken, Result, err};
use ferroflow_graph::GraphDef;
use ferroflow_runtime::{SessionOptions, Task};
use ferroflow_train::{
    Feeds, Fetch, Graph, Prepared, RunMetadata, Sent, StepOptions, StepOutput, StepRequest,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// A session of a graph under construction whose steps are futures, for use in a Tokio runtime. Steps may
/// run at the same time; one whose future is dropped is cancelled.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use ferroflow::prelude::*;
/// let g = graph();
/// let x = g.placeholder::<f32>("x", ());
/// let (double, square) = (&x * 2.0, x.square());
/// let session = AsyncSession::local(&g).await?; // or AsyncSession::connect("grpc://…", &g)
/// let (a, b) = tokio::join!(
///     session.run_fed((&x, 3.0), double.scalar::<f32>()),
///     session.run_fed((&x, 4.0), square.scalar::<f32>()),
/// );
/// assert_eq!((a?, b?), (6.0, 16.0));
/// # Ok::<(), ferroflow::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct AsyncSession {
    graph: Graph,
    kind: Kind,
    sent: Arc<Mutex<Sent>>,
    timeout: Option<Duration>,
}

#[derive(Clone)]
enum Kind {
    Local(Arc<ferroflow_runtime::Session>),
    Remote(Arc<RemoteSession>),
}

impl AsyncSession {
    /// A session in this process.
    pub async fn local(graph: &Graph) -> Result<AsyncSession> {
        let options = SessionOptions { allow_soft_placement: true, ..SessionOptions::default() };
        let task = Task::local(default_catalog());
        let session = ferroflow_runtime::Session::new(task, &GraphDef::default(), options)?;
        AsyncSession::new(graph, Kind::Local(Arc::new(session))).await
    }

    /// A session on the server at `target`, `grpc://host:port`.
    pub async fn connect(target: &str, graph: &Graph) -> Result<AsyncSession> {
        AsyncSession::connect_with(target, graph, &ConnectOptions::default()).await
    }

    /// [`AsyncSession::connect`] with a limit on the time it takes, and on what the session sees.
    pub async fn connect_with(
        target: &str,
        graph: &Graph,
        options: &ConnectOptions,
    ) -> Result<AsyncSession> {
        let session = RemoteSession::connect_with(target, &GraphDef::default(), options).await?;
        AsyncSession::new(graph, Kind::Remote(Arc::new(session))).await
    }

    async fn new(graph: &Graph, kind: Kind) -> Result<AsyncSession> {
        let sent = Arc::new(Mutex::new(Sent::nothing_of(graph)));
        let session = AsyncSession { graph: graph.clone(), kind, sent, timeout: None };
        session.catch_up().await?;
        Ok(session)
    }

    /// The same session with a limit on the time a step takes; it fails with `DeadlineExceeded`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> AsyncSession {
        self.timeout = Some(timeout);
        self
    }

    async fn catch_up(&self) -> Result<()> {
        let mut sent = self.sent.lock().await;
        if let Some((def, now)) = sent.missing(&self.graph)? {
            match &self.kind {
                Kind::Local(session) => session.extend(&def, None).map(|_| ())?,
                Kind::Remote(session) => session.extend(&def).await?,
            }
            *sent = now;
        }
        Ok(())
    }

    /// The values of `fetches`; see [`ferroflow_train::GraphSession::run`].
    pub async fn run<F: Fetch>(&self, fetches: F) -> Result<F::Value> {
        self.run_fed((), fetches).await
    }

    /// [`AsyncSession::run`] with values for some tensors.
    pub async fn run_fed<F: Fetch>(&self, feeds: impl Feeds, fetches: F) -> Result<F::Value> {
        let options = StepOptions { timeout: self.timeout, ..StepOptions::default() };
        Ok(self.run_with(feeds, fetches, options).await?.0)
    }

    /// [`AsyncSession::run_fed`] with options of its own; also returns what was recorded of the step.
    pub async fn run_with<F: Fetch>(
        &self,
        feeds: impl Feeds,
        fetches: F,
        options: StepOptions,
    ) -> Result<(F::Value, RunMetadata)> {
        let step = Prepared::new(feeds, fetches, options)?;
        self.catch_up().await?;
        if step.is_empty() {
            return step.answer(StepOutput::default());
        }
        let output = self.step(step.request().clone()).await;
        step.answer(output.map_err(|e| self.graph.explain(e))?)
    }

    async fn step(&self, request: StepRequest) -> Result<StepOutput> {
        match &self.kind {
            Kind::Local(session) => local_step(session.clone(), request).await,
            Kind::Remote(session) => {
                let answer = session.run_step(to_run(request)).await?;
                Ok(StepOutput { tensors: answer.tensors, metadata: answer.metadata })
            }
        }
    }

    /// Ends the session; running steps are cancelled.
    pub async fn close(&self) -> Result<()> {
        match &self.kind {
            Kind::Local(session) => {
                session.close(Box::new(|| {}));
                Ok(())
            }
            Kind::Remote(session) => session.close().await,
        }
    }
}

/// Cancels a step nobody waits for any more.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel(err!(Cancelled, "the step's future was dropped"));
    }
}

async fn local_step(
    session: Arc<ferroflow_runtime::Session>,
    request: StepRequest,
) -> Result<StepOutput> {
    let timeout = request.options.timeout;
    let cancel = CancelToken::new();
    let guard = CancelOnDrop(cancel.clone());
    let (tell, mut told) = oneshot::channel();
    let done = Box::new(move |result| drop(tell.send(result)));
    let start = move || session.run(to_run(request), cancel, done);
    // Starting compiles the step, when it is the first of its kind.
    tokio::task::spawn_blocking(start)
        .await
        .map_err(|e| err!(Internal, "a step could not be started: {e}"))?;
    let ended = |_| err!(Internal, "a step ended without a result");
    let output = match timeout {
        None => told.await.map_err(ended)?,
        Some(timeout) => match tokio::time::timeout(timeout, &mut told).await {
            Ok(result) => result.map_err(ended)?,
            Err(_) => {
                guard.0.cancel(err!(DeadlineExceeded, "the step took longer than {timeout:?}"));
                told.await.map_err(ended)?
            }
        },
    }?;
    drop(guard);
    to_output(output)
}
