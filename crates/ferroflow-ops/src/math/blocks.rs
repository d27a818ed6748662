//! Formulas as functions over slices, for the pass that runs several element-wise ops as one. They
//! are the very functions that the kernels run.

use super::vector::{self, Binary, Unary};
use crate::prelude::*;
use ferroflow_graph::{Block, Operands};

/// An op of one argument.
pub(crate) fn unary<F: Unary<f32> + Unary<f64>>(attrs: &Attrs) -> Option<Blocks> {
    Some(match attrs.dtype("T").ok()? {
        DType::Float => {
            let f: fn(&mut [f32]) = vector::map_in_place::<F, f32>;
            Blocks::F32(Block::unary(f, <F as Unary<f32>>::COST))
        }
        DType::Double => {
            let f: fn(&mut [f64]) = vector::map_in_place::<F, f64>;
            Blocks::F64(Block::unary(f, <F as Unary<f64>>::COST))
        }
        _ => return None,
    })
}

/// An op of two arguments that broadcast.
pub(crate) fn binary<F: Binary<f32> + Binary<f64>>(attrs: &Attrs) -> Option<Blocks> {
    binary_over::<F>(attrs, Operands::Broadcast)
}

/// An op of two arguments of one shape.
pub(crate) fn pair<F: Binary<f32> + Binary<f64>>(attrs: &Attrs) -> Option<Blocks> {
    binary_over::<F>(attrs, Operands::Alike)
}

/// An op of two arguments.
pub(crate) fn binary_over<F: Binary<f32> + Binary<f64>>(
    attrs: &Attrs,
    operands: Operands,
) -> Option<Blocks> {
    Some(match attrs.dtype("T").ok()? {
        DType::Float => {
            let f: fn(&[f32], &[f32], &mut [f32]) = vector::zip::<F, f32, f32>;
            Blocks::F32(Block::binary(f, operands, <F as Binary<f32>>::COST))
        }
        DType::Double => {
            let f: fn(&[f64], &[f64], &mut [f64]) = vector::zip::<F, f64, f64>;
            Blocks::F64(Block::binary(f, operands, <F as Binary<f64>>::COST))
        }
        _ => return None,
    })
}
