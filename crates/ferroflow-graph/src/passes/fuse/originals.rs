//! The nodes a group was made from, run one by one.

use super::{Group, Member, Source};
use crate::kernel_init::KernelInit;
use ferroflow_core::{Ctx, Kernel, KernelBox, NodeInfo, Outputs, Result, Tensor, Value, bail, err};
use smallvec::SmallVec;
use std::sync::Arc;

/// A node with its kernel.
pub(super) struct Original {
    info: Arc<NodeInfo>,
    kernel: Arc<dyn Kernel>,
    sources: SmallVec<[Source; 2]>,
}

impl Original {
    /// Makes the kernel of `member`; `init` is that of the fused node.
    pub(super) fn new(member: &Member, init: &KernelInit<'_>) -> Result<Original> {
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
        });
        match made.map_err(|e| e.at_node(&node.name))? {
            KernelBox::Sync(kernel) => {
                Ok(Original { info, kernel, sources: member.sources.clone() })
            }
            KernelBox::Async(_) => bail!(Internal, "{} waits, and cannot be fused", node.op.name),
        }
    }

    /// Runs the node within the fused one; an error names the node itself.
    pub(super) fn run(&self, ctx: &Ctx<'_>, inputs: &mut [Value]) -> Result<Tensor> {
        let mut outputs = Outputs::new();
        let mut own = Ctx::new(inputs, &mut outputs, ctx.step(), &self.info, ctx.frame_iter());
        let done = self.kernel.compute(&mut own);
        let value = done.and_then(|()| match outputs.into_iter().next() {
            Some(value) => value.into_tensor(),
            None => Err(err!(Internal, "{} put out nothing", self.info.op)),
        });
        value.map_err(|e| e.at_node(&self.info.name))
    }

    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }
}

/// The nodes of a group in the order they run.
pub(super) struct Originals {
    pub(super) nodes: Vec<Original>,
}

impl Originals {
    pub(super) fn new(group: &Group, init: &KernelInit<'_>) -> Result<Originals> {
        let nodes = group.members.iter().map(|m| Original::new(m, init));
        Ok(Originals { nodes: nodes.collect::<Result<_>>()? })
    }

    /// Runs all, each value given away at its last use so that its storage can be reused.
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
                    Source::Input(j) => &mut inputs[j],
                    Source::Member(j) => &mut made[j],
                };
                values.push(if is_last { std::mem::take(slot) } else { slot.clone() });
            }
            made.push(Value::Tensor(node.run(ctx, &mut values)?));
        }
        match made.pop() {
            Some(value) => ctx.set_value(0, value),
            None => Err(err!(Internal, "a group of no nodes")),
        }
    }
}
