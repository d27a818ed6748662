//! Element-wise ops as plain functions over slices, so that several can be run as one: block by
//! block, with what lies between them in the nearest cache.

use std::sync::Arc;

/// How an element-wise op of one output is computed, for the dtypes that are fused.
#[derive(Clone)]
pub enum AnyBlockKernel {
    F32(BlockKernel<f32>),
    F64(BlockKernel<f64>),
}

/// An element-wise op over slices of `T`, all of one length. It gives the very bits that the op's
/// kernel gives, however the elements are cut into blocks, and cannot fail where shapes fit.
#[derive(Clone)]
pub struct BlockKernel<T> {
    pub apply: BlockForm<T>,
    /// About how many nanoseconds an element takes.
    pub cost: usize,
}

#[derive(Clone)]
pub enum BlockForm<T> {
    /// In place. The result has the operand's shape.
    Unary(Arc<dyn Fn(&mut [T]) + Send + Sync>),
    /// Operands 0 and 1 into the result.
    Binary(Arc<dyn Fn(&[T], &[T], &mut [T]) + Send + Sync>, OperandShapes),
}

/// Which shapes two operands may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandShapes {
    /// They broadcast against each other.
    Broadcast,
    /// Both have the same.
    Alike,
    /// Operand 1 is a vector with an element for each channel of operand 0: its last dimension, or
    /// dimension 1 where `is_nchw`.
    Bias { is_nchw: bool },
}

impl<T> BlockKernel<T> {
    pub fn unary(f: impl Fn(&mut [T]) + Send + Sync + 'static, cost: usize) -> BlockKernel<T> {
        BlockKernel { apply: BlockForm::Unary(Arc::new(f)), cost }
    }

    pub fn binary(
        f: impl Fn(&[T], &[T], &mut [T]) + Send + Sync + 'static,
        operands: OperandShapes,
        cost: usize,
    ) -> BlockKernel<T> {
        BlockKernel { apply: BlockForm::Binary(Arc::new(f), operands), cost }
    }

    pub fn is_unary(&self) -> bool {
        matches!(self.apply, BlockForm::Unary(_))
    }
}

impl AnyBlockKernel {
    pub fn is_unary(&self) -> bool {
        match self {
            AnyBlockKernel::F32(block) => block.is_unary(),
            AnyBlockKernel::F64(block) => block.is_unary(),
        }
    }

    /// Which shapes its operands may have, when there are two.
    pub fn operands(&self) -> Option<OperandShapes> {
        match self {
            AnyBlockKernel::F32(BlockKernel { apply: BlockForm::Binary(_, operands), .. })
            | AnyBlockKernel::F64(BlockKernel { apply: BlockForm::Binary(_, operands), .. }) => {
                Some(*operands)
            }
            _ => None,
        }
    }
}
