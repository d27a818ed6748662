//! Tensors from and to `TensorProto`.

use super::malformed;
use super::segments::{put_key, put_varint, varint_len};
use bytes::{Buf, Bytes};
use ferroflow_core::{
    Complex32, Complex64, DType, Element, PartialShape, ResourceHandle, Result, Shape, Tensor,
    Variant, VariantObject, bail, bf16, ensure, err, f16,
};
use ferroflow_proto::tensorflow as pb;
use pb::resource_handle_proto::DtypeAndShape;
use pb::tensor_shape_proto::Dim;
use prost::Message;

/// Smaller contents are copied: adopting them would keep the whole message in memory.
pub(super) const ADOPT_FROM: usize = 4 << 10;
/// The number of strings, handles or variants that a message can declare without listing them.
const UNSPELLED_LIMIT: usize = 1 << 22;
/// The nesting depth of variants in tensors of variants. Prost has about the same limit.
const MAX_DEPTH: usize = 32;

pub(super) const DTYPE: u32 = 1;
pub(super) const TENSOR_SHAPE: u32 = 2;
pub(super) const TENSOR_CONTENT: u32 = 4;

/// An element of a variant tensor of a type that this module does not know. It is passed on
/// unchanged; an op that knows the type name can read it.
#[derive(Clone, Debug)]
pub struct OpaqueVariant {
    /// The name of the type.
    pub type_name: String,
    /// Its serialized content without tensors.
    pub metadata: Bytes,
    /// The tensors in it.
    pub tensors: Vec<Tensor>,
}

impl VariantObject for OpaqueVariant {
    fn type_name(&self) -> &str {
        &self.type_name
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        Some((self.metadata.clone(), self.tensors.clone()))
    }
}

/// Reads a tensor. A large, aligned content is not copied.
pub fn from_proto(proto: pb::TensorProto) -> Result<Tensor> {
    decode(proto, 0)
}

/// Writes a tensor. Fails for variants that cannot leave this process.
pub fn to_proto(tensor: &Tensor) -> Result<pb::TensorProto> {
    build(tensor, 0)
}

fn decode(p: pb::TensorProto, depth: usize) -> Result<Tensor> {
    ensure!(depth < MAX_DEPTH, InvalidArgument, "a tensor holds variants nested too deep");
    let dtype = DType::from_number(p.dtype)?;
    let shape = full_shape(p.tensor_shape.as_ref())?;
    let n = shape.checked_elements()?;
    if n == 0 {
        return Tensor::zeros(dtype, shape);
    }
    if dtype.is_plain() {
        return match p.tensor_content.is_empty() {
            true => from_values(dtype, shape, &p),
            false => from_content(dtype, shape, p.tensor_content),
        };
    }
    // Each element of these takes memory before its value is known.
    let spelled = match dtype {
        _ if !p.tensor_content.is_empty() => n,
        DType::String => p.string_val.len(),
        DType::Resource => p.resource_handle_val.len(),
        _ => p.variant_val.len(),
    };
    ensure!(
        n <= spelled.max(UNSPELLED_LIMIT),
        ResourceExhausted,
        "OOM when allocating tensor with shape{shape} and type {dtype}: only {spelled} elements \
         are given"
    );
    let listed = match p.tensor_content.is_empty() {
        true => None,
        false => Some(split_list(n, p.tensor_content)?),
    };
    match dtype {
        DType::String => {
            let mut values = listed.unwrap_or(p.string_val);
            let last = values.last().cloned().unwrap_or_default();
            values.resize(n, last);
            Tensor::from_strings(shape, values)
        }
        // For these types the last value is not repeated.
        DType::Resource => {
            let mut values = match listed {
                Some(list) => list
                    .into_iter()
                    .map(|b| handle_from_proto(Message::decode(b).map_err(malformed)?))
                    .collect::<Result<Vec<_>>>()?,
                None => p
                    .resource_handle_val
                    .into_iter()
                    .map(handle_from_proto)
                    .collect::<Result<_>>()?,
            };
            values.resize_with(n, ResourceHandle::default);
            Tensor::from_handles(shape, values)
        }
        _ => {
            let mut values = match listed {
                Some(list) => list
                    .into_iter()
                    .map(|b| variant_from_proto(Message::decode(b).map_err(malformed)?, depth))
                    .collect::<Result<Vec<_>>>()?,
                None => p
                    .variant_val
                    .into_iter()
                    .map(|v| variant_from_proto(v, depth))
                    .collect::<Result<_>>()?,
            };
            values.resize_with(n, Variant::default);
            Tensor::from_variants(shape, values)
        }
    }
}

