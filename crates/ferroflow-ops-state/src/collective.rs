//! TensorFlow's collectives: CollectiveReduce, CollectiveGather, CollectiveBcastSend and -Recv, in
//! both versions, CollectiveAllToAllV2, and the ops on communicators: CollectiveReduceV3 and
//! CollectiveAllToAllV3. The devices of a group call with the same keys; the task's `Collectives`
//! do the rest.

mod assign_group;
mod communicator;

use crate::prelude::*;
use communicator::Communicator;
use ferroflow_core::{CollectiveCall, CollectiveDone, CollectiveKind, Merge, StepCtx};
use ferroflow_graph::OpBuilder;
use parking_lot::Mutex;
use std::time::Duration;

/// The keys that identify a group and a collective of that group.
#[derive(Clone, Copy)]
struct Keys {
    group_size: i64,
    group_key: i64,
    instance_key: i64,
}

/// The source of the keys, which depends on the version of an op.
#[derive(Clone, Copy)]
enum KeysFrom {
    Attrs(Keys),
    Inputs,
    Communicator,
}

struct Collective {
    kind: CollectiveKind,
    dtype: DType,
    keys: KeysFrom,
    /// The output shape, where the node gives it.
    shape: Option<PartialShape>,
    timeout: Option<Duration>,
}

impl Collective {
    fn new(init: &KernelInit<'_>, kind: CollectiveKind, version: u8) -> Result<Collective> {
        let keys = match version {
            1 => KeysFrom::Attrs(Keys {
                group_size: init.int("group_size")?,
                group_key: init.int("group_key")?,
                instance_key: init.int("instance_key")?,
            }),
            2 => KeysFrom::Inputs,
            _ => KeysFrom::Communicator,
        };
        let shape = init.contains("shape").then(|| init.shape("shape")).transpose()?;
        Ok(Collective { kind, dtype: init.output_dtype(0)?, keys, shape, timeout: timeout(init)? })
    }

    fn call(&self, ctx: &mut AsyncCtx) -> Result<CollectiveCall> {
        let gives = self.kind != CollectiveKind::Broadcast { is_source: false };
        let first = usize::from(gives);
        let scalar = |i: usize| -> Result<i64> {
            let t = ctx.input(i)?;
            ensure!(
                t.rank() == 0,
                InvalidArgument,
                "Expected scalar inputs to collective params, got {}",
                t.shape()
            );
            Ok(i64::from(t.scalar_value::<i32>()?))
        };
        let mut timeout = self.timeout;
        let keys = match self.keys {
            KeysFrom::Attrs(keys) => keys,
            KeysFrom::Inputs => Keys {
                group_size: scalar(first)?,
                group_key: scalar(first + 1)?,
                instance_key: scalar(first + 2)?,
            },
            KeysFrom::Communicator => {
                let communicator = Communicator::of(ctx)?;
                // TensorFlow's rule: the op says whether there is a timeout, its communicator says
                // how long it is.
                timeout = timeout.and(communicator.timeout);
                communicator.next_keys()
            }
        };
        let group_size = usize::try_from(keys.group_size).ok().filter(|&n| n > 0);
        let Some(group_size) = group_size else {
            bail!(
                InvalidArgument,
                "group_size must be positive integer but got {}",
                keys.group_size
            );
        };
        // The node or its last input gives the shape of a broadcast value.
        let told = match (&self.shape, gives, self.keys) {
            (_, false, KeysFrom::Inputs) => {
                let dims = ctx.input(3)?;
                ensure!(
                    dims.rank() == 1,
                    InvalidArgument,
                    "shape must be a vector, got shape {}",
                    dims.shape()
                );
                Some(dims.to_shape()?)
            }
            (Some(shape), _, _) => shape.known(),
            _ => None,
        };
        ensure!(
            gives || group_size > 1,
            Internal,
            "{}: no member sends what is broadcast to a group of one",
            ctx.node.name
        );
        let tensor = if gives { ctx.take_inputs(0..1)?.pop() } else { None };
        let given = tensor.as_ref().map(|t| t.shape().clone());
        let shape = match (self.kind, given, told) {
            (CollectiveKind::Gather, Some(given), _) => {
                ensure!(given.rank() > 0, InvalidArgument, "Cannot gather scalars.");
                let mut dims = given.dims().to_vec();
                dims[0] = dims[0].saturating_mul(group_size);
                Shape::from(dims)
            }
            (CollectiveKind::AllToAll, Some(given), _) => {
                let rows = given.dims().first().copied().unwrap_or(0);
                ensure!(
                    rows == group_size,
                    InvalidArgument,
                    "all-to-all of a group of {group_size} takes as many rows, not shape {given}"
                );
                given
            }
            (CollectiveKind::Broadcast { is_source: true }, Some(given), Some(told)) => {
                ensure!(
                    given == told,
                    Internal,
                    "Declared shape of op {} does not match shape of input",
                    ctx.node.name
                );
                told
            }
            (_, Some(given), _) => given,
            (_, None, Some(told)) => told,
            (_, None, None) => bail!(InvalidArgument, "the shape to be received is not known"),
        };
        shape.checked_elements()?;
        Ok(CollectiveCall {
            kind: self.kind,
            name: ctx.node.name.clone(),
            group_key: keys.group_key as i32,
            group_size,
            instance_key: keys.instance_key as i32,
            rank: None,
            frame_iter: ctx.frame_iter,
            device: ctx.node.device.clone(),
            dtype: self.dtype,
            shape,
            tensor,
            timeout,
        })
    }
}

