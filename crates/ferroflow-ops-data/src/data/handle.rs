//! How iterators are created, named and deleted: Iterator and similar ops, OneShotIterator, string
//! handles.

use super::dataset::{DatasetRef, ElementTypes};
use super::function::Captured;
use super::iterator::{ANONYMOUS, Iterator, find};
use super::scope::Scope;
use super::task::run_kernel;
use crate::prelude::*;
use ferroflow_core::{StepCtx, Variant, VariantObject};
use ferroflow_op_kit::handle::Anchor;
use ferroflow_op_kit::protobuf;
use std::sync::atomic::{AtomicU64, Ordering};

const TYPE_NAME: &str = "tensorflow::data::IteratorResource";

struct NamedIterator {
    anchor: Anchor<Iterator>,
    types: ElementTypes,
}

impl Kernel for NamedIterator {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        self.anchor.output(
            ctx,
            |_| Ok(Iterator::new(self.types.clone())),
            |found| self.types.admit(&found.types),
        )
    }
}

fn named_iterator(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new(NamedIterator {
        anchor: Anchor::new(init, false, TYPE_NAME)?,
        types: ElementTypes::from_attrs(init)?,
    }))
}

/// An iterator over the dataset that a function returns, made when first asked for.
struct OneShot {
    anchor: Anchor<Iterator>,
    types: ElementTypes,
    factory: Arc<FunctionHandle>,
    handle: Tensor,
}

impl AsyncKernel for OneShot {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let iterator = self.anchor.get(
            &ctx.step.resources,
            |_| Ok(Iterator::new(self.types.clone())),
            |found| self.types.admit(&found.types),
        );
        let iterator = match iterator {
            Ok(iterator) => iterator,
            Err(e) => return done.fail(e),
        };
        let factory = Captured::new(&self.factory, Vec::new());
        let (handle, step) = (self.handle.clone(), ctx.step.clone());
        run_kernel(&ctx.step, None, scope, done, async move {
            let mut started = iterator.started.take().await;
            if started.is_none() {
                *started = Some(start_one_shot(&iterator, &factory, &step).await);
            }
            started.clone().unwrap_or(Ok(())).map(|()| vec![handle])
        });
    }
}

async fn start_one_shot(
    iterator: &Iterator,
    factory: &Captured,
    step: &Arc<StepCtx>,
) -> Result<()> {
    let result = factory.call(&Scope::within(step), Vec::new()).await?;
    match &result[..] {
        [t] => iterator.start(DatasetRef::of(t)?, step),
        _ => bail!(
            InvalidArgument,
            "The `dataset_factory` function must return a single scalar of dtype DT_VARIANT."
        ),
    }
}

fn one_shot(init: &KernelInit<'_>) -> Result<KernelBox> {
    let anchor = Anchor::<Iterator>::new(init, false, TYPE_NAME)?;
    Ok(KernelBox::new_async(OneShot {
        handle: anchor.handle().into_tensor()?,
        anchor,
        types: ElementTypes::from_attrs(init)?,
        factory: Arc::new(init.function("dataset_factory")?),
    }))
}

/// The deleter of an anonymous resource. Our resources end with their step, so it holds nothing.
struct Deleter;

impl VariantObject for Deleter {
    fn type_name(&self) -> &str {
        "tensorflow::ResourceDeleter"
    }
}

/// Makes an anonymous resource and outputs its handle and, if requested, a deleter.
pub(super) fn put_anonymous<T: Resource>(
    ctx: &mut Ctx<'_>,
    kind: &str,
    type_name: &str,
    resource: T,
) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("{ANONYMOUS}{kind}{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let container = ctx.node().default_container.clone();
    ctx.step().step_resources.create(&container, &name, resource)?;
    let handle = ResourceHandle {
        device: ctx.node().device.text.clone(),
        container,
        name,
        type_name: type_name.into(),
        ..Default::default()
    };
    ctx.set(0, Tensor::handle(handle))?;
    if ctx.num_outputs() > 1 {
        ctx.set(1, Tensor::variant(Variant::new(Deleter)))?;
    }
    Ok(())
}

/// Deletes the resource that input 0 names, unless it is already deleted.
pub(super) fn delete<T: Resource>(ctx: &mut Ctx<'_>) -> Result<()> {
    let handle = ctx.handle(0)?;
    let own = handle.name.starts_with(ANONYMOUS);
    let resources = if own { &ctx.step().step_resources } else { &ctx.step().resources };
    if let Ok(gone) = resources.remove::<T>(&handle.container, &handle.name) {
        gone.close();
    }
    Ok(())
}

fn anonymous(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = ElementTypes::from_attrs(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        put_anonymous(ctx, "Iterator", TYPE_NAME, Iterator::new(types.clone()))
    }))
}

