//! Barriers: tuples are assembled component by component under string keys, and taken in the order
//! in which their keys were first inserted.

use super::monitor::{Attempt, Monitor, Order, Progress};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use ferroflow_op_kit::handle::{Anchor, Seen};
use ferroflow_op_kit::handle_form::ref_handle_shape;
use ferroflow_op_kit::pack::stack;
use std::collections::{BTreeMap, HashMap};

struct Barrier {
    name: String,
    dtypes: Vec<DType>,
    shapes: Vec<Shape>,
    monitor: Monitor<State>,
}

struct State {
    incomplete: HashMap<Bytes, (i64, Vec<Option<Tensor>>)>,
    /// Ordered by the insertion of the key, then by completion.
    ready: BTreeMap<(i64, u64), (Bytes, Vec<Tensor>)>,
    /// Counts insertions, starting at the lowest number.
    insertions: i64,
    completions: u64,
    closed: bool,
    cancelled: bool,
}

impl Resource for Barrier {
    fn describe(&self) -> String {
        format!("barrier '{}'", self.name)
    }

    fn close(&self) {
        self.monitor.close(&[0], |state| state.closed = true);
    }
}

impl Barrier {
    /// Adds component `component` of the elements with these keys.
    fn insert(
        &self,
        state: &mut State,
        keys: &[Bytes],
        values: &Tensor,
        component: usize,
    ) -> Result<()> {
        let (name, shown) = (&self.name, |b: bool| u8::from(b));
        if state.closed {
            ensure!(
                !state.cancelled && (keys.is_empty() || !state.incomplete.is_empty()),
                Cancelled,
                "Barrier {name} is closed.  Pending enqueues cancelled: {}.  Number of new \
                 insertions: {}.  Number of incomplete keys: {}.",
                shown(state.cancelled),
                keys.len(),
                state.incomplete.len()
            );
        }
        let mut is_new = false;
        // Each new key has a place for each of its components.
        let tuple = self.dtypes.len() * size_of::<Option<Tensor>>();
        let _counted = Reservation::new(keys.len().saturating_mul(tuple))?;
        for (i, key) in keys.iter().enumerate() {
            let count = state.incomplete.len();
            if state.closed && !state.incomplete.contains_key(key) {
                bail!(
                    Cancelled,
                    "Barrier {name} is closed, but attempted to insert a brand new key: {}.  \
                     Pending enqueues cancelled: {}.  Insertion index: {i}.  Number of incomplete \
                     keys: {count}.",
                    String::from_utf8_lossy(key),
                    shown(state.cancelled)
                );
            }
            let (_, parts) = state.incomplete.entry(key.clone()).or_insert_with(|| {
                is_new = true;
                (state.insertions, vec![None; self.dtypes.len()])
            });
            if parts[component].is_some() {
                bail!(
                    InvalidArgument,
                    "Key {} already has a value for component {component} in barrier {name}",
                    String::from_utf8_lossy(key)
                );
            }
            parts[component] = Some(values.row(i)?);
            if parts.iter().all(Option::is_some)
                && let Some((index, parts)) = state.incomplete.remove(key)
            {
                let tuple = parts.into_iter().flatten().collect();
                state.ready.insert((index, state.completions), (key.clone(), tuple));
                state.completions += 1;
            }
        }
        state.insertions += i64::from(is_new);
        Ok(())
    }
}

struct Take {
    barrier: Arc<Barrier>,
    n: usize,
    allow_small: bool,
    wait_for_incomplete: bool,
}

impl Attempt<State> for Take {
    fn advance(&mut self, state: &mut State) -> Progress {
        let mut n = self.n;
        if state.closed && state.ready.len() < n.max(1) {
            let mut available = state.ready.len();
            let waits = !self.allow_small || self.wait_for_incomplete;
            if waits {
                available += state.incomplete.len();
            }
            if self.allow_small && (!waits || state.incomplete.is_empty()) {
                n = n.min(available);
            }
            if available < n.max(1) {
                return Progress::fail(err!(
                    OutOfRange,
                    "Barrier '{}' is closed and has insufficient elements (requested {n}, total \
                     size {available})",
                    self.barrier.name
                ));
            }
        }
        if state.ready.len() < n {
            return Progress::Stuck;
        }
        let taken: Vec<_> = (0..n).map_while(|_| state.ready.pop_first()).collect();
        Progress::Done(super::deliver::Outcome::later({
            let barrier = self.barrier.clone();
            move || barrier.batch(&taken)
        }))
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Dequeue operation was cancelled")
    }
}