impl AsyncKernel for Collective {
    fn start(&self, mut ctx: AsyncCtx, done: Done, _: &InlineScope) {
        let call = match self.call(&mut ctx) {
            Ok(call) => call,
            Err(e) => return done.fail(e),
        };
        let done = move |result: Result<Tensor>| done.finish_tensors(result.map(|t| vec![t]));
        start(&ctx.step, call, Box::new(done));
    }
}

/// Starts one device's part. A cancelled step does not wait for the other members.
fn start(step: &Arc<StepCtx>, call: CollectiveCall, done: CollectiveDone) {
    let done = Arc::new(Mutex::new(Some(done)));
    let cancelled = done.clone();
    let listening = step.cancel.on_cancel(move |e| {
        let done = cancelled.lock().take();
        if let Some(done) = done {
            done(Err(e.clone()));
        }
    });
    let finish = move |result: Result<Tensor>| {
        drop(listening);
        let done = done.lock().take();
        if let Some(done) = done {
            done(result);
        }
    };
    step.collectives.start(step, call, Box::new(finish));
}

/// Timeout for the other members of the group, if any.
fn timeout(init: &KernelInit<'_>) -> Result<Option<Duration>> {
    let seconds = init.float("timeout_seconds")?;
    Ok((seconds > 0.0).then(|| Duration::from_secs_f32(seconds.min(1e9))))
}

fn make(
    kind: impl Fn(&KernelInit<'_>) -> Result<CollectiveKind> + Send + Sync + 'static,
    version: u8,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync + 'static {
    move |init| Ok(KernelBox::new_async(Collective::new(init, kind(init)?, version)?))
}

fn merge(init: &KernelInit<'_>, attr: &str) -> Result<Merge> {
    Ok(match init.string(attr)?.as_str() {
        "Min" => Merge::Min,
        "Max" => Merge::Max,
        "Mul" => Merge::Mul,
        "Add" => Merge::Add,
        other => bail!(InvalidArgument, "there is no {attr} {other:?}"),
    })
}

fn reduce(init: &KernelInit<'_>) -> Result<CollectiveKind> {
    let merge = merge(init, "merge_op")?;
    let is_mean = match init.string("final_op")?.as_str() {
        "Id" => false,
        "Div" => true,
        other => bail!(InvalidArgument, "there is no final_op {other:?}"),
    };
    Ok(CollectiveKind::Reduce { merge, is_mean })
}

/// Fails as TensorFlow does on CPUs: reduce-scatter exists on GPUs only.
fn reduce_scatter(_: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new(|ctx: &mut Ctx<'_>| -> Result<()> {
        for (i, name) in ["group_size", "group_key", "instance_key"].into_iter().enumerate() {
            let key = ctx.input(i + 1)?;
            ensure!(
                key.rank() == 0,
                InvalidArgument,
                "Unexpected dimensions on input {name}, got {}",
                key.shape()
            );
        }
        let size = ctx.input(1)?.scalar_value::<i32>()?;
        ensure!(size > 0, InvalidArgument, "group_size must be positive integer but got {size}");
        bail!(
            Internal,
            "{}: CollectiveReduceScatterV2 has no implementation for CPU devices; reduce with \
             CollectiveReduceV2 and take a slice",
            ctx.name()
        )
    }))
}

/// The rows of all members concatenated, or this member's part of them.
fn gathered(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(vec![PartialShape::unknown()]) };
    ensure!(!dims.is_empty(), InvalidArgument, "Shape must be at least rank 1 but is rank 0");
    Ok(vec![PartialShape::new([None].into_iter().chain(dims[1..].iter().copied()))])
}

