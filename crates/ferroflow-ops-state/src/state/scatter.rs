//! ScatterAdd and similar ops: rows of a variable, named by indices, combined with rows of updates.

use super::scatter_nd::{checked_tuples, scatter_nd};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuTypes, rows::RowUpdate};
use ferroflow_op_kit::handle::Target;
use ferroflow_op_kit::newer_attrs::BAD_INDICES_POLICY;

/// How elements are combined.
#[derive(Clone, Copy)]
pub(crate) enum Fold {
    Update,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// Combines a row with an update of the same length.
pub(crate) type RowFn<T> = fn(&mut [T], &[T]);

/// Access to the elements of tensors, as numbers or as mere bytes to move.
pub(crate) struct Access<T> {
    pub(crate) of: fn(&Tensor) -> Result<&[T]>,
    pub(crate) of_mut: fn(&mut Tensor) -> Result<&mut [T]>,
    pub(crate) row: RowFn<T>,
}

impl<T: Movable> Access<T> {
    pub(crate) fn moving() -> Access<T> {
        Access { of: T::of, of_mut: T::of_mut, row: |to, from| to.clone_from_slice(from) }
    }
}

impl<T: Num> Access<T> {
    pub(crate) fn arithmetic(fold: Fold) -> Access<T> {
        fn each<T: Num>(to: &mut [T], from: &[T], f: impl Fn(T, T) -> T) {
            for (x, y) in to.iter_mut().zip(from) {
                *x = f(*x, *y);
            }
        }
        let row: RowFn<T> = match fold {
            Fold::Sub => |to, from| each(to, from, T::sub),
            Fold::Mul => |to, from| each(to, from, T::mul),
            Fold::Div => |to, from| each(to, from, T::div),
            _ => |to, from| each(to, from, T::add),
        };
        Access { of: Tensor::as_slice, of_mut: Tensor::as_mut_slice, row }
    }
}

impl Access<bool> {
    /// A sum or difference of truth values is true if it is not zero.
    fn truths(fold: Fold) -> Access<bool> {
        let row: RowFn<bool> = match fold {
            Fold::Sub => |to, from| to.iter_mut().zip(from).for_each(|(x, y)| *x ^= *y),
            _ => |to, from| to.iter_mut().zip(from).for_each(|(x, y)| *x |= *y),
        };
        Access { of: Tensor::as_slice, of_mut: Tensor::as_mut_slice, row }
    }
}

impl<T: Real> Access<T> {
    pub(crate) fn extreme(fold: Fold) -> Access<T> {
        fn each<T: Real>(to: &mut [T], from: &[T], f: impl Fn(T, T) -> T) {
            for (x, y) in to.iter_mut().zip(from) {
                *x = f(*x, *y);
            }
        }
        let row: RowFn<T> = match fold {
            Fold::Min => |to, from| each(to, from, Real::min),
            _ => |to, from| each(to, from, Real::max),
        };
        Access { of: Tensor::as_slice, of_mut: Tensor::as_mut_slice, row }
    }
}

struct Scatter<T> {
    target: Target,
    access: Access<T>,
    run: fn(&mut Tensor, &Tensor, &Tensor, &Access<T>) -> Result<()>,
}

impl<T: Clone + Send + Sync + 'static> Scatter<T> {
    fn new(init: &KernelInit<'_>, nd: bool, access: Access<T>) -> Scatter<T> {
        Scatter { target: Target::new(init, 0), access, run: if nd { scatter_nd } else { scatter } }
    }
}

impl<T: Clone + Send + Sync + 'static> Kernel for Scatter<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variable = self.target.get(ctx)?;
        let (indices, updates) = (ctx.take(1)?, ctx.take(2)?);
        variable.modify(|params| {
            ensure!(
                params.dtype() == updates.dtype(),
                InvalidArgument,
                "Trying to update a {} variable with {}",
                params.dtype(),
                updates.dtype()
            );
            (self.run)(params, &indices, &updates, &self.access)
        })?;
        self.target.pass_on(ctx, variable)
    }
}

