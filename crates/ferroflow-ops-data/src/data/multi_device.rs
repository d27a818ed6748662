//! MultiDeviceIterator: one iteration whose elements are dealt to several devices in turn.

use super::dataset::{DatasetRef, ElementTypes, Elements, Tuple};
use super::handle::{delete, handle_from_bytes, handle_to_bytes, put_anonymous};
use super::iterator::{component_shapes, find};
use super::scope::Scope;
use super::task::run_kernel;
use super::wait::Turns;
use crate::prelude::*;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::handle::Anchor;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};

const TYPE_NAME: &str = "tensorflow::data::MultiDeviceIterator";

/// An iterator for `shards` devices; it has no elements until a dataset is set.
struct MultiDeviceIterator {
    types: ElementTypes,
    shards: usize,
    incarnations: AtomicI64,
    current: Mutex<Option<Arc<Incarnation>>>,
}

/// One iteration over a dataset.
struct Incarnation {
    id: i64,
    dealt: Arc<Turns<Deal>>,
    cancel: CancelToken,
}

impl Drop for Incarnation {
    fn drop(&mut self) {
        self.cancel.cancel(err!(Cancelled, "the iterator is gone"));
    }
}

/// The elements of one iteration, dealt to the devices in turn.
struct Deal {
    elements: Elements,
    kept: Vec<VecDeque<Tuple>>,
    /// The device that the next element is for.
    turn: usize,
}

impl Deal {
    /// The next element of a device. Elements of other devices that it pulls on the way are kept
    /// for them.
    async fn next(&mut self, shard: usize) -> Result<Option<Tuple>> {
        loop {
            if let Some(element) = self.kept[shard].pop_front() {
                return Ok(Some(element));
            }
            let Some(element) = self.elements.next().await? else { return Ok(None) };
            let shards = self.kept.len();
            self.kept[self.turn].push_back(element);
            self.turn = (self.turn + 1) % shards;
        }
    }
}

impl MultiDeviceIterator {
    fn new(types: ElementTypes, shards: usize) -> MultiDeviceIterator {
        let (incarnations, current) = (AtomicI64::new(0), Mutex::new(None));
        MultiDeviceIterator { types, shards, incarnations, current }
    }
}

impl Resource for MultiDeviceIterator {
    fn describe(&self) -> String {
        "multi-device iterator".into()
    }

    fn close(&self) {
        let current = self.current.lock().take();
        if let Some(current) = current {
            current.cancel.cancel(err!(Cancelled, "Iterator was deleted"));
        }
    }
}

struct Named {
    anchor: Anchor<MultiDeviceIterator>,
    types: ElementTypes,
    shards: usize,
}

impl Kernel for Named {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        self.anchor.output(
            ctx,
            |_| Ok(MultiDeviceIterator::new(self.types.clone(), self.shards)),
            |found| self.types.admit(&found.types),
        )
    }
}

fn named(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new(Named {
        anchor: Anchor::new(init, false, TYPE_NAME)?,
        types: ElementTypes::from_attrs(init)?,
        shards: init.byte_strings("devices")?.len(),
    }))
}

fn anonymous(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (types, shards) = (ElementTypes::from_attrs(init)?, init.byte_strings("devices")?.len());
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let iterator = MultiDeviceIterator::new(types.clone(), shards);
        put_anonymous(ctx, "MultiDeviceIterator", TYPE_NAME, iterator)
    }))
}

fn start(ctx: &mut Ctx<'_>) -> Result<()> {
    let iterator: Arc<MultiDeviceIterator> = find(ctx.step(), ctx.handle(1)?)?;
    let dataset = DatasetRef::of(ctx.input(0)?)?.clone();
    ensure!(ctx.input(2)?.scalar_index()? > 0, InvalidArgument, "max_buffer_size must be positive");
    iterator.types.admit(dataset.types())?;
    let cancel = CancelToken::new();
    let elements = dataset.iterate(&Scope::beyond(ctx.step(), cancel.clone()))?;
    let kept = vec![VecDeque::new(); iterator.shards];
    let id = iterator.incarnations.fetch_add(1, Ordering::Relaxed) + 1;
    let dealt = Arc::new(Turns::new(Deal { elements, kept, turn: 0 }));
    let before = iterator.current.lock().replace(Arc::new(Incarnation { id, dealt, cancel }));
    drop(before);
    ctx.set(0, Tensor::scalar(id))
}

struct GetNext {
    types: ElementTypes,
}

