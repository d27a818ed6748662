//! Iterators keep the position in a pipeline from step to step. An iterator is a resource: a step
//! gives it a dataset, and steps then pull elements from it.

use super::dataset::{DatasetRef, ElementTypes, Elements};
use super::scope::Scope;
use super::seeds::SeedState;
use super::task::run_kernel;
use super::wait::Turns;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{CancelToken, StepCtx, Variant, VariantObject};
use ferroflow_graph::wire::tensor::OpaqueVariant;
use ferroflow_ops_state::list::optional::Optional;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// An iterator; it has no elements until a dataset is set.
pub(super) struct Iterator {
    pub types: ElementTypes,
    current: Mutex<Option<Arc<Iteration>>>,
    /// The result of setting the dataset, for an iterator that is set only once.
    pub started: Arc<Turns<Option<Result<()>>>>,
}

/// An iterator over a dataset. Its background work ends when its last handle is dropped.
struct Iteration {
    dataset: DatasetRef,
    elements: Arc<Turns<Elements>>,
    scope: Scope,
    /// How many elements were taken.
    taken: AtomicU64,
    cancel: CancelToken,
}

impl Drop for Iteration {
    fn drop(&mut self) {
        self.cancel.cancel(err!(Cancelled, "the iterator is gone"));
    }
}

impl Iterator {
    pub fn new(types: ElementTypes) -> Iterator {
        Iterator { types, current: Mutex::new(None), started: Arc::new(Turns::new(None)) }
    }

    /// Begins at the front of `dataset`.
    pub fn start(&self, dataset: &DatasetRef, step: &StepCtx) -> Result<()> {
        self.start_with(dataset, step, Vec::new())
    }

    /// Begins at the front of `dataset`, whose shuffles first use the seeds of a saved iterator.
    fn start_with(
        &self,
        dataset: &DatasetRef,
        step: &StepCtx,
        seeds: Vec<SeedState>,
    ) -> Result<()> {
        self.types.admit(dataset.types())?;
        let cancel = CancelToken::new();
        let scope = Scope::beyond(step, cancel.clone());
        scope.use_seeds_again(seeds);
        let elements = Arc::new(Turns::new(dataset.iterate(&scope)?));
        let (dataset, taken) = (dataset.clone(), AtomicU64::new(0));
        let iteration = Arc::new(Iteration { dataset, elements, scope, taken, cancel });
        let before = self.current.lock().replace(iteration);
        drop(before);
        Ok(())
    }

    fn current(&self) -> Result<Arc<Iteration>> {
        self.current.lock().clone().ok_or_else(|| {
            err!(
                FailedPrecondition,
                "GetNext() failed because the iterator has not been initialized. Ensure that you \
                 have run the initializer operation for this iterator before getting the next \
                 element."
            )
        })
    }
}

impl Resource for Iterator {
    fn describe(&self) -> String {
        "iterator".into()
    }

    /// Ends the wait of all waiters: no element will come.
    fn close(&self) {
        let current = self.current.lock().take();
        if let Some(current) = current {
            current.cancel.cancel(err!(Cancelled, "Iterator was deleted"));
        }
    }
}

/// Prefix of the names of unshared resources, which end with their step.
pub(super) const ANONYMOUS: &str = "_Anonymous";

/// The resource that a handle names, which may be one of the step's own.
pub(super) fn find<T: Resource>(step: &StepCtx, handle: &ResourceHandle) -> Result<Arc<T>> {
    let own = handle.name.starts_with(ANONYMOUS);
    let resources = if own { &step.step_resources } else { &step.resources };
    resources.lookup(&handle.container, &handle.name)
}

fn make_iterator(ctx: &mut Ctx<'_>) -> Result<()> {
    let iterator: Arc<Iterator> = find(ctx.step(), ctx.handle(1)?)?;
    let dataset = DatasetRef::of(ctx.input(0)?)?;
    iterator.start(dataset, ctx.step())
}

struct GetNext {
    types: ElementTypes,
    as_optional: bool,
}

impl AsyncKernel for GetNext {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let found = (|| {
            let iterator: Arc<Iterator> = find(&ctx.step, ctx.handle(0)?)?;
            let current = iterator.current()?;
            self.types.admit(&iterator.types)?;
            Ok(current)
        })();
        let current = match found {
            Ok(current) => current,
            Err(e) => return done.fail(e),
        };
        let (types, as_optional) = (self.types.clone(), self.as_optional);
        let cancel = current.cancel.clone();
        run_kernel(&ctx.step, Some(&cancel), scope, done, async move {
            let mut elements = current.elements.take().await;
            let next = elements.next().await?;
            current.taken.fetch_add(u64::from(next.is_some()), Ordering::Relaxed);
            drop(elements);
            if let Some(element) = &next {
                types.admit_element(element)?;
            }
            match next {
                _ if as_optional => Ok(vec![Tensor::variant(Variant::new(Optional(next)))]),
                Some(element) => Ok(element),
                None => Err(err!(OutOfRange, "End of sequence")),
            }
        });
    }
}

const POSITION: &str = "tensorflow::Iterator";

/// A saved position: the number of elements taken so far, and the seeds that shuffles used.
#[derive(Clone)]
struct Position {
    taken: u64,
    seeds: Vec<SeedState>,
}

