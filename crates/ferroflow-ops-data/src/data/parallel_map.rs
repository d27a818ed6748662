//! Maps that call their function for several elements at a time: ParallelMapDataset and its V2,
//! ParallelFilterDataset, and MapAndBatchDataset.

use super::batch::{Batching, batched_cardinality};
use super::dataset::*;
use super::function::Captured;
use super::map::mapped;
use super::scope::Scope;
use super::task::Background;
use super::wait::{Buffer, Later, later};
use crate::prelude::*;
use ferroflow_core::ComputePool;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;

/// The default number of concurrent calls.
pub(super) fn calls_for(requested: i64) -> Result<usize> {
    ensure!(
        requested > 0 || requested == -1,
        InvalidArgument,
        "num_parallel_calls must be greater than zero."
    );
    // Each call holds an element; more of them than this would not run any sooner.
    const MOST: i64 = 1 << 16;
    Ok(if requested == -1 {
        ComputePool::threads().max(2)
    } else {
        Ord::min(requested, MOST) as usize
    })
}

/// Whether elements leave in the order of the input, from the attribute `deterministic`.
pub(super) fn in_order(init: &KernelInit<'_>) -> Result<bool> {
    match init.string("deterministic")?.as_str() {
        "true" | "default" => Ok(true),
        "false" => Ok(false),
        other => bail!(
            InvalidArgument,
            "DeterminismPolicy must be one of {{'true', 'false', 'default'}}, got '{other}'"
        ),
    }
}

/// The purpose of a call.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// Its results are the element.
    Map { preserve_cardinality: bool },
    /// Its result decides whether to keep the element.
    Filter,
}

struct ParallelMap {
    input: DatasetRef,
    f: Captured,
    calls: usize,
    in_order: bool,
    what_for: Use,
}

impl Dataset for ParallelMap {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(ParallelMapping {
            state: State::NotStarted(self.input.iterate(scope)?),
            f: self.f.clone(),
            scope: scope.clone(),
            calls: self.calls,
            in_order: self.in_order,
            what_for: self.what_for,
        }))
    }

    fn cardinality(&self) -> i64 {
        match self.what_for {
            Use::Map { preserve_cardinality: true } => self.input.cardinality(),
            _ => UNKNOWN,
        }
    }
}

/// Outcome of one call: an element, none (the element is dropped), or the end of the sequence.
enum Outcome {
    Element(Tuple),
    Dropped,
    End,
}

type Called = Result<Outcome>;

struct ParallelMapping {
    state: State,
    f: Captured,
    scope: Scope,
    calls: usize,
    in_order: bool,
    what_for: Use,
}

enum State {
    /// No call starts before the first element is requested.
    NotStarted(Elements),
    Running {
        results: Results,
        _work: Background,
        _calls: CallKind,
    },
    Ended,
}

enum Results {
    InOrder { buffer: Arc<Buffer<Later<Called>>>, first: Option<Later<Called>> },
    AnyOrder(Arc<Buffer<Called>>),
}

impl Produce for ParallelMapping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                match self.next_outcome().await {
                    Some(Ok(Outcome::Element(element))) => return Ok(Some(element)),
                    Some(Ok(Outcome::Dropped)) => {}
                    Some(Err(e)) => return Err(e),
                    Some(Ok(Outcome::End)) | None => {
                        self.state = State::Ended;
                        return Ok(None);
                    }
                }
            }
        })
    }
}

impl ParallelMapping {
    async fn next_outcome(&mut self) -> Option<Called> {
        if let State::NotStarted(_) = self.state {
            self.start();
        }
        let State::Running { results, .. } = &mut self.state else { return None };
        match results {
            Results::AnyOrder(buffer) => buffer.pop().await,
            Results::InOrder { buffer, first } => {
                if first.is_none() {
                    *first = Some(buffer.take().await?);
                }
                let outcome = first.as_mut().expect("just set").await;
                *first = None;
                buffer.give_up();
                Some(outcome.unwrap_or_else(|| Err(err!(Cancelled, "a call was given up"))))
            }
        }
    }

