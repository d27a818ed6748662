//! Unique and its versions, ListDiff, InvertPermutation.

use super::args::{around, index_tensor, resolve_axis, with_dim};
use super::gather::{Plan, gather};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The comparison key of an element. Equal keys mean equal elements; NaN (`None`) equals nothing.
type Key = Option<u64>;

/// Keys of the elements of a plain tensor.
fn keys(t: &Tensor) -> Result<Vec<Key>> {
    fn floats<T: Float>(t: &Tensor) -> Result<Vec<Key>> {
        let key = |x: &T| {
            let x = x.to_f64();
            // Positive and negative zero are equal.
            (!x.is_nan()).then(|| if x == 0.0 { 0 } else { x.to_bits() })
        };
        Ok(t.as_slice::<T>()?.iter().map(key).collect())
    }
    match t.dtype() {
        DType::Float => floats::<f32>(t),
        DType::Double => floats::<f64>(t),
        DType::Half => floats::<f16>(t),
        DType::BFloat16 => floats::<bf16>(t),
        DType::UInt64 => Ok(t.as_slice::<u64>()?.iter().map(|&x| Some(x)).collect()),
        DType::Bool => Ok(t.as_slice::<bool>()?.iter().map(|&x| Some(x.into())).collect()),
        _ => Ok(t.to_indices()?.into_iter().map(|x| Some(x as u64)).collect()),
    }
}

/// Dtypes whose elements can be compared.
fn check_dtype(init: &KernelInit<'_>) -> Result<()> {
    let dtype = init.dtype("T")?;
    let plain = dtype.is_integer() && dtype.name() != "int4" && dtype.name() != "uint4";
    let half = matches!(dtype, DType::Half | DType::BFloat16 | DType::Float | DType::Double);
    if plain || half || matches!(dtype, DType::String | DType::Bool) {
        return Ok(());
    }
    Err(unsupported(init, "T", dtype))
}

/// The distinct items: the first position of each, the number of the distinct item for each item,
/// and how often each occurs.
#[derive(Default)]
struct Distinct {
    first: Vec<i64>,
    of: Vec<i64>,
    count: Vec<i64>,
}

/// How many distinct items count at a time against the memory of the session.
const PORTION: usize = 4096;

/// `bytes` is what an item takes beside its place in the table.
fn distinct<K: Hash + Eq>(
    items: impl ExactSizeIterator<Item = Option<K>>,
    bytes: usize,
) -> Result<Distinct> {
    let mut seen: HashMap<K, usize> = HashMap::new();
    let mut d = Distinct::default();
    // The keys of all items, and the number of each.
    let mut counted = Reservation::new(items.len().saturating_mul(size_of::<Key>() + 16))?;
    // A table leaves room, and is there twice while it grows. So are the lists.
    let each = 3 * (size_of::<K>() + size_of::<usize>()) + 32 + bytes;
    for (at, item) in items.enumerate() {
        let fresh = d.first.len();
        let which = match item.map(|k| seen.entry(k)) {
            Some(Entry::Occupied(known)) => *known.get(),
            Some(Entry::Vacant(free)) => *free.insert(fresh),
            None => fresh,
        };
        if which == fresh {
            if fresh.is_multiple_of(PORTION) {
                counted.grow(each.saturating_mul(PORTION))?;
            }
            d.first.push(at as i64);
            d.count.push(0);
        }
        d.of.push(which as i64);
        d.count[which] += 1;
    }
    Ok(d)
}

/// Slice `i` along an axis, as one item.
fn slices<T>(
    items: &[T],
    (outer, dim, inner): (usize, usize, usize),
) -> impl ExactSizeIterator<Item = impl Iterator<Item = &T>> {
    (0..dim)
        .map(move |i| (0..outer).flat_map(move |o| items[(o * dim + i) * inner..][..inner].iter()))
}

fn find(x: &Tensor, parts: (usize, usize, usize)) -> Result<Distinct> {
    let single = parts.0 == 1 && parts.2 == 1;
    let bytes = 8 * parts.0 * parts.2;
    match x.dtype() {
        DType::String if single => distinct(x.strings()?.iter().map(Some), 0),
        DType::String => {
            let items = slices(x.strings()?, parts).map(|s| Some(s.collect::<Vec<&Bytes>>()));
            distinct(items, bytes)
        }
        _ => {
            let _keys = Reservation::new(x.elements().saturating_mul(size_of::<Key>() + 8))?;
            let keys = keys(x)?;
            if single {
                return distinct(keys.into_iter(), 0);
            }
            let item = |s: &mut dyn Iterator<Item = &Key>| s.copied().collect::<Option<Vec<u64>>>();
            distinct(slices(&keys, parts).map(|mut s| item(&mut s)), bytes)
        }
    }
}