pub(crate) fn register(c: &mut Catalog) {
    register_v1(c);
    register_v2(c);
    register_v3(c);
    assign_group::register(c);
    communicator::register(c);
}

const REDUCED: &str = "T: {bfloat16, float, half, double, int32, int64}";
const GATHERED: &str = "T: {float, half, double, int32, int64}";
const BROADCAST: &str = "T: {bool, float, half, double, int32, int64}";

/// Attributes of the first version of an op.
fn keys_as_attrs(op: OpBuilder<'_>) -> OpBuilder<'_> {
    op.attr("group_size: int").attr("group_key: int").attr("instance_key: int")
}

/// Inputs of the second version of an op.
fn keys_as_inputs(op: OpBuilder<'_>) -> OpBuilder<'_> {
    op.input("group_size: int32").input("group_key: int32").input("instance_key: int32")
}

fn reduction(op: OpBuilder<'_>) -> OpBuilder<'_> {
    op.attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}").attr("final_op: {'Id', 'Div'}")
}

/// The kernels wait for the other members of their group.
fn waiting(op: OpBuilder<'_>) -> OpBuilder<'_> {
    op.attr("communication_hint: string = 'auto'")
        .attr("timeout_seconds: float = 0.0")
        .stateful()
        .waits()
}

/// The input that keeps the collectives of one device in order.
fn ordered(op: OpBuilder<'_>) -> OpBuilder<'_> {
    op.attr("is_stateless: bool = false")
        .attr("Nordering_token: int >= 0 = 0")
        .input("ordering_token: Nordering_token * resource")
        .takes_resources_from_anywhere()
}

const REDUCE: &str = "The reduction of the inputs of all devices of a group.";
const GATHER: &str = "The inputs of all devices of a group, one below the other.";
const ALL_TO_ALL: &str =
    "The rows of all devices of a group, each sent to the device of its number.";
const SEND: &str = "Sends a tensor to the other devices of a group.";
const RECEIVE: &str = "The tensor that a device of the group sends to all.";

fn register_v1(c: &mut Catalog) {
    let op = c.op("CollectiveReduce").doc(REDUCE).input("input: T").output("data: T").attr(REDUCED);
    let op = reduction(keys_as_attrs(op));
    let op = op.attr("subdiv_offsets: list(int)").attr("wait_for: list(int) = []");
    waiting(op).shape(shape::same_as_input).cpu(make(reduce, 1));

    let op =
        c.op("CollectiveGather").doc(GATHER).input("input: T").output("data: T").attr(GATHERED);
    let op = waiting(keys_as_attrs(op).attr("shape: shape"));
    op.shape(shape::from_attr).cpu(make(|_| Ok(CollectiveKind::Gather), 1));

    for (op, is_source) in [("CollectiveBcastSend", true), ("CollectiveBcastRecv", false)] {
        let op = match is_source {
            true => c.op(op).doc(SEND).input("input: T"),
            false => c.op(op).doc(RECEIVE),
        };
        let op = keys_as_attrs(op.output("data: T").attr(BROADCAST)).attr("shape: shape");
        let kind = CollectiveKind::Broadcast { is_source };
        waiting(op).shape(shape::from_attr).cpu(make(move |_| Ok(kind), 1));
    }
}

fn register_v2(c: &mut Catalog) {
    let op = keys_as_inputs(c.op("CollectiveReduceV2").doc(REDUCE).input("input: T"));
    let op = waiting(reduction(op.output("data: T").attr(REDUCED)));
    let op = ordered(op).attr("max_subdivs_per_device: int = -1");
    op.shape(shape::same_as_input).cpu(make(reduce, 2));

    let op = keys_as_inputs(c.op("CollectiveReduceScatterV2").input("input: T"));
    let op = op.doc("A part of the reduction of a group's inputs; refused on CPUs.");
    let op = waiting(reduction(op.output("data: T").attr(REDUCED)));
    let op = ordered(op).attr("max_subdivs_per_device: int = -1");
    op.shape(gathered).cpu(reduce_scatter);

    let op = keys_as_inputs(c.op("CollectiveGatherV2").doc(GATHER).input("input: T"));
    let op = ordered(waiting(op.output("data: T").attr(GATHERED)));
    op.shape(gathered).cpu(make(|_| Ok(CollectiveKind::Gather), 2));

    let op = c.op("CollectiveAllToAllV2").doc(ALL_TO_ALL).input("input: T");
    let op = ordered(waiting(keys_as_inputs(op).output("data: T").attr(REDUCED)));
    op.shape(shape::same_as_input).cpu(make(|_| Ok(CollectiveKind::AllToAll), 2));

    let op = keys_as_inputs(c.op("CollectiveBcastSendV2").doc(SEND).input("input: T"));
    let op = waiting(op.output("data: T").attr(BROADCAST));
    let kind = CollectiveKind::Broadcast { is_source: true };
    op.shape(shape::same_as_input).cpu(make(move |_| Ok(kind), 2));

    let op = keys_as_inputs(c.op("CollectiveBcastRecvV2").doc(RECEIVE)).input("shape: Tshape");
    let op = op.output("data: T").attr(BROADCAST).attr("Tshape: {int32, int64} = DT_INT32");
    let kind = CollectiveKind::Broadcast { is_source: false };
    waiting(op).shape(|c| Ok(vec![c.shape_from(3)])).cpu(make(move |_| Ok(kind), 2));
}

/// Inputs of the third version of an op: a communicator, which holds the keys.
fn with_communicator(op: OpBuilder<'_>) -> OpBuilder<'_> {
    op.input("input: T")
        .input("communicator: resource")
        .input("group_assignment: int32")
        .output("data: T")
        .attr(REDUCED)
        .attr("timeout_seconds: float = 0.0")
        .stateful()
        .waits()
        .shape(shape::same_as_input)
}

fn register_v3(c: &mut Catalog) {
    let reduce = |init: &KernelInit<'_>| {
        Ok(CollectiveKind::Reduce { merge: merge(init, "reduction")?, is_mean: false })
    };
    with_communicator(c.op("CollectiveReduceV3").doc(REDUCE))
        .attr("reduction: {'Min', 'Max', 'Mul', 'Add'}")
        .cpu(make(reduce, 3));
    with_communicator(c.op("CollectiveAllToAllV3").doc(ALL_TO_ALL))
        .cpu(make(|_| Ok(CollectiveKind::AllToAll), 3));
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use ferroflow_core::{Code, Tensor};

    fn reduce(size: i32) -> ferroflow_testing::Check<'static> {
        check("CollectiveReduceV2")
            .attr("merge_op", "Add")
            .attr("final_op", "Div")
            .input(Tensor::vector(&[3f32, 4.0]))
            .input(Tensor::scalar(size))
            .input(Tensor::scalar(7i32))
            .input(Tensor::scalar(9i32))
    }

    #[test]
    fn a_group_of_one_gets_its_own_value() {
        reduce(1).gives(Tensor::vector(&[3f32, 4.0]));
    }

    #[test]
    fn a_broadcast_in_a_group_of_one_fails() {
        check("CollectiveBcastRecvV2")
            .attr("T", ferroflow_core::DType::Float)
            .input(Tensor::scalar(1i32))
            .input(Tensor::scalar(7i32))
            .input(Tensor::scalar(9i32))
            .input(Tensor::vector(&[2i32]))
            .fails(Code::Internal, "no member sends what is broadcast");
    }

    #[test]
    fn what_is_sent_has_the_shape_that_the_node_says() {
        check("CollectiveBcastSend")
            .attr("group_size", 1i64)
            .attr("group_key", 7i64)
            .attr("instance_key", 9i64)
            .attr("shape", ferroflow_core::PartialShape::from([2]))
            .input(Tensor::from_slice([1, 2], &[3f32, 4.0]).unwrap())
            .fails(Code::Internal, "does not match shape of input");
    }

    #[test]
    fn nothing_is_scattered_on_cpus() {
        let scatter = |size: Tensor, instance_key: Tensor| {
            check("CollectiveReduceScatterV2")
                .attr("merge_op", "Add")
                .attr("final_op", "Id")
                .input(Tensor::vector(&[3f32, 4.0]))
                .input(size)
                .input(Tensor::scalar(7i32))
                .input(instance_key)
        };
        let (one, vector) = (Tensor::scalar(1i32), Tensor::vector(&[1i32]));
        scatter(one.clone(), one.clone()).fails(Code::Internal, "no implementation for CPU");
        scatter(Tensor::scalar(0i32), one.clone()).fails(Code::InvalidArgument, "must be positive");
        scatter(vector.clone(), one.clone()).fails(Code::InvalidArgument, "input group_size, got");
        scatter(one, vector).fails(Code::InvalidArgument, "input instance_key, got");
    }

    #[test]
    fn a_group_needs_members_and_a_server_to_find_them() {
        reduce(0).fails(Code::InvalidArgument, "group_size must be positive");
        reduce(2).fails(Code::Unimplemented, "needs a server");
    }
}
