//! The communicating ops, under Horovod's names. Each submits its tensor to the world's engine, and
//! completes when the engine returns the result. No thread blocks until then.

use super::device::DeviceCall;
use super::gradients;
use super::{Compression, Link, Place, Reduction};
use ferroflow_collective::{Collective, SubmitOptions};
use ferroflow_core::{
    AsyncCtx, AsyncKernel, Ctx, DType, Done, InlineScope, KernelBox, PartialShape, Result, Shape,
    Tensor, bail, ensure, err,
};
use ferroflow_graph::{Catalog, GpuTypes, KernelInit, ShapeCtx, shape};
use parking_lot::Mutex;
use std::sync::Arc;

/// Types that collectives reduce.
const NUMBERS: &str =
    "{float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

/// Types of tensors in the memory of GPUs.
const ON_GPU: GpuTypes = &[(
    "T",
    &[
        DType::Half,
        DType::BFloat16,
        DType::Float,
        DType::Double,
        DType::Int8,
        DType::Int64,
        DType::UInt8,
        DType::UInt32,
        DType::UInt64,
    ],
)];

fn reduce_kind(init: &KernelInit<'_>) -> Result<CollectiveKind> {
    let by = Reduction::from_number(init.int("reduce_op")?)?;
    let compression = parse_compression(&init.string("compression")?)?;
    Ok(CollectiveKind::Reduce(by, compression))
}

fn broadcast_kind(init: &KernelInit<'_>) -> Result<CollectiveKind> {
    let root = usize::try_from(init.int("root_rank")?).ok().filter(|&r| r < 65_536);
    let root = root.ok_or_else(|| err!(InvalidArgument, "no such root_rank"))?;
    Ok(CollectiveKind::Broadcast(root))
}

pub(super) fn register(c: &mut Catalog, link: &Arc<Link>) {
    let numbers = format!("T: {NUMBERS}");
    let make = |kind: fn(&KernelInit<'_>) -> Result<CollectiveKind>| {
        let link = link.clone();
        move |init: &KernelInit<'_>| {
            let named = init.string("tensor_name")?;
            Ok(KernelBox::new_async(Communicate {
                link: link.clone(),
                name: if named.is_empty() { init.name().to_string() } else { named },
                priority: init.int("priority")? as i32,
                set: usize::try_from(init.int("process_set")?)
                    .map_err(|_| err!(InvalidArgument, "process_set is below 0"))?,
                kind: kind(init)?,
            }))
        }
    };
    c.op("HorovodAllreduce")
        .doc("The reduction of the tensors of this name on all ranks.")
        .input("tensor: T")
        .output("sum: T")
        .attr(&numbers)
        .attr("reduce_op: int = 0")
        .attr("compression: string = ''")
        .attr("tensor_name: string = ''")
        .attr("priority: int = 0")
        .attr("process_set: int = 0")
        .stateful()
        .shape(shape::same_as_input)
        .gradient(gradients::all_reduce)
        .waits()
        .gpu(ON_GPU, make(reduce_kind))
        .cpu(make(reduce_kind));
    c.op("HorovodAllgather")
        .doc("The tensors of this name on all ranks, one below the other.")
        .input("tensor: T")
        .output("output: T")
        .attr("T: type")
        .attr("tensor_name: string = ''")
        .attr("priority: int = 0")
        .attr("process_set: int = 0")
        .stateful()
        .shape(|c| Ok(vec![any_rows(c)?]))
        .gradient(gradients::all_gather)
        .waits()
        .gpu(ON_GPU, make(|_| Ok(CollectiveKind::Gather)))
        .cpu(make(|_| Ok(CollectiveKind::Gather)));
    c.op("HorovodBroadcast")
        .doc("The tensor of this name of one rank, on all.")
        .input("tensor: T")
        .output("output: T")
        .attr("T: type")
        .attr("root_rank: int")
        .attr("tensor_name: string = ''")
        .attr("priority: int = 0")
        .attr("process_set: int = 0")
        .stateful()
        .shape(shape::same_as_input)
        .gradient(gradients::broadcast)
        .waits()
        .gpu(ON_GPU, make(broadcast_kind))
        .cpu(make(broadcast_kind));
    c.op("HorovodReducescatter")
        .doc("This rank's rows of the reduction of the tensors of this name on all ranks.")
        .input("tensor: T")
        .output("output: T")
        .attr(&numbers)
        .attr("reduce_op: int = 0")
        .attr("tensor_name: string = ''")
        .attr("priority: int = 0")
        .attr("process_set: int = 0")
        .stateful()
        .shape(|c| Ok(vec![any_rows(c)?]))
        .gradient(gradients::reduce_scatter)
        .waits()
        .cpu(make(|init| {
            Ok(CollectiveKind::Scatter(Reduction::from_number(init.int("reduce_op")?)?))
        }));
    for (op, what, number) in PLACES {
        let link = link.clone();
        c.op(op)
            .doc(what)
            .output("number: int32")
            .stateful()
            .shape(shape::scalar)
            .no_gradient()
            .cpu(move |_| {
                let link = link.clone();
                // Read in every step, because the number of ranks of an elastic job changes.
                Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                    ctx.set(0, Tensor::scalar(number(&link.place.read()) as i32))
                }))
            });
    }
    c.op("HorovodAlltoall")
        .doc("Sends `splits[r]` rows to each rank `r`, and receives what the others send.")
        .input("tensor: T")
        .input("splits: int32")
        .output("output: T")
        .output("received_splits: int32")
        .attr("T: type")
        .attr("tensor_name: string = ''")
        .attr("priority: int = 0")
        .attr("process_set: int = 0")
        .stateful()
        .shape(|c| Ok(vec![any_rows(c)?, PartialShape::of_rank(1)]))
        .gradient(gradients::all_to_all)
        .waits()
        .cpu(make(|_| Ok(CollectiveKind::Exchange)));
}