/// A handle as a string that can be fed: a ResourceHandleProto.
pub(super) fn handle_to_bytes(handle: &ResourceHandle) -> Vec<u8> {
    let mut message = protobuf::Message::new();
    message
        .bytes_if(1, handle.device.as_bytes())
        .bytes_if(2, handle.container.as_bytes())
        .bytes_if(3, handle.name.as_bytes())
        .varint_if(4, handle.hash_code)
        .bytes_if(5, handle.type_name.as_bytes());
    message.into_bytes()
}

pub(super) fn handle_from_bytes(bytes: &[u8]) -> Option<ResourceHandle> {
    let text = |value: protobuf::FieldValue<'_>| String::from_utf8(value.as_bytes()?.to_vec()).ok();
    let mut handle = ResourceHandle::default();
    for (field, value) in protobuf::fields(bytes)? {
        match field {
            1 => handle.device = text(value)?,
            2 => handle.container = text(value)?,
            3 => handle.name = text(value)?,
            4 => handle.hash_code = value.as_varint()?,
            5 => handle.type_name = text(value)?,
            _ => {}
        }
    }
    Some(handle)
}

fn to_string_handle(ctx: &mut Ctx<'_>) -> Result<()> {
    let handle = ctx.handle(0)?;
    find::<Iterator>(ctx.step(), handle)?;
    let text = handle_to_bytes(handle);
    ctx.set(0, Tensor::string(text))
}

fn from_string_handle(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = ElementTypes::from_attrs(init)?;
    ensure!(
        types.shapes.is_empty() || types.shapes.len() == types.dtypes.len(),
        InvalidArgument,
        "If both 'output_types' and 'output_shapes' are set, they must have the same length."
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let text = ctx.input(0)?;
        ensure!(text.rank() == 0, InvalidArgument, "string_handle must be a scalar");
        let Some(handle) = handle_from_bytes(text.scalar_string()?) else {
            bail!(InvalidArgument, "Could not parse string_handle as a valid ResourceHandle");
        };
        let device = &ctx.node().device.text;
        ensure!(
            *device == handle.device,
            InvalidArgument,
            "Attempted create an iterator on device \"{device}\" from handle defined on device \
             \"{}\"",
            handle.device
        );
        let iterator: Arc<Iterator> = find(ctx.step(), &handle)?;
        if !types.dtypes.is_empty() {
            let shapes = if types.shapes.is_empty() {
                iterator.types.shapes.clone()
            } else {
                types.shapes.clone()
            };
            let wanted = ElementTypes { dtypes: types.dtypes.clone(), shapes };
            wanted.admit(&iterator.types)?;
        }
        ctx.set(0, Tensor::handle(handle))
    }))
}

fn get_device(ctx: &mut Ctx<'_>) -> Result<()> {
    let device = ctx.handle(0)?.device.clone();
    ctx.set(0, Tensor::string(device))
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["Iterator", "IteratorV2"] {
        c.op(op)
            .doc("An iterator, to be given a dataset by MakeIterator.")
            .output("handle: resource")
            .attr("shared_name: string")
            .attr("container: string")
            .attr("output_types: list(type) >= 1")
            .attr("output_shapes: list(shape) >= 1")
            .stateful()
            .shape(shape::scalar)
            .cpu(named_iterator);
    }
    c.op("OneShotIterator")
        .doc("An iterator over the dataset that `dataset_factory` returns.")
        .output("handle: resource")
        .attr("dataset_factory: func")
        .attr("output_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .expensive()
        .shape(shape::scalar)
        .waits()
        .cpu(one_shot);
    for (op, has_deleter) in [
        ("AnonymousIterator", false),
        ("AnonymousIteratorV2", true),
        ("AnonymousIteratorV3", false),
    ] {
        let b = c
            .op(op)
            .doc("An iterator without a name, to be given a dataset by MakeIterator.")
            .output("handle: resource")
            .attr("output_types: list(type) >= 1")
            .attr("output_shapes: list(shape) >= 1")
            .stateful()
            .shape(shape::scalar)
            .cpu(anonymous);
        if has_deleter {
            drop(b.output("deleter: variant"));
        }
    }
    c.op("DeleteIterator")
        .doc("Deletes an iterator.")
        .input("handle: resource")
        .input("deleter: variant")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(delete::<Iterator>);
    c.op("IteratorToStringHandle")
        .doc("A string that names an iterator, to be fed to IteratorFromStringHandle.")
        .input("resource_handle: resource")
        .output("string_handle: string")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(to_string_handle);
    for op in ["IteratorFromStringHandle", "IteratorFromStringHandleV2"] {
        c.op(op)
            .doc("The iterator that a string names.")
            .input("string_handle: string")
            .output("resource_handle: resource")
            .attr("output_types: list(type) >= 0 = []")
            .attr("output_shapes: list(shape) >= 0 = []")
            .stateful()
            .shape(shape::scalar)
            .cpu(from_string_handle);
    }
    for op in ["IteratorGetDevice", "ExperimentalIteratorGetDevice"] {
        c.op(op)
            .doc("The name of the device an iterator is on.")
            .input("resource: resource")
            .output("device: string")
            .stateful()
            .shape(shape::scalar)
            .cpu_fn(get_device);
    }
}
