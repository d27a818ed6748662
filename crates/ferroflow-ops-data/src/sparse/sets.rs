//! Set operations: the last dimension holds sets, the others say which.

use super::coo::{Coo, index_matrix};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy)]
enum SetOp {
    Minus,
    MinusFrom,
    Intersection,
    Union,
}

impl SetOp {
    fn from_attr(init: &KernelInit<'_>) -> Result<SetOp> {
        let name = init.string("set_operation")?;
        Ok(match name.to_ascii_lowercase().as_str() {
            "a-b" => SetOp::Minus,
            "b-a" => SetOp::MinusFrom,
            "intersection" => SetOp::Intersection,
            "union" => SetOp::Union,
            _ => bail!(InvalidArgument, "Invalid set_operation {name}."),
        })
    }

    fn of<K: Ord + Clone>(self, a: &BTreeSet<K>, b: &BTreeSet<K>) -> Vec<K> {
        match self {
            SetOp::Minus => a.difference(b).cloned().collect(),
            SetOp::MinusFrom => b.difference(a).cloned().collect(),
            SetOp::Intersection => a.intersection(b).cloned().collect(),
            SetOp::Union => a.union(b).cloned().collect(),
        }
    }
}

/// An element of a set, and how tensors of such elements are read and written.
trait Key: Ord + Clone + 'static {
    fn read(t: &Tensor) -> Result<Vec<Self>>;
    fn write(keys: &[Self], dtype: DType) -> Result<Tensor>;
}

impl Key for i64 {
    fn read(t: &Tensor) -> Result<Vec<i64>> {
        t.to_indices()
    }
    fn write(keys: &[i64], dtype: DType) -> Result<Tensor> {
        fn narrow<T: Element>(keys: &[i64], to: fn(i64) -> T) -> Tensor {
            Tensor::vector(&keys.iter().map(|&k| to(k)).collect::<Vec<_>>())
        }
        Ok(match dtype {
            DType::Int8 => narrow(keys, |k| k as i8),
            DType::Int16 => narrow(keys, |k| k as i16),
            DType::Int32 => narrow(keys, |k| k as i32),
            DType::UInt8 => narrow(keys, |k| k as u8),
            DType::UInt16 => narrow(keys, |k| k as u16),
            _ => Tensor::vector(keys),
        })
    }
}

impl Key for Bytes {
    fn read(t: &Tensor) -> Result<Vec<Bytes>> {
        Ok(t.strings()?.to_vec())
    }
    fn write(keys: &[Bytes], _: DType) -> Result<Tensor> {
        Tensor::from_strings([keys.len()], keys.to_vec())
    }
}

/// Sets by position, and the shape of the tensor of sets.
struct Sets<K> {
    sets: BTreeMap<Vec<i64>, BTreeSet<K>>,
    groups: Vec<i64>,
    _counted: Reservation,
}

/// Counts the trees of sets of keys, and their copies in the result, before they are made.
fn count_trees<K>(sets: usize, keys: usize, rank: usize) -> Result<Reservation> {
    let index = rank * size_of::<i64>();
    let of_sets = sets.saturating_mul(AROUND_SET + index);
    let of_keys = keys.saturating_mul(2 * size_of::<K>() + index + AROUND_KEY);
    Reservation::new(of_sets.saturating_add(of_keys))
}

/// What a tree takes for a set besides its index, and for a key besides itself.
const AROUND_SET: usize = 160;
const AROUND_KEY: usize = 16;

impl<K: Key> Sets<K> {
    fn dense(t: &Tensor) -> Result<Sets<K>> {
        ensure!(t.rank() >= 2, InvalidArgument, "Shape {} has rank {} < 2", t.shape(), t.rank());
        let groups: Vec<i64> = t.shape()[..t.rank() - 1].iter().map(|&d| d as i64).collect();
        let (width, strides) = (t.shape()[t.rank() - 1], Shape::from_dims(&groups)?.strides());
        let width = std::cmp::max(width, 1);
        let n = t.elements();
        let counted = count_trees::<K>(n.div_ceil(width), n, t.rank())?;
        let keys = K::read(t)?;
        let mut sets = BTreeMap::new();
        for (n, set) in keys.chunks(width).enumerate() {
            let place = strides.iter().zip(&groups).map(|(&s, &d)| (n / s) as i64 % d).collect();
            sets.insert(place, set.iter().cloned().collect());
        }
        Ok(Sets { sets, groups, _counted: counted })
    }