    fn start(&mut self) {
        let State::NotStarted(input) = std::mem::replace(&mut self.state, State::Ended) else {
            return;
        };
        let (f, scope, what_for) = (self.f.clone(), self.scope.clone(), self.what_for);
        let (threads, memory) = (scope.threads().clone(), scope.memory().clone());
        let calls = CallKind::default();
        let (results, work) = if self.in_order {
            let buffer = Buffer::new(self.calls);
            let work = call_in_order(input, f, scope, what_for, buffer.clone(), calls.clone());
            let work = Background::start(&threads, &memory, work);
            (Results::InOrder { buffer, first: None }, work)
        } else {
            let buffer = Buffer::new(self.calls);
            let work = call_in_any_order(input, f, scope, what_for, buffer.clone(), calls.clone());
            let work = Background::start(&threads, &memory, work);
            (Results::AnyOrder(buffer), work)
        };
        self.state = State::Running { results, _work: work, _calls: calls };
    }
}

async fn call(f: Captured, scope: Scope, what_for: Use, element: Tuple) -> Called {
    match what_for {
        Use::Filter => {
            let stays = f.test(&scope, element.clone(), "Filter").await?;
            Ok(if stays { Outcome::Element(element) } else { Outcome::Dropped })
        }
        Use::Map { preserve_cardinality } => {
            let result = f.call(&scope, element).await;
            let element = mapped(result, preserve_cardinality)?;
            Ok(element.map_or(Outcome::End, Outcome::Element))
        }
    }
}

/// The running calls. Each is a task of its own, which ends when this is dropped.
#[derive(Clone, Default)]
struct CallKind(Arc<Mutex<Under>>);

#[derive(Default)]
struct Under {
    next: u64,
    way: HashMap<u64, Option<Background>>,
}

impl CallKind {
    fn start(&self, scope: &Scope, work: impl Future<Output = ()> + Send + 'static) {
        let id = {
            let mut under = self.0.lock();
            under.next += 1;
            let id = under.next;
            under.way.insert(id, None);
            id
        };
        // Weak: a task must not keep its owner alive.
        let all = Arc::downgrade(&self.0);
        let task = Background::start(scope.threads(), scope.memory(), async move {
            work.await;
            let finished = all.upgrade().and_then(|all| all.lock().way.remove(&id));
            drop(finished);
        });
        let mut under = self.0.lock();
        // It may have finished already.
        let unused = match under.way.get_mut(&id) {
            Some(place) => place.replace(task),
            None => Some(task),
        };
        drop(under);
        drop(unused);
    }
}

async fn call_in_order(
    mut input: Elements,
    f: Captured,
    scope: Scope,
    what_for: Use,
    to: Arc<Buffer<Later<Called>>>,
    calls: CallKind,
) {
    loop {
        to.reserve().await;
        let (promise, result) = later();
        match input.next().await {
            Ok(Some(element)) => {
                let work = call(f.clone(), scope.clone(), what_for, element);
                calls.start(&scope, async move { promise.keep(work.await) });
                to.push(result);
            }
            Ok(None) => {
                to.give_up();
                break;
            }
            Err(e) => {
                promise.keep(Err(e));
                to.push(result);
            }
        }
    }
    to.end();
}

async fn call_in_any_order(
    mut input: Elements,
    f: Captured,
    scope: Scope,
    what_for: Use,
    to: Arc<Buffer<Called>>,
    calls: CallKind,
) {
    loop {
        to.reserve().await;
        match input.next().await {
            Ok(Some(element)) => {
                let work = call(f.clone(), scope.clone(), what_for, element);
                let to = to.clone();
                calls.start(&scope, async move { to.push(work.await) });
            }
            Ok(None) => {
                to.give_up();
                break;
            }
            Err(e) => to.push(Err(e)),
        }
    }
    to.end();
}

struct MapAndBatch {
    map: ParallelMap,
    batch_size: usize,
    drop_remainder: bool,
}