/// A tensor of plain bytes. Their number must match the shape.
pub(super) fn from_content(dtype: DType, shape: Shape, content: Bytes) -> Result<Tensor> {
    check_content(dtype, &shape, content.len())?;
    if content.len() >= ADOPT_FROM || dtype == DType::Bool {
        return Tensor::from_bytes(dtype, shape, content);
    }
    let mut t = Tensor::alloc(dtype, shape)?;
    t.bytes_mut()?.copy_from_slice(&content);
    Ok(t)
}

pub(super) fn check_content(dtype: DType, shape: &Shape, len: usize) -> Result<()> {
    let n = shape.checked_elements()?;
    let want = dtype.size().and_then(|size| n.checked_mul(size));
    ensure!(
        want == Some(len),
        InvalidArgument,
        "tensor_content of {len} bytes does not fill a {dtype} tensor of shape {shape}"
    );
    Ok(())
}

/// A tensor from a list of values. The last value is repeated; an empty list means zeros.
fn from_values(dtype: DType, shape: Shape, p: &pb::TensorProto) -> Result<Tensor> {
    use DType::*;
    let (ints, halves) = (&p.int_val, &p.half_val);
    let (c64, c128) = (&p.scomplex_val, &p.dcomplex_val);
    let half_bits = |i: usize| halves[i] as u16;
    match dtype {
        Float => filled(dtype, shape, p.float_val.len(), |i| p.float_val[i]),
        Double => filled(dtype, shape, p.double_val.len(), |i| p.double_val[i]),
        Int32 | QInt32 => filled(dtype, shape, ints.len(), |i| ints[i]),
        Int16 | QInt16 => filled(dtype, shape, ints.len(), |i| ints[i] as i16),
        Int8 | QInt8 => filled(dtype, shape, ints.len(), |i| ints[i] as i8),
        UInt16 | QUInt16 => filled(dtype, shape, ints.len(), |i| ints[i] as u16),
        UInt8 | QUInt8 => filled(dtype, shape, ints.len(), |i| ints[i] as u8),
        Int4 => filled(dtype, shape, ints.len(), |i| (ints[i] as i8) << 4 >> 4),
        UInt4 => filled(dtype, shape, ints.len(), |i| ints[i] as u8 & 15),
        Int64 => filled(dtype, shape, p.int64_val.len(), |i| p.int64_val[i]),
        UInt32 => filled(dtype, shape, p.uint32_val.len(), |i| p.uint32_val[i]),
        UInt64 => filled(dtype, shape, p.uint64_val.len(), |i| p.uint64_val[i]),
        Bool => filled(dtype, shape, p.bool_val.len(), |i| p.bool_val[i]),
        Half => filled(dtype, shape, halves.len(), |i| f16::from_bits(half_bits(i))),
        BFloat16 => filled(dtype, shape, halves.len(), |i| bf16::from_bits(half_bits(i))),
        Complex64 => {
            filled(dtype, shape, c64.len() / 2, |i| Complex32::new(c64[2 * i], c64[2 * i + 1]))
        }
        Complex128 => filled(dtype, shape, c128.len() / 2, |i| {
            self::Complex64::new(c128[2 * i], c128[2 * i + 1])
        }),
        Float8E5M2 | Float8E4M3FN => filled(dtype, shape, p.float8_val.len(), |i| p.float8_val[i]),
        String | Resource | Variant => bail!(Internal, "{dtype} tensors are not plain"),
    }
}

