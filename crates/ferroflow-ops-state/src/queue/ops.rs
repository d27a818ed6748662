//! The ops on queues: FIFOQueue and other kinds, QueueEnqueue, QueueDequeue and their variants. Ops
//! without `V2` take handles that are references to strings.

use super::store::{Kind, Queue, Spec};
use crate::prelude::*;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::handle::{Anchor, Seen, name_in, ref_handle};
use ferroflow_op_kit::handle_form::{HandleForm, ref_handle_shape};

struct MakeQueue {
    anchor: Anchor<Queue>,
    spec: Spec,
}

/// The kernel of an op that makes a queue of some kind.
fn make_queue(
    kind: fn(&KernelInit<'_>) -> Result<Kind>,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let kind = kind(init)?;
        let mut dtypes = init.dtypes("component_types")?;
        let mut shapes = init.shapes("shapes")?;
        if kind == Kind::Priority {
            dtypes.insert(0, DType::Int64);
            if !shapes.is_empty() || dtypes.len() == 1 {
                shapes.insert(0, PartialShape::scalar());
            }
        }
        let names =
            |dtypes: &[DType]| dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
        if kind == Kind::Padding {
            ensure!(
                shapes.len() == dtypes.len(),
                InvalidArgument,
                "Shapes must be provided for all components, but received {} dtypes and {} shapes.",
                dtypes.len(),
                shapes.len()
            );
            for shape in &shapes {
                ensure!(
                    shape.rank().is_some(),
                    InvalidArgument,
                    "shape {shape} must have known rank."
                );
            }
        } else {
            ensure!(
                shapes.is_empty() || shapes.len() == dtypes.len(),
                InvalidArgument,
                "Different number of component types.  Types: {}, Shapes: {shapes:?}",
                names(&dtypes)
            );
            for shape in &shapes {
                ensure!(
                    shape.known().is_some(),
                    InvalidArgument,
                    "Shape {shape} is not fully defined"
                );
            }
        }
        let capacity = usize::try_from(init.int("capacity")?).ok();
        if let (Kind::Shuffle { min_after_dequeue, .. }, Some(capacity)) = (kind, capacity) {
            ensure!(
                min_after_dequeue < capacity,
                InvalidArgument,
                "min_after_dequeue {min_after_dequeue} must be < capacity {capacity}"
            );
        }
        Ok(KernelBox::new(MakeQueue {
            anchor: Anchor::new(init, false, "tensorflow::QueueInterface")?,
            spec: Spec { kind, capacity, dtypes, shapes },
        }))
    }
}

impl Kernel for MakeQueue {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let op = &ctx.node().op;
        self.anchor.output(
            ctx,
            |name| Ok(Queue::new(name, self.spec.clone())),
            |queue| same_spec(queue, &self.spec, op),
        )
    }
}

/// Returns an error if a queue found by its shared name differs from the node's declaration.
fn same_spec(queue: &Queue, want: &Spec, op: &str) -> Result<()> {
    let (has, name) = (queue.spec(), queue.name());
    ensure!(
        has.kind.name() == want.kind.name(),
        InvalidArgument,
        "Expected {}, found {op}",
        has.kind.name()
    );
    let shown = |c: Option<usize>| c.map_or("-1".to_string(), |c| c.to_string());
    ensure!(
        has.capacity == want.capacity,
        InvalidArgument,
        "Shared queue '{name}' has capacity {} but requested capacity was {}",
        shown(has.capacity),
        shown(want.capacity)
    );
    let names = |types: &[DType]| types.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
    ensure!(
        has.dtypes == want.dtypes,
        InvalidArgument,
        "Shared queue '{name}' has component types {} but requested component types were {}",
        names(&has.dtypes),
        names(&want.dtypes)
    );
    ensure!(
        has.shapes == want.shapes,
        InvalidArgument,
        "Shared queue '{name}' has component shapes {:?} but requested component shapes were {:?}",
        has.shapes,
        want.shapes
    );
    if let (
        Kind::Shuffle { min_after_dequeue: a, seed: s },
        Kind::Shuffle { min_after_dequeue: b, seed: t },
    ) = (has.kind, want.kind)
    {
        ensure!(
            a == b,
            InvalidArgument,
            "Shared queue '{name}' has min_after_dequeue {a} but requested min_after_dequeue was \
             {b}."
        );
        ensure!(
            s == t,
            InvalidArgument,
            "Shared queue '{name}' has random seeds {s:?} but requested seeds are {t:?}."
        );
    }
    Ok(())
}

fn shuffle(init: &KernelInit<'_>) -> Result<Kind> {
    let keep = init.int("min_after_dequeue")?;
    let Ok(min_after_dequeue) = usize::try_from(keep) else {
        bail!(InvalidArgument, "min_after_dequeue {keep} must be >= 0");
    };
    Ok(Kind::Shuffle { min_after_dequeue, seed: (init.int("seed")?, init.int("seed2")?) })
}