/// The kernel on a GPU. Updates of one row are applied in their order; an index out of range is
/// ignored, as on TensorFlow's GPUs.
fn on_device(init: &KernelInit<'_>, fold: Fold, nd: bool) -> Result<KernelBox> {
    let dtype = init.dtype(if init.contains("T") { "T" } else { "dtype" })?;
    let update = RowUpdate::new(init, dtype, fold.text(dtype))?;
    let target = Target::new(init, 0);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let variable = target.get(ctx)?;
        let (indices, updates) = (ctx.take(1)?, ctx.take(2)?);
        let gpu = ctx.gpu()?;
        variable.modify(|params| {
            ensure!(
                params.dtype() == updates.dtype(),
                InvalidArgument,
                "Trying to update a {} variable with {}",
                params.dtype(),
                updates.dtype()
            );
            let shape = params.shape().clone();
            let depth = match nd {
                true => checked_tuples(&shape, &indices, &updates)?.1,
                false => checked_rows(&shape, &indices, &updates).map(|_| 1)?,
            };
            if !params.is_unique() {
                *params = params.deep_copy()?;
            }
            update.run(gpu, params, &indices, &shape[..depth], &updates)
        })?;
        target.pass_on(ctx, variable)
    }))
}

impl Fold {
    /// The formula on GPUs; `None` replaces elements.
    fn text(self, dtype: DType) -> Option<&'static str> {
        Some(match self {
            Fold::Update => return None,
            Fold::Add if dtype == DType::Bool => "x || y",
            Fold::Sub if dtype == DType::Bool => "x != y",
            Fold::Add => "x + y",
            Fold::Sub => "x - y",
            Fold::Mul => "x * y",
            Fold::Div => "x / y",
            Fold::Min => "smaller(x, y)",
            Fold::Max => "larger(x, y)",
        })
    }

    /// The types on GPUs, of an op whose type is in attribute `T` or `dtype`. Integers are not
    /// divided there, because a division by zero would not be reported.
    fn types(self, by_ref: bool) -> GpuTypes {
        match (self, by_ref) {
            (Fold::Update, true) => &[("T", gpu::MOVED), ("Tindices", gpu::INDEX)],
            (Fold::Update, false) => &[("dtype", gpu::MOVED), ("Tindices", gpu::INDEX)],
            (Fold::Div, true) => &[("T", gpu::FLOATS), ("Tindices", gpu::INDEX)],
            (Fold::Div, false) => &[("dtype", gpu::FLOATS), ("Tindices", gpu::INDEX)],
            (_, true) => &[("T", gpu::REALS), ("Tindices", gpu::INDEX)],
            (_, false) => &[("dtype", gpu::REALS), ("Tindices", gpu::INDEX)],
        }
    }
}

/// The kernel of an op whose type is in attribute `T` or `dtype`; `nd`: its indices are tuples.
fn kernel(fold: Fold, nd: bool) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    macro_rules! dispatch {
        ($macro:ident, $($set:ident)?, $init:ident, $T:ident => $access:expr) => {
            if $init.contains("T") {
                $macro!($($set,)? "T", init, $T => Scatter::<$T>::new(init, nd, $access))($init)
            } else {
                $macro!($($set,)? "dtype", init, $T => Scatter::<$T>::new(init, nd, $access))($init)
            }
        };
    }
    move |init| match fold {
        Fold::Update => dispatch!(per_width, , init, T => Access::moving()),
        Fold::Min | Fold::Max => dispatch!(per_dtype, REAL, init, T => Access::extreme(fold)),
        Fold::Add | Fold::Sub if nd && init.dtype("T")? == DType::Bool => {
            Ok(KernelBox::new(Scatter::<bool>::new(init, nd, Access::truths(fold))))
        }
        _ => dispatch!(per_dtype, NUMBER, init, T => Access::arithmetic(fold)),
    }
}

fn scatter<T: Clone>(
    params: &mut Tensor,
    indices: &Tensor,
    updates: &Tensor,
    access: &Access<T>,
) -> Result<()> {
    let shape = params.shape().clone();
    let (rows, row_dims) = checked_rows(&shape, indices, updates)?;
    let spread = updates.rank() == 0;
    let at = indices.to_indices()?;
    check_indices(&at, indices.shape(), rows)?;
    let row: usize = row_dims.iter().product();
    if row == 0 || at.is_empty() {
        return Ok(());
    }
    let updates = (access.of)(updates)?;
    let params = (access.of_mut)(params)?;
    let mut put = |i: i64, update: &[T]| {
        let from = i as usize * row;
        (access.row)(&mut params[from..from + row], update);
    };
    if spread {
        let update = vec![updates[0].clone(); row];
        at.iter().for_each(|&i| put(i, &update));
    } else {
        at.iter().zip(updates.chunks_exact(row)).for_each(|(&i, update)| put(i, update));
    }
    Ok(())
}