fn filled<T: Element>(
    dtype: DType,
    shape: Shape,
    given: usize,
    value: impl Fn(usize) -> T,
) -> Result<Tensor> {
    if given == 0 {
        return Tensor::zeros(dtype, shape);
    }
    let mut t = Tensor::alloc(dtype, shape)?;
    let out = t.as_mut_slice::<T>()?;
    let (listed, repeated) = out.split_at_mut(given.min(out.len()));
    for (i, to) in listed.iter_mut().enumerate() {
        *to = value(i);
    }
    repeated.fill(value(given - 1));
    Ok(t)
}

/// The items of a list in TensorFlow's encoding: `n` lengths as varints, then all bytes.
fn split_list(n: usize, content: Bytes) -> Result<Vec<Bytes>> {
    let wrong = || err!(InvalidArgument, "tensor_content does not hold {n} elements");
    // Each item takes at least one byte for its length.
    ensure!(n <= content.len(), InvalidArgument, "{}", wrong().message());
    let mut content = content;
    if content.len() < ADOPT_FROM {
        content = Bytes::copy_from_slice(&content);
    }
    let mut rest = content.clone();
    let mut lengths = Vec::with_capacity(n);
    let mut total = 0usize;
    for _ in 0..n {
        let len = prost::decode_length_delimiter(&mut rest).map_err(|_| wrong())?;
        total = total.checked_add(len).filter(|&t| t <= content.len()).ok_or_else(wrong)?;
        lengths.push(len);
    }
    ensure!(total == rest.remaining(), InvalidArgument, "{}", wrong().message());
    Ok(lengths.into_iter().map(|len| rest.split_to(len)).collect())
}

/// The inverse of [`split_list`].
fn join_list(items: &[Bytes]) -> Bytes {
    let size = items.iter().map(|s| s.len() + varint_len(s.len() as u64)).sum();
    let mut out = Vec::with_capacity(size);
    items.iter().for_each(|s| put_varint(&mut out, s.len() as u64));
    items.iter().for_each(|s| out.extend_from_slice(s));
    out.into()
}

fn build(t: &Tensor, depth: usize) -> Result<pb::TensorProto> {
    ensure!(depth < MAX_DEPTH, InvalidArgument, "a tensor holds variants nested too deep");
    let mut p = pb::TensorProto {
        dtype: t.dtype().number(),
        tensor_shape: Some(shape_to_proto(&t.shape().into())),
        ..Default::default()
    };
    match t.dtype() {
        DType::Resource => {
            p.resource_handle_val = t.handles()?.iter().map(handle_to_proto).collect()
        }
        DType::Variant => {
            let all = t.variants()?.iter().map(|v| variant_to_proto(v, depth));
            p.variant_val = all.collect::<Result<_>>()?;
        }
        _ => p.tensor_content = content_of(t)?,
    }
    Ok(p)
}

fn content_of(t: &Tensor) -> Result<Bytes> {
    match t.dtype() {
        DType::String => Ok(join_list(t.strings()?)),
        _ => t.to_wire_bytes(),
    }
}

/// A serialized `TensorProto` in two parts. The second is the tensor's own memory.
pub struct EncodedTensor {
    /// Everything before the payload.
    pub header: Vec<u8>,
    /// The elements.
    pub payload: Bytes,
}

impl EncodedTensor {
    /// Bytes of both parts.
    pub fn len(&self) -> usize {
        self.header.len() + self.payload.len()
    }