    fn sparse(sparse: &Coo<'_>, validate: bool) -> Result<Sets<K>> {
        ensure!(
            sparse.rank() >= 2,
            InvalidArgument,
            "Invalid input SparseTensor: rank {} < 2",
            sparse.rank()
        );
        if validate {
            sparse.ensure_in_order()?;
        } else {
            sparse.ensure_in_bounds()?;
        }
        let last = sparse.rank() - 1;
        let counted = count_trees::<K>(sparse.len(), sparse.len(), sparse.rank())?;
        let mut sets: BTreeMap<Vec<i64>, BTreeSet<K>> = BTreeMap::new();
        for (place, key) in sparse.places().zip(K::read(sparse.values)?) {
            sets.entry(place[..last].to_vec()).or_default().insert(key);
        }
        Ok(Sets { sets, groups: sparse.shape[..last].to_vec(), _counted: counted })
    }
}

/// The operation on each pair of sets, as a sparse tensor.
fn combine<K: Key>(
    ctx: &mut Ctx<'_>,
    op: SetOp,
    a: Sets<K>,
    b: Sets<K>,
    dtype: DType,
) -> Result<()> {
    ensure!(
        a.groups == b.groups,
        InvalidArgument,
        "Mismatched shapes {} vs {}",
        super::coo::list(&a.groups),
        super::coo::list(&b.groups)
    );
    let places: BTreeSet<&Vec<i64>> = a.sets.keys().chain(b.sets.keys()).collect();
    let none = BTreeSet::new();
    let (mut indices, mut keys, mut widest) = (Vec::new(), Vec::new(), 0);
    for place in places {
        let set = op.of(a.sets.get(place).unwrap_or(&none), b.sets.get(place).unwrap_or(&none));
        widest = std::cmp::max(widest, set.len());
        for (i, key) in set.into_iter().enumerate() {
            indices.extend_from_slice(place);
            indices.push(i as i64);
            keys.push(key);
        }
    }
    let shape: Vec<i64> = a.groups.iter().copied().chain([widest as i64]).collect();
    ctx.set(0, index_matrix(&indices, shape.len(), keys.len())?)?;
    ctx.set(1, K::write(&keys, dtype)?)?;
    ctx.set(2, Tensor::vector(&shape))
}

/// Which of the two operands are sparse.
#[derive(Clone, Copy)]
struct Operands {
    is_first_sparse: bool,
    is_second_sparse: bool,
}

fn run<K: Key>(ctx: &mut Ctx<'_>, which: Operands, op: SetOp, validate: bool) -> Result<()> {
    let read = |at: usize, is_sparse: bool| match is_sparse {
        true => Sets::<K>::sparse(&Coo::input(ctx, at)?, validate),
        false => Sets::<K>::dense(ctx.input(at)?),
    };
    let dtype = ctx.input(usize::from(which.is_first_sparse))?.dtype();
    let a = read(0, which.is_first_sparse)?;
    let b = read(if which.is_first_sparse { 3 } else { 1 }, which.is_second_sparse)?;
    combine(ctx, op, a, b, dtype)
}

fn make(which: Operands) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let (op, validate) = (SetOp::from_attr(init)?, init.bool("validate_indices")?);
        Ok(match init.dtype("T")? {
            DType::String => {
                KernelBox::new(move |ctx: &mut Ctx<'_>| run::<Bytes>(ctx, which, op, validate))
            }
            _ => KernelBox::new(move |ctx: &mut Ctx<'_>| run::<i64>(ctx, which, op, validate)),
        })
    }
}

fn sizes<K: Key>(ctx: &Ctx<'_>, validate: bool) -> Result<Tensor> {
    let sets = Sets::<K>::sparse(&Coo::input(ctx, 0)?, validate)?;
    let shape = Shape::from_dims(&sets.groups)?;
    let strides = shape.strides();
    let mut out = Tensor::zeros(DType::Int32, shape)?;
    let to = out.as_mut_slice::<i32>()?;
    for (place, set) in &sets.sets {
        let at: usize = place.iter().zip(&strides).map(|(&x, s)| x as usize * s).sum();
        to[at] = set.len() as i32;
    }
    Ok(out)
}

