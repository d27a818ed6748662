//! A group of element-wise nodes as a program over blocks: a list of steps with their operands and
//! scratch registers for intermediate values.

use super::repeat::Repeat;
use super::{FusionGroup, MemberInput};
use crate::block_kernel::{BlockForm, BlockKernel, OperandShapes};
use ferroflow_core::{Element, Shape};
use smallvec::SmallVec;

/// The size of a block of one operand. Several blocks fit in the nearest cache.
const BLOCK_BYTES: usize = 4096;

/// The steps of a program, one for each node. Steps before `head` write to registers. The head and
/// the chain of unary steps after it work on the block of the result.
pub(super) struct Program<T> {
    steps: Vec<ProgramStep<T>>,
    head: usize,
    registers: usize,
}

struct ProgramStep<T> {
    block: BlockKernel<T>,
    /// The operands. A unary step has the same one twice.
    sources: [MemberInput; 2],
    register: usize,
}

/// How the shapes of one run fit the program.
pub(super) struct ProgramLayout {
    /// The shape of the result.
    pub(super) shape: Shape,
    /// Whether each step has this shape. The others are computed beforehand.
    pub(super) is_whole: SmallVec<[bool; 16]>,
    /// Operands that are repeated.
    pub(super) repeated: SmallVec<[(MemberInput, Repeat); 4]>,
}

/// An operand of one run.
pub(super) struct BlockOperand<'a, T> {
    pub(super) elements: &'a [T],
    /// It is stored where the result goes, and `elements` is empty.
    pub(super) is_reused: bool,
}

/// Where a step finds an operand.
#[derive(Clone, Copy)]
enum OperandPlace<'a, T> {
    Given(&'a [T]),
    Register(usize),
    /// The block of the result before the head writes to it.
    Old,
}

impl<T: Element> Program<T> {
    /// The program of a group whose members are computed by `blocks`.
    pub(super) fn new(group: &FusionGroup, blocks: Vec<BlockKernel<T>>) -> Program<T> {
        let mut steps: Vec<ProgramStep<T>> = Vec::with_capacity(blocks.len());
        for (member, block) in group.members.iter().zip(blocks) {
            let (first, last) = (member.sources[0], member.sources[member.sources.len() - 1]);
            steps.push(ProgramStep { block, sources: [first, last], register: usize::MAX });
        }
        let mut program = Program { head: head(&steps), steps, registers: 0 };
        program.assign_registers();
        program
    }

    /// A register is reused after the last use of its value.
    fn assign_registers(&mut self) {
        let mut free: Vec<usize> = Vec::new();
        for i in 0..self.head {
            let is_last = |steps: &[ProgramStep<T>], j: usize| {
                !steps[i + 1..].iter().any(|s| s.sources.contains(&MemberInput::Member(j)))
            };
            let [a, b] = self.steps[i].sources;
            let in_place = match a {
                MemberInput::Member(j)
                    if self.steps[i].block.is_unary() && is_last(&self.steps, j) =>
                {
                    Some(self.steps[j].register)
                }
                _ => None,
            };
            self.steps[i].register = in_place.or_else(|| free.pop()).unwrap_or_else(|| {
                self.registers += 1;
                self.registers - 1
            });
            let ends = if a == b { [Some(a), None] } else { [Some(a), Some(b)] };
            for source in ends.into_iter().flatten().filter(|_| in_place.is_none()) {
                if let MemberInput::Member(j) = source
                    && is_last(&self.steps, j)
                {
                    free.push(self.steps[j].register);
                }
            }
        }
    }

    /// Estimated nanoseconds per element.
    pub(super) fn cost(&self) -> usize {
        self.steps.iter().map(|s| s.block.cost).sum()
    }

    /// Elements in a block.
    pub(super) fn block_len() -> usize {
        BLOCK_BYTES / size_of::<T>()
    }

    /// The layout for inputs of these shapes. `None` if they do not fit together, or if the program
    /// does not support the combination.
    pub(super) fn layout(&self, inputs: &[&Shape]) -> Option<ProgramLayout> {
        let mut shapes: SmallVec<[&Shape; 16]> = SmallVec::new();
        for step in &self.steps {
            let [a, b] = step.sources.map(|source| match source {
                MemberInput::Input(i) => inputs[i],
                MemberInput::Member(j) => shapes[j],
            });
            shapes.push(match step.block.apply {
                BlockForm::Unary(_) => a,
                BlockForm::Binary(_, OperandShapes::Broadcast) => joint(a, b)?,
                BlockForm::Binary(_, OperandShapes::Alike) => (a == b).then_some(a)?,
                BlockForm::Binary(_, OperandShapes::Bias { is_nchw }) => {
                    Repeat::channels(b, a, is_nchw).map(|_| a)?
                }
            });
        }
        let shape = *shapes.last()?;
        let is_whole: SmallVec<[bool; 16]> = shapes.iter().map(|s| *s == shape).collect();
        let mut repeated: SmallVec<[(MemberInput, Repeat); 4]> = SmallVec::new();
        for (i, step) in self.steps.iter().enumerate() {
            for (k, &source) in step.sources.iter().enumerate() {
                let own = match source {
                    MemberInput::Input(i) => inputs[i],
                    MemberInput::Member(j) => shapes[j],
                };
                match (is_whole[i], own == shape) {
                    (true, true) | (false, false) => continue,
                    // A result is never smaller than its operands.
                    (false, true) => return None,
                    (true, false) => {}
                }
                let repeat = match step.block.apply {
                    BlockForm::Binary(_, OperandShapes::Bias { is_nchw }) if k == 1 => {
                        Repeat::channels(own, shape, is_nchw)?
                    }
                    _ => Repeat::new(own, shape)?,
                };
                match repeated.iter().find(|(s, _)| *s == source) {
                    Some((_, known)) if *known == repeat => {}
                    Some(_) => return None,
                    None => repeated.push((source, repeat)),
                }
            }
        }
        Some(ProgramLayout { shape: shape.clone(), is_whole, repeated })
    }

