//! Joins requests of the same kind to one step.
//!
//! The first request of a kind opens a batch and starts its task. The task waits until the batch is
//! full or the timeout has passed, then for one of the permits that limit the running batches.
//! Until then requests join the batch.

use crate::config::BatchingOptions;
use crate::metrics::ModelMetrics;
use crate::model::Steps;
use crate::rows;
use ferroflow_core::{DType, HashMap, Result, Tensor, bail, ensure, err};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, Semaphore, oneshot};

/// The batches of one version of a model.
pub(crate) struct Batcher {
    options: BatchingOptions,
    steps: Arc<Steps>,
    metrics: ModelMetrics,
    /// Limits the number of running batches.
    room: Semaphore,
    forming: Mutex<Forming>,
}

/// Batches that are not running yet.
#[derive(Default)]
struct Forming {
    /// The batch that requests of a kind join.
    open: HashMap<BatchKey, u64>,
    batches: HashMap<u64, WaitingBatch>,
    last: u64,
}

/// Requests with equal keys can be one step.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct BatchKey {
    feeds: Vec<String>,
    fetches: Vec<String>,
    /// Dtypes and all dimensions but the first; only their number where they are padded.
    shapes: Vec<(DType, Vec<usize>)>,
}

struct WaitingBatch {
    requests: Vec<WaitingRequest>,
    rows: usize,
    full: Arc<Notify>,
}

struct WaitingRequest {
    feeds: Vec<Tensor>,
    rows: usize,
    since: Instant,
    answer: oneshot::Sender<Result<Vec<Tensor>>>,
}

impl Batcher {
    pub fn new(options: BatchingOptions, steps: Arc<Steps>, metrics: ModelMetrics) -> Arc<Batcher> {
        let room = Semaphore::new(options.threads);
        Arc::new(Batcher { options, steps, metrics, room, forming: Mutex::default() })
    }

    /// Runs a step with these feeds, possibly together with other requests.
    pub async fn run(
        self: &Arc<Self>,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
    ) -> Result<Vec<Tensor>> {
        let rows = rows::count(feeds.iter().map(|(name, value)| (name.as_str(), value)))?;
        let most = self.options.max_batch_size;
        if rows <= most {
            return self
                .join(feeds, fetches, rows)?
                .await
                .unwrap_or_else(|_| bail!(Internal, "a batch ended without an answer"));
        }
        ensure!(
            self.options.split_large_batches,
            InvalidArgument,
            "the request has {rows} rows, but a batch takes {most}; raise max_batch_size or set \
             enable_large_batch_splitting"
        );
        let mut pieces = Vec::new();
        for from in (0..rows).step_by(most) {
            let len = most.min(rows - from);
            let part = feeds.iter().map(|(name, value)| Ok((name.clone(), value.rows(from, len)?)));
            pieces.push(self.join(part.collect::<Result<_>>()?, fetches.clone(), len)?);
        }
        let mut answers = Vec::with_capacity(pieces.len());
        for piece in pieces {
            answers.push(piece.await.map_err(|_| err!(Internal, "a batch has no answer"))??);
        }
        let output = |i: usize| rows::join(&answers.iter().map(|a| &a[i]).collect::<Vec<_>>());
        (0..fetches.len()).map(output).collect()
    }

    /// Adds a request to the open batch of its kind, or opens one.
    fn join(
        self: &Arc<Self>,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        rows: usize,
    ) -> Result<oneshot::Receiver<Result<Vec<Tensor>>>> {
        let (names, feeds): (Vec<String>, Vec<Tensor>) = feeds.into_iter().unzip();
        let shape = |t: &Tensor| {
            let inner = &t.shape().dims()[1..];
            let dims = match self.options.pad_variable_length_inputs {
                true => vec![inner.len()],
                false => inner.to_vec(),
            };
            (t.dtype(), dims)
        };
        let key = BatchKey { feeds: names, fetches, shapes: feeds.iter().map(shape).collect() };
        let (answer, answered) = oneshot::channel();
        let request = WaitingRequest { feeds, rows, since: Instant::now(), answer };
        let most = self.options.max_batch_size;
        let mut forming = self.forming.lock();
        let Forming { open, batches, last } = &mut *forming;
        if let Some(id) = open.get(&key)
            && let Some(batch) = batches.get_mut(id)
        {
            if batch.rows + rows <= most {
                batch.rows += rows;
                batch.requests.push(request);
                if batch.rows == most {
                    batch.full.notify_one();
                    open.remove(&key);
                }
                return Ok(answered);
            }
            batch.full.notify_one();
        }
        ensure!(
            batches.len() < self.options.max_enqueued_batches,
            Unavailable,
            "{} batches wait already (max_enqueued_batches); try again later",
            batches.len()
        );
        *last += 1;
        let (id, full) = (*last, Arc::new(Notify::new()));
        if rows == most {
            full.notify_one();
        }
        let batch = WaitingBatch { requests: vec![request], rows, full: full.clone() };
        batches.insert(id, batch);
        open.insert(key.clone(), id);
        drop(forming);
        tokio::spawn(self.clone().run_when_ready(key, id, full));
        Ok(answered)
    }

