//! Readers take names of files from a queue and return records.
//!
//! A reader serves one kernel at a time. A kernel that needs another name waits for the queue and
//! holds the reader meanwhile; no thread blocks.

mod ops;
mod work;

use crate::prelude::*;
use ferroflow_core::{CancelToken, Completion, StepCtx};
use ferroflow_op_kit::protobuf::{Message, fields};
use ferroflow_ops_state::queue::{Attempt, Monitor, Order, Progress, Queue};
use parking_lot::Mutex;
use work::{Format, Pair, Work};

pub(crate) use ops::register;

/// A reader.
struct Reader {
    name: String,
    format: Format,
    /// Whether a kernel is using it.
    turn: Monitor<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    work: Option<Work>,
    /// The file that was opened last.
    file: String,
    started: i64,
    finished: i64,
    produced: i64,
}

impl Resource for Reader {
    fn describe(&self) -> String {
        format!("reader '{}'", self.name)
    }

    fn close(&self) {
        self.turn.close(&[0], |_| ());
    }
}

/// Waits for the reader to be free.
struct Turn;

impl Attempt<bool> for Turn {
    fn advance(&mut self, busy: &mut bool) -> Progress {
        if *busy {
            return Progress::Stuck;
        }
        *busy = true;
        Progress::finish(vec![])
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Read operation was cancelled")
    }
}

/// Exclusive use of the reader; dropping it wakes the next waiter.
struct Held(Arc<Reader>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.turn.change(&InlineScope::unknown(), |busy| *busy = false);
    }
}

impl Reader {
    fn new(name: &str, format: Format) -> Reader {
        Reader {
            name: name.into(),
            format,
            turn: Monitor::new(false, &[Order::FirstCome]),
            state: Mutex::default(),
        }
    }

    /// Starts reading for a kernel: one record as two scalars, or up to `n` as two vectors.
    fn read(
        self: &Arc<Reader>,
        queue: Arc<Queue>,
        step: Arc<StepCtx>,
        most: Option<usize>,
        done: Done,
    ) {
        let job = Job { reader: self.clone(), queue, step: step.clone(), most, got: vec![], done };
        let waits = Waits { job: Mutex::new(Some((job, None))) };
        let done = Done::new(Arc::new(waits), 0);
        self.turn.start(&step.cancel, 0, Turn, &InlineScope::unknown(), done);
    }

    /// Opens a file.
    fn start_work(&self, name: &str, cancel: &CancelToken) -> Result<()> {
        let work = Work::start(&self.format, name, cancel)?;
        let mut state = self.state.lock();
        state.started += 1;
        state.file = name.to_string();
        state.work = Some(work);
        Ok(())
    }

    /// The next record of the current file; `None` at its end.
    fn next(&self) -> Result<Option<Pair>> {
        let mut state = self.state.lock();
        let Some(work) = state.work.as_mut() else { return Ok(None) };
        match work.next() {
            Ok(Some(pair)) => {
                // Readers that make one record of a file know at once that it was the last.
                if work.is_ended() {
                    state.work = None;
                    state.finished = state.started;
                }
                state.produced += 1;
                Ok(Some(pair))
            }
            other => {
                state.work = None;
                state.finished = state.started;
                other
            }
        }
    }

    fn reset(&self) {
        *self.state.lock() = State::default();
    }

    /// The state as a ReaderBaseState; only readers without a place in a file have one.
    fn serialize(&self) -> Result<Vec<u8>> {
        self.ensure_serializable("SerializeState")?;
        let state = self.state.lock();
        let mut m = Message::new();
        m.varint_if(1, state.started as u64)
            .varint_if(2, state.finished as u64)
            .varint_if(3, state.produced as u64);
        m.bytes_if(4, state.file.as_bytes());
        Ok(m.into_bytes())
    }