/// The operation of an op on its queue, as an async kernel.
struct OnQueue {
    seen: Seen<Queue>,
    act: fn(&Queue, AsyncCtx, Done, &InlineScope),
    /// The dtypes of the node's components, to be compared with the queue's.
    types: Option<Vec<DType>>,
    signature: fn(&str, &str) -> String,
}

impl AsyncKernel for OnQueue {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let queue = ctx.inputs.first().ok_or_else(|| err!(Internal, "no handle"));
        match queue.and_then(|handle| self.seen.find(&ctx.step.resources, handle)) {
            Ok(queue) => match self.check(&queue, &ctx) {
                Ok(()) => (self.act)(&queue, ctx, done, scope),
                Err(e) => done.fail(e),
            },
            Err(e) => done.fail(e),
        }
    }
}

impl OnQueue {
    fn check(&self, queue: &Queue, ctx: &AsyncCtx) -> Result<()> {
        let want = &queue.spec().dtypes;
        let Some(have) = self.types.as_ref().filter(|have| *have != want) else {
            return Ok(());
        };
        let handle = match ctx.inputs.first() {
            Some(Value::Ref(_)) => "string_ref",
            _ => "resource",
        };
        let shown = |types: &[DType]| {
            let names = types.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
            (self.signature)(handle, &names)
        };
        bail!(
            InvalidArgument,
            "Signature mismatch, have: {} expected: {}",
            shown(have),
            shown(want)
        )
    }
}

/// Makes the kernel of an op that may wait. `types` is the attribute with the component types.
fn waits(
    types: Option<&'static str>,
    takes: bool,
    act: fn(&Queue, AsyncCtx, Done, &InlineScope),
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        if init.contains("timeout_ms") {
            ensure!(init.int("timeout_ms")? == -1, InvalidArgument, "Timeout not supported yet.");
        }
        Ok(KernelBox::new_async(OnQueue {
            seen: Seen::new(),
            act,
            types: types.map(|attr| init.dtypes(attr)).transpose()?,
            signature: if takes {
                |handle, types| format!("{handle}, {types}->")
            } else {
                |handle, types| format!("{handle}->{types}")
            },
        }))
    }
}

fn enqueue(queue: &Queue, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    let tuple = ctx.take_inputs(1..ctx.inputs.len());
    match tuple.and_then(|tuple| queue.check(&tuple).map(|()| tuple)) {
        Ok(tuple) => queue.put(vec![tuple], &ctx.step.cancel, scope, done),
        Err(e) => done.fail(e),
    }
}

fn enqueue_many(queue: &Queue, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    let batch = ctx.take_inputs(1..ctx.inputs.len());
    match batch.and_then(|batch| queue.split(&batch)) {
        Ok(tuples) => queue.put(tuples, &ctx.step.cancel, scope, done),
        Err(e) => done.fail(e),
    }
}

fn dequeue(queue: &Queue, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    queue.take(&ctx.step.cancel, scope, done);
}

fn dequeue_many(queue: &Queue, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    match batch_size(queue, &ctx, "DequeueManyOp") {
        Ok(n) => queue.take_many(n, false, &ctx.step.cancel, scope, done),
        Err(e) => done.fail(e),
    }
}

fn dequeue_up_to(queue: &Queue, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    match batch_size(queue, &ctx, "DequeueUpToOp") {
        Ok(n) => queue.take_many(n, true, &ctx.step.cancel, scope, done),
        Err(e) => done.fail(e),
    }
}

fn batch_size(queue: &Queue, ctx: &AsyncCtx, op: &str) -> Result<usize> {
    let n = ctx.input(1)?.scalar_index()?;
    let n =
        usize::try_from(n).map_err(|_| err!(InvalidArgument, "{op} requested {n} < 0 elements"))?;
    queue.check_can_batch()?;
    Ok(n)
}

fn close(queue: &Queue, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    queue.close_after_pending(&ctx.step.cancel, scope, done);
}

fn close_and_cancel(queue: &Queue, _: AsyncCtx, done: Done, _: &InlineScope) {
    queue.close_and_cancel();
    done.finish_tensors(Ok(vec![]));
}

fn make_close(init: &KernelInit<'_>) -> Result<KernelBox> {
    let now = init.bool("cancel_pending_enqueues")?;
    waits(None, true, if now { close_and_cancel } else { close })(init)
}

/// The kernel of an op that queries a queue.
fn asks(answer: fn(&Queue) -> Tensor) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |_| {
        let seen = Seen::new();
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let handle = ctx.take_value(0)?;
            let queue = seen.find(&ctx.step().resources, &handle)?;
            ctx.set(0, answer(&queue))
        }))
    }
}

fn size(queue: &Queue) -> Tensor {
    Tensor::scalar(i32::try_from(queue.len()).unwrap_or(i32::MAX))
}

