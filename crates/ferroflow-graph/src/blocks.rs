//! Element-wise ops as plain functions over slices, so that several can be run as one: block by
//! block, with what lies between them in the nearest cache.

use std::sync::Arc;

/// How an element-wise op of one output is computed, for the dtypes that are fused.
#[derive(Clone)]
pub enum Blocks {
    F32(Block<f32>),
    F64(Block<f64>),
}

/// An element-wise op over slices of `T`, all of one length. It gives the very bits that the op's
/// kernel gives, however the elements are cut into blocks, and cannot fail where shapes fit.
#[derive(Clone)]
pub struct Block<T> {
    pub apply: Apply<T>,
    /// About how many nanoseconds an element takes.
    pub cost: usize,
}

#[derive(Clone)]
pub enum Apply<T> {
    /// In place. The result has the operand's shape.
    Unary(Arc<dyn Fn(&mut [T]) + Send + Sync>),
    /// Operands 0 and 1 into the result.
    Binary(Arc<dyn Fn(&[T], &[T], &mut [T]) + Send + Sync>, Operands),
}

/// Which shapes two operands may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// They broadcast against each other.
    Broadcast,
    /// Both have the same.
    Alike,
    /// Operand 1 is a vector with an element for each channel of operand 0: its last dimension, or
    /// dimension 1 where `is_nchw`.
    Bias { is_nchw: bool },
}

impl<T> Block<T> {
    pub fn unary(f: impl Fn(&mut [T]) + Send + Sync + 'static, cost: usize) -> Block<T> {
        Block { apply: Apply::Unary(Arc::new(f)), cost }
    }

    pub fn binary(
        f: impl Fn(&[T], &[T], &mut [T]) + Send + Sync + 'static,
        operands: Operands,
        cost: usize,
    ) -> Block<T> {
        Block { apply: Apply::Binary(Arc::new(f), operands), cost }
    }

    pub fn is_unary(&self) -> bool {
        matches!(self.apply, Apply::Unary(_))
    }
}

impl Blocks {
    pub fn is_unary(&self) -> bool {
        match self {
            Blocks::F32(block) => block.is_unary(),
            Blocks::F64(block) => block.is_unary(),
        }
    }

    /// Which shapes its operands may have, when there are two.
    pub fn operands(&self) -> Option<Operands> {
        match self {
            Blocks::F32(Block { apply: Apply::Binary(_, operands), .. })
            | Blocks::F64(Block { apply: Apply::Binary(_, operands), .. }) => Some(*operands),
            _ => None,
        }
    }
}