impl AsyncKernel for GetNext {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let found = (|| {
            let iterator: Arc<MultiDeviceIterator> = find(&ctx.step, ctx.handle(0)?)?;
            let shard = ctx.input(1)?.scalar_index()?;
            let id = ctx.input(2)?.scalar_index()?;
            let Some(current) = iterator.current.lock().clone() else {
                bail!(
                    FailedPrecondition,
                    "The multi-device iterator has not been initialized. Run its initializer \
                     before getting the next element."
                );
            };
            ensure!(
                current.id == id,
                InvalidArgument,
                "Invalid incarnation id. Provided: {id}; Expected: {}",
                current.id
            );
            let shard = usize::try_from(shard).ok().filter(|s| *s < iterator.shards);
            let Some(shard) = shard else {
                bail!(
                    InvalidArgument,
                    "shard_num must be in [0, {}), got {}",
                    iterator.shards,
                    ctx.input(1)?.scalar_index()?
                );
            };
            Ok((current, shard))
        })();
        let (current, shard) = match found {
            Ok(found) => found,
            Err(e) => return done.fail(e),
        };
        let types = self.types.clone();
        let cancel = current.cancel.clone();
        run_kernel(&ctx.step, Some(&cancel), scope, done, async move {
            let next = current.dealt.take().await.next(shard).await?;
            let Some(element) = next else { bail!(OutOfRange, "End of sequence") };
            types.admit_element(&element)?;
            Ok(element)
        });
    }
}

fn to_string_handle(ctx: &mut Ctx<'_>) -> Result<()> {
    let handle = ctx.handle(0)?;
    find::<MultiDeviceIterator>(ctx.step(), handle)?;
    let text = handle_to_bytes(handle);
    ctx.set(0, Tensor::string(text))
}

fn from_string_handle(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtypes = init.dtypes("output_types")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let Some(handle) = handle_from_bytes(ctx.input(0)?.scalar_string()?) else {
            bail!(InvalidArgument, "Could not parse string_handle as a valid ResourceHandle");
        };
        let iterator: Arc<MultiDeviceIterator> = find(ctx.step(), &handle)?;
        ensure!(
            dtypes.is_empty() || dtypes == iterator.types.dtypes,
            InvalidArgument,
            "The elements of the iterator are of other types than output_types"
        );
        ctx.set(0, Tensor::handle(handle))
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MultiDeviceIterator")
        .doc("An iterator that deals the elements of a dataset to several devices in turn.")
        .output("handle: resource")
        .attr("devices: list(string) >= 1")
        .attr("shared_name: string")
        .attr("container: string")
        .attr("output_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .stateful()
        .shape(shape::scalar)
        .cpu(named);
    for (op, has_deleter) in
        [("AnonymousMultiDeviceIterator", true), ("AnonymousMultiDeviceIteratorV3", false)]
    {
        let b = c
            .op(op)
            .doc("A multi-device iterator without a name.")
            .output("handle: resource")
            .attr("devices: list(string) >= 1")
            .attr("output_types: list(type) >= 1")
            .attr("output_shapes: list(shape) >= 1")
            .stateful()
            .shape(shape::scalar)
            .cpu(anonymous);
        if has_deleter {
            drop(b.output("deleter: variant"));
        }
    }
    c.op("MultiDeviceIteratorInit")
        .doc("Puts a dataset into a multi-device iterator.")
        .input("dataset: variant")
        .input("multi_device_iterator: resource")
        .input("max_buffer_size: int64")
        .output("incarnation_id: int64")
        .stateful()
        .expensive()
        .shape(shape::scalar)
        .cpu_fn(start);
    c.op("MultiDeviceIteratorGetNextFromShard")
        .doc("The next element of one device; OutOfRange behind the last one.")
        .input("multi_device_iterator: resource")
        .input("shard_num: int32")
        .input("incarnation_id: int64")
        .output("components: output_types")
        .attr("output_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .stateful()
        .expensive()
        .shape(component_shapes)
        .waits()
        .cpu(|init| Ok(KernelBox::new_async(GetNext { types: ElementTypes::from_attrs(init)? })));
    c.op("MultiDeviceIteratorToStringHandle")
        .doc("A string that names a multi-device iterator.")
        .input("multi_device_iterator: resource")
        .output("string_handle: string")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(to_string_handle);
    c.op("MultiDeviceIteratorFromStringHandle")
        .doc("The multi-device iterator that a string names.")
        .input("string_handle: string")
        .output("multi_device_iterator: resource")
        .attr("output_types: list(type) >= 0 = []")
        .attr("output_shapes: list(shape) >= 0 = []")
        .stateful()
        .shape(shape::scalar)
        .cpu(from_string_handle);
    c.op("DeleteMultiDeviceIterator")
        .doc("Deletes a multi-device iterator.")
        .input("multi_device_iterator: resource")
        .input("iterators: N * resource")
        .input("deleter: variant")
        .attr("N: int >= 0")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(delete::<MultiDeviceIterator>);
}
