//! Output tensors with their values in the field of their type, as in TensorFlow Serving's answers.
//! Clients read `float_val`, and TensorFlow's own client reads strings only from `string_val`.

use ferroflow_core::{DType, Element, Result, Tensor, bf16, f16};
use ferroflow_graph::wire::tensor::{shape_to_proto, to_proto};
use ferroflow_proto::tensorflow::TensorProto;

pub(super) fn typed_proto(tensor: &Tensor) -> Result<TensorProto> {
    let mut proto = TensorProto {
        dtype: tensor.dtype().number(),
        tensor_shape: Some(shape_to_proto(&tensor.shape().into())),
        ..TensorProto::default()
    };
    match tensor.dtype() {
        DType::Float => proto.float_val = tensor.as_slice::<f32>()?.to_vec(),
        DType::Double => proto.double_val = tensor.as_slice::<f64>()?.to_vec(),
        DType::Int32 => proto.int_val = tensor.as_slice::<i32>()?.to_vec(),
        DType::Int16 => proto.int_val = widened::<i16>(tensor)?,
        DType::Int8 => proto.int_val = widened::<i8>(tensor)?,
        DType::UInt16 => proto.int_val = widened::<u16>(tensor)?,
        DType::UInt8 => proto.int_val = widened::<u8>(tensor)?,
        DType::Int64 => proto.int64_val = tensor.as_slice::<i64>()?.to_vec(),
        DType::UInt32 => proto.uint32_val = tensor.as_slice::<u32>()?.to_vec(),
        DType::UInt64 => proto.uint64_val = tensor.as_slice::<u64>()?.to_vec(),
        DType::Bool => proto.bool_val = tensor.as_slice::<bool>()?.to_vec(),
        DType::String => proto.string_val = tensor.strings()?.to_vec(),
        DType::Half => {
            let bits = |v: &f16| i32::from(v.to_bits());
            proto.half_val = tensor.as_slice::<f16>()?.iter().map(bits).collect();
        }
        DType::BFloat16 => {
            let bits = |v: &bf16| i32::from(v.to_bits());
            proto.half_val = tensor.as_slice::<bf16>()?.iter().map(bits).collect();
        }
        _ => return to_proto(tensor),
    }
    Ok(proto)
}

fn widened<T: Element + Into<i32>>(tensor: &Tensor) -> Result<Vec<i32>> {
    Ok(tensor.as_slice::<T>()?.iter().map(|&value| value.into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn values_are_in_the_field_of_their_type() {
        let floats = typed_proto(&Tensor::vector(&[1.5f32, 2.0])).unwrap();
        assert_eq!(floats.float_val, [1.5, 2.0]);
        assert!(floats.tensor_content.is_empty());
        let text = Tensor::from_strings([1], vec![Bytes::from("x")]).unwrap();
        assert_eq!(typed_proto(&text).unwrap().string_val, ["x"]);
        assert_eq!(typed_proto(&Tensor::vector(&[255u8])).unwrap().int_val, [255]);
        let half = typed_proto(&Tensor::scalar(f16::from_f32(1.0))).unwrap();
        assert_eq!((half.half_val, half.dtype), (vec![0x3c00], DType::Half.number()));
    }
}