impl Barrier {
    fn batch(&self, taken: &[((i64, u64), (Bytes, Vec<Tensor>))]) -> Result<Vec<Tensor>> {
        let indices: Vec<i64> = taken.iter().map(|((index, _), _)| *index).collect();
        let keys: Vec<Bytes> = taken.iter().map(|(_, (key, _))| key.clone()).collect();
        let mut out = vec![Tensor::vector(&indices), Tensor::from_strings([keys.len()], keys)?];
        for (i, (&dtype, shape)) in self.dtypes.iter().zip(&self.shapes).enumerate() {
            out.push(stack(dtype, shape, taken.iter().map(|(_, (_, tuple))| &tuple[i]))?);
        }
        Ok(out)
    }
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    ensure!(
        init.int("capacity")? == -1,
        InvalidArgument,
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to \
         enforce a limited capacity."
    );
    let anchor = Anchor::<Barrier>::new(init, false, "tensorflow::barrier::Barrier")?;
    let dtypes = init.dtypes("component_types")?;
    let shapes = init.shapes("shapes")?;
    let known: Option<Vec<Shape>> = shapes.iter().map(PartialShape::known).collect();
    let known = known.filter(|known| known.len() == dtypes.len());
    let shapes = known
        .ok_or_else(|| err!(InvalidArgument, "All of the component shapes must be specified"))?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let make = |name: &str| {
            let state = State {
                incomplete: HashMap::new(),
                ready: BTreeMap::new(),
                insertions: i64::MIN,
                completions: 0,
                closed: false,
                cancelled: false,
            };
            Ok(Barrier {
                name: name.into(),
                dtypes: dtypes.clone(),
                shapes: shapes.clone(),
                monitor: Monitor::new(state, &[Order::FirstCome]),
            })
        };
        anchor.output(ctx, make, |found| {
            ensure!(
                found.dtypes == dtypes && found.shapes == shapes,
                InvalidArgument,
                "Shared barrier '{}' has component types {:?} and shapes {:?}",
                found.name,
                found.dtypes,
                found.shapes
            );
            Ok(())
        })
    }))
}

fn insert_many(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (component, dtype) = (init.int("component_index")?, init.dtype("T")?);
    let seen = Seen::<Barrier>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let barrier = seen.find(&ctx.step().resources, &handle)?;
        let n = barrier.dtypes.len();
        let at = usize::try_from(component).ok().filter(|&at| at < n).ok_or_else(|| {
            err!(
                InvalidArgument,
                "The component ID is out of range {component} > num_components (= {n})"
            )
        })?;
        ensure!(
            barrier.dtypes[at] == dtype,
            InvalidArgument,
            "Signature mismatch, have: string_ref, string, {dtype}-> expected: string_ref, \
             string, {}->",
            barrier.dtypes[at]
        );
        let (keys, values) = (ctx.input(1)?, ctx.input(2)?);
        let keys = keys.strings()?;
        ensure!(
            keys.is_empty() || values.elements() > 0,
            InvalidArgument,
            "Tensors with no elements are not supported {}: received shape {}",
            barrier.name,
            values.shape()
        );
        let fits = values.shape().split_first().is_some_and(|(&rows, row)| {
            rows == keys.len() && (rows == 0 || *row == barrier.shapes[at][..])
        });
        ensure!(
            fits,
            InvalidArgument,
            "Shape mismatch in tuple component {at}. Expected {} for each of {} keys, got {}",
            barrier.shapes[at],
            keys.len(),
            values.shape()
        );
        barrier.monitor.change(ctx.scope(), |state| barrier.insert(state, keys, values, at))
    }))
}