fn unique(init: &KernelInit<'_>) -> Result<KernelBox> {
    check_dtype(init)?;
    let (dtype, counts) = (init.dtype("out_idx")?, init.outputs.len() > 2);
    let has_axis = init.inputs.len() > 1;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let mut axis = None;
        if has_axis {
            let t = ctx.input(1)?;
            ensure!(t.rank() == 1, InvalidArgument, "axis expects a 1D vector.");
            axis = match t.to_indices()?[..] {
                [] => None,
                [axis] => Some(resolve_axis(axis, x.rank()).ok_or_else(|| {
                    err!(InvalidArgument, "axis has to be between [0, {})", x.rank())
                })?),
                _ => bail!(
                    InvalidArgument,
                    "axis does not support input tensors larger than 1 elements"
                ),
            };
        }
        ensure!(axis.is_some() || x.rank() == 1, InvalidArgument, "unique expects a 1D vector.");
        let axis = axis.unwrap_or(0);
        let (outer, rows, inner) = around(x.shape(), axis);
        let d = find(x, (outer, rows, inner))?;
        let picks = d.first.len();
        let mut y = ctx.alloc(x.dtype(), with_dim(x.shape(), axis, picks))?;
        gather(x, &d.first, Plan { batch: 1, outer, rows, inner, picks }, &mut y)?;
        ctx.set(0, y)?;
        ctx.set(1, index_tensor(dtype, [rows], &d.of)?)?;
        if counts {
            ctx.set(2, index_tensor(dtype, [picks], &d.count)?)?;
        }
        Ok(())
    }))
}

fn unique_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok([PartialShape::of_rank(1), c.input(0), PartialShape::of_rank(1)][..c.outputs].to_vec())
}

fn unique_v2_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let vector = PartialShape::of_rank(1);
    let y = c.input(0).rank().map_or(PartialShape::unknown(), PartialShape::of_rank);
    Ok([y, vector.clone(), vector][..c.outputs].to_vec())
}

fn list_diff(init: &KernelInit<'_>) -> Result<KernelBox> {
    check_dtype(init)?;
    let dtype = init.dtype("out_idx")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(x.rank() == 1, InvalidArgument, "x should be a 1D vector.");
        ensure!(y.rank() == 1, InvalidArgument, "y should be a 1D vector.");
        // Keys of both, a set of one and the places in the other.
        let bytes = (x.elements() + y.elements()).saturating_mul(2 * size_of::<Key>() + 16);
        let _counted = Reservation::new(bytes)?;
        let kept = if x.dtype() == DType::String {
            let (x, y) = (x.strings()?.iter().map(Some), y.strings()?.iter().map(Some));
            difference(x, y)
        } else {
            difference(keys(x)?.into_iter(), keys(y)?.into_iter())
        };
        let picks = kept.len();
        let mut out = ctx.alloc(x.dtype(), [picks])?;
        let plan = Plan { batch: 1, outer: 1, rows: x.elements(), inner: 1, picks };
        gather(x, &kept, plan, &mut out)?;
        ctx.set(0, out)?;
        ctx.set(1, index_tensor(dtype, [picks], &kept)?)
    }))
}

/// The positions in `x` of the items that are not in `y`.
fn difference<K: Hash + Eq>(
    x: impl Iterator<Item = Option<K>>,
    y: impl Iterator<Item = Option<K>>,
) -> Vec<i64> {
    let y: HashSet<K> = y.flatten().collect();
    let kept = x.enumerate().filter(|(_, k)| k.as_ref().is_none_or(|k| !y.contains(k)));
    kept.map(|(i, _)| i as i64).collect()
}

