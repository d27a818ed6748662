//! Queues as resources: their elements, and how to enqueue, dequeue and close.

use super::deliver::Outcome;
use super::items::Items;
use super::monitor::{Attempt, Monitor, Order, Progress};
use crate::prelude::*;
use ferroflow_core::{CancelToken, Reservation};
use ferroflow_op_kit::pack::{stack, with_rows};

/// One element of a queue: a tensor for each component.
pub type Tuple = Vec<Tensor>;

/// Lanes of a queue's monitor.
const PUT: usize = 0;
const TAKE: usize = 1;

/// The declaration of a queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    /// `None` for no limit.
    pub(crate) capacity: Option<usize>,
    pub(crate) dtypes: Vec<DType>,
    /// Shapes of the components; empty if the node does not declare them.
    pub(crate) shapes: Vec<PartialShape>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Fifo,
    /// First in, first out; components of differing shapes are padded when they are batched.
    Padding,
    /// Lowest first component first.
    Priority,
    Shuffle {
        min_after_dequeue: usize,
        seed: (i64, i64),
    },
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Fifo => "FIFOQueue",
            Kind::Padding => "PaddingFIFOQueue",
            Kind::Priority => "PriorityQueue",
            Kind::Shuffle { .. } => "RandomShuffleQueue",
        }
    }
}

/// A queue.
pub struct Queue {
    about: Arc<About>,
    monitor: Monitor<State>,
}

/// The parts that do not change.
struct About {
    name: String,
    spec: Spec,
}

struct State {
    items: Items,
    closed: bool,
}

impl Resource for Queue {
    fn describe(&self) -> String {
        format!("{} '{}'", self.about.spec.kind.name(), self.about.name)
    }

    fn close(&self) {
        self.monitor.close(&[PUT, TAKE], |state| state.closed = true);
    }
}

impl Queue {
    pub(crate) fn new(name: &str, spec: Spec) -> Queue {
        let state = State { items: Items::new(spec.kind), closed: false };
        Queue {
            about: Arc::new(About { name: name.into(), spec }),
            monitor: Monitor::new(state, &[Order::FirstCome, Order::FirstCome]),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.about.name
    }

    /// The dtypes of an element's components.
    pub fn dtypes(&self) -> &[DType] {
        &self.about.spec.dtypes
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.about.spec
    }

    pub(crate) fn len(&self) -> usize {
        self.monitor.read(|state| state.items.len())
    }

    pub fn is_closed(&self) -> bool {
        self.monitor.read(|state| state.closed)
    }

    /// Adds elements one by one, as room becomes free.
    pub fn put(&self, tuples: Vec<Tuple>, cancel: &CancelToken, scope: &InlineScope, done: Done) {
        let about = self.about.clone();
        self.monitor.start(cancel, PUT, Put { about, tuples: tuples.into_iter() }, scope, done);
    }

    /// Takes one element: its components are the outputs.
    pub fn take(&self, cancel: &CancelToken, scope: &InlineScope, done: Done) {
        self.start_take(1, Form::Single, cancel, scope, done);
    }

    /// Takes `n` elements as a batch, or when the queue is closed and `up_to`, fewer.
    pub(crate) fn take_many(
        &self,
        n: usize,
        up_to: bool,
        cancel: &CancelToken,
        scope: &InlineScope,
        done: Done,
    ) {
        let form = if up_to { Form::UpTo } else { Form::Batch };
        self.start_take(n, form, cancel, scope, done);
    }

    fn start_take(
        &self,
        n: usize,
        form: Form,
        cancel: &CancelToken,
        scope: &InlineScope,
        done: Done,
    ) {
        let take = Take { about: self.about.clone(), n, form, got: Vec::new() };
        self.monitor.start(cancel, TAKE, take, scope, done);
    }

    /// Closes once the kernels that are enqueueing have finished.
    pub fn close_after_pending(&self, cancel: &CancelToken, scope: &InlineScope, done: Done) {
        self.monitor.start(cancel, PUT, Close { about: self.about.clone() }, scope, done);
    }

    /// Closes now, and cancels kernels that are enqueueing.
    pub fn close_and_cancel(&self) {
        self.monitor.close(&[PUT], |state| state.closed = true);
    }

    /// How many kernels wait to enqueue and to dequeue.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.monitor.waiting(PUT), self.monitor.waiting(TAKE))
    }

