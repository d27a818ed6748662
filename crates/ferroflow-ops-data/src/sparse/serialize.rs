//! SerializeSparse, SerializeManySparse, DeserializeSparse, DeserializeManySparse: a sparse tensor
//! as three strings (or variants), and many as a batch.

use super::coo::{Coo, gather, index_matrix, pick};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Variant, VariantObject};
use ferroflow_op_kit::tensor_proto::{Strings, decode, encode};

/// A tensor in a variant.
struct Held(Tensor);

impl VariantObject for Held {
    fn type_name(&self) -> &str {
        "tensorflow::Tensor"
    }
}

/// Indices, values and shape of a sparse tensor.
pub(super) type Parts = [Tensor; 3];

pub(crate) fn to_output(dtype: DType, shape: Shape, parts: &[Tensor]) -> Result<Tensor> {
    if dtype == DType::Variant {
        let held = parts.iter().map(|t| Variant::new(Held(t.clone()))).collect();
        return Tensor::from_variants(shape, held);
    }
    let mut strings = Vec::with_capacity(parts.len());
    for t in parts {
        strings.push(Bytes::from(encode(t, Strings::Content)?.into_bytes()));
    }
    Tensor::from_strings(shape, strings)
}

fn serialize(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("out_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        Coo::input(ctx, 0)?;
        let parts = [ctx.input(0)?.clone(), ctx.input(1)?.clone(), ctx.input(2)?.clone()];
        ctx.set(0, to_output(dtype, Shape::vector(3), &parts)?)
    }))
}

/// The rows of a sparse tensor, each a sparse tensor of one dimension less.
pub(super) fn rows_of(sparse: &Coo<'_>) -> Result<Vec<Parts>> {
    ensure!(
        sparse.rank() > 1,
        InvalidArgument,
        "Rank of input SparseTensor should be > 1, but saw rank: {}",
        sparse.rank()
    );
    sparse.ensure_in_bounds()?;
    let rows = sparse.shape[0];
    // A row takes memory even when it is empty.
    let rows = Tensor::alloc(DType::Int64, Shape::from_dims(&[rows])?)?.elements();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); rows];
    for (i, place) in sparse.places().enumerate() {
        members[place[0] as usize].push(i);
    }
    let (rank, shape) = (sparse.rank() - 1, Tensor::vector(&sparse.shape[1..]));
    let row = |members: &Vec<usize>| -> Result<Parts> {
        let indices: Vec<i64> =
            members.iter().flat_map(|&i| sparse.at(i)[1..].iter().copied()).collect();
        let indices = index_matrix(&indices, rank, members.len())?;
        Ok([indices, pick(sparse.values, members)?, shape.clone()])
    };
    members.iter().map(row).collect()
}

fn serialize_many(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("out_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let rows = rows_of(&Coo::input(ctx, 0)?)?;
        let parts: Vec<Tensor> = rows.iter().flatten().cloned().collect();
        ctx.set(0, to_output(dtype, [rows.len(), 3].into(), &parts)?)
    }))
}

/// The sparse tensors in a tensor whose last dimension is 3.
fn read_parts(t: &Tensor) -> Result<Vec<Parts>> {
    let mut tensors = Vec::with_capacity(t.elements());
    match t.variants() {
        Ok(variants) => {
            for v in variants {
                let Some(Held(t)) = v.get::<Held>() else {
                    bail!(InvalidArgument, "Could not get a tensor from serialized_sparse");
                };
                tensors.push(t.clone());
            }
        }
        Err(_) => {
            for s in t.strings()? {
                let Some(t) = decode(s) else {
                    bail!(InvalidArgument, "Could not parse serialized proto");
                };
                tensors.push(t);
            }
        }
    }
    let part = |p: &[Tensor]| <Parts>::try_from(p.to_vec()).expect("chunks of three");
    Ok(tensors.chunks_exact(3).map(part).collect())
}

/// Concatenates sparse tensors of equal rank. The leading dimensions are `batch`, the others are as
/// large as the largest.
pub(super) fn stack(parts: &[Parts], batch: &[i64], dtype: DType) -> Result<Parts> {
    let mut shape: Option<Vec<i64>> = None;
    let (mut indices, mut from) = (Vec::new(), Vec::new());
    let strides = Shape::from_dims(batch)?.strides();
    for (n, [i, v, s]) in parts.iter().enumerate() {
        ensure!(
            i.dtype() == DType::Int64 && s.dtype() == DType::Int64,
            InvalidArgument,
            "Expected SparseTensor[{n}].indices and shape to be int64, got {} and {}",
            i.dtype(),
            s.dtype()
        );
        ensure!(
            v.dtype() == dtype,
            InvalidArgument,
            "Requested SparseTensor of type {dtype} but SparseTensor[{n}].values.dtype() == {}",
            v.dtype()
        );
        let part = Coo::new(i, v, s)?;
        match &mut shape {
            None => shape = Some(part.shape.clone()),
            Some(shape) => {
                ensure!(
                    shape.len() == part.rank(),
                    InvalidArgument,
                    "Inconsistent shape across SparseTensors: rank prior to SparseTensor[{n}] was: \
                     {} but rank of SparseTensor[{n}] is: {}",
                    shape.len(),
                    part.rank()
                );
                for (most, &dim) in shape.iter_mut().zip(&part.shape) {
                    *most = std::cmp::max(*most, dim);
                }
            }
        }
        for row in 0..part.len() {
            let place = strides.iter().zip(batch).map(|(&s, &d)| (n / s) as i64 % d);
            indices.extend(place);
            indices.extend_from_slice(part.at(row));
            from.push((n, row));
        }
    }
    let inner = shape.unwrap_or_default();
    let shape: Vec<i64> = batch.iter().chain(&inner).copied().collect();
    Shape::from_dims(&shape)?;
    let values: Vec<&Tensor> = parts.iter().map(|p| &p[1]).collect();
    let indices = index_matrix(&indices, shape.len(), from.len())?;
    Ok([indices, gather(&values, &from)?, Tensor::vector(&shape)])
}