fn is_closed(queue: &Queue) -> Tensor {
    Tensor::scalar(queue.is_closed())
}

/// An old handle for a queue that has a new one.
fn fake_queue(ctx: &mut Ctx<'_>) -> Result<()> {
    let handle = ctx.take_value(0)?;
    let (container, name) = name_in(&handle)?;
    ctx.set_value(0, ref_handle(&container, &name))
}

/// Starts the declaration of an op on a queue.
fn on<'c>(c: &'c mut Catalog, name: &str, form: HandleForm, doc: &str) -> OpBuilder<'c> {
    form.input(c.op(&form.versioned(name)).doc(doc), "handle")
}

/// Declares an op that makes a queue: its name, description, attributes up to the container, and
/// kind.
type QueueOp =
    (&'static str, &'static str, &'static [&'static str], fn(&KernelInit<'_>) -> Result<Kind>);

const COMPONENTS: [&str; 3] =
    ["component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []", "capacity: int = -1"];

const QUEUES: [QueueOp; 4] = [
    ("FIFOQueue", "A queue whose elements leave in the order they came.", &COMPONENTS, |_| {
        Ok(Kind::Fifo)
    }),
    (
        "PaddingFIFOQueue",
        "A first-in, first-out queue that pads components to one shape when it batches.",
        &COMPONENTS,
        |_| Ok(Kind::Padding),
    ),
    (
        "PriorityQueue",
        "A queue whose elements leave by their first component, lowest first.",
        &[
            "component_types: list(type) >= 0 = []",
            "shapes: list(shape) >= 0",
            "capacity: int = -1",
        ],
        |_| Ok(Kind::Priority),
    ),
    (
        "RandomShuffleQueue",
        "A queue whose elements leave in random order.",
        &[
            COMPONENTS[0],
            COMPONENTS[1],
            COMPONENTS[2],
            "min_after_dequeue: int = 0",
            "seed: int = 0",
            "seed2: int = 0",
        ],
        shuffle,
    ),
];

/// Declares an op on a queue that may wait: its name, description and action.
type QueueAct = (&'static str, &'static str, fn(&Queue, AsyncCtx, Done, &InlineScope));

const ENQUEUES: [QueueAct; 2] = [
    ("QueueEnqueue", "Adds an element, when there is room.", enqueue),
    (
        "QueueEnqueueMany",
        "Adds the rows of its inputs as elements, as there is room.",
        enqueue_many,
    ),
];

const DEQUEUES: [QueueAct; 3] = [
    ("QueueDequeue", "Takes an element, when there is one.", dequeue),
    ("QueueDequeueMany", "Takes `n` elements as a batch, when there are as many.", dequeue_many),
    (
        "QueueDequeueUpTo",
        "Takes `n` elements as a batch, or the rest of a closed queue.",
        dequeue_up_to,
    ),
];

pub(crate) fn register(c: &mut Catalog) {
    for form in HandleForm::BOTH {
        for (name, doc, attrs, kind) in QUEUES {
            form.output(c.op(&form.versioned(name)).doc(doc), "handle")
                .attrs(attrs)
                .attr("container: string = ''")
                .attr("shared_name: string = ''")
                .cpu(make_queue(kind));
        }
        for (name, doc, act) in ENQUEUES {
            on(c, name, form, doc)
                .input("components: Tcomponents")
                .attr("Tcomponents: list(type) >= 1")
                .attr("timeout_ms: int = -1")
                .shape(shape::unknown)
                .waits()
                .cpu(waits(Some("Tcomponents"), true, act));
        }
        for (name, doc, act) in DEQUEUES {
            let op = on(c, name, form, doc);
            let op = if name == "QueueDequeue" { op } else { op.input("n: int32") };
            op.output("components: component_types")
                .attr("component_types: list(type) >= 1")
                .attr("timeout_ms: int = -1")
                .shape(shape::unknown)
                .waits()
                .cpu(waits(Some("component_types"), false, act));
        }
        on(c, "QueueClose", form, "Ends enqueueing.")
            .attr("cancel_pending_enqueues: bool = false")
            .shape(shape::unknown)
            .waits()
            .cpu(make_close);
        on(c, "QueueSize", form, "How many elements a queue holds.")
            .output("size: int32")
            .shape(shape::scalar)
            .cpu(asks(size));
        on(c, "QueueIsClosed", form, "Whether a queue is closed.")
            .output("is_closed: bool")
            .shape(shape::scalar)
            .cpu(asks(is_closed));
    }
    c.op("FakeQueue")
        .doc("A reference handle for a queue that has a resource handle.")
        .input("resource: resource")
        .output("handle: Ref(string)")
        .stateful()
        .shape(ref_handle_shape)
        .cpu_fn(fake_queue);
    c.no_gradient(&[
        "QueueClose",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueUpTo",
        "QueueEnqueue",
        "QueueEnqueueMany",
        "QueueSize",
    ]);
}
