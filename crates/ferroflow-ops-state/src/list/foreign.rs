//! Converts variants that came from another task.

use super::optional::Optional;
use super::tensor_list::TensorList;
use crate::prelude::*;
use ferroflow_core::Variant;
use ferroflow_graph::wire::tensor::OpaqueVariant;

/// Converts the lists and optionals in a tensor; other variants stay as they are.
pub fn adopt(tensor: Tensor) -> Result<Tensor> {
    // Every value from another task passes through here.
    if tensor.dtype() != DType::Variant {
        return Ok(tensor);
    }
    let all = tensor.variants()?;
    if !all.iter().any(|v| v.get::<OpaqueVariant>().is_some()) {
        return Ok(tensor);
    }
    let adopted = all.iter().map(adopt_one).collect::<Result<Vec<_>>>()?;
    Tensor::from_variants(tensor.shape().clone(), adopted)
}

fn adopt_one(variant: &Variant) -> Result<Variant> {
    let Some(foreign) = variant.get::<OpaqueVariant>() else { return Ok(variant.clone()) };
    let tensors = || foreign.tensors.iter().cloned().map(adopt).collect::<Result<Vec<Tensor>>>();
    Ok(match foreign.type_name.as_str() {
        "tensorflow::TensorList" => Variant::new(decode_list(&foreign.metadata, tensors()?)?),
        "tensorflow::data::Optional" => {
            let has_value = foreign.metadata.first().is_some_and(|b| *b != 0);
            Variant::new(Optional(if has_value { Some(tensors()?) } else { None }))
        }
        _ => variant.clone(),
    })
}

/// A list from its metadata (unset elements, dtype, limit, element shape) and the elements that are
/// set.
fn decode_list(metadata: &[u8], tensors: Vec<Tensor>) -> Result<TensorList> {
    let malformed = || err!(InvalidArgument, "a tensor list from another task is malformed");
    let mut rest = metadata;
    let mut number = || varint(&mut rest).ok_or_else(malformed);
    let unset_count = number()?;
    // Each element takes at least one byte, so the bytes bound their number.
    ensure!(unset_count <= metadata.len() as u64, InvalidArgument, "{}", malformed().message());
    let unset = (0..unset_count).map(|_| number()).collect::<Result<Vec<u64>>>()?;
    let dtype = i32::try_from(number()?).map_err(|_| malformed())?;
    let max = number()? as i64;
    let shape = shape(rest).ok_or_else(malformed)?;
    let mut list = TensorList::new(DType::from_number(dtype)?, shape);
    list.max = usize::try_from(max).ok();
    let mut unset = unset.into_iter().peekable();
    let mut tensors = tensors.into_iter();
    loop {
        if unset.next_if_eq(&(list.items.len() as u64)).is_some() {
            list.items.push(None)?;
        } else if let Some(tensor) = tensors.next() {
            list.items.push(Some(tensor))?;
        } else {
            break;
        }
    }
    ensure!(unset.next().is_none(), InvalidArgument, "{}", malformed().message());
    Ok(list)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// A shape in TensorFlow's protobuf encoding.
fn shape(mut bytes: &[u8]) -> Option<PartialShape> {
    let mut dims = Vec::new();
    while !bytes.is_empty() {
        match varint(&mut bytes)? {
            // unknown_rank
            0x18 => {
                if varint(&mut bytes)? != 0 {
                    return Some(PartialShape::unknown());
                }
            }
            // dim
            0x12 => {
                let len = usize::try_from(varint(&mut bytes)?).ok()?;
                let (mut dim, rest) = bytes.split_at_checked(len)?;
                bytes = rest;
                let mut size = 0i64;
                while !dim.is_empty() {
                    match varint(&mut dim)? {
                        0x08 => size = varint(&mut dim)? as i64,
                        // Ignore its name.
                        0x12 => {
                            let len = usize::try_from(varint(&mut dim)?).ok()?;
                            dim = dim.get(len..)?;
                        }
                        _ => return None,
                    }
                }
                dims.push(usize::try_from(size).ok());
            }
            _ => return None,
        }
    }
    Some(PartialShape::new(dims))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::CountedVec;
    use ferroflow_core::VariantObject;

    fn sent(object: impl VariantObject) -> Tensor {
        let type_name = object.type_name().to_string();
        let (metadata, tensors) = object.encode().unwrap();
        Tensor::variant(Variant::new(OpaqueVariant { type_name, metadata, tensors }))
    }

    #[test]
    fn lists_arrive_as_they_left() {
        for shape in [PartialShape::unknown(), PartialShape::new([Some(2), None, Some(0)])] {
            let mut list = TensorList::new(DType::Float, shape.clone());
            let items = [None, Some(Tensor::scalar(1.0f32)), None];
            list.items = CountedVec::try_from_iter(items.map(Ok)).unwrap();
            list.max = Some(9);
            let got = adopt(sent(list)).unwrap();
            let got = got.variants().unwrap()[0].get::<TensorList>().unwrap();
            assert_eq!((got.dtype, &got.shape, got.max), (DType::Float, &shape, Some(9)));
            assert_eq!(*got.items, [None, Some(Tensor::scalar(1.0f32)), None]);
        }
    }

    #[test]
    fn optionals_arrive_as_they_left() {
        for value in [None, Some(vec![Tensor::scalar(1i32), Tensor::scalar(2.0f32)])] {
            let got = adopt(sent(Optional(value.clone()))).unwrap();
            assert_eq!(got.variants().unwrap()[0].get::<Optional>().unwrap().0, value);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for metadata in [&[][..], &[9, 0], &[1, 5, 1, 0], &[0, 1, 0, 0x12, 5], &[0xff; 20]] {
            let foreign = OpaqueVariant {
                type_name: "tensorflow::TensorList".into(),
                metadata: bytes::Bytes::copy_from_slice(metadata),
                tensors: vec![],
            };
            assert!(adopt(Tensor::variant(Variant::new(foreign))).is_err(), "{metadata:?}");
        }
    }
}
