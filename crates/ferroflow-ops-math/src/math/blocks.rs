//! Formulas as functions over slices, for the pass that runs several element-wise ops as one. The
//! kernels run the same functions.

use crate::prelude::*;
use ferroflow_graph::{BlockKernel, OperandShapes};
use ferroflow_op_kit::vector::{self, Binary, Unary};

/// An op of one argument.
pub fn unary<F: Unary<f32> + Unary<f64>>(attrs: &Attrs) -> Option<AnyBlockKernel> {
    Some(match attrs.dtype("T").ok()? {
        DType::Float => {
            let f: fn(&mut [f32]) = vector::map_in_place::<F, f32>;
            AnyBlockKernel::F32(BlockKernel::unary(f, <F as Unary<f32>>::COST))
        }
        DType::Double => {
            let f: fn(&mut [f64]) = vector::map_in_place::<F, f64>;
            AnyBlockKernel::F64(BlockKernel::unary(f, <F as Unary<f64>>::COST))
        }
        _ => return None,
    })
}

/// An op of two arguments that broadcast.
pub fn binary<F: Binary<f32> + Binary<f64>>(attrs: &Attrs) -> Option<AnyBlockKernel> {
    binary_over::<F>(attrs, OperandShapes::Broadcast)
}

/// An op of two arguments of one shape.
pub fn pair<F: Binary<f32> + Binary<f64>>(attrs: &Attrs) -> Option<AnyBlockKernel> {
    binary_over::<F>(attrs, OperandShapes::Alike)
}

/// An op of two arguments.
pub fn binary_over<F: Binary<f32> + Binary<f64>>(
    attrs: &Attrs,
    operands: OperandShapes,
) -> Option<AnyBlockKernel> {
    Some(match attrs.dtype("T").ok()? {
        DType::Float => {
            let f: fn(&[f32], &[f32], &mut [f32]) = vector::zip::<F, f32, f32>;
            AnyBlockKernel::F32(BlockKernel::binary(f, operands, <F as Binary<f32>>::COST))
        }
        DType::Double => {
            let f: fn(&[f64], &[f64], &mut [f64]) = vector::zip::<F, f64, f64>;
            AnyBlockKernel::F64(BlockKernel::binary(f, operands, <F as Binary<f64>>::COST))
        }
        _ => return None,
    })
}