fn deserialize(ctx: &mut Ctx<'_>, dtype: DType, many: bool) -> Result<()> {
    let serialized = ctx.input(0)?;
    ensure!(
        if many { serialized.rank() == 2 } else { serialized.rank() > 0 },
        InvalidArgument,
        "Serialized sparse should have non-zero rank {}",
        serialized.shape()
    );
    ensure!(
        serialized.shape().last() == Some(&3),
        InvalidArgument,
        "Serialized sparse should have 3 as the last dimension {}",
        serialized.shape()
    );
    let batch = &serialized.shape()[..serialized.rank() - 1];
    ensure!(
        !batch.contains(&0),
        InvalidArgument,
        "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension {}",
        serialized.shape()
    );
    let batch: Vec<i64> = batch.iter().map(|&d| d as i64).collect();
    let [indices, values, shape] = stack(&read_parts(serialized)?, &batch, dtype)?;
    ctx.set(0, indices)?;
    ctx.set(1, values)?;
    ctx.set(2, shape)
}

fn sparse_shapes(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

/// A sparse tensor.
const SPARSE: [&str; 3] = ["sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"];

/// A sparse tensor of a given type.
const DESERIALIZED: [&str; 3] =
    ["sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("SerializeSparse")
        .doc("A sparse tensor as three records.")
        .inputs(&SPARSE)
        .output("serialized_sparse: out_type")
        .attr("T: type")
        .attr("out_type: {string, variant} = DT_STRING")
        .shape(|_| Ok(vec![PartialShape::from([3])]))
        .cpu(serialize);
    c.op("SerializeManySparse")
        .doc("The rows of a sparse tensor, each as three records.")
        .inputs(&SPARSE)
        .output("serialized_sparse: out_type")
        .attr("T: type")
        .attr("out_type: {string, variant} = DT_STRING")
        .shape(|_| Ok(vec![PartialShape::new([None, Some(3)])]))
        .cpu(serialize_many);
    c.op("DeserializeSparse")
        .doc("Sparse tensors from their records, put together.")
        .input("serialized_sparse: Tserialized")
        .outputs(&DESERIALIZED)
        .attr("dtype: type")
        .attr("Tserialized: {string, variant} = DT_STRING")
        .shape(sparse_shapes)
        .cpu(|init| {
            let dtype = init.dtype("dtype")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| deserialize(ctx, dtype, false)))
        });
    c.op("DeserializeManySparse")
        .doc("A batch of sparse tensors from their records, put together.")
        .input("serialized_sparse: string")
        .outputs(&DESERIALIZED)
        .attr("dtype: type")
        .shape(sparse_shapes)
        .cpu(|init| {
            let dtype = init.dtype("dtype")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| deserialize(ctx, dtype, true)))
        });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn sparse(op: &str) -> Check<'static> {
        check(op)
            .input(Tensor::from_slice([2, 2], &[0i64, 0, 1, 1]).unwrap())
            .input(Tensor::vector(&[1f32, 2.]))
            .input(Tensor::vector(&[2i64, 2]))
    }

    #[test]
    fn a_sparse_tensor_comes_back() {
        for kind in [DType::String, DType::Variant] {
            let one = sparse("SerializeSparse").attr("out_type", kind).run().unwrap().remove(0);
            let out =
                check("DeserializeSparse").attr("dtype", DType::Float).input(one).run().unwrap();
            assert_eq!(out[0], Tensor::from_slice([2, 2], &[0i64, 0, 1, 1]).unwrap());
            assert_eq!(out[1], Tensor::vector(&[1f32, 2.]));
            assert_eq!(out[2], Tensor::vector(&[2i64, 2]));
        }
    }

    #[test]
    fn rows_come_back_together() {
        let rows = sparse("SerializeManySparse").run().unwrap().remove(0);
        assert_eq!(rows.shape().dims(), [2, 3]);
        let many = |dtype| check("DeserializeManySparse").attr("dtype", dtype).input(rows.clone());
        let out = many(DType::Float).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([2, 2], &[0i64, 0, 1, 1]).unwrap());
        many(DType::Int32).fails(
            Code::InvalidArgument,
            "Requested SparseTensor of type int32 but SparseTensor[0].values.dtype() == float",
        );
        check("DeserializeManySparse")
            .attr("dtype", DType::Float)
            .input(Tensor::from_strings([1, 3], vec!["a".into(), "b".into(), "c".into()]).unwrap())
            .fails(Code::InvalidArgument, "Could not parse serialized proto");
    }
}