impl Dataset for MapAndBatch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.map.iterate(scope)?;
        Ok(Elements::new(Batching::new(input, self.batch_size, self.drop_remainder)))
    }

    fn cardinality(&self) -> i64 {
        batched_cardinality(self.map.cardinality(), self.batch_size, self.drop_remainder)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    let orders: [(_, _, _, fn(&KernelInit<'_>) -> Result<bool>); 2] = [
        ("ParallelMapDataset", "int32", "sloppy: bool = false", |init| Ok(!init.bool("sloppy")?)),
        ("ParallelMapDatasetV2", "int64", "deterministic: string = 'default'", in_order),
    ];
    for (name, count, order, is_ordered) in orders {
        c.op(name)
            .doc("A dataset of what `f` makes of each element, of several at a time.")
            .input("input_dataset: variant")
            .input("other_arguments: Targuments")
            .input(&format!("num_parallel_calls: {count}"))
            .makes_dataset()
            .attr("f: func")
            .attr("Targuments: list(type) >= 0")
            .element_types()
            .attr("use_inter_op_parallelism: bool = true")
            .attr(order)
            .attr("preserve_cardinality: bool = false")
            .newer_attr("use_unbounded_threadpool: bool = false")
            .metadata_attr()
            .cpu(move |init| parallel_map(init, is_ordered(init)?));
    }
    c.op("ParallelFilterDataset")
        .doc("A dataset of the elements for which `predicate` is true, asked of several at a time.")
        .input("input_dataset: variant")
        .input("other_arguments: Targuments")
        .input("num_parallel_calls: int64")
        .makes_dataset()
        .attr("predicate: func")
        .attr("deterministic: string = 'default'")
        .attr("Targuments: list(type) >= 0")
        .element_types()
        .metadata_attr()
        .cpu(|init| {
            let f = Arc::new(init.function("predicate")?);
            let in_order = in_order(init)?;
            makes(init, move |ctx| made(ctx, &f, in_order, Use::Filter))
        });
    for op in ["MapAndBatchDataset", "ExperimentalMapAndBatchDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of batches of what `f` makes of each element, of several at a time.")
            .input("input_dataset: variant")
            .input("other_arguments: Targuments")
            .input("batch_size: int64")
            .input("num_parallel_calls: int64")
            .input("drop_remainder: bool")
            .makes_dataset()
            .attr("f: func")
            .attr("Targuments: list(type) >= 0")
            .element_types()
            .attr("preserve_cardinality: bool = false")
            .cpu(map_and_batch);
        if op == "MapAndBatchDataset" {
            drop(b.metadata_attr());
        }
    }
}

fn parallel_map(init: &KernelInit<'_>, in_order: bool) -> Result<KernelBox> {
    let f = Arc::new(init.function("f")?);
    let what_for = Use::Map { preserve_cardinality: init.bool("preserve_cardinality")? };
    makes(init, move |ctx| made(ctx, &f, in_order, what_for))
}

/// From the inputs: a dataset, the captured values, the number of calls.
fn made(
    ctx: &mut Ctx<'_>,
    f: &Arc<FunctionHandle>,
    in_order: bool,
    what_for: Use,
) -> Result<ParallelMap> {
    let last = ctx.num_inputs() - 1;
    let calls = ctx.input(last)?;
    ensure!(calls.rank() == 0, InvalidArgument, "num_parallel_calls must be a scalar");
    Ok(ParallelMap {
        calls: calls_for(calls.scalar_index()?)?,
        input: input(ctx, 0)?,
        f: Captured::from_inputs(f, ctx, 1..last)?,
        in_order,
        what_for,
    })
}

fn map_and_batch(init: &KernelInit<'_>) -> Result<KernelBox> {
    let f = Arc::new(init.function("f")?);
    let what_for = Use::Map { preserve_cardinality: init.bool("preserve_cardinality")? };
    makes(init, move |ctx| {
        let n = ctx.num_inputs();
        let batch_size: i64 = scalar(ctx, n - 3, "batch_size")?;
        ensure!(batch_size > 0, InvalidArgument, "batch_size must be greater than zero.");
        let calls = calls_for(scalar(ctx, n - 2, "num_parallel_calls")?)?;
        let drop_remainder = scalar(ctx, n - 1, "drop_remainder")?;
        let map = ParallelMap {
            input: input(ctx, 0)?,
            f: Captured::from_inputs(&f, ctx, 1..n - 3)?,
            calls,
            in_order: true,
            what_for,
        };
        Ok(MapAndBatch { map, batch_size: batch_size as usize, drop_remainder })
    })
}
