//! _Send and _Recv: the two halves of a transfer between devices, tasks, or client and step. Send
//! and Recv are the same in graphs that a program makes.

use crate::list::foreign::adopt;
use crate::prelude::*;
use ferroflow_core::{DeviceName, Received, RendezvousKey};
use ferroflow_op_kit::gpu;

/// The parts of a rendezvous key that a node gives; frame and iteration come from the step.
struct Edge {
    send_device: String,
    incarnation: u64,
    recv_device: String,
    tensor_name: String,
    /// The key outside loops, made once.
    root: RendezvousKey,
}

impl Edge {
    fn new(init: &KernelInit<'_>) -> Result<Edge> {
        let send_device = init.string("send_device")?;
        let incarnation = init.int("send_device_incarnation")? as u64;
        let recv_device = init.string("recv_device")?;
        let tensor_name = init.string("tensor_name")?;
        let root =
            RendezvousKey::new(&send_device, incarnation, &recv_device, &tensor_name, (0, 0));
        Ok(Edge { send_device, incarnation, recv_device, tensor_name, root })
    }

    fn key(&self, frame_iter: (u64, u64)) -> RendezvousKey {
        match frame_iter {
            (0, 0) => self.root.clone(),
            other => RendezvousKey::new(
                &self.send_device,
                self.incarnation,
                &self.recv_device,
                &self.tensor_name,
                other,
            ),
        }
    }
}

struct Send(Edge);

impl Kernel for Send {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let value = match ctx.take_value(0)? {
            Value::Dead => Received::Dead,
            other => Received::Live(other.into_tensor()?),
        };
        ctx.step().rendezvous.send(&self.0.key(ctx.frame_iter()), value, ctx.scope())
    }
}

/// Receives a value into the memory of a GPU.
struct RecvOnGpu(Edge);

/// Values of at most this size are copied to the GPU on the thread that receives them.
const SMALL: usize = 64 << 10;

impl AsyncKernel for RecvOnGpu {
    fn start(&self, ctx: AsyncCtx, done: Done, _: &InlineScope) {
        let key = self.0.key(ctx.frame_iter);
        let Some(gpu) = ctx.node.device.gpu.clone() else {
            return done.fail(err!(Internal, "{} is not a GPU", ctx.node.device.text));
        };
        let threads = ctx.step.threads.clone();
        let finish = move |received: Result<Received>, scope: &InlineScope| match received {
            Ok(Received::Live(t)) if t.gpu().is_none() => {
                let is_small = t.byte_len() <= SMALL;
                let copy = move || done.finish_tensors(t.to_device(&gpu).map(|t| vec![t]));
                if is_small { copy() } else { threads.spawn(Box::new(copy)) }
            }
            received => {
                let value = received.map(|r| match r {
                    Received::Live(t) => Value::Tensor(t),
                    Received::Dead => Value::Dead,
                });
                done.finish_in(scope, value.map(|value| [value].into_iter().collect()));
            }
        };
        ctx.step.rendezvous.recv(&key, &ctx.step.cancel, Box::new(finish));
    }
}

struct Recv(Edge);

impl AsyncKernel for Recv {
    fn start(&self, ctx: AsyncCtx, done: Done, _: &InlineScope) {
        let key = self.0.key(ctx.frame_iter);
        let finish = move |received: Result<Received>, scope: &InlineScope| {
            let value = received.and_then(|r| match r {
                Received::Live(t) => Ok(Value::Tensor(adopt(t)?)),
                Received::Dead => Ok(Value::Dead),
            });
            done.finish_in(scope, value.map(|value| [value].into_iter().collect()));
        };
        ctx.step.rendezvous.recv(&key, &ctx.step.cancel, Box::new(finish));
    }
}

/// The two ends of a transfer.
const EDGE_ATTRS: [&str; 5] = [
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
];

/// Whether a value goes from a GPU of one task to a GPU of another.
fn is_between_gpus(attrs: &Attrs) -> bool {
    let device = |attr| DeviceName::parse(attrs.string(attr).ok()?.as_ref()).ok();
    let (Some(from), Some(to)) = (device("send_device"), device("recv_device")) else {
        return false;
    };
    let is_gpu = |d: &DeviceName| d.kind.as_deref() == Some("GPU");
    is_gpu(&from) && is_gpu(&to) && (from.job, from.task) != (to.job, to.task)
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["_Send", "_HostSend", "Send"] {
        c.op(op)
            .doc("Publishes a tensor for the receiving half of the transfer.")
            .input("tensor: T")
            .attr("T: type")
            .attrs(&EDGE_ATTRS)
            .stateful()
            .role(OpRole::Send)
            .shape(shape::unknown)
            .gpu(gpu::REAL, |init| Ok(KernelBox::new(Send(Edge::new(init)?))))
            .gpu_if(is_between_gpus)
            .cpu(|init| Ok(KernelBox::new(Send(Edge::new(init)?))));
    }
    for op in ["_Recv", "_HostRecv", "Recv"] {
        c.op(op)
            .doc("Waits for the tensor that the sending half of the transfer publishes.")
            .output("tensor: tensor_type")
            .attr("tensor_type: type")
            .attrs(&EDGE_ATTRS)
            .stateful()
            .role(OpRole::Recv)
            .shape(shape::unknown)
            .waits()
            .gpu(&[("tensor_type", gpu::REALS)], |init| {
                Ok(KernelBox::new_async(RecvOnGpu(Edge::new(init)?)))
            })
            .gpu_if(is_between_gpus)
            .cpu(|init| Ok(KernelBox::new_async(Recv(Edge::new(init)?))));
    }
}
