//! Applies a bias and an activation to the rows of a product as they are computed.

use super::{FusionGroup, MemberInput};
use crate::block_kernel::{AnyBlockKernel, BlockForm, BlockKernel, OperandShapes};
use ferroflow_core::{DType, Element, Epilogue, Rows, Shape, Tensor};

/// Elements per call; a copy of them is on the stack.
const BLOCK: usize = 512;

/// The functions to apply: one that adds the bias, then optionally a unary one.
pub(super) enum ByRows {
    F32(FinishFns<f32>),
    F64(FinishFns<f64>),
}

pub(super) struct FinishFns<T> {
    add: BlockKernel<T>,
    then: Option<BlockKernel<T>>,
    /// The product is operand 0 of the addition, the bias operand 1.
    product_first: bool,
}

impl ByRows {
    /// `None` if the steps do not have this form. Input `made` is the product.
    pub(super) fn new(rest: &FusionGroup, steps: &[AnyBlockKernel], made: usize) -> Option<ByRows> {
        if rest.inputs.len() != 2 || !(1..=2).contains(&steps.len()) {
            return None;
        }
        let adds = &rest.members[0].sources;
        let product_first = match adds[..] {
            [MemberInput::Input(a), MemberInput::Input(b)] if a != b => a == made,
            _ => return None,
        };
        if steps.len() == 2 && rest.members[1].sources[..] != [MemberInput::Member(0)] {
            return None;
        }
        match steps {
            [AnyBlockKernel::F32(add)] => FinishFns::new(add, None, product_first).map(ByRows::F32),
            [AnyBlockKernel::F32(add), AnyBlockKernel::F32(then)] => {
                FinishFns::new(add, Some(then), product_first).map(ByRows::F32)
            }
            [AnyBlockKernel::F64(add)] => FinishFns::new(add, None, product_first).map(ByRows::F64),
            [AnyBlockKernel::F64(add), AnyBlockKernel::F64(then)] => {
                FinishFns::new(add, Some(then), product_first).map(ByRows::F64)
            }
            _ => None,
        }
    }

    pub(super) fn with_bias<'a>(&'a self, bias: &'a Tensor) -> WithBias<'a> {
        WithBias { by_rows: self, bias }
    }
}

impl<T> FinishFns<T> {
    fn new(
        add: &BlockKernel<T>,
        then: Option<&BlockKernel<T>>,
        product_first: bool,
    ) -> Option<FinishFns<T>>
    where
        BlockKernel<T>: Clone,
    {
        let operands = match add.apply {
            BlockForm::Binary(_, operands) => operands,
            BlockForm::Unary(_) => return None,
        };
        let is_last = match operands {
            OperandShapes::Broadcast => true,
            OperandShapes::Bias { is_nchw } => !is_nchw && product_first,
            OperandShapes::Alike => false,
        };
        let then_fits = then.is_none_or(|then| matches!(then.apply, BlockForm::Unary(_)));
        (is_last && then_fits).then(|| FinishFns {
            add: add.clone(),
            then: then.cloned(),
            product_first,
        })
    }
}

impl<T: Element> FinishFns<T> {
    fn run(&self, bias: &[T], rows: &mut [T]) {
        let BlockForm::Binary(add, _) = &self.add.apply else { return };
        let (mut old, mut repeated) = ([T::default(); BLOCK], [T::default(); BLOCK]);
        // Several short rows in one call, with as many copies of the bias, to save calls.
        let n = bias.len().max(1);
        let together = &mut repeated[..BLOCK / n * bias.len()];
        together.chunks_exact_mut(n).for_each(|copy| copy.copy_from_slice(bias));
        let bias = if together.len() > n { together } else { bias };
        for rows in rows.chunks_mut(bias.len().max(1)) {
            for (block, bias) in rows.chunks_mut(BLOCK).zip(bias.chunks(BLOCK)) {
                let (old, bias) = (&mut old[..block.len()], &bias[..block.len()]);
                old.copy_from_slice(block);
                match self.product_first {
                    true => add(old, bias, block),
                    false => add(bias, old, block),
                }
                if let Some(BlockForm::Unary(then)) = self.then.as_ref().map(|then| &then.apply) {
                    then(block);
                }
            }
        }
    }
}

/// The functions and the bias of one run.
pub(super) struct WithBias<'a> {
    by_rows: &'a ByRows,
    bias: &'a Tensor,
}

impl Epilogue for WithBias<'_> {
    fn fits(&self, dtype: DType, shape: &Shape) -> bool {
        let wanted = match self.by_rows {
            ByRows::F32(_) => DType::Float,
            ByRows::F64(_) => DType::Double,
        };
        let of_row = shape.rank() >= 2 && self.bias.shape()[..] == shape[shape.rank() - 1..];
        dtype == wanted && self.bias.dtype() == wanted && of_row
    }

    fn apply(&self, rows: Rows<'_>) {
        match (self.by_rows, rows) {
            (ByRows::F32(f), Rows::F32(rows)) => {
                f.run(self.bias.as_slice().expect("the dtype was looked at"), rows)
            }
            (ByRows::F64(f), Rows::F64(rows)) => {
                f.run(self.bias.as_slice().expect("the dtype was looked at"), rows)
            }
            _ => unreachable!("only rows of the type that fits are finished"),
        }
    }
}
