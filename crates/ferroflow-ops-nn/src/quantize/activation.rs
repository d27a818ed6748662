//! QuantizedRelu, QuantizedRelu6, QuantizedReluX.

use super::affine::{Quantized, from_float, like_input_and_range, scalar, set_range};
use crate::prelude::*;

/// The upper limit of the values.
#[derive(Clone, Copy, PartialEq)]
enum Top {
    None,
    Six,
    /// The value of input 1.
    Given,
}

fn relu<T: Quantized>(top: Top) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let at = if top == Top::Given { 2 } else { 1 };
        let (min, max) = (scalar(ctx, at, "min_features")?, scalar(ctx, at + 1, "max_features")?);
        let low: T = from_float(0.0, min, max);
        let high = match top {
            Top::None => T::clamped(T::HIGHEST),
            Top::Six => from_float(6.0, min, max),
            Top::Given => from_float(scalar(ctx, 1, "max_value")?, min, max),
        };
        let mut out = ctx.take_or_copy(0)?;
        for x in out.as_mut_slice::<T>()? {
            *x = Real::min(Real::max(*x, low), high);
        }
        ctx.set(0, out)?;
        set_range(ctx, (min, max))
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, top, doc) in [
        ("QuantizedRelu", Top::None, "Quantised elements, those below zero raised to it."),
        ("QuantizedRelu6", Top::Six, "Quantised elements, cut off at zero and six."),
        ("QuantizedReluX", Top::Given, "Quantised elements, cut off at zero and a given value."),
    ] {
        let op = c.op(op).doc(doc).input("features: Tinput");
        let op = if top == Top::Given { op.input("max_value: float") } else { op };
        op.input("min_features: float")
            .input("max_features: float")
            .output("activations: out_type")
            .output("min_activations: float")
            .output("max_activations: float")
            .attr("Tinput: quantizedtype")
            .attr("out_type: quantizedtype = DT_QUINT8")
            .shape(like_input_and_range)
            .cpu(move |init| {
                let (from, to) = (init.dtype("Tinput")?, init.dtype("out_type")?);
                match (from == to, from) {
                    (true, DType::QUInt8) => Ok(KernelBox::new(relu::<u8>(top))),
                    (true, DType::QInt32) => Ok(KernelBox::new(relu::<i32>(top))),
                    (true, other) => Err(unsupported(init, "Tinput", other)),
                    (false, _) => Err(unsupported(init, "out_type", to)),
                }
            });
    }
}
