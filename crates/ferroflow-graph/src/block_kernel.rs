//! Element-wise ops as plain functions over slices. A fused node runs several of them block by
//! block, so that intermediate values stay in the nearest cache.

use std::sync::Arc;

/// The block kernel of an element-wise op with one output, for a dtype that can be fused.
#[derive(Clone)]
pub enum AnyBlockKernel {
    /// For `float`.
    F32(BlockKernel<f32>),
    /// For `double`.
    F64(BlockKernel<f64>),
}

/// An element-wise op over slices of `T`, all of one length. It computes the same bits as the op's
/// kernel for any block size, and cannot fail if the shapes fit.
#[derive(Clone)]
pub struct BlockKernel<T> {
    /// The function.
    pub apply: BlockForm<T>,
    /// Estimated nanoseconds per element.
    pub cost: usize,
}

/// The function of a block kernel.
#[derive(Clone)]
pub enum BlockForm<T> {
    /// Works in place. The result has the operand's shape.
    Unary(Arc<dyn Fn(&mut [T]) + Send + Sync>),
    /// Combines operands 0 and 1 into the result.
    Binary(Arc<dyn Fn(&[T], &[T], &mut [T]) + Send + Sync>, OperandShapes),
}

/// Which shapes two operands may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandShapes {
    /// They broadcast against each other.
    Broadcast,
    /// Both have the same shape.
    Alike,
    /// Operand 1 is a vector with an element for each channel of operand 0: its last dimension, or
    /// dimension 1 where `is_nchw`.
    Bias {
        /// Whether channels are dimension 1.
        is_nchw: bool,
    },
}

impl<T> BlockKernel<T> {
    /// A kernel that works in place; `cost` is in nanoseconds per element.
    pub fn unary(f: impl Fn(&mut [T]) + Send + Sync + 'static, cost: usize) -> BlockKernel<T> {
        BlockKernel { apply: BlockForm::Unary(Arc::new(f)), cost }
    }

    /// A kernel of two operands; `cost` is in nanoseconds per element.
    pub fn binary(
        f: impl Fn(&[T], &[T], &mut [T]) + Send + Sync + 'static,
        operands: OperandShapes,
        cost: usize,
    ) -> BlockKernel<T> {
        BlockKernel { apply: BlockForm::Binary(Arc::new(f), operands), cost }
    }

    /// Whether it has one operand.
    pub fn is_unary(&self) -> bool {
        matches!(self.apply, BlockForm::Unary(_))
    }
}

impl AnyBlockKernel {
    /// Whether it has one operand.
    pub fn is_unary(&self) -> bool {
        match self {
            AnyBlockKernel::F32(block) => block.is_unary(),
            AnyBlockKernel::F64(block) => block.is_unary(),
        }
    }

    /// Which shapes the two operands of a binary kernel may have.
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