    /// Checks one element against the declared components.
    pub(crate) fn check(&self, tuple: &[Tensor]) -> Result<()> {
        let spec = self.spec();
        self.check_types(tuple)?;
        for (i, (t, shape)) in tuple.iter().zip(&spec.shapes).enumerate() {
            ensure!(
                shape.admits(t.shape()),
                InvalidArgument,
                "Shape mismatch in tuple component {i}. Expected {shape}, got {}",
                t.shape()
            );
        }
        Ok(())
    }

    /// Checks a batch of elements, and splits it.
    pub(crate) fn split(&self, batch: &[Tensor]) -> Result<Vec<Tuple>> {
        let spec = self.spec();
        self.check_types(batch)?;
        for (i, t) in batch.iter().enumerate() {
            ensure!(
                t.rank() > 0,
                InvalidArgument,
                "Tuple component {i} must have rank at least 1 in order to be enqueued many, got a \
                 scalar"
            );
        }
        let n = batch.first().map_or(0, |t| t.shape()[0]);
        for (i, t) in batch.iter().enumerate() {
            match spec.shapes.get(i) {
                Some(shape) => {
                    let rows = std::iter::once(Some(n));
                    let want = match shape.dims() {
                        Some(dims) => PartialShape::new(rows.chain(dims.iter().copied())),
                        None => PartialShape::unknown(),
                    };
                    ensure!(
                        want.admits(t.shape()),
                        InvalidArgument,
                        "Shape mismatch in tuple component {i}. Expected {want}, got {}",
                        t.shape()
                    );
                }
                None => ensure!(
                    t.shape()[0] == n,
                    InvalidArgument,
                    "All input tensors must have the same size in the 0th dimension. Component \
                     {i} has {}, and should have {n}",
                    t.shape()[0]
                ),
            }
        }
        // Rows of a batch share its memory, which is freed with the last one. A queue that keeps
        // no order could hold a whole batch for one row, so it copies.
        let shares = matches!(spec.kind, Kind::Fifo | Kind::Padding);
        let row = |t: &Tensor, i: usize| {
            let row = t.row(i)?;
            if shares { Ok(row) } else { row.deep_copy() }
        };
        let tuple = size_of::<Tuple>() + size_of_val(batch);
        let _counted = Reservation::new(n.saturating_mul(tuple))?;
        (0..n).map(|i| batch.iter().map(|t| row(t, i)).collect()).collect()
    }

    fn check_types(&self, tuple: &[Tensor]) -> Result<()> {
        let dtypes = &self.spec().dtypes;
        ensure!(
            tuple.len() == dtypes.len(),
            InvalidArgument,
            "Wrong number of components in tuple. Expected {}, got {}",
            dtypes.len(),
            tuple.len()
        );
        for (i, (t, dtype)) in tuple.iter().zip(dtypes).enumerate() {
            ensure!(
                t.dtype() == *dtype,
                InvalidArgument,
                "Type mismatch in tuple component {i}. Expected {dtype}, got {}",
                t.dtype()
            );
        }
        Ok(())
    }

    /// Refuses batches from queues that cannot give them.
    pub(crate) fn check_can_batch(&self) -> Result<()> {
        let spec = self.spec();
        ensure!(
            spec.shapes.len() == spec.dtypes.len(),
            InvalidArgument,
            "{}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
            spec.kind.name()
        );
        Ok(())
    }
}

struct Put {
    about: Arc<About>,
    tuples: std::vec::IntoIter<Tuple>,
}

