//! Updates of rows by index. Several indices may name one row. The updates are ordered by row
//! first, so results are those of the CPU and do not depend on the order of threads.

use super::{GpuKernel, address, c_type, c_width, length};
use crate::prelude::*;
use ferroflow_core::{Gpu, LaunchArg};

const ORDER: &str = include_str!("rows.cu");
/// Entries up to this number are sorted by counting.
const FEW: usize = 2048;
/// Neighbours that one thread sorts.
const TILE: usize = 128;
/// The most indices in a tuple.
const MAX_DEPTH: usize = 8;

/// Updates in the order of the rows that they change.
pub struct OrderedRows {
    /// The row of each update. An update that names no row comes last, with the number of rows.
    pub keys: Tensor,
    /// Which update it is.
    pub order: Tensor,
    /// The number of rows.
    pub rows: usize,
}

/// Orders updates: `indices` has `depth` numbers for each, which index into `dims`.
pub fn order_rows(
    gpu: &Arc<dyn Gpu>,
    indices: &Tensor,
    dims: &[usize],
    count: usize,
) -> Result<OrderedRows> {
    let text: Arc<str> = format!("typedef {} Index;\n{ORDER}", c_type(indices.dtype())?).into();
    let run = |name: &'static str, n: usize, args: &[LaunchArg]| {
        GpuKernel::new(text.clone(), name).over(gpu.as_ref(), n, args)
    };
    let numbers = || Tensor::on_device(gpu, DType::Int64, [count]);
    let rows = dims.iter().product::<usize>();
    let (mut keys, mut order) = (numbers()?, numbers()?);
    run(
        "row_numbers",
        count,
        &[
            length(count),
            tuple_arg(dims)?,
            length(rows),
            address(indices)?,
            address(&keys)?,
            address(&order)?,
        ],
    )?;
    let (mut to_keys, mut to_order) = (numbers()?, numbers()?);
    if count <= FEW {
        let args = [length(count), address(&keys)?, address(&to_keys)?, address(&to_order)?];
        run("sort_few", count, &args)?;
        return Ok(OrderedRows { keys: to_keys, order: to_order, rows });
    }
    let tiles = count.div_ceil(TILE);
    let counts = Tensor::on_device(gpu, DType::Int64, [16 * tiles])?;
    let bits = (usize::BITS - rows.leading_zeros()) as usize;
    for shift in (0..bits).step_by(4) {
        let head = [length(count), length(tiles), length(shift)];
        let with = |rest: &[&Tensor]| -> Result<Vec<LaunchArg>> {
            let rest = rest.iter().map(|t| address(t)).collect::<Result<Vec<_>>>()?;
            Ok(head.iter().cloned().chain(rest).collect())
        };
        run("count_digits", tiles, &with(&[&keys, &counts])?)?;
        let sums = [length(16 * tiles), address(&counts)?];
        run("sum_counts", 1, &sums)?;
        run("move_entries", tiles, &with(&[&counts, &keys, &order, &to_keys, &to_order])?)?;
        std::mem::swap(&mut keys, &mut to_keys);
        std::mem::swap(&mut order, &mut to_order);
    }
    Ok(OrderedRows { keys, order, rows })
}

/// The struct `Tuple` of kernels: how many indices name a row, and the dimensions they index into.
pub(super) fn tuple_arg(dims: &[usize]) -> Result<LaunchArg> {
    ensure!(
        dims.len() <= MAX_DEPTH,
        Unimplemented,
        "GPU kernels take tuples of at most {MAX_DEPTH} indices"
    );
    let mut tuple = vec![dims.len() as i64];
    tuple.extend(dims.iter().map(|&d| d as i64));
    tuple.resize(1 + MAX_DEPTH, 1);
    Ok(LaunchArg::Words(tuple.into()))
}

/// The start of a kernel that changes rows. `p` is the place of a row's first update among the
/// ordered updates, and `at` the element of the row. The body loops with `for (i64 q = p;
/// SAME_ROW(q); q++)`, and finds update `q` at `UPDATE(q)`.
pub const ROW_LOOP: &str = r"
#define SAME_ROW(q) ((q) < count && keys[q] == row)
#define UPDATE(q) (order[q] * update_step + (update_step ? at : 0))
#define EACH_ROW                                                                                   \
    for (i64 i = thread_number(); i < count * inner; i += thread_count()) {                        \
        i64 p = i / inner, at = i % inner, row = keys[p];                                          \
        if (row >= rows || (p > 0 && keys[p - 1] == row)) continue;                                \
        i64 to = row * inner + at;
";

/// A kernel that combines rows with updates by a formula of `x`, the element so far, and `y`, that
/// of the update.
pub struct RowUpdate {
    kernel: GpuKernel,
}

impl RowUpdate {
    /// The kernel for elements of `dtype`. `None` as the formula replaces elements.
    pub fn new(init: &KernelInit<'_>, dtype: DType, formula: Option<&str>) -> Result<RowUpdate> {
        let (head, value) = match formula {
            None => (
                format!("struct Pair {{ u64 a, b; }};\ntypedef {} T;\n", c_width(dtype)?),
                "value = updates[UPDATE(q)];".to_string(),
            ),
            Some(formula) => (
                format!("typedef {} T;\ntypedef WideOf<T>::type W;\n", c_type(dtype)?),
                format!(
                    "{{ W x = wide(value), y = wide(updates[UPDATE(q)]); \
                     value = Narrow<T>::from({formula}); }}"
                ),
            ),
        };
        let text = format!(
            "{head}{ROW_LOOP}\
             extern \"C\" __global__ void update_rows(i64 count, i64 inner, i64 rows,\n\
             i64 update_step, const i64 *keys, const i64 *order, const T *updates, T *out) {{\n\
             EACH_ROW\n        T value = out[to];\n        \
             for (i64 q = p; SAME_ROW(q); q++) {value}\n        out[to] = value;\n    }}\n}}\n"
        );
        Ok(RowUpdate { kernel: GpuKernel::new(text, "update_rows").prepared(init)? })
    }

    /// Combines the rows of `out`, which begins with dimensions `dims`, with `updates`: `count`
    /// rows, or one element for all of them. Indices out of range name no row.
    pub fn run(
        &self,
        gpu: &Arc<dyn Gpu>,
        out: &Tensor,
        indices: &Tensor,
        dims: &[usize],
        updates: &Tensor,
    ) -> Result<()> {
        let depth = dims.len();
        let count = match depth {
            0 => indices.shape().iter().rev().skip(1).product(),
            _ => indices.elements() / depth,
        };
        let rows = dims.iter().product::<usize>();
        let inner = out.elements().checked_div(rows).unwrap_or(0);
        if count == 0 || inner == 0 {
            return Ok(());
        }
        let step = if updates.elements() == count * inner { inner } else { 0 };
        let ordered = order_rows(gpu, indices, dims, count)?;
        let args = [
            length(count),
            length(inner),
            length(rows),
            length(step),
            address(&ordered.keys)?,
            address(&ordered.order)?,
            address(updates)?,
            address(out)?,
        ];
        self.kernel.over(gpu.as_ref(), count * inner, &args)
    }
}