impl VariantObject for Position {
    fn type_name(&self) -> &str {
        POSITION
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let mut words = vec![self.taken];
        for state in &self.seeds {
            words.extend([state.seeds.0 as u64, state.seeds.1 as u64, state.given]);
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        Some((bytes.into(), Vec::new()))
    }
}

/// The position in a variant, which may come from a checkpoint or another task.
fn position(variant: &Variant) -> Option<Position> {
    if let Some(position) = variant.get::<Position>() {
        return Some(position.clone());
    }
    let stored = variant.get::<OpaqueVariant>().filter(|v| v.type_name == POSITION)?;
    let (words, rest) = stored.metadata.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (&taken, states) = words.split_first()?;
    let (states, odd) = states.as_chunks::<3>();
    let state = |&[a, b, given]: &[u64; 3]| SeedState { seeds: (a as i64, b as i64), given };
    let seeds = states.iter().map(state).collect();
    (rest.is_empty() && odd.is_empty()).then_some(Position { taken, seeds })
}

fn serialize(ctx: &mut Ctx<'_>) -> Result<()> {
    let iterator: Arc<Iterator> = find(ctx.step(), ctx.handle(0)?)?;
    let current = iterator.current()?;
    let taken = current.taken.load(Ordering::Relaxed);
    let seeds = current.scope.used_seeds();
    ctx.set(0, Tensor::variant(Variant::new(Position { taken, seeds })))
}

/// Restarts and skips the elements that had been taken. The rest is the same if the dataset gives
/// the same elements for the same seeds.
fn deserialize(ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    let found = (|| {
        let iterator: Arc<Iterator> = find(&ctx.step, ctx.handle(0)?)?;
        let position = match ctx.input(1)?.variants()? {
            [one] => position(one),
            _ => None,
        };
        let Some(Position { taken, seeds }) = position else {
            bail!(InvalidArgument, "the serialized state is not that of an iterator");
        };
        let dataset = iterator.current()?.dataset.clone();
        iterator.start_with(&dataset, &ctx.step, seeds)?;
        Ok((iterator.current()?, taken))
    })();
    let (current, taken) = match found {
        Ok(found) => found,
        Err(e) => return done.fail(e),
    };
    let cancel = current.cancel.clone();
    run_kernel(&ctx.step, Some(&cancel), scope, done, async move {
        let mut elements = current.elements.take().await;
        for _ in 0..taken {
            if elements.next().await?.is_none() {
                break;
            }
            current.taken.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Vec::new())
    });
}

/// A function may return other types than its dataset declared.
pub(super) fn check_components(element: &[Tensor], dtypes: &[DType]) -> Result<()> {
    ensure!(
        element.len() == dtypes.len(),
        InvalidArgument,
        "an element has {} components, expected {}",
        element.len(),
        dtypes.len()
    );
    for (i, (t, dtype)) in element.iter().zip(dtypes).enumerate() {
        ensure!(
            t.dtype() == *dtype,
            InvalidArgument,
            "Data type mismatch at component {i}: expected {dtype} but got {}.",
            t.dtype()
        );
    }
    Ok(())
}

fn get_next(as_optional: bool) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let types = ElementTypes::from_attrs(init)?;
        Ok(KernelBox::new_async(GetNext { types, as_optional }))
    }
}

/// Outputs have the shapes in `output_shapes`.
pub(super) fn component_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let shapes = c.attrs.shapes("output_shapes")?;
    ensure!(
        shapes.len() == c.outputs,
        InvalidArgument,
        "`output_shapes` must be the same length as `output_types` ({} vs. {})",
        shapes.len(),
        c.outputs
    );
    Ok(shapes)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MakeIterator")
        .doc("Puts a dataset into an iterator, which begins at its front.")
        .input("dataset: variant")
        .input("iterator: resource")
        .stateful()
        .expensive()
        .shape(shape::unknown)
        .cpu_fn(make_iterator);
    for op in ["IteratorGetNext", "IteratorGetNextSync"] {
        c.op(op)
            .doc("The next element of an iterator; OutOfRange behind the last one.")
            .input("iterator: resource")
            .output("components: output_types")
            .attr("output_types: list(type) >= 1")
            .attr("output_shapes: list(shape) >= 1")
            .stateful()
            .expensive()
            .shape(component_shapes)
            .waits()
            .cpu(get_next(false));
    }
    c.op("IteratorGetNextAsOptional")
        .doc("The next element of an iterator; an optional without a value behind the last one.")
        .input("iterator: resource")
        .output("optional: variant")
        .attr("output_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .stateful()
        .expensive()
        .shape(shape::scalar)
        .waits()
        .cpu(get_next(true));
    c.op("SerializeIterator")
        .doc("Where an iterator is: how many elements were taken from its dataset.")
        .input("resource_handle: resource")
        .output("serialized: variant")
        .attr("external_state_policy: int = 0")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(serialize);
    c.op("DeserializeIterator")
        .doc("Brings an iterator to where another was, past elements that are made again.")
        .input("resource_handle: resource")
        .input("serialized: variant")
        .stateful()
        .expensive()
        .shape(shape::unknown)
        .waits()
        .cpu(|_| Ok(KernelBox::new_async(deserialize)));
}