impl Attempt<State> for Put {
    fn advance(&mut self, state: &mut State) -> Progress {
        if self.tuples.len() == 0 {
            return Progress::finish(vec![]);
        }
        if state.closed {
            return Progress::fail(err!(Cancelled, "{} is closed.", self.about.title()));
        }
        let mut progress = Progress::Stuck;
        while self.about.spec.capacity.is_none_or(|capacity| state.items.len() < capacity) {
            let Some(tuple) = self.tuples.next() else {
                return Progress::finish(vec![]);
            };
            if let Err(e) = state.items.push(tuple) {
                return Progress::fail(e);
            }
            if self.tuples.len() == 0 {
                return Progress::finish(vec![]);
            }
            progress = Progress::Moved;
        }
        progress
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Enqueue operation was cancelled")
    }
}

struct Close {
    about: Arc<About>,
}

impl Attempt<State> for Close {
    fn advance(&mut self, state: &mut State) -> Progress {
        if state.closed {
            return Progress::fail(err!(
                Cancelled,
                "Queue '{}' is already closed.",
                self.about.name
            ));
        }
        state.closed = true;
        Progress::finish(vec![])
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Enqueue operation was cancelled")
    }
}

/// Whether elements leave singly or as a batch.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Single,
    Batch,
    UpTo,
}

struct Take {
    about: Arc<About>,
    n: usize,
    form: Form,
    got: Vec<Tuple>,
}

impl Attempt<State> for Take {
    fn advance(&mut self, state: &mut State) -> Progress {
        let wanted = self.n - self.got.len();
        let size = state.items.len();
        if state.closed && size < wanted {
            if self.form != Form::UpTo || size + self.got.len() == 0 {
                self.abandon(state);
                return Progress::fail(err!(
                    OutOfRange,
                    "{} is closed and has insufficient elements (requested {wanted}, current size \
                     {size})",
                    self.about.title()
                ));
            }
            self.n = size + self.got.len();
        }
        // A priority queue's batch is in order only if it is taken at once.
        if self.about.spec.kind == Kind::Priority && size < self.n {
            return Progress::Stuck;
        }
        let before = self.got.len();
        while self.got.len() < self.n {
            match state.items.pop(state.closed) {
                Some(tuple) => self.got.push(tuple),
                None if self.got.len() > before => return Progress::Moved,
                None => return Progress::Stuck,
            }
        }
        let mut got = std::mem::take(&mut self.got);
        if self.form == Form::Single {
            return Progress::finish(got.pop().unwrap_or_default());
        }
        let about = self.about.clone();
        Progress::Done(Outcome::later(move || about.batch(&got)))
    }

    fn abandon(&mut self, state: &mut State) {
        while let Some(tuple) = self.got.pop() {
            state.items.put_back(tuple);
        }
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Dequeue operation was cancelled")
    }
}

impl About {
    /// Kind and name, as errors give them.
    fn title(&self) -> String {
        format!("{} '{}'", self.spec.kind.name(), self.name)
    }

    /// The components of `tuples`, each stacked.
    fn batch(&self, tuples: &[Tuple]) -> Result<Vec<Tensor>> {
        let parts = |i: usize| tuples.iter().map(move |tuple| &tuple[i]);
        let one = |i: usize| {
            let (dtype, shape) = (self.spec.dtypes[i], &self.spec.shapes[i]);
            match (shape.known(), tuples.first()) {
                (Some(shape), _) => stack(dtype, &shape, parts(i)),
                (None, Some(_)) => super::padding::stack_padded(dtype, parts(i)),
                // An empty batch: unknown dimensions are 0.
                (None, None) => {
                    let dims: Vec<usize> =
                        shape.dims().unwrap_or(&[]).iter().map(|d| d.unwrap_or(0)).collect();
                    Tensor::zeros(dtype, with_rows(0, &dims))
                }
            }
        };
        (0..self.spec.dtypes.len()).map(one).collect()
    }
}