fn invert_permutation(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    ensure!(x.rank() == 1, InvalidArgument, "invert_permutation expects a 1D vector.");
    let values = x.to_indices()?;
    let n = values.len();
    let mut inverse = vec![-1i64; n];
    for (i, &d) in values.iter().enumerate() {
        let slot = usize::try_from(d).ok().and_then(|d| inverse.get_mut(d));
        let Some(slot) = slot else {
            bail!(InvalidArgument, "{d} is not between 0 and {n}");
        };
        ensure!(*slot == -1, InvalidArgument, "{d} is duplicated in the input.");
        *slot = i as i64;
    }
    let dtype = x.dtype();
    ctx.set(0, index_tensor(dtype, [n], &inverse)?)
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, doc, of_slices, count) in [
        (
            "Unique",
            "The distinct elements of a vector, and which of them each element is.",
            "The distinct slices of a tensor along an axis, and which of them each slice is.",
            &[][..],
        ),
        (
            "UniqueWithCounts",
            "The distinct elements of a vector, which of them each element is, and how often.",
            "The distinct slices of a tensor along an axis, which each slice is, and how often.",
            &["count: out_idx"][..],
        ),
    ] {
        c.op(name)
            .doc(doc)
            .input("x: T")
            .output("y: T")
            .output("idx: out_idx")
            .outputs(count)
            .attr("T: type")
            .attr("out_idx: {int32, int64} = DT_INT32")
            .shape(unique_shape)
            .cpu(unique);
        c.op(&format!("{name}V2"))
            .doc(of_slices)
            .input("x: T")
            .input("axis: Taxis")
            .output("y: T")
            .output("idx: out_idx")
            .outputs(count)
            .attr("T: type")
            .attr("Taxis: {int32, int64} = DT_INT64")
            .attr("out_idx: {int32, int64} = DT_INT32")
            .shape(unique_v2_shape)
            .cpu(unique);
    }
    c.op("ListDiff")
        .doc("The elements of `x` that are not in `y`, and where they were.")
        .input("x: T")
        .input("y: T")
        .output("out: T")
        .output("idx: out_idx")
        .attr("T: type")
        .attr("out_idx: {int32, int64} = DT_INT32")
        .shape(shape::vector)
        .cpu(list_diff);
    c.op("InvertPermutation")
        .doc("The permutation that undoes a permutation.")
        .input("x: T")
        .output("y: T")
        .attr("T: {int32, int64} = DT_INT32")
        .shape(shape::same_as_input)
        .cpu_fn(invert_permutation);
    c.no_gradient(&["InvertPermutation"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn v(values: &[i32]) -> Tensor {
        Tensor::vector(values)
    }

    fn m(dims: [usize; 2], values: &[i32]) -> Tensor {
        Tensor::from_slice(dims, values).unwrap()
    }

    #[test]
    fn elements_are_kept_once_in_order() {
        let out = check("Unique").input(v(&[3, 1, 3, 2])).run().unwrap();
        assert_eq!(out, [v(&[3, 1, 2]), v(&[0, 1, 0, 2])]);
        let out = check("UniqueWithCounts").input(v(&[3, 1, 3, 2])).run().unwrap();
        assert_eq!(out, [v(&[3, 1, 2]), v(&[0, 1, 0, 2]), v(&[2, 1, 1])]);
        let words = vec!["a".into(), "b".into(), "a".into()];
        let out = check("Unique").input(Tensor::from_strings([3], words).unwrap()).run().unwrap();
        assert_eq!(out[1], v(&[0, 1, 0]));
        let nan = f32::NAN;
        let out = check("Unique").input(Tensor::vector(&[nan, 1.0, nan, 0.0, -0.0]));
        assert_eq!(out.run().unwrap()[1], v(&[0, 1, 2, 3, 3]));
        check("Unique")
            .input(m([1, 2], &[3, 1]))
            .fails(Code::InvalidArgument, "unique expects a 1D vector.");
    }

    fn v2(x: Tensor, axis: &[i64]) -> Check<'static> {
        check("UniqueV2").input(x).input(Tensor::vector(axis))
    }

    #[test]
    fn slices_are_kept_once_in_order() {
        let x = || m([2, 3], &[3, 1, 3, 2, 1, 2]);
        assert_eq!(v2(x(), &[1]).run().unwrap(), [m([2, 2], &[3, 1, 2, 1]), v(&[0, 1, 0])]);
        assert_eq!(v2(x(), &[-2]).run().unwrap(), [x(), v(&[0, 1])]);
        assert_eq!(v2(v(&[3, 3]), &[]).run().unwrap(), [v(&[3]), v(&[0, 0])]);
        let hollow = Tensor::zeros(DType::Float, [2, 0]).unwrap();
        assert_eq!(v2(hollow, &[0]).run().unwrap()[1], v(&[0, 0]));
        let counts = check("UniqueWithCountsV2").input(x()).input(Tensor::vector(&[1i32]));
        assert_eq!(counts.run().unwrap()[2], v(&[2, 1]));
        v2(x(), &[2]).fails(Code::InvalidArgument, "axis has to be between [0, 2)");
        v2(x(), &[0, 1]).fails(Code::InvalidArgument, "larger than 1 elements");
        v2(x(), &[]).fails(Code::InvalidArgument, "unique expects a 1D vector.");
    }

    #[test]
    fn differences_say_where_they_were() {
        let diff = |x: Tensor, y: Tensor| check("ListDiff").input(x).input(y);
        let out = diff(v(&[1, 2, 3, 1, 5]), v(&[1, 5])).run().unwrap();
        assert_eq!(out, [v(&[2, 3]), v(&[1, 2])]);
        let nan = f32::NAN;
        let out = diff(Tensor::vector(&[nan, 1.0, 0.0]), Tensor::vector(&[nan, -0.0]));
        assert_eq!(out.run().unwrap()[1], v(&[0, 1]));
        diff(m([1, 1], &[1]), v(&[1])).fails(Code::InvalidArgument, "x should be a 1D vector.");
    }

    #[test]
    fn permutations_are_undone() {
        let invert = |x: &[i32]| check("InvertPermutation").input(v(x));
        invert(&[2, 0, 1]).gives(v(&[1, 2, 0]));
        invert(&[]).gives(v(&[]));
        invert(&[0, 0]).fails(Code::InvalidArgument, "0 is duplicated in the input.");
        invert(&[0, 2]).fails(Code::InvalidArgument, "2 is not between 0 and 2");
        invert(&[0, -1]).fails(Code::InvalidArgument, "-1 is not between 0 and 2");
    }
}
