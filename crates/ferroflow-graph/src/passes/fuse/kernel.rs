//! The kernel of a group of element-wise nodes.

use super::originals::Originals;
use super::program::{BlockOperand, Program, ProgramLayout};
use super::{FusionGroup, MemberInput};
use crate::block_kernel::{AnyBlockKernel, BlockKernel};
use crate::kernel_init::KernelInit;
use crate::op_def::KernelFn;
use ferroflow_core::{
    ComputePool, Ctx, Element, Kernel, KernelBox, Result, Shape, Tensor, Value, err,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// The kernel function of `group`. `steps` compute its members.
pub(super) fn elementwise_kernel(group: Arc<FusionGroup>, steps: Vec<AnyBlockKernel>) -> KernelFn {
    Arc::new(move |init| Ok(KernelBox::Sync(make(&group, &steps, init)?)))
}

/// The kernel of `group`; all of `steps` are of one dtype.
pub(super) fn make(
    group: &FusionGroup,
    steps: &[AnyBlockKernel],
    init: &KernelInit<'_>,
) -> Result<Arc<dyn Kernel>> {
    let originals = Originals::new(group, init)?;
    let singles = steps.iter().map(|s| match s {
        AnyBlockKernel::F32(block) => Some(block.clone()),
        AnyBlockKernel::F64(_) => None,
    });
    if let Some(blocks) = singles.collect::<Option<Vec<BlockKernel<f32>>>>() {
        return Ok(Arc::new(Elementwise { program: Program::new(group, blocks), originals }));
    }
    let doubles = steps.iter().map(|s| match s {
        AnyBlockKernel::F64(block) => Some(block.clone()),
        AnyBlockKernel::F32(_) => None,
    });
    match doubles.collect::<Option<Vec<BlockKernel<f64>>>>() {
        Some(blocks) => {
            Ok(Arc::new(Elementwise { program: Program::new(group, blocks), originals }))
        }
        None => Err(err!(Internal, "a fused node has several dtypes")),
    }
}

struct Elementwise<T> {
    program: Program<T>,
    originals: Originals,
}

impl<T: Element> Kernel for Elementwise<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        match self.layout(ctx)? {
            Some(layout) => self.run(ctx, &layout),
            None => self.originals.run(ctx),
        }
    }
}

impl<T: Element> Elementwise<T> {
    fn layout(&self, ctx: &Ctx<'_>) -> Result<Option<ProgramLayout>> {
        let shapes = (0..ctx.num_inputs()).map(|i| ctx.input(i).map(Tensor::shape));
        let shapes: SmallVec<[&Shape; 8]> = shapes.collect::<Result<_>>()?;
        Ok(self.program.layout(&shapes))
    }

    fn run(&self, ctx: &mut Ctx<'_>, layout: &ProgramLayout) -> Result<()> {
        let small = self.small_members(ctx, layout)?;
        let whole: SmallVec<[usize; 8]> = (0..ctx.num_inputs())
            .filter(|i| !layout.repeated.iter().any(|(s, _)| *s == MemberInput::Input(*i)))
            .collect();
        let (mut out, reused) = ctx.reuse_or_alloc(&whole, T::DTYPE, &layout.shape)?;
        let mut inputs: SmallVec<[&[T]; 8]> = SmallVec::new();
        for i in 0..ctx.num_inputs() {
            inputs.push(if reused == Some(i) { &[] } else { ctx.input(i)?.as_slice()? });
        }
        let mut members: SmallVec<[&[T]; 8]> = SmallVec::new();
        for t in &small {
            members.push(t.as_ref().map_or(Ok(&[][..]), |t| t.as_slice())?);
        }
        let operand = |source| match source {
            MemberInput::Input(i) => {
                BlockOperand { elements: inputs[i], is_reused: reused == Some(i) }
            }
            MemberInput::Member(j) => BlockOperand { elements: members[j], is_reused: false },
        };
        split(
            out.as_mut_slice()?,
            Program::<T>::block_len(),
            self.program.cost(),
            |first, part| self.program.run(layout, operand, first, part),
        );
        drop(inputs);
        ctx.set(0, out)
    }

    /// The values of members that are smaller than the result, such as a function of a scalar.
    fn small_members(
        &self,
        ctx: &Ctx<'_>,
        layout: &ProgramLayout,
    ) -> Result<SmallVec<[Option<Tensor>; 8]>> {
        let mut made: SmallVec<[Option<Tensor>; 8]> = SmallVec::new();
        if layout.is_whole.iter().all(|w| *w) {
            return Ok(made);
        }
        for (node, &is_whole) in self.originals.nodes.iter().zip(&layout.is_whole) {
            if is_whole {
                made.push(None);
                continue;
            }
            let mut values: SmallVec<[Value; 2]> = SmallVec::new();
            for source in node.sources() {
                values.push(Value::Tensor(match *source {
                    MemberInput::Input(i) => ctx.input(i)?.clone(),
                    MemberInput::Member(j) => {
                        let value = made.get(j).cloned().flatten();
                        value.ok_or_else(|| {
                            err!(Internal, "a step has operands larger than its result")
                        })?
                    }
                }));
            }
            made.push(Some(node.run(ctx, &mut values)?));
        }
        Ok(made)
    }
}

/// Runs `work(first, part)` over parts of `out`, on several threads if `out.len() * cost`
/// nanoseconds justify it. Parts are whole blocks, but for the last one.
fn split<T: Send>(out: &mut [T], block: usize, cost: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    if out.len() <= block {
        return work(0, out);
    }
    let len = out.len().div_ceil(ComputePool::threads()).next_multiple_of(block);
    // Each part is locked once, by the thread that writes it.
    let parts: SmallVec<[Mutex<&mut [T]>; 16]> = out.chunks_mut(len).map(Mutex::new).collect();
    ComputePool::parallel_for(parts.len(), cost.saturating_mul(len), |range| {
        for i in range {
            work(i * len, &mut parts[i].lock());
        }
    });
}