fn take_many(init: &KernelInit<'_>) -> Result<KernelBox> {
    ensure!(init.int("timeout_ms")? == -1, InvalidArgument, "Timeout not supported yet.");
    let allow_small = init.bool("allow_small_batch")?;
    let wait_for_incomplete = init.bool("wait_for_incomplete")?;
    let types = init.dtypes("component_types")?;
    let seen = Seen::<Barrier>::new();
    Ok(KernelBox::new_async(move |ctx: AsyncCtx, done: Done, scope: &InlineScope| {
        let handle = ctx.inputs.first().cloned().unwrap_or_default();
        let take = seen.find(&ctx.step.resources, &handle).and_then(|barrier| {
            ensure!(
                barrier.dtypes == types,
                InvalidArgument,
                "Signature mismatch, have: {types:?} expected: {:?}",
                barrier.dtypes
            );
            let n = ctx.input(1)?.scalar_index()?;
            let n = usize::try_from(n)
                .map_err(|_| err!(InvalidArgument, "num_elements {n} is negative"))?;
            Ok(Take { barrier, n, allow_small, wait_for_incomplete })
        });
        match take {
            Ok(take) => {
                let barrier = take.barrier.clone();
                barrier.monitor.start(&ctx.step.cancel, 0, take, scope, done);
            }
            Err(e) => done.fail(e),
        }
    }))
}

fn close(init: &KernelInit<'_>) -> Result<KernelBox> {
    let cancel = init.bool("cancel_pending_enqueues")?;
    let seen = Seen::<Barrier>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let barrier = seen.find(&ctx.step().resources, &handle)?;
        barrier.monitor.change(ctx.scope(), |state| {
            ensure!(
                !state.closed || (cancel && !state.cancelled),
                Cancelled,
                "Barrier '{}' is already closed.",
                barrier.name
            );
            (state.closed, state.cancelled) = (true, cancel);
            if cancel {
                state.incomplete.clear();
            }
            Ok(())
        })
    }))
}

fn size(of: fn(&State) -> usize) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |_| {
        let seen = Seen::<Barrier>::new();
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let handle = ctx.take_value(0)?;
            let n = seen.find(&ctx.step().resources, &handle)?.monitor.read(of);
            ctx.set(0, Tensor::scalar(n as i32))
        }))
    }
}