    fn restore(&self, bytes: &[u8], cancel: &CancelToken) -> Result<()> {
        self.ensure_serializable("RestoreState")?;
        let malformed =
            || err!(InvalidArgument, "Could not parse state for {}: malformed", self.name);
        let (mut state, mut name) = (State::default(), None);
        for (field, value) in fields(bytes).ok_or_else(malformed)? {
            let number = || value.as_varint().map(|x| x as i64).ok_or_else(malformed);
            match field {
                1 => state.started = number()?,
                2 => state.finished = number()?,
                3 => state.produced = number()?,
                4 => name = Some(value.as_bytes().ok_or_else(malformed)?),
                _ => {}
            }
        }
        ensure!(
            0 <= state.finished && state.finished <= state.started && state.produced >= 0,
            InvalidArgument,
            "Inconsistent state for {}: {} work units finished of {} started, {} records produced",
            self.name,
            state.finished,
            state.started,
            state.produced
        );
        state.file = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
        if state.started > state.finished {
            state.work = Some(Work::start(&self.format, &state.file, cancel)?);
        }
        *self.state.lock() = state;
        Ok(())
    }

    fn ensure_serializable(&self, what: &str) -> Result<()> {
        ensure!(
            matches!(self.format, Format::Identity | Format::WholeFile),
            Unimplemented,
            "Reader {what}"
        );
        Ok(())
    }
}

/// A kernel that reads.
struct Job {
    reader: Arc<Reader>,
    queue: Arc<Queue>,
    step: Arc<StepCtx>,
    /// How many records at most; `None` for a single one.
    most: Option<usize>,
    got: Vec<Pair>,
    done: Done,
}

/// A job waiting for its turn, or, when it holds the reader, for a name from the queue.
struct Waits {
    job: Mutex<Option<(Job, Option<Held>)>>,
}

impl Completion for Waits {
    fn complete(self: Arc<Self>, _: u64, result: Result<Outputs>, _: &InlineScope) {
        let Some((job, held)) = self.job.lock().take() else { return };
        let outputs = match result {
            Ok(outputs) => outputs,
            Err(e) => {
                drop(held);
                return job.fail(e);
            }
        };
        let (held, name) = match held {
            None => (Held(job.reader.clone()), None),
            Some(held) => (held, Some(outputs)),
        };
        // Files are read on a thread that may block, and not on the thread that dequeued the name.
        let step = job.step.clone();
        let memory = step.memory.clone();
        // The thread and the memory are those of the job's session.
        step.memory.run(|| {
            step.threads.spawn_blocking(Box::new(move || memory.run(|| job.go_on(held, name))));
        });
    }
}

impl Job {
    /// Reads on, from the file that was just dequeued if there is one.
    fn go_on(mut self, held: Held, name: Option<Outputs>) {
        if let Some(outputs) = name
            && let Err(e) =
                name_in(outputs).and_then(|name| self.reader.start_work(&name, &self.step.cancel))
        {
            drop(held);
            return self.fail(e);
        }
        let wanted = self.most.unwrap_or(1);
        while self.got.len() < wanted {
            match self.reader.next() {
                Ok(Some(pair)) => self.got.push(pair),
                Err(e) => {
                    drop(held);
                    return self.fail(e);
                }
                // A file has ended: return the records so far instead of waiting for another file.
                Ok(None) if !self.got.is_empty() => break,
                Ok(None) => {
                    let (queue, step) = (self.queue.clone(), self.step.clone());
                    let waits = Waits { job: Mutex::new(Some((self, Some(held)))) };
                    let done = Done::new(Arc::new(waits), 0);
                    return queue.take(&step.cancel, &InlineScope::unknown(), done);
                }
            }
        }
        drop(held);
        let (keys, values): (Vec<_>, Vec<_>) = self.got.into_iter().unzip();
        let shape = match self.most {
            Some(_) => Shape::vector(keys.len()),
            None => Shape::scalar(),
        };
        let both = || -> Result<Vec<Tensor>> {
            Ok(vec![
                Tensor::from_strings(shape.clone(), keys)?,
                Tensor::from_strings(shape, values)?,
            ])
        };
        self.done.finish_tensors(both());
    }

    fn fail(self, e: Error) {
        self.done.fail(e);
    }
}

fn name_in(outputs: Outputs) -> Result<String> {
    let first = outputs.into_iter().next();
    let Some(Value::Tensor(t)) = first else {
        bail!(Internal, "the queue gave no name");
    };
    Ok(String::from_utf8_lossy(t.scalar_string()?).into_owned())
}
