//! Runs the original nodes of a group one by one.

use super::{FusionGroup, FusionMember, MemberInput};
use crate::kernel_init::KernelInit;
use ferroflow_core::{
    Ctx, Epilogue, Kernel, KernelBox, NodeInfo, Outputs, Result, Tensor, Value, bail, err,
    panic_text,
};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A node with its kernel.
pub(super) struct Original {
    info: Arc<NodeInfo>,
    kernel: Arc<dyn Kernel>,
    sources: SmallVec<[MemberInput; 2]>,
}

impl Original {
    /// Makes the kernel of `member`. `init` belongs to the fused node.
    pub(super) fn new(member: &FusionMember, init: &KernelInit<'_>) -> Result<Original> {
        let node = &member.node;
        let info = Arc::new(NodeInfo {
            name: node.name.clone(),
            op: node.op.name.clone(),
            device: init.node.device.clone(),
            default_container: init.node.default_container.clone(),
            outputs: node.output_types.len(),
        });
        let made = node.op.kernel(&KernelInit {
            node: &info,
            attrs: &node.attrs,
            inputs: &node.input_types,
            outputs: &node.output_types,
            functions: init.functions,
            is_fallback: true,
        });
        match made.map_err(|e| e.at_node(&node.name))? {
            KernelBox::Sync(kernel) => {
                Ok(Original { info, kernel, sources: member.sources.clone() })
            }
            KernelBox::Async(_) => {
                bail!(Internal, "{} is asynchronous and cannot be fused", node.op.name)
            }
        }
    }

    /// Runs the node inside the fused one. An error names the original node.
    pub(super) fn run(&self, ctx: &Ctx<'_>, inputs: &mut [Value]) -> Result<Tensor> {
        self.run_with(ctx, inputs, |kernel, own| kernel.compute(own)).map(|(value, ())| value)
    }

    /// Runs the node and lets its kernel finish the output if it can. Returns whether it did.
    pub(super) fn run_finished(
        &self,
        ctx: &Ctx<'_>,
        inputs: &mut [Value],
        epilogue: &dyn Epilogue,
    ) -> Result<(Tensor, bool)> {
        self.run_with(ctx, inputs, |kernel, own| kernel.compute_with_epilogue(own, epilogue))
    }

    fn run_with<R>(
        &self,
        ctx: &Ctx<'_>,
        inputs: &mut [Value],
        compute: impl FnOnce(&dyn Kernel, &mut Ctx<'_>) -> Result<R>,
    ) -> Result<(Tensor, R)> {
        let mut outputs = Outputs::new();
        let mut own =
            Ctx::new(inputs, &mut outputs, ctx.step(), &self.info, ctx.frame_iter(), ctx.scope());
        // Catch panics here, so that the error names this node and not the fused one. The state of
        // the kernel is dropped with the step.
        let done = catch_unwind(AssertUnwindSafe(|| compute(&*self.kernel, &mut own)));
        let done = done.unwrap_or_else(|panic| {
            Err(err!(Internal, "kernel panicked: {}", panic_text(&*panic)))
        });
        let value = done.and_then(|done| match outputs.into_iter().next() {
            Some(value) => Ok((value.into_tensor()?, done)),
            None => Err(err!(Internal, "{} has no output", self.info.op)),
        });
        value.map_err(|e| e.at_node(&self.info.name))
    }

    pub(super) fn sources(&self) -> &[MemberInput] {
        &self.sources
    }
}

/// The nodes of a group in the order they run.
pub(super) struct Originals {
    pub(super) nodes: Vec<Original>,
}

impl Originals {
    pub(super) fn new(group: &FusionGroup, init: &KernelInit<'_>) -> Result<Originals> {
        let nodes = group.members.iter().map(|m| Original::new(m, init));
        Ok(Originals { nodes: nodes.collect::<Result<_>>()? })
    }

    /// Runs all nodes. Each value is moved at its last use, so that its storage can be reused.
    pub(super) fn run(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let inputs = (0..ctx.num_inputs()).map(|i| ctx.take_value(i));
        let mut inputs: SmallVec<[Value; 8]> = inputs.collect::<Result<_>>()?;
        let mut made: SmallVec<[Value; 8]> = SmallVec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let mut values: SmallVec<[Value; 2]> = SmallVec::new();
            for (k, source) in node.sources.iter().enumerate() {
                let later = &self.nodes[i + 1..];
                let is_last = !node.sources[k + 1..].contains(source)
                    && !later.iter().any(|n| n.sources.contains(source));
                let slot = match *source {
                    MemberInput::Input(j) => &mut inputs[j],
                    MemberInput::Member(j) => &mut made[j],
                };
                values.push(if is_last { std::mem::take(slot) } else { slot.clone() });
            }
            made.push(Value::Tensor(node.run(ctx, &mut values)?));
        }
        match made.pop() {
            Some(value) => ctx.set_value(0, value),
            None => Err(err!(Internal, "a fusion group has no nodes")),
        }
    }
}
