//! Joins requests of the same kind to one step.
//!
//! The first request of a kind opens a batch and starts its task. The task waits until the batch is
//! full or the timeout has passed, then for one of the permits that limit the running batches.
//! Until then requests join the batch.

use crate::config::BatchingOptions;
use crate::metrics::ModelMetrics;
use crate::model::Steps;
use crate::rows;
use ferroflow_cluster::rpc::off_network;
use ferroflow_core::inline::may_decode_inline;
use ferroflow_core::{DType, HashMap, Reservation, Result, Tensor, bail, ensure, err, limits};
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
        let result = match self.inputs(&requests, rows).await {
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
            let result = match self.inputs(&one, rows).await {
                Ok(feeds) => self.step(key, feeds, rows).await,
                Err(e) => Err(e),
            };
            answer_each(one, |_| result.clone());
        }
    }

    /// The feeds of all requests, padded as the options say.
    async fn inputs(&self, requests: &[WaitingRequest], rows: usize) -> Result<Vec<Tensor>> {
        let filled = self.options.padded(rows);
        let values = |input: usize| -> Vec<Tensor> {
            requests.iter().map(|request| request.feeds[input].clone()).collect()
        };
        let inputs: Vec<Vec<Tensor>> = (0..requests[0].feeds.len()).map(values).collect();
        let sum = |bytes: fn(&[Tensor], usize) -> usize| {
            inputs.iter().map(|values| bytes(values, filled)).fold(0, usize::saturating_add)
        };
        // Short requests of different shapes can make a long batch: two vectors, a large matrix.
        let (given, joined) = (sum(|values, _| rows::bytes(values)), sum(joined_bytes));
        limits().admit_decompressed(given, joined, "a padded batch")?;
        // The padded requests exist beside the batch.
        let making = Reservation::new(joined.saturating_mul(2))?;
        off_network(may_decode_inline(joined), move || {
            let _making = making;
            inputs.iter().map(|values| join_padded(values, filled)).collect()
        })
        .await
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

/// The least shape that holds every value, with `filled` rows.
fn joined_shape(values: &[Tensor], filled: usize) -> Vec<usize> {
    let mut most = values.first().map_or_else(Vec::new, |t| t.shape().dims().to_vec());
    for value in values {
        most.iter_mut().zip(value.shape().dims()).for_each(|(m, &d)| *m = d.max(*m));
    }
    if let Some(rows) = most.first_mut() {
        *rows = filled;
    }
    most
}

/// The bytes that joining these values takes; none if there is nothing to join.
fn joined_bytes(values: &[Tensor], filled: usize) -> usize {
    let shape = joined_shape(values, filled);
    match values {
        [only] if only.shape().dims() == shape => 0,
        _ => shape.into_iter().fold(rows::element_bytes(values), usize::saturating_mul),
    }
}

/// The rows of all values, padded to one shape. The missing rows are copies of the first one.
fn join_padded(values: &[Tensor], filled: usize) -> Result<Tensor> {
    let mut to = joined_shape(values, filled);
    if let [only] = values
        && only.shape().dims() == to
    {
        return Ok(only.clone());
    }
    let mut parts = Vec::with_capacity(filled);
    for value in values {
        to[0] = value.shape().dims()[0];
        parts.push(rows::pad(value, &to)?);
    }
    let there: usize = parts.iter().map(|part| part.shape().dims()[0]).sum();
    if filled > there {
        let first = parts[0].rows(0, 1)?;
        parts.extend(std::iter::repeat_n(first, filled - there));
    }
    rows::join(&parts.iter().collect::<Vec<_>>())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_requests_of_different_shapes_make_a_long_batch() {
        let tensor = |shape: [usize; 3]| {
            let elements = vec![1.0f32; shape.iter().product()];
            Tensor::from_slice(shape, &elements).expect("fits")
        };
        let values = [tensor([1, 60_000, 1]), tensor([1, 1, 60_000])];
        assert_eq!(rows::bytes(&values), 480_000);
        assert_eq!(joined_bytes(&values, 2), 2 * 60_000 * 60_000 * 4);
        let huge = [tensor([1, 0, 1]), tensor([1, 1, 0])];
        assert_eq!(joined_bytes(&huge, usize::MAX), usize::MAX, "does not overflow");
        let one = [tensor([2, 3, 1])];
        assert_eq!(joined_bytes(&one, 2), 0, "nothing is copied");
        let small = [tensor([1, 2, 1]), tensor([1, 1, 2])];
        assert_eq!(join_padded(&small, 3).expect("joins").shape().dims(), [3, 2, 2]);
    }
}