    /// Computes the elements of the result from `first` on into `out`. `operand` returns the inputs
    /// and the members that are smaller than the result.
    pub(super) fn run<'a>(
        &self,
        layout: &ProgramLayout,
        operand: impl Fn(MemberInput) -> BlockOperand<'a, T>,
        first: usize,
        out: &mut [T],
    ) {
        let len = Self::block_len().min(out.len());
        // Registers, one more for the old block of the result, and blocks of repeated operands.
        let spare = self.registers;
        let fills = spare + 1;
        let mut scratch = vec![T::default(); (fills + layout.repeated.len()) * len];
        let mut registers: SmallVec<[&mut [T]; 16]> = scratch.chunks_mut(len.max(1)).collect();
        for ((source, repeat), to) in layout.repeated.iter().zip(registers.iter_mut().skip(fills)) {
            if repeat.is_one() {
                repeat.fill(operand(*source).elements, first, to);
            }
        }
        let place = |source: MemberInput| {
            if let Some(i) = layout.repeated.iter().position(|(s, _)| *s == source) {
                return OperandPlace::Register(fills + i);
            }
            if let MemberInput::Member(j) = source
                && layout.is_whole[j]
            {
                return OperandPlace::Register(self.steps[j].register);
            }
            let BlockOperand { elements, is_reused } = operand(source);
            if is_reused { OperandPlace::Old } else { OperandPlace::Given(elements) }
        };
        let places: SmallVec<[[OperandPlace<'a, T>; 2]; 16]> =
            self.steps.iter().take(self.head + 1).map(|s| s.sources.map(place)).collect();

        let mut at = first;
        for out in out.chunks_mut(len.max(1)) {
            let n = out.len();
            for ((source, repeat), to) in
                layout.repeated.iter().zip(registers.iter_mut().skip(fills))
            {
                if !repeat.is_one() {
                    repeat.fill(operand(*source).elements, at, &mut to[..n]);
                }
            }
            for (i, step) in self.steps[..self.head].iter().enumerate() {
                if layout.is_whole[i] {
                    step.run(&places[i], &mut registers, out, at, n);
                }
            }
            self.finish(&places[self.head], &mut registers, spare, out, at);
            at += n;
        }
    }

    /// Runs the head and the steps after it into `out`.
    fn finish(
        &self,
        [a, b]: &[OperandPlace<'_, T>; 2],
        registers: &mut [&mut [T]],
        spare: usize,
        out: &mut [T],
        at: usize,
    ) {
        let n = out.len();
        match &self.steps[self.head].block.apply {
            BlockForm::Unary(f) => {
                if !matches!(a, OperandPlace::Old) {
                    out.copy_from_slice(elements(a, registers, &[], at, n));
                }
                f(out);
            }
            BlockForm::Binary(f, _) => {
                if matches!(a, OperandPlace::Old) || matches!(b, OperandPlace::Old) {
                    registers[spare][..n].copy_from_slice(out);
                }
                let old = &registers[spare][..n];
                let (a, b) =
                    (elements(a, registers, old, at, n), elements(b, registers, old, at, n));
                f(a, b, out);
            }
        }
        for step in &self.steps[self.head + 1..] {
            if let BlockForm::Unary(f) = &step.block.apply {
                f(out);
            }
        }
    }
}

impl<T: Element> ProgramStep<T> {
    /// Runs one step on one block, into the step's register.
    fn run(
        &self,
        [a, b]: &[OperandPlace<'_, T>; 2],
        registers: &mut [&mut [T]],
        old: &[T],
        at: usize,
        n: usize,
    ) {
        let to = std::mem::take(&mut registers[self.register]);
        match &self.block.apply {
            BlockForm::Unary(f) => {
                if !matches!(a, OperandPlace::Register(r) if *r == self.register) {
                    to[..n].copy_from_slice(elements(a, registers, old, at, n));
                }
                f(&mut to[..n]);
            }
            BlockForm::Binary(f, _) => f(
                elements(a, registers, old, at, n),
                elements(b, registers, old, at, n),
                &mut to[..n],
            ),
        }
        registers[self.register] = to;
    }
}

/// The `n` elements of an operand from `at` on.
fn elements<'s, T>(
    place: &OperandPlace<'s, T>,
    registers: &'s [&mut [T]],
    old: &'s [T],
    at: usize,
    n: usize,
) -> &'s [T] {
    match place {
        OperandPlace::Given(all) => &all[at..at + n],
        OperandPlace::Register(r) => &registers[*r][..n],
        OperandPlace::Old => &old[..n],
    }
}

/// The step before the final chain of unary steps.
fn head<T>(steps: &[ProgramStep<T>]) -> usize {
    let mut head = steps.len() - 1;
    while steps[head].block.is_unary()
        && let MemberInput::Member(j) = steps[head].sources[0]
        && j + 1 == head
        && steps.iter().filter(|s| s.sources.contains(&MemberInput::Member(j))).count() == 1
    {
        head = j;
    }
    head
}

/// The shape that two shapes broadcast to, if it is one of them.
fn joint<'a>(a: &'a Shape, b: &'a Shape) -> Option<&'a Shape> {
    let fits = |small: &Shape, large: &Shape| {
        let skipped = large.rank().checked_sub(small.rank());
        skipped.is_some_and(|s| small.iter().zip(&large[s..]).all(|(x, y)| *x == 1 || x == y))
    };
    if a == b || fits(b, a) { Some(a) } else { fits(a, b).then_some(b) }
}