type PlaceOp = (&'static str, &'static str, fn(&Place) -> usize);

const PLACES: [PlaceOp; 4] = [
    ("HorovodRank", "Which of the ranks this is.", |p| p.rank),
    ("HorovodSize", "How many ranks there are.", |p| p.size),
    ("HorovodLocalRank", "Which of the ranks of its host this is.", |p| p.local_rank),
    ("HorovodLocalSize", "How many ranks its host has.", |p| p.local_size),
];

/// The shape of input 0 with another number of rows.
fn any_rows(c: &ShapeCtx<'_>) -> Result<PartialShape> {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(PartialShape::unknown()) };
    ensure!(!dims.is_empty(), InvalidArgument, "the tensor is a scalar and has no rows");
    Ok(PartialShape::new([None].into_iter().chain(dims[1..].iter().copied())))
}

/// The name of a [`Compression`] in a graph.
pub(super) fn compression_name(compression: Compression) -> String {
    match compression {
        Compression::None => String::new(),
        Compression::Fp16 => "fp16".into(),
        Compression::Bf16 => "bf16".into(),
        Compression::TopK(part) => format!("topk:{part}"),
        Compression::OneBit => "onebit".into(),
    }
}

fn parse_compression(text: &str) -> Result<Compression> {
    Ok(match text {
        "" | "none" => Compression::None,
        "fp16" => Compression::Fp16,
        "bf16" => Compression::Bf16,
        "onebit" => Compression::OneBit,
        other => match other.strip_prefix("topk:").and_then(|p| p.parse().ok()) {
            // A fraction of 0 would send nothing and lose the gradient.
            Some(part) if part > 0.0 && part <= 1.0 => Compression::TopK(part),
            _ => bail!(InvalidArgument, "there is no compression {other:?}"),
        },
    })
}

enum CollectiveKind {
    Reduce(Reduction, Compression),
    Gather,
    Broadcast(usize),
    Scatter(Reduction),
    Exchange,
}