fn set_size(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (validate, is_string) = (init.bool("validate_indices")?, init.dtype("T")? == DType::String);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let out = match is_string {
            true => sizes::<Bytes>(ctx, validate)?,
            false => sizes::<i64>(ctx, validate)?,
        };
        ctx.set(0, out)
    }))
}

fn sparse_shapes(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

/// The resulting sets, as a sparse tensor.
const RESULT: [&str; 3] = ["result_indices: int64", "result_values: T", "result_shape: int64"];

/// The attributes of a set operation.
const SET_ATTRS: [&str; 3] = [
    "set_operation: string",
    "validate_indices: bool = true",
    "T: {int8, int16, int32, int64, uint8, uint16, string}",
];

/// The second sets, as a sparse tensor.
const SECOND: [&str; 3] = ["set2_indices: int64", "set2_values: T", "set2_shape: int64"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("DenseToDenseSetOperation")
        .work(work::any)
        .doc("A set operation on each pair of rows.")
        .input("set1: T")
        .input("set2: T")
        .outputs(&RESULT)
        .attrs(&SET_ATTRS)
        .shape(sparse_shapes)
        .cpu(make(Operands { is_first_sparse: false, is_second_sparse: false }));
    c.op("DenseToSparseSetOperation")
        .work(work::any)
        .doc("A set operation on each pair of rows, the second ones sparse.")
        .input("set1: T")
        .inputs(&SECOND)
        .outputs(&RESULT)
        .attrs(&SET_ATTRS)
        .shape(sparse_shapes)
        .cpu(make(Operands { is_first_sparse: false, is_second_sparse: true }));
    c.op("SparseToSparseSetOperation")
        .work(work::any)
        .doc("A set operation on each pair of sparse rows.")
        .input("set1_indices: int64")
        .input("set1_values: T")
        .input("set1_shape: int64")
        .inputs(&SECOND)
        .outputs(&RESULT)
        .attrs(&SET_ATTRS)
        .shape(sparse_shapes)
        .cpu(make(Operands { is_first_sparse: true, is_second_sparse: true }));
    c.op("SetSize")
        .doc("How many different values each sparse row has.")
        .input("set_indices: int64")
        .input("set_values: T")
        .input("set_shape: int64")
        .output("size: int32")
        .attr("validate_indices: bool = true")
        .attr("T: {int8, int16, int32, int64, uint8, uint16, string}")
        .shape(|c| {
            let dims = c.shape_from(2);
            Ok(vec![match dims.dims() {
                Some([groups @ .., _]) => PartialShape::new(groups.iter().copied()),
                _ => PartialShape::unknown(),
            }])
        })
        .cpu(set_size);
    c.no_gradient(&[
        "DenseToDenseSetOperation",
        "DenseToSparseSetOperation",
        "SetSize",
        "SparseToSparseSetOperation",
    ]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn dense(op: &str) -> Check<'static> {
        check("DenseToDenseSetOperation")
            .attr("set_operation", op)
            .input(Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap())
            .input(Tensor::from_slice([2, 3], &[2i32, 9, 1, 6, 6, 6]).unwrap())
    }

    #[test]
    fn rows_are_sets() {
        let out = dense("intersection").run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([3, 2], &[0i64, 0, 0, 1, 1, 0]).unwrap());
        assert_eq!(out[1], Tensor::vector(&[1i32, 2, 6]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 2]));
        assert_eq!(dense("a-b").run().unwrap()[1], Tensor::vector(&[3i32, 4, 5]));
        assert_eq!(dense("B-A").run().unwrap()[1], Tensor::vector(&[9i32]));
        let all = dense("union").run().unwrap();
        assert_eq!(all[1], Tensor::vector(&[1i32, 2, 3, 9, 4, 5, 6]));
        dense("xor").fails(Code::InvalidArgument, "Invalid set_operation xor.");
    }

    #[test]
    fn sizes_count_different_values() {
        let size = |places: [i64; 6]| {
            check("SetSize")
                .input(Tensor::from_slice([3, 2], &places).unwrap())
                .input(Tensor::vector(&[1i32, 1, 3]))
                .input(Tensor::vector(&[2i64, 2]))
        };
        size([0, 0, 0, 1, 1, 0]).gives(Tensor::vector(&[1i32, 1]));
        size([0, 1, 0, 0, 1, 0]).fails(Code::InvalidArgument, "indices[1] = [0,0] is out of order");
    }
}
