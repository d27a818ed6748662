//! Feeds a dataset from a Rust iterator while the graph consumes it.

use super::Dataset;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::Session;
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure, err};
use ferroflow_graph::AttrList;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Feeds elements to a dataset; see [`Graph::fed_dataset`].
#[derive(Clone, Debug)]
pub struct DatasetFeeder {
    inputs: Vec<Output>,
    put: Operation,
    end: Operation,
    abort: Operation,
}

/// A running feed. Dropping it ends the feed and the dataset.
pub struct Feeding {
    session: Session,
    abort: Operation,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Graph {
    /// A dataset of elements of these types and shapes that the program produces while the graph
    /// consumes them, with a buffer of `capacity` elements. [`DatasetFeeder::start`] sets the
    /// source. It can be iterated once.
    #[track_caller]
    pub fn fed_dataset(
        &self,
        elements: &[(DType, PartialShape)],
        capacity: i64,
    ) -> (Dataset, DatasetFeeder) {
        let name = format!("fed_dataset_{:016x}", fastrand::u64(..));
        let types: Vec<DType> = elements.iter().map(|e| e.0).collect();
        let shapes: Vec<PartialShape> = elements.iter().map(|e| e.1.clone()).collect();
        let is_known = shapes.iter().all(|s| s.known().is_some());
        let queue = |g: &Graph| {
            // A queue takes fully known shapes or none.
            let shapes = if is_known { shapes.clone() } else { Vec::new() };
            g.op("FIFOQueueV2")
                .attr("component_types", types.clone())
                .attr("shapes", shapes)
                .attr("capacity", capacity.max(1))
                .attr("shared_name", name.as_str())
                .output()
        };
        let state = |g: &Graph| vec![g.constant(0i64)];
        let any = (DType::Int64, PartialShape::scalar());
        let start = self.function("Dataset_feed_start", &[], |g, _| state(g));
        let next = self.function("Dataset_feed_next", std::slice::from_ref(&any), |g, _| {
            let op = g.op("QueueDequeueV2").input(&queue(g));
            op.attr("component_types", types.clone()).outputs()
        });
        let end = self.function("Dataset_feed_end", std::slice::from_ref(&any), |g, _| state(g));
        let op = self
            .op("GeneratorDataset")
            .list(&[])
            .list(&[])
            .list(&[])
            .attr("init_func", start.reference())
            .attr("next_func", next.reference())
            .attr("finalize_func", end.reference())
            .attr("output_types", AttrList::Types(types.clone()));
        let dataset = Dataset::new(self, types.clone(), shapes.clone(), op);
        let queue = queue(self);
        let inputs: Vec<Output> = elements
            .iter()
            .map(|(dtype, shape)| self.placeholder_of(*dtype, "element", shape))
            .collect();
        let put = self.op("QueueEnqueueV2").input(&queue).list(&inputs).operation();
        let close = |now: bool| {
            let op = self.op("QueueCloseV2").input(&queue);
            op.attr("cancel_pending_enqueues", now).operation()
        };
        let feeder = DatasetFeeder { inputs, put, end: close(false), abort: close(true) };
        (dataset, feeder)
    }
}

impl DatasetFeeder {
    /// Feeds the dataset from an iterator on its own thread until the iterator ends. An error of
    /// the iterator ends the dataset, and [`Feeding::finish`] returns it. The feed belongs to this
    /// session: a session that is opened again after a lost server needs a new feed.
    pub fn start(
        &self,
        session: &Session,
        elements: impl Iterator<Item = Result<Vec<Tensor>>> + Send + 'static,
    ) -> Result<Feeding> {
        let is_stopped: Arc<AtomicBool> = Arc::default();
        let (stop, feeder, to) = (is_stopped.clone(), self.clone(), session.clone());
        let names: Vec<String> = self.inputs.iter().map(Output::name).collect();
        let body = move || {
            let feed = || -> Result<()> {
                for element in elements {
                    let element = element?;
                    ensure!(
                        element.len() == names.len(),
                        InvalidArgument,
                        "an element of {} tensors instead of {}",
                        element.len(),
                        names.len()
                    );
                    let feeds: Vec<(String, Tensor)> = names.iter().cloned().zip(element).collect();
                    to.run_fed(feeds, &feeder.put)?;
                    if stop.load(Ordering::Acquire) {
                        break;
                    }
                }
                Ok(())
            };
            // End the dataset if the iterator panics; otherwise its readers would block forever.
            let fed = catch_unwind(AssertUnwindSafe(feed)).unwrap_or_else(|_| {
                Err(err!(Internal, "the iterator that feeds a dataset panicked"))
            });
            let ended = to.run(&feeder.end);
            match fed {
                // The consumer has gone away.
                Err(_) if stop.load(Ordering::Acquire) => Ok(()),
                Err(e) => Err(e),
                Ok(()) => ended,
            }
        };
        let thread = std::thread::Builder::new().name("ff-feed".into());
        let thread = thread
            .spawn(body)
            .map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))?;
        let (session, abort) = (session.clone(), self.abort.clone());
        Ok(Feeding { session, abort, is_stopped, thread: Some(thread) })
    }
}

