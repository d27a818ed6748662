//! DecodeRaw and DecodePaddedRaw: the bytes of strings as numbers.

use crate::prelude::*;

/// Reverses the bytes of every number; those of complex numbers part by part.
fn swap_bytes(bytes: &mut [u8], dtype: DType) {
    let width = dtype.size().unwrap_or(1) / if dtype.is_complex() { 2 } else { 1 };
    if width > 1 {
        bytes.chunks_mut(width).for_each(<[u8]>::reverse);
    }
}

/// A tensor with `width` bytes per string, filled from each string and with zeros.
fn decode(ctx: &Ctx<'_>, dtype: DType, is_little: bool, width: usize) -> Result<Tensor> {
    let strings = ctx.input(0)?;
    let size = dtype.size().unwrap_or(1);
    let mut shape = strings.shape().clone();
    shape.push(width / size);
    // Bools become 0 or 1 for any byte; other types keep their bytes.
    let stored = if dtype == DType::Bool { DType::UInt8 } else { dtype };
    let mut out = Tensor::zeros(stored, shape)?;
    let bytes = out.bytes_mut()?;
    if width > 0 {
        for (to, s) in bytes.chunks_mut(width).zip(strings.strings()?) {
            let n = std::cmp::min(width, s.len());
            to[..n].copy_from_slice(&s[..n]);
        }
    }
    if !is_little {
        swap_bytes(bytes, dtype);
    }
    if dtype != DType::Bool {
        return Ok(out);
    }
    let bools: Vec<bool> = out.bytes()?.iter().map(|&b| b != 0).collect();
    Tensor::from_slice(out.shape().clone(), &bools)
}

fn decode_raw(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, is_little) = (init.dtype("out_type")?, init.bool("little_endian")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let strings = ctx.input(0)?;
        let texts = strings.strings()?;
        let Some(first) = texts.first() else {
            let mut shape = strings.shape().clone();
            shape.push(0);
            return ctx.set(0, Tensor::zeros(dtype, shape)?);
        };
        for (i, s) in texts.iter().enumerate() {
            ensure!(
                s.len() == first.len(),
                InvalidArgument,
                "DecodeRaw requires input strings to all be the same size, but element {i} has \
                 size {} != {}",
                first.len(),
                s.len()
            );
        }
        let (len, size) = (first.len(), dtype.size().unwrap_or(1));
        ensure!(
            len % size == 0,
            InvalidArgument,
            "Input to DecodeRaw has length {len} that is not a multiple of {size}, the size of \
             {dtype}"
        );
        let out = decode(ctx, dtype, is_little, len)?;
        ctx.set(0, out)
    }))
}

fn decode_padded_raw(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, is_little) = (init.dtype("out_type")?, init.bool("little_endian")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let length = ctx.input(1)?;
        ensure!(
            length.rank() == 0,
            InvalidArgument,
            "k must be scalar, got shape {}",
            length.shape()
        );
        let length = length.scalar_value::<i32>()?;
        let size = dtype.size().unwrap_or(1);
        ensure!(
            length % size as i32 == 0,
            InvalidArgument,
            "fixed_length ({length}) must be a multiple of the size of out_type ({size})"
        );
        ensure!(length > 0, InvalidArgument, "fixed_length ({length}) must be greater than zero.");
        let out = decode(ctx, dtype, is_little, length as usize)?;
        ctx.set(0, out)
    }))
}

/// The input's dimensions and one more.
fn one_more(c: &ShapeCtx<'_>, last: Option<usize>) -> Result<Vec<PartialShape>> {
    Ok(vec![match c.input(0).dims() {
        Some(dims) => PartialShape::new(dims.iter().copied().chain([last])),
        None => PartialShape::unknown(),
    }])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DecodeRaw")
        .doc("The bytes of strings, all of one length, as numbers.")
        .input("bytes: string")
        .output("output: out_type")
        .attr(
            "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, \
             complex128, bool, bfloat16}",
        )
        .attr("little_endian: bool = true")
        .shape(|c| one_more(c, None))
        .cpu(decode_raw);
    c.op("DecodePaddedRaw")
        .doc("The bytes of strings as numbers, cut or filled with zeros to one length.")
        .input("input_bytes: string")
        .input("fixed_length: int32")
        .output("output: out_type")
        .attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}")
        .attr("little_endian: bool = true")
        .shape(|c| {
            let size = c.attrs.dtype("out_type")?.size().unwrap_or(1);
            let length = c.constant_ints(1).and_then(|n| usize::try_from(*n.first()?).ok());
            one_more(c, length.map(|n| n / size))
        })
        .cpu(decode_padded_raw);
    c.no_gradient(&["DecodePaddedRaw", "DecodeRaw"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;

    fn strings(values: &[&'static [u8]]) -> Tensor {
        let values = values.iter().map(|s| Bytes::from_static(s)).collect::<Vec<_>>();
        Tensor::from_strings([values.len()], values).unwrap()
    }

    fn raw(values: &[&'static [u8]], dtype: DType) -> Check<'static> {
        check("DecodeRaw").attr("out_type", dtype).input(strings(values))
    }

    #[test]
    fn bytes_are_numbers() {
        let two = Tensor::from_slice([2, 2], &[1i16, 2, 3, 4]).unwrap();
        raw(&[b"\x01\0\x02\0", b"\x03\0\x04\0"], DType::Int16).gives(two);
        raw(&[b"\x01\0\x02\0"], DType::Int16)
            .attr("little_endian", false)
            .gives(Tensor::from_slice([1, 2], &[256i16, 512]).unwrap());
        raw(&[b"\x02\0"], DType::Bool).gives(Tensor::from_slice([1, 2], &[true, false]).unwrap());
        raw(&[], DType::Int16).gives(Tensor::zeros(DType::Int16, [0, 0]).unwrap());
        raw(&[b"\x01\0\x02\0", b"\x03\0"], DType::Int16)
            .fails(Code::InvalidArgument, "but element 1 has size 4 != 2");
        raw(&[b"abc"], DType::Int16).fails(
            Code::InvalidArgument,
            "length 3 that is not a multiple of 2, the size of int16",
        );
    }

    #[test]
    fn short_strings_are_filled() {
        let padded = |length: i32| {
            check("DecodePaddedRaw")
                .attr("out_type", DType::Int16)
                .input(strings(&[b"\x01\0\x02\0", b"\x03"]))
                .input(Tensor::scalar(length))
        };
        padded(4).gives(Tensor::from_slice([2, 2], &[1i16, 2, 3, 0]).unwrap());
        padded(2).gives(Tensor::from_slice([2, 1], &[1i16, 3]).unwrap());
        padded(3).fails(Code::InvalidArgument, "must be a multiple of the size of out_type (2)");
        padded(0).fails(Code::InvalidArgument, "fixed_length (0) must be greater than zero.");
    }
}