/// Checks that `updates` has a row for each index, or one element for all of them. Returns the rows
/// of a tensor of `shape` and the dimensions of a row.
fn checked_rows<'a>(
    shape: &'a Shape,
    indices: &Tensor,
    updates: &Tensor,
) -> Result<(usize, &'a [usize])> {
    let Some((&rows, row_dims)) = shape.split_first() else {
        bail!(InvalidArgument, "params must be at least 1-D, got shape {shape}");
    };
    let spread = updates.rank() == 0;
    let wanted = || indices.shape().iter().chain(row_dims);
    ensure!(
        spread || updates.shape().iter().eq(wanted()),
        InvalidArgument,
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got \
         updates.shape {}, indices.shape {}, params.shape {shape}",
        updates.shape(),
        indices.shape()
    );
    Ok((rows, row_dims))
}

/// Refuses indices outside `0..limit`, saying where the first is.
pub(crate) fn check_indices(indices: &[i64], shape: &Shape, limit: usize) -> Result<()> {
    let bad = indices.iter().position(|&i| usize::try_from(i).map_or(true, |i| i >= limit));
    match bad {
        Some(at) => bail!(
            InvalidArgument,
            "indices{} = {} is not in [0, {limit})",
            position(shape, at),
            indices[at]
        ),
        None => Ok(()),
    }
}

/// `[1,0]`, the position of an element in a shape; nothing for a scalar.
pub(crate) fn position(shape: &[usize], mut flat: usize) -> String {
    if shape.is_empty() {
        return String::new();
    }
    let mut at: Vec<String> = Vec::new();
    for &d in shape.iter().rev() {
        at.push((flat % d.max(1)).to_string());
        flat /= d.max(1);
    }
    at.reverse();
    format!("[{}]", at.join(","))
}

/// Updates have the shape of the indices followed by that of a row, or are one scalar.
fn rows_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (params, indices, updates) = (c.input(0), c.input(1), c.input(2));
    if let (Some(params), Some(indices)) = (params.dims(), indices.dims())
        && updates.rank() != Some(0)
    {
        let row = params.get(1..).unwrap_or_default();
        PartialShape::new(indices.iter().chain(row).copied()).merge(&updates)?;
    }
    shape::same_as_input(c)
}

pub(crate) fn register(c: &mut Catalog) {
    const ROWS: [(&str, Fold); 7] = [
        ("Update", Fold::Update),
        ("Add", Fold::Add),
        ("Sub", Fold::Sub),
        ("Mul", Fold::Mul),
        ("Div", Fold::Div),
        ("Min", Fold::Min),
        ("Max", Fold::Max),
    ];
    for (name, fold) in ROWS {
        // The attributes in which TensorFlow's declarations differ.
        let (types, locking) = match fold {
            Fold::Update => ("type", "use_locking: bool = true"),
            Fold::Min | Fold::Max => {
                ("{half, bfloat16, float, double, int32, int64}", "use_locking: bool = false")
            }
            _ => ("numbertype", "use_locking: bool = false"),
        };
        c.op(&format!("Scatter{name}"))
            .doc("Combines rows of a variable with updates; indices name the rows.")
            .input("ref: Ref(T)")
            .input("indices: Tindices")
            .input("updates: T")
            .output("output_ref: Ref(T)")
            .attr(&format!("T: {types}"))
            .attr("Tindices: {int32, int64}")
            .attr(locking)
            .shape(rows_shape)
            .gpu(fold.types(true), move |init| on_device(init, fold, false))
            .cpu(kernel(fold, false));
        let types = if matches!(fold, Fold::Update) { "type" } else { "numbertype" };
        c.op(&format!("ResourceScatter{name}"))
            .doc("Combines rows of a variable with updates; indices name the rows.")
            .input("resource: resource")
            .input("indices: Tindices")
            .input("updates: dtype")
            .attr(&format!("dtype: {types}"))
            .attr("Tindices: {int32, int64}")
            .stateful()
            .shape(shape::unknown)
            .gpu(fold.types(false), move |init| on_device(init, fold, false))
            .cpu(kernel(fold, false));
        if matches!(fold, Fold::Mul | Fold::Div) {
            continue;
        }
        c.op(&format!("ScatterNd{name}"))
            .doc("Combines slices of a variable with updates; tuples of indices name the slices.")
            .input("ref: Ref(T)")
            .input("indices: Tindices")
            .input("updates: T")
            .output("output_ref: Ref(T)")
            .attr(&format!("T: {types}"))
            .attr("Tindices: {int32, int64}")
            .attr(locking)
            .newer_attr(BAD_INDICES_POLICY)
            .shape(shape::same_as_input)
            .gpu(fold.types(true), move |init| on_device(init, fold, true))
            .cpu(kernel(fold, true));
        c.op(&format!("ResourceScatterNd{name}"))
            .doc("Combines slices of a variable with updates; tuples of indices name the slices.")
            .input("ref: resource")
            .input("indices: Tindices")
            .input("updates: T")
            .attr("T: type")
            .attr("Tindices: {int32, int64}")
            .attr("use_locking: bool = true")
            .newer_attr(BAD_INDICES_POLICY)
            .stateful()
            .shape(shape::unknown)
            .gpu(fold.types(true), move |init| on_device(init, fold, true))
            .cpu(kernel(fold, true));
    }
    c.no_gradient(&[
        "ScatterAdd",
        "ScatterDiv",
        "ScatterMul",
        "ScatterSub",
        "ScatterNdAdd",
        "ScatterNdSub",
        "ScatterNdUpdate",
    ]);
}