impl Feeding {
    /// Waits until the iterator has ended and returns its result.
    pub fn finish(mut self) -> Result<()> {
        match self.thread.take() {
            Some(thread) => {
                thread.join().map_err(|_| err!(Internal, "the feeding thread panicked"))?
            }
            None => Ok(()),
        }
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.is_stopped.store(true, Ordering::Release);
        // Cancels an enqueue that waits for room.
        let _ = self.session.run(&self.abort);
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, session};
    use ferroflow_core::Code;

    fn spec() -> [(DType, PartialShape); 2] {
        [(DType::Int32, PartialShape::scalar()), (DType::Float, PartialShape::new([None]))]
    }

    fn element(i: i32) -> Result<Vec<Tensor>> {
        Ok(vec![Tensor::scalar(i), Tensor::vector(&vec![0.5f32; i as usize])])
    }

    #[test]
    fn elements_are_made_while_they_are_taken() {
        let g = graph();
        let (data, feeder) = g.fed_dataset(&spec(), 2);
        let iterator = data.padded_batch(4).iterator();
        let next = iterator.next();
        let s = session(&g).unwrap();
        s.run(&iterator.initializer).unwrap();
        let feeding = feeder.start(&s, (0..6).map(element)).unwrap();
        let (numbers, padded) = s.run((&next[0], &next[1])).unwrap();
        assert_eq!(numbers.as_slice::<i32>().unwrap(), [0, 1, 2, 3]);
        assert_eq!(padded.shape().to_string(), "[4,3]");
        assert_eq!(s.run(&next[0]).unwrap().as_slice::<i32>().unwrap(), [4, 5]);
        assert_eq!(s.run(&next[0]).unwrap_err().code(), Code::OutOfRange);
        feeding.finish().unwrap();
    }

    #[test]
    fn an_endless_iterator_ends_with_its_handle() {
        let g = graph();
        let (data, feeder) = g.fed_dataset(&spec(), 1);
        let iterator = data.iterator();
        let next = iterator.next();
        let s = session(&g).unwrap();
        s.run(&iterator.initializer).unwrap();
        let feeding = feeder.start(&s, std::iter::repeat_with(|| element(1))).unwrap();
        assert_eq!(s.run(next[0].scalar::<i32>()).unwrap(), 1);
        drop(feeding);
    }

    #[test]
    fn an_error_of_the_iterator_is_returned() {
        let g = graph();
        let (_, feeder) = g.fed_dataset(&spec(), 8);
        let s = session(&g).unwrap();
        let bad = [element(1), Err(err!(DataLoss, "a bad disk"))];
        let feeding = feeder.start(&s, bad.into_iter()).unwrap();
        assert!(feeding.finish().unwrap_err().message().contains("a bad disk"));
    }

    #[test]
    fn an_iterator_that_panics_ends_the_dataset() {
        let g = graph();
        let (data, feeder) = g.fed_dataset(&spec(), 2);
        let iterator = data.iterator();
        let next = iterator.next();
        let s = session(&g).unwrap();
        s.run(&iterator.initializer).unwrap();
        let panics = std::iter::once_with(|| panic!("the iterator's own trouble"));
        let feeding = feeder.start(&s, panics).unwrap();
        assert_eq!(s.run(&next[0]).unwrap_err().code(), Code::OutOfRange);
        assert!(feeding.finish().unwrap_err().message().contains("panicked"));
    }
}