    /// Whether both parts are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Serializes a tensor without copying its elements (strings, handles and variants are copied).
pub fn encode_segments(t: &Tensor) -> Result<EncodedTensor> {
    if matches!(t.dtype(), DType::Resource | DType::Variant) {
        let header = to_proto(t)?.encode_to_vec();
        return Ok(EncodedTensor { header, payload: Bytes::new() });
    }
    let payload = content_of(t)?;
    let dim_len = |&d: &usize| if d == 0 { 0 } else { 1 + varint_len(d as u64) };
    let shape_len: usize = t.shape().iter().map(|d| 2 + dim_len(d)).sum();
    let mut header = Vec::with_capacity(shape_len + 16);
    put_key(&mut header, DTYPE, 0);
    put_varint(&mut header, t.dtype().number() as u64);
    put_key(&mut header, TENSOR_SHAPE, 2);
    put_varint(&mut header, shape_len as u64);
    for d in t.shape().iter() {
        put_key(&mut header, 2, 2);
        put_varint(&mut header, dim_len(d) as u64);
        if *d != 0 {
            put_key(&mut header, 1, 0);
            put_varint(&mut header, *d as u64);
        }
    }
    if !payload.is_empty() {
        put_key(&mut header, TENSOR_CONTENT, 2);
        put_varint(&mut header, payload.len() as u64);
    }
    Ok(EncodedTensor { header, payload })
}

/// The fully known shape of a tensor; a missing shape means a scalar.
pub(super) fn full_shape(p: Option<&pb::TensorShapeProto>) -> Result<Shape> {
    let Some(p) = p else { return Ok(Shape::scalar()) };
    ensure!(
        !p.unknown_rank,
        InvalidArgument,
        "the shape of a tensor must be known, but its rank is not"
    );
    let dims: Vec<i64> = p.dim.iter().map(|d| d.size).collect();
    Shape::from_dims(&dims)
}

/// Reads a shape that may be partly unknown.
pub fn shape_from_proto(p: &pb::TensorShapeProto) -> Result<PartialShape> {
    if p.unknown_rank {
        return Ok(PartialShape::unknown());
    }
    let dims: Vec<i64> = p.dim.iter().map(|d| d.size).collect();
    PartialShape::from_i64s(&dims)
}

/// Converts to a `TensorShapeProto`.
pub fn shape_to_proto(shape: &PartialShape) -> pb::TensorShapeProto {
    let dim = |d: &Option<usize>| Dim { size: d.map_or(-1, |d| d as i64), name: String::new() };
    pb::TensorShapeProto {
        dim: shape.dims().unwrap_or_default().iter().map(dim).collect(),
        unknown_rank: shape.dims().is_none(),
    }
}

/// Converts from a `ResourceHandleProto`.
pub fn handle_from_proto(p: pb::ResourceHandleProto) -> Result<ResourceHandle> {
    let typed = |d: DtypeAndShape| -> Result<_> {
        let shape = d.shape.as_ref().map_or(Ok(PartialShape::scalar()), shape_from_proto)?;
        Ok((DType::from_number(d.dtype)?, shape))
    };
    Ok(ResourceHandle {
        device: p.device,
        container: p.container,
        name: p.name,
        hash_code: p.hash_code,
        type_name: p.maybe_type_name,
        dtypes_and_shapes: p.dtypes_and_shapes.into_iter().map(typed).collect::<Result<_>>()?,
    })
}

/// Converts to a `ResourceHandleProto`.
pub fn handle_to_proto(h: &ResourceHandle) -> pb::ResourceHandleProto {
    let typed = |(dtype, shape): &(DType, PartialShape)| DtypeAndShape {
        dtype: dtype.number(),
        shape: Some(shape_to_proto(shape)),
    };
    pb::ResourceHandleProto {
        device: h.device.clone(),
        container: h.container.clone(),
        name: h.name.clone(),
        hash_code: h.hash_code,
        maybe_type_name: h.type_name.clone(),
        dtypes_and_shapes: h.dtypes_and_shapes.iter().map(typed).collect(),
    }
}

fn variant_from_proto(p: pb::VariantTensorDataProto, depth: usize) -> Result<Variant> {
    if p.type_name.is_empty() && p.metadata.is_empty() && p.tensors.is_empty() {
        return Ok(Variant::default());
    }
    let tensors = p.tensors.into_iter().map(|t| decode(t, depth + 1)).collect::<Result<_>>()?;
    Ok(Variant::new(OpaqueVariant { type_name: p.type_name, metadata: p.metadata, tensors }))
}

fn variant_to_proto(v: &Variant, depth: usize) -> Result<pb::VariantTensorDataProto> {
    let Some(object) = v.object() else { return Ok(Default::default()) };
    let Some((metadata, tensors)) = object.encode() else {
        bail!(Unimplemented, "a variant of type {} cannot leave its process", object.type_name());
    };
    Ok(pb::VariantTensorDataProto {
        type_name: object.type_name().to_string(),
        metadata,
        tensors: tensors.iter().map(|t| build(t, depth + 1)).collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Code;

    fn shaped(dims: &[i64]) -> pb::TensorShapeProto {
        let dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
        pb::TensorShapeProto { dim, unknown_rank: false }
    }

    fn proto(dtype: DType, dims: &[i64]) -> pb::TensorProto {
        let tensor_shape = Some(shaped(dims));
        pb::TensorProto { dtype: dtype.number(), tensor_shape, ..Default::default() }
    }

    fn code(p: pb::TensorProto) -> Code {
        from_proto(p).unwrap_err().code()
    }

    #[test]
    fn the_last_value_repeats_and_none_means_zeros() {
        let p = pb::TensorProto { float_val: vec![1.0, 2.0], ..proto(DType::Float, &[4]) };
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[1.0f32, 2.0, 2.0, 2.0]));
        let p = proto(DType::Int64, &[2]);
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[0i64, 0]));
        let p = pb::TensorProto { string_val: vec!["a".into()], ..proto(DType::String, &[2]) };
        let want = Tensor::from_strings([2], vec!["a".into(), "a".into()]).unwrap();
        assert_eq!(from_proto(p).unwrap(), want);
        let p = pb::TensorProto { int_val: vec![1, 2, 3], ..proto(DType::Int32, &[2]) };
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[1, 2]));
        let p = pb::TensorProto { scomplex_val: vec![1.0, 2.0], ..proto(DType::Complex64, &[2]) };
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[Complex32::new(1.0, 2.0); 2]));
    }

    #[test]
    fn narrow_types_are_read_from_wide_fields() {
        let p = pb::TensorProto { int_val: vec![-1, 300], ..proto(DType::UInt8, &[2]) };
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[255u8, 44]));
        let p = pb::TensorProto { half_val: vec![0x3c00], ..proto(DType::Half, &[1]) };
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[f16::from_f32(1.0)]));
        let p = pb::TensorProto { half_val: vec![0xbf80], ..proto(DType::BFloat16, &[1]) };
        assert_eq!(from_proto(p).unwrap(), Tensor::vector(&[bf16::from_f32(-1.0)]));
        let float8_val = Bytes::from_static(&[7]);
        let p = pb::TensorProto { float8_val, ..proto(DType::Float8E5M2, &[2]) };
        assert_eq!(from_proto(p).unwrap().as_slice::<u8>().unwrap(), [7, 7]);
    }

    #[test]
    fn content_wins_and_must_fit() {
        let tensor_content = Bytes::from_static(&[1, 0, 0, 0, 2, 0, 0, 0]);
        let p = pb::TensorProto { tensor_content, int_val: vec![9], ..proto(DType::Int32, &[2]) };
        assert_eq!(from_proto(p.clone()).unwrap(), Tensor::vector(&[1, 2]));
        let p = pb::TensorProto { tensor_shape: Some(shaped(&[3])), ..p };
        assert_eq!(code(p.clone()), Code::InvalidArgument);
        let p = pb::TensorProto { tensor_shape: Some(shaped(&[0, 5])), ..p };
        assert_eq!(from_proto(p).unwrap().elements(), 0);
    }

    #[test]
    fn strings_are_packed_as_tensorflow_does() {
        let t = Tensor::from_strings([2], vec!["hello".into(), "".into()]).unwrap();
        let p = to_proto(&t).unwrap();
        assert_eq!(&p.tensor_content[..], b"\x05\x00hello");
        assert_eq!(from_proto(p.clone()).unwrap(), t);
        for bad in [&b"\x05\x00hell"[..], b"\x05\x00hello!", b"\x05", b"\xff\xff\xff\xff\xff\xff"] {
            let tensor_content = Bytes::from_static(bad);
            let p = pb::TensorProto { tensor_content, ..p.clone() };
            assert_eq!(code(p), Code::InvalidArgument);
        }
    }

    #[test]
    fn absurd_tensors_are_refused() {
        assert_eq!(code(proto(DType::Float, &[1 << 40])), Code::ResourceExhausted);
        assert_eq!(code(proto(DType::String, &[1 << 31])), Code::ResourceExhausted);
        assert_eq!(code(proto(DType::Variant, &[1 << 40])), Code::ResourceExhausted);
        let tensor_content = Bytes::from_static(b"\x00");
        let p = pb::TensorProto { tensor_content, ..proto(DType::String, &[1 << 40]) };
        assert_eq!(code(p), Code::InvalidArgument);
        assert_eq!(code(proto(DType::Float, &[-1])), Code::InvalidArgument);
        assert_eq!(code(proto(DType::Float, &[1 << 40, 1 << 40])), Code::InvalidArgument);
        for dtype in [0, 26, 101, -1, i32::MAX] {
            assert_eq!(
                code(pb::TensorProto { dtype, ..Default::default() }),
                Code::InvalidArgument
            );
        }
        let unknown = pb::TensorShapeProto { dim: vec![], unknown_rank: true };
        let p = pb::TensorProto { tensor_shape: Some(unknown), ..proto(DType::Float, &[]) };
        assert_eq!(code(p), Code::InvalidArgument);
    }

    #[test]
    fn large_contents_are_neither_copied_in_nor_out() {
        let t = Tensor::zeros(DType::Float, [4096]).unwrap();
        let p = to_proto(&t).unwrap();
        assert_eq!(p.tensor_content.as_ptr(), t.bytes().unwrap().as_ptr());
        let back = from_proto(p).unwrap();
        assert_eq!(back.bytes().unwrap().as_ptr(), t.bytes().unwrap().as_ptr());
        let e = encode_segments(&t).unwrap();
        assert_eq!(e.payload.as_ptr(), t.bytes().unwrap().as_ptr());
    }

    #[test]
    fn variants_of_unknown_types_survive() {
        let inner = Tensor::vector(&[1i64, 2]);
        let object = OpaqueVariant {
            type_name: "tensorflow::TensorList".into(),
            metadata: Bytes::from_static(b"meta"),
            tensors: vec![inner.clone()],
        };
        let t = Tensor::from_variants([2], vec![Variant::new(object), Variant::default()]).unwrap();
        let back = from_proto(to_proto(&t).unwrap()).unwrap();
        let [full, empty] = back.variants().unwrap() else { panic!() };
        assert!(empty.is_empty());
        let object = full.get::<OpaqueVariant>().unwrap();
        assert_eq!(object.type_name, "tensorflow::TensorList");
        assert_eq!((&object.metadata[..], &object.tensors[..]), (&b"meta"[..], &[inner][..]));
    }

    #[test]
    fn deeply_nested_variants_are_refused() {
        let mut t = Tensor::scalar(1.0f32);
        for _ in 0..MAX_DEPTH {
            let tensors = vec![t];
            let (type_name, metadata) = ("x".into(), Bytes::new());
            t = Tensor::variant(Variant::new(OpaqueVariant { type_name, metadata, tensors }));
        }
        assert_eq!(to_proto(&t).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn handles_survive() {
        let handle = ResourceHandle {
            device: "/job:ps/task:0".into(),
            name: "w".into(),
            hash_code: u64::MAX,
            dtypes_and_shapes: vec![(DType::Float, PartialShape::new([None, Some(3)]))],
            ..Default::default()
        };
        let back = from_proto(to_proto(&Tensor::handle(handle.clone())).unwrap()).unwrap();
        assert_eq!(back.handles().unwrap(), [handle]);
    }
}
