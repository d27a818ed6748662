//! Bitcast: the same bytes, read as another dtype.

use crate::prelude::*;

/// A wider dtype removes the innermost dimension; a narrower one adds a dimension.
fn output_shape(input: &Shape, from: usize, to: usize) -> Result<Shape> {
    if from == to {
        return Ok(input.clone());
    }
    let mut dims = input.to_vec();
    if from > to {
        dims.push(from / to);
        return Ok(dims.into());
    }
    ensure!(
        dims.last() == Some(&(to / from)),
        InvalidArgument,
        "Cannot bitcast from {from} bytes an element to {to}: the last dimension of {input} is not {}",
        to / from
    );
    dims.pop();
    Ok(dims.into())
}

fn bitcast(init: &KernelInit<'_>) -> Result<KernelBox> {
    let to = init.dtype("type")?;
    let (Some(from_size), Some(to_size)) = (init.dtype("T")?.size(), to.size()) else {
        return Err(unsupported(init, "type", to));
    };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.take(0)?;
        let shape = output_shape(x.shape(), from_size, to_size)?;
        let y = if from_size == to_size {
            x.with_dtype(to)?
        } else {
            Tensor::from_bytes(to, shape, x.to_wire_bytes()?)?
        };
        ctx.set(0, y)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Bitcast")
        .doc("The bytes of its input, read as another dtype.")
        .input("input: T")
        .output("output: type")
        .attr("T: numbertype")
        .attr("type: numbertype")
        .shape(|c| {
            let sizes = (c.attrs.dtype("T")?.size(), c.attrs.dtype("type")?.size());
            let (Some(from), Some(to)) = sizes else { return shape::unknown(c) };
            let input = c.input(0);
            if let Some(shape) = input.known() {
                return Ok(vec![output_shape(&shape, from, to)?.into()]);
            }
            let Some(dims) = input.dims() else { return shape::unknown(c) };
            let mut dims = dims.to_vec();
            if from > to {
                dims.push(Some(from / to));
            } else if from < to {
                dims.pop();
            }
            Ok(vec![PartialShape::new(dims)])
        })
        .cpu(bitcast);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn to(dtype: DType, x: Tensor) -> Check<'static> {
        check("Bitcast").attr("type", dtype).input(x)
    }

    #[test]
    fn bytes_stay_the_same() {
        to(DType::Int32, Tensor::vector(&[1.0f32])).gives(Tensor::vector(&[0x3f800000i32]));
        let bytes = Tensor::from_slice([1, 4], &[1u8, 2, 3, 4]).unwrap();
        to(DType::Int32, bytes.clone()).gives(Tensor::vector(&[67305985i32]));
        to(DType::UInt8, Tensor::vector(&[67305985i32])).gives(bytes);
        let empty = Tensor::zeros(DType::Double, [0]).unwrap();
        to(DType::Half, empty).gives(Tensor::zeros(DType::Half, [0, 4]).unwrap());
    }

    #[test]
    fn a_wider_dtype_needs_a_dimension_to_swallow() {
        to(DType::Int32, Tensor::vector(&[1u8, 2, 3]))
            .fails(Code::InvalidArgument, "Cannot bitcast from");
        to(DType::Int32, Tensor::scalar(1u8)).fails(Code::InvalidArgument, "Cannot bitcast from");
    }
}