fn taken_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let rest = c.outputs.saturating_sub(2);
    let vectors = vec![PartialShape::of_rank(1); c.outputs.min(2)];
    Ok(vectors.into_iter().chain(vec![PartialShape::unknown(); rest]).collect())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Barrier")
        .doc("A place where tuples are put together by key.")
        .output("handle: Ref(string)")
        .attr("component_types: list(type) >= 1")
        .attr("shapes: list(shape) >= 0 = []")
        .attr("capacity: int = -1")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .shape(ref_handle_shape)
        .cpu(make);
    c.op("BarrierInsertMany")
        .doc("Gives a component to each of several keys.")
        .input("handle: Ref(string)")
        .input("keys: string")
        .input("values: T")
        .attr("T: type")
        .attr("component_index: int")
        .shape(shape::unknown)
        .cpu(insert_many);
    c.op("BarrierTakeMany")
        .doc("Takes tuples that are complete, when there are enough.")
        .input("handle: Ref(string)")
        .input("num_elements: int32")
        .output("indices: int64")
        .output("keys: string")
        .output("values: component_types")
        .attr("component_types: list(type) >= 1")
        .attr("allow_small_batch: bool = false")
        .attr("wait_for_incomplete: bool = false")
        .attr("timeout_ms: int = -1")
        .shape(taken_shapes)
        .waits()
        .cpu(take_many);
    c.op("BarrierClose")
        .doc("Lets no new keys in.")
        .input("handle: Ref(string)")
        .attr("cancel_pending_enqueues: bool = false")
        .shape(shape::unknown)
        .cpu(close);
    c.op("BarrierReadySize")
        .doc("How many tuples are complete.")
        .input("handle: Ref(string)")
        .output("size: int32")
        .shape(shape::scalar)
        .cpu(size(|state| state.ready.len()));
    c.op("BarrierIncompleteSize")
        .doc("How many tuples wait for components.")
        .input("handle: Ref(string)")
        .output("size: int32")
        .shape(shape::scalar)
        .cpu(size(|state| state.incomplete.len()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};

    struct Fixture {
        resources: Arc<Resources>,
        handle: Arc<StoredVariable>,
    }

    impl Fixture {
        fn new() -> Fixture {
            let resources = Arc::new(Resources::new());
            let made = check("Barrier")
                .resources(&resources)
                .attr("component_types", vec![DType::Float, DType::Int32])
                .attr("shapes", vec![PartialShape::scalar(), PartialShape::scalar()])
                .attr("shared_name", "bar")
                .run_values()
                .unwrap();
            let Some(Value::Ref(handle)) = made.into_iter().next() else { panic!("no handle") };
            Fixture { resources, handle }
        }

        fn on(&self, op: &str) -> Check<'static> {
            check(op).resources(&self.resources).ref_input(self.handle.clone())
        }

        fn insert(&self, keys: &[&'static str], values: Tensor, component: i64) -> Check<'static> {
            let keys: Vec<Bytes> = keys.iter().map(|&k| k.into()).collect();
            self.on("BarrierInsertMany")
                .input(Tensor::from_strings([keys.len()], keys).unwrap())
                .input(values)
                .attr("component_index", component)
        }

        fn take(&self, n: i32) -> Check<'static> {
            self.on("BarrierTakeMany")
                .input(Tensor::scalar(n))
                .attr("component_types", vec![DType::Float, DType::Int32])
        }

        fn close(&self, cancel: bool) -> Check<'static> {
            self.on("BarrierClose").attr("cancel_pending_enqueues", cancel)
        }
    }

    #[test]
    fn tuples_leave_when_complete_in_the_order_their_keys_came() {
        let b = Fixture::new();
        b.insert(&["a", "b"], Tensor::vector(&[1.0f32, 2.0]), 0).run().unwrap();
        b.on("BarrierIncompleteSize").gives(Tensor::scalar(2i32));
        b.insert(&["c"], Tensor::vector(&[3.0f32]), 0).run().unwrap();
        b.insert(&["c"], Tensor::vector(&[30i32]), 1).run().unwrap();
        b.insert(&["b", "a"], Tensor::vector(&[20i32, 10]), 1).run().unwrap();
        b.on("BarrierReadySize").gives(Tensor::scalar(3i32));
        let got = b.take(3).run().unwrap();
        assert_eq!(got[0], Tensor::vector(&[i64::MIN, i64::MIN, i64::MIN + 1]));
        assert_eq!(got[1].strings().unwrap(), ["b", "a", "c"]);
        assert_eq!(got[2], Tensor::vector(&[2.0f32, 1.0, 3.0]));
        assert_eq!(got[3], Tensor::vector(&[20i32, 10, 30]));
    }

    #[test]
    fn a_closed_barrier_takes_no_new_keys() {
        let b = Fixture::new();
        b.insert(&["a"], Tensor::vector(&[1.0f32]), 0).run().unwrap();
        b.insert(&["a"], Tensor::vector(&[1.0f32]), 0).fails(
            Code::InvalidArgument,
            "Key a already has a value for component 0 in barrier bar",
        );
        b.close(false).run().unwrap();
        b.close(false).fails(Code::Cancelled, "Barrier 'bar' is already closed.");
        b.insert(&["b"], Tensor::vector(&[1.0f32]), 0).fails(
            Code::Cancelled,
            "Barrier bar is closed, but attempted to insert a brand new key: b.  Pending enqueues \
             cancelled: 0.  Insertion index: 0.  Number of incomplete keys: 1.",
        );
        b.take(2).fails(
            Code::OutOfRange,
            "Barrier 'bar' is closed and has insufficient elements (requested 2, total size 1)",
        );
        b.insert(&["a"], Tensor::vector(&[1i32]), 1).run().unwrap();
        let got = b.take(2).attr("allow_small_batch", true).run().unwrap();
        assert_eq!(got[1].strings().unwrap(), ["a"]);
        b.take(1).fails(Code::OutOfRange, "(requested 1, total size 0)");
        b.close(true).run().unwrap();
        b.insert(&["b"], Tensor::vector(&[1.0f32]), 0).fails(
            Code::Cancelled,
            "Barrier bar is closed.  Pending enqueues cancelled: 1.  Number of new insertions: 1.  \
             Number of incomplete keys: 0.",
        );
    }

    #[test]
    fn wrong_components_are_refused() {
        let b = Fixture::new();
        b.insert(&["a"], Tensor::vector(&[1.0f32]), 7).fails(
            Code::InvalidArgument,
            "The component ID is out of range 7 > num_components (= 2)",
        );
        b.insert(&["a"], Tensor::vector(&[1i32]), 0)
            .fails(Code::InvalidArgument, "Signature mismatch");
        b.insert(&["a"], Tensor::vector(&[1.0f32, 2.0]), 0)
            .fails(Code::InvalidArgument, "Shape mismatch in tuple component 0");
    }
}