struct Communicate {
    link: Arc<Link>,
    name: String,
    priority: i32,
    /// The number of a process set.
    set: usize,
    kind: CollectiveKind,
}

impl AsyncKernel for Communicate {
    /// One rank alone has nothing to reduce on its GPU.
    fn passes_input_on(&self) -> bool {
        self.device_call().is_some() && self.link.place.read().size == 1
    }

    fn start(&self, mut ctx: AsyncCtx, done: Done, _: &InlineScope) {
        let count = ctx.inputs.len();
        let inputs = ctx.take_inputs(0..count);
        let (tensor, what, ask) = match inputs.and_then(|inputs| self.request(inputs)) {
            Ok(request) => request,
            Err(e) => return done.fail(e),
        };
        let name = match ctx.frame_iter {
            (0, 0) => self.name.clone(),
            (frame, iter) => format!("{};{frame}:{iter}", self.name),
        };
        let shape = tensor.shape().clone();
        let finish: fn(Tensor, &Shape, &[usize]) -> Result<Vec<Tensor>> = match &self.kind {
            CollectiveKind::Reduce(..) | CollectiveKind::Broadcast(_) => |t, _, _| Ok(vec![t]),
            CollectiveKind::Gather => |t, shape, counts| Ok(vec![rows(t, shape, counts)?.0]),
            CollectiveKind::Scatter(_) => |t, shape, _| {
                let count = t.elements();
                Ok(vec![rows(t, shape, &[count])?.0])
            },
            CollectiveKind::Exchange => |t, shape, counts| {
                let (t, received) = rows(t, shape, counts)?;
                Ok(vec![t, Tensor::vector(&received)])
            },
        };
        // A cancelled step does not wait for the other ranks.
        let done = Arc::new(Mutex::new(Some(done)));
        let cancelled = done.clone();
        let listening = ctx.step.cancel.on_cancel(move |e| {
            let done = cancelled.lock().take();
            if let Some(done) = done {
                done.fail(e.clone());
            }
        });
        let deliver = move |result: Result<Vec<Tensor>>| {
            drop(listening);
            let done = done.lock().take();
            if let Some(done) = done {
                done.finish_tensors(result);
            }
        };
        let Some(gpu) = tensor.gpu().cloned() else {
            self.link.submit(&name, tensor, what, ask, move |result| {
                deliver(result.and_then(|(t, counts)| finish(t, &shape, &counts)));
            });
            return;
        };
        if self.passes_input_on() {
            return deliver(Ok(vec![tensor]));
        }
        if let (Some(call), Some(group)) = (self.device_call(), self.link.device_group(&tensor)) {
            let done = move |result: Result<Tensor>| deliver(result.map(|t| vec![t]));
            self.link.call_on_device(&group, &name, call, tensor, ask, Box::new(done));
            return;
        }
        // Through host memory.
        let (link, back) = (self.link.clone(), move |result: Result<Vec<Tensor>>| {
            let moved =
                |t: Tensor| if t.dtype() == DType::Int32 { Ok(t) } else { t.to_device(&gpu) };
            deliver(result.and_then(|all| all.into_iter().map(moved).collect()));
        });
        tensor.to_host(Box::new(move |copied| match copied {
            Ok(tensor) => link.submit(&name, tensor, what, ask, move |result| {
                back(result.and_then(|(t, counts)| finish(t, &shape, &counts)));
            }),
            Err(e) => back(Err(e)),
        }));
    }
}

impl Communicate {
    /// The call by which NCCL does the same, if there is one. It knows only the group of all ranks.
    fn device_call(&self) -> Option<DeviceCall> {
        match &self.kind {
            CollectiveKind::Reduce(by, Compression::None) if self.set == 0 => {
                DeviceCall::reduce(*by)
            }
            CollectiveKind::Broadcast(root) if self.set == 0 => Some(DeviceCall::Broadcast(*root)),
            _ => None,
        }
    }