    async fn run_when_ready(self: Arc<Self>, key: BatchKey, id: u64, full: Arc<Notify>) {
        if !self.options.timeout.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(self.options.timeout) => {}
                () = full.notified() => {}
            }
        }
        let _place = self.room.acquire().await;
        let mut requests = self.close(&key, id);
        // A client that disconnected needs no answer.
        requests.retain(|request| !request.answer.is_closed());
        if requests.is_empty() {
            return;
        }
        let rows = requests.iter().map(|request| request.rows).sum();
        let waits = requests.iter().map(|request| request.since.elapsed());
        self.metrics.batched(rows, waits);
        let result = match self.inputs(&requests, rows) {
            Ok(feeds) => self.step(&key, feeds, rows).await,
            Err(e) => Err(e),
        };
        match result {
            Ok(outputs) => answer_all(requests, &outputs),
            // One bad request must not fail the others.
            Err(_) if requests.len() > 1 => self.run_alone(&key, requests).await,
            Err(e) => answer_each(requests, |_| Err(e.clone())),
        }
    }

    /// Takes the requests of a batch. No other request can join it after that.
    fn close(&self, key: &BatchKey, id: u64) -> Vec<WaitingRequest> {
        let mut forming = self.forming.lock();
        if forming.open.get(key) == Some(&id) {
            forming.open.remove(key);
        }
        forming.batches.remove(&id).map(|batch| batch.requests).unwrap_or_default()
    }

    async fn run_alone(&self, key: &BatchKey, requests: Vec<WaitingRequest>) {
        for request in requests {
            let rows = request.rows;
            let one = [request];
            let result = match self.inputs(&one, rows) {
                Ok(feeds) => self.step(key, feeds, rows).await,
                Err(e) => Err(e),
            };
            answer_each(one, |_| result.clone());
        }
    }

    /// The feeds of all requests, padded as the options say.
    fn inputs(&self, requests: &[WaitingRequest], rows: usize) -> Result<Vec<Tensor>> {
        let filled = self.options.padded(rows);
        let one = |input: usize| -> Result<Tensor> {
            let mut parts = Vec::with_capacity(requests.len() + filled - rows);
            let values = || requests.iter().map(|request| &request.feeds[input]);
            let mut most = values().next().map_or_else(Vec::new, |t| t.shape().dims().to_vec());
            for value in values() {
                most.iter_mut().zip(value.shape().dims()).for_each(|(m, &d)| *m = d.max(*m));
            }
            for value in values() {
                let mut to = most.clone();
                to[0] = value.shape().dims()[0];
                parts.push(rows::pad(value, &to)?);
            }
            if let ([only], true) = (&parts[..], filled == rows) {
                return Ok(only.clone());
            }
            // The missing rows are copies of the first one.
            let first = parts[0].rows(0, 1)?;
            parts.extend(std::iter::repeat_n(first, filled - rows));
            rows::join(&parts.iter().collect::<Vec<_>>())
        };
        (0..requests[0].feeds.len()).map(one).collect()
    }

    /// Runs the step of a batch; returns the outputs without the padded rows.
    async fn step(&self, key: &BatchKey, feeds: Vec<Tensor>, rows: usize) -> Result<Vec<Tensor>> {
        let feeds = key.feeds.iter().cloned().zip(feeds).collect();
        let outputs = self.steps.run(feeds, key.fetches.clone()).await?;
        let filled = self.options.padded(rows);
        let trimmed = key.fetches.iter().zip(outputs).map(|(name, output)| {
            let found = output.shape().dims().first().copied();
            ensure!(
                found == Some(filled),
                FailedPrecondition,
                "output {name:?} of a batch of {filled} rows has the shape {}; this model cannot be \
                 batched",
                output.shape()
            );
            if filled == rows { Ok(output) } else { output.rows(0, rows) }
        });
        trimmed.collect()
    }
}

/// Gives each request its rows of the outputs.
fn answer_all(requests: Vec<WaitingRequest>, outputs: &[Tensor]) {
    let is_single = requests.len() == 1;
    let mut from = 0;
    answer_each(requests, |rows| {
        let start = from;
        from += rows;
        match is_single {
            true => Ok(outputs.to_vec()),
            false => outputs.iter().map(|output| output.rows(start, rows)).collect(),
        }
    });
}

fn answer_each(
    requests: impl IntoIterator<Item = WaitingRequest>,
    mut result: impl FnMut(usize) -> Result<Vec<Tensor>>,
) {
    for request in requests {
        // An error means that the client has disconnected.
        let _ = request.answer.send(result(request.rows));
    }
}