#[cfg(test)]
mod tests {
    use super::super::testing::Held;
    use super::*;

    fn after(op: &str, before: Tensor, indices: Tensor, updates: Tensor) -> Tensor {
        let mut all = Held::both(before).into_iter().map(|held| {
            let op = held.op(op, &format!("Resource{op}")).to_string();
            held.on(&op).input(indices.clone()).input(updates.clone()).run_values().unwrap();
            held.value()
        });
        let (by_ref, by_handle) = (all.next().unwrap(), all.next().unwrap());
        assert_eq!(by_ref, by_handle);
        by_ref
    }

    #[test]
    fn rows_are_combined_one_index_after_the_other() {
        let v = || Tensor::vector(&[1.0f32, 2.0, 3.0]);
        let (i, u) = (|| Tensor::vector(&[0i32, 2, 0]), || Tensor::vector(&[5.0f32, 6.0, 7.0]));
        for (op, want) in [
            ("ScatterUpdate", [7.0f32, 2.0, 6.0]),
            ("ScatterAdd", [13.0, 2.0, 9.0]),
            ("ScatterSub", [-11.0, 2.0, -3.0]),
            ("ScatterMul", [35.0, 2.0, 18.0]),
            ("ScatterDiv", [1.0 / 5.0 / 7.0, 2.0, 0.5]),
            ("ScatterMin", [1.0, 2.0, 3.0]),
            ("ScatterMax", [7.0, 2.0, 6.0]),
        ] {
            assert_eq!(after(op, v(), i(), u()), Tensor::vector(&want), "{op}");
        }
    }

    #[test]
    fn a_scalar_update_goes_to_every_row() {
        let v = Tensor::from_slice([2, 2], &[1i64, 2, 3, 4]).unwrap();
        let got = after("ScatterAdd", v, Tensor::vector(&[1i64, 1]), Tensor::scalar(5i64));
        assert_eq!(got, Tensor::from_slice([2, 2], &[1i64, 2, 13, 14]).unwrap());
    }

    #[test]
    fn strings_can_be_replaced() {
        let v = Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap();
        let got = after("ScatterUpdate", v, Tensor::scalar(1i32), Tensor::string("z"));
        assert_eq!(got.strings().unwrap(), ["a", "z"]);
    }