    fn request(&self, inputs: Vec<Tensor>) -> Result<(Tensor, Collective, SubmitOptions)> {
        let mut inputs = inputs.into_iter();
        let (Some(tensor), splits) = (inputs.next(), inputs.next()) else {
            bail!(Internal, "a collective without a tensor");
        };
        let mut ask = SubmitOptions {
            priority: self.priority,
            set: self.link.set(self.set)?,
            ..SubmitOptions::default()
        };
        let what = match &self.kind {
            CollectiveKind::Reduce(by, compression) => {
                let (what, op) = by.collective();
                ask.op = op;
                if what == Collective::AllReduce && tensor.dtype() == DType::Float {
                    ask.compression = compress(*compression, tensor.elements());
                }
                what
            }
            CollectiveKind::Gather => {
                ask.fault = row_size(tensor.shape()).err();
                Collective::AllGather
            }
            CollectiveKind::Broadcast(root) => Collective::Broadcast { root: *root },
            CollectiveKind::Scatter(by) => {
                let (what, op) = by.collective();
                let adasum = || err!(Unimplemented, "adasum of parts");
                let fault = row_size(tensor.shape()).err();
                ask.fault = fault.or_else(|| (what == Collective::Adasum).then(adasum));
                ask.op = op;
                Collective::ReduceScatter
            }
            CollectiveKind::Exchange => {
                let splits =
                    splits.ok_or_else(|| err!(Internal, "an all-to-all without splits"))?;
                exchange(tensor.shape(), splits.as_slice::<i32>()?, &mut ask)
            }
        };
        Ok((tensor, what, ask))
    }
}

/// An all-to-all with these row counts. Invalid counts fail on all ranks.
pub(super) fn exchange(shape: &Shape, splits: &[i32], ask: &mut SubmitOptions) -> Collective {
    let values = || {
        let each = row_size(shape)?;
        let rows = shape.dims().first().copied().unwrap_or(0);
        let sent: Option<Vec<usize>> = splits.iter().map(|&s| usize::try_from(s).ok()).collect();
        let sent = sent
            .filter(|s| s.iter().sum::<usize>() == rows)
            .ok_or_else(|| err!(InvalidArgument, "splits {splits:?} do not divide {rows} rows"))?;
        Ok(sent.into_iter().map(|s| s * each).collect())
    };
    let splits = values().unwrap_or_else(|e| {
        ask.fault = Some(e);
        Vec::new()
    });
    Collective::AllToAll { splits }
}

fn compress(compression: Compression, count: usize) -> ferroflow_collective::WireCompression {
    use ferroflow_collective::WireCompression as Wire;
    match compression {
        Compression::None => Wire::None,
        Compression::Fp16 => Wire::Fp16,
        Compression::Bf16 => Wire::Bf16,
        Compression::TopK(part) => Wire::TopK((count as f64 * f64::from(part)).ceil() as u64),
        Compression::OneBit => Wire::OneBit,
    }
}

/// Number of values in a row.
pub(super) fn row_size(shape: &Shape) -> Result<usize> {
    let dims = shape.dims();
    ensure!(!dims.is_empty(), InvalidArgument, "a scalar has no rows to gather or scatter");
    let size: usize = dims[1..].iter().product();
    ensure!(size > 0, Unimplemented, "a collective on rows of no values, shape {shape}");
    Ok(size)
}

/// Reshapes a flat tensor to rows of `shape`, and converts value counts to row counts.
pub(super) fn rows(flat: Tensor, shape: &Shape, counts: &[usize]) -> Result<(Tensor, Vec<i32>)> {
    let each = row_size(shape)?;
    let mut dims = shape.dims().to_vec();
    dims[0] = flat.elements() / each;
    let received = counts.iter().map(|&c| i32::try_from(c / each).unwrap_or(i32::MAX)).collect();
    Ok((flat.into_shape(dims)?, received))
}