    #[test]
    fn bad_indices_and_shapes_change_nothing() {
        for held in Held::both(Tensor::vector(&[1.0f32, 2.0, 3.0])) {
            let op = held.op("ScatterAdd", "ResourceScatterAdd");
            let fails = |indices: Tensor, updates: Tensor, text: &str| {
                held.on(op).input(indices).input(updates).fails(Code::InvalidArgument, text);
                assert_eq!(held.value(), Tensor::vector(&[1.0f32, 2.0, 3.0]));
            };
            let two = || Tensor::vector(&[1.0f32, 2.0]);
            fails(Tensor::vector(&[0i32, 3]), two(), "indices[1] = 3 is not in [0, 3)");
            fails(
                Tensor::from_slice([2, 1], &[0i32, -1]).unwrap(),
                Tensor::scalar(1.0f32),
                "indices[1,0] = -1 is not in [0, 3)",
            );
            fails(Tensor::scalar(7i64), Tensor::scalar(1.0f32), "indices = 7 is not in [0, 3)");
            fails(
                Tensor::vector(&[0i32]),
                two(),
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], \
                 got updates.shape [2], indices.shape [1], params.shape [3]",
            );
        }
        Held::by_ref(Tensor::scalar(1.0f32))
            .on("ScatterAdd")
            .input(Tensor::vector(&[0i32]))
            .input(Tensor::vector(&[1.0f32]))
            .fails(Code::InvalidArgument, "params must be at least 1-D, got shape []");
    }

    #[test]
    fn slices_are_named_by_tuples() {
        let v = || Tensor::from_slice([2, 2], &[1i32, 2, 3, 4]).unwrap();
        let at = Tensor::from_slice([2, 2], &[0i32, 1, 1, 0]).unwrap();
        let got = after("ScatterNdAdd", v(), at, Tensor::vector(&[10i32, 20]));
        assert_eq!(got, Tensor::from_slice([2, 2], &[1i32, 12, 23, 4]).unwrap());
        let rows = || Tensor::from_slice([1, 1], &[1i64]).unwrap();
        let row = || Tensor::from_slice([1, 2], &[9i32, 0]).unwrap();
        for (op, want) in [
            ("ScatterNdUpdate", [1i32, 2, 9, 0]),
            ("ScatterNdSub", [1, 2, -6, 4]),
            ("ScatterNdMax", [1, 2, 9, 4]),
            ("ScatterNdMin", [1, 2, 3, 0]),
        ] {
            let got = after(op, v(), rows(), row());
            assert_eq!(got, Tensor::from_slice([2, 2], &want).unwrap(), "{op}");
        }
    }

    #[test]
    fn bad_tuples_are_refused() {
        let held = Held::by_ref(Tensor::vector(&[1.0f32, 2.0, 3.0]));
        let fails = |indices: Tensor, updates: &[f32], text: &str| {
            held.on("ScatterNdAdd")
                .input(indices)
                .input(Tensor::vector(updates))
                .fails(Code::InvalidArgument, text);
        };
        let tuples = |n: usize, at: &[i32]| Tensor::from_slice([n, at.len() / n], at).unwrap();
        fails(tuples(2, &[0, 3]), &[1.0, 2.0], "indices[1] = [3] does not index into shape [3]");
        fails(
            tuples(2, &[0, 1]),
            &[1.0, 2.0, 3.0],
            "Dimensions [0,1) of indices[shape=[2,1]] = 2 must match dimensions [0,1) of \
             updates[shape=[3]] = 3",
        );
        fails(
            tuples(2, &[0, 1, 1, 1]),
            &[1.0, 2.0],
            "Dimensions [2,1) of input[shape=[3]] must match dimensions [2,1) of \
             updates[shape=[2]]",
        );
        held.on("ScatterNdAdd")
            .input(Tensor::zeros(DType::Int32, [0, 1]).unwrap())
            .input(Tensor::vector::<f32>(&[]))
            .run_values()
            .unwrap();
    }

    #[test]
    fn truths_are_added_and_subtracted_like_numbers_that_are_not_zero() {
        let before = || Tensor::vector(&[false, true, false, true, false, true]);
        let indices = Tensor::from_slice([6, 1], &[0i32, 1, 3, 4, 5, 5]).unwrap();
        let updates = Tensor::vector(&[true, true, false, true, true, true]);
        for (op, want) in [
            ("ResourceScatterNdAdd", [true, true, false, true, true, true]),
            ("ResourceScatterNdSub", [true, false, false, true, true, true]),
        ] {
            let held = Held::both(before()).into_iter().nth(1).unwrap();
            held.on(op).input(indices.clone()).input(updates.clone()).run_values().unwrap();
            assert_eq!(held.value(), Tensor::vector(&want), "{op}");
        }
    }
}
