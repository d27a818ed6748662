//! Reductions without atomics: the order of additions depends on the shape alone, so every run
//! gives the same bits.

use super::walk::{self, Walk, row_major};
use super::{GpuKernel, address, c_type, length, prepare};
use crate::prelude::*;
use ferroflow_core::LaunchArg;

/// Threads of a block that shares one output.
const ROW_THREADS: u32 = 256;
/// Columns and rows of a block that reduces the leading dimension.
const COLUMNS: u32 = 32;
const LANES: u32 = 8;

/// Elements of a matrix whose columns are reduced in parts, which are joined by a second kernel.
const LARGE: usize = 1 << 17;
/// Blocks that keep a GPU busy.
const MANY_BLOCKS: usize = 1024;
/// Bytes that a thread reads at once.
const PACK_BYTES: usize = 16;
/// The longest row of many that a warp reduces, and the warps of a block.
const WARP_ROW: usize = 1 << 13;
const WARPS: u32 = 8;
/// The most matrices whose columns one launch reduces.
const MOST_MATRICES: usize = 65_535;
/// Elements of a row that are worth a block of their own.
const ROW_PART: usize = 1 << 12;
/// The most parts of a column.
const MAX_PARTS: usize = 128;

/// The kernels of one reduction for one dtype.
pub struct FoldKernels {
    /// Columns that a thread reads at once, if they lie well.
    pack: usize,
    /// The type of partial results.
    acc: DType,
    rows: GpuKernel,
    warp_rows: GpuKernel,
    row_parts: GpuKernel,
    short_rows: GpuKernel,
    columns: GpuKernel,
    parts: GpuKernel,
    packed_parts: GpuKernel,
    joined_parts: GpuKernel,
}

impl FoldKernels {
    /// The kernels of `fold` from `dtype` to `output`. Begins to compile them.
    pub fn new(
        init: &KernelInit<'_>,
        dtype: DType,
        output: DType,
        fold: GpuFold,
    ) -> Result<FoldKernels> {
        let (t, out) = (c_type(dtype)?, c_type(output)?);
        let GpuFold { acc, start, lift, join, finish } = fold;
        let head = format!(
            "typedef {t} T;\ntypedef {out} Out;\ntypedef {acc} Acc;\n\
             __device__ inline Acc start() {{ return {start}; }}\n\
             __device__ inline Acc lift(T x_) {{ Acc x = (Acc)wide(x_); return {lift}; }}\n\
             __device__ inline Acc join(Acc a, Acc b) {{ return {join}; }}\n\
             __device__ inline Out finish(Acc a, i64 count) {{ return Narrow<Out>::from({finish}); }}\n"
        );
        let pack = PACK_BYTES / dtype.size().unwrap_or(PACK_BYTES).clamp(2, PACK_BYTES);
        let head = format!("{head}const int PACK = {pack};\n");
        let text: Arc<str> = format!("{}{head}{BODY}", walk::TEXT).into();
        prepare(init, &text)?;
        // Accumulators have at most 8 bytes.
        Ok(FoldKernels {
            pack,
            acc: DType::Double,
            parts: GpuKernel::new(text.clone(), "parts"),
            packed_parts: GpuKernel::new(text.clone(), "packed_parts"),
            joined_parts: GpuKernel::new(text.clone(), "joined_parts"),
            rows: GpuKernel::new(text.clone(), "rows"),
            warp_rows: GpuKernel::new(text.clone(), "warp_rows"),
            row_parts: GpuKernel::new(text.clone(), "row_parts"),
            short_rows: GpuKernel::new(text.clone(), "short_rows"),
            columns: GpuKernel::new(text, "columns"),
        })
    }

    /// Reduces the marked dimensions of `x` into a tensor of shape `out`.
    pub fn run(
        &self,
        ctx: &Ctx<'_>,
        x: &Tensor,
        reduced: &[bool],
        output: DType,
        out: Shape,
    ) -> Result<Tensor> {
        let gpu = ctx.gpu()?;
        let to = Tensor::on_device(gpu, output, out)?;
        let strides = row_major(x.shape().dims());
        let side = |want: bool| {
            let of = |d: &usize| reduced[*d] == want;
            let dims: Vec<usize> = (0..x.rank()).filter(of).map(|d| x.shape()[d]).collect();
            let strides: Vec<i64> = (0..x.rank()).filter(of).map(|d| strides[d]).collect();
            Walk::new(&dims, &[strides])
        };
        let (kept, folded) = (side(false)?, side(true)?);
        let (n, count) = (to.elements(), folded.dims().iter().product::<usize>());
        let is_columns = kept.dims().len() == 1
            && kept.strides(0) == [1]
            && folded.dims().len() == 1
            && folded.strides(0) == [n as i64]
            && n > 1;
        if is_columns && count * n >= LARGE && count >= 256 {
            return self.columns_in_parts(ctx, x, count, to);
        }
        let blocks_of_columns =
            match (kept.dims(), kept.strides(0), folded.dims(), folded.strides(0)) {
                _ if is_columns => Some((1, n)),
                // The same for each of `outer` matrices that lie one behind the other.
                (&[outer, n], &[between, 1], &[_], &[row])
                    if row == n as i64
                        && between == (count * n) as i64
                        && outer <= MOST_MATRICES =>
                {
                    Some((outer, n))
                }
                _ => None,
            };
        if let Some((outer, n)) = blocks_of_columns {
            let args = [length(count), length(n), address(x)?, address(&to)?];
            let grid = [(n as u32).div_ceil(COLUMNS), outer as u32, 1];
            self.columns.blocks(gpu.as_ref(), grid, [COLUMNS, LANES, 1], &args)?;
            return Ok(to);
        }
        let lie_together = matches!(
            (kept.dims(), kept.strides(0), folded.dims(), folded.strides(0)),
            ([_], &[between], [_], [1]) if between == count as i64
        );
        let is_packed = count.is_multiple_of(self.pack)
            && x.device_address()?.is_multiple_of(PACK_BYTES as u64);
        if lie_together && is_packed && n >= MANY_BLOCKS && count <= WARP_ROW {
            let args = [length(n), length(count), address(x)?, address(&to)?];
            let grid = [(n as u32).div_ceil(WARPS), 1, 1];
            self.warp_rows.blocks(gpu.as_ref(), grid, [WARPS * 32, 1, 1], &args)?;
            return Ok(to);
        }
        let row_parts = (MANY_BLOCKS / n.max(1)).min(count / ROW_PART);
        if row_parts > 1 {
            let partial = Tensor::on_device(gpu, self.acc, [row_parts * n])?;
            let args: [LaunchArg; 6] = [
                length(n),
                kept.arg(),
                length(count),
                folded.arg(),
                address(x)?,
                address(&partial)?,
            ];
            let grid = [row_parts as u32, n as u32, 1];
            self.row_parts.blocks(gpu.as_ref(), grid, [ROW_THREADS, 1, 1], &args)?;
            self.join_parts(ctx, &partial, row_parts, count, &to)?;
            return Ok(to);
        }
        let args: [LaunchArg; 6] =
            [length(n), kept.arg(), length(count), folded.arg(), address(x)?, address(&to)?];
        if count <= 32 {
            self.short_rows.over(gpu.as_ref(), n, &args)?;
        } else {
            let grid = [n.min(1 << 20) as u32, 1, 1];
            self.rows.blocks(gpu.as_ref(), grid, [ROW_THREADS, 1, 1], &args)?;
        }
        Ok(to)
    }
}

impl FoldKernels {
    /// Reduces the columns of a large matrix: blocks for parts of them, then one to join the parts.
    fn columns_in_parts(
        &self,
        ctx: &Ctx<'_>,
        x: &Tensor,
        count: usize,
        to: Tensor,
    ) -> Result<Tensor> {
        let gpu = ctx.gpu()?;
        let n = to.elements();
        let is_packed = n.is_multiple_of(self.pack) && x.device_address()?.is_multiple_of(16);
        let width = COLUMNS as usize * if is_packed { self.pack } else { 1 };
        let blocks = n.div_ceil(width);
        let parts = (MANY_BLOCKS / blocks).clamp(1, MAX_PARTS).min(count / 64).max(1);
        let partial = Tensor::on_device(gpu, self.acc, [parts * n])?;
        let args = [length(count), length(n), address(x)?, address(&partial)?];
        let grid = [blocks as u32, parts as u32, 1];
        let kernel = if is_packed { &self.packed_parts } else { &self.parts };
        kernel.blocks(gpu.as_ref(), grid, [COLUMNS, LANES, 1], &args)?;
        self.join_parts(ctx, &partial, parts, count, &to)?;
        Ok(to)
    }

    /// Joins `parts` partial results of each output, which stand for `count` elements.
    fn join_parts(
        &self,
        ctx: &Ctx<'_>,
        partial: &Tensor,
        parts: usize,
        count: usize,
        to: &Tensor,
    ) -> Result<()> {
        let n = to.elements();
        let args = [length(parts), length(n), length(count), address(partial)?, address(to)?];
        let grid = [(n as u32).div_ceil(COLUMNS), 1, 1];
        self.joined_parts.blocks(ctx.gpu()?.as_ref(), grid, [COLUMNS, LANES, 1], &args)
    }
}

const BODY: &str = r#"
// Long sums are made of sums of 64, which keeps rounding errors small.
// One block's share of a row, its elements from `first` on in steps of `step`; thread 0 gets it.
__device__ inline Acc fold_row(const T *row, const Walk<1> &folded, i64 count, i64 first, i64 step) {
    __shared__ Acc parts[256];
    Acc acc = start(), part = start();
    int n_part = 0;
    for (i64 j = first + threadIdx.x; j < count; j += step) {
        i64 at;
        folded.find(j, &at);
        part = join(part, lift(row[at]));
        if (++n_part == 64) acc = join(acc, part), part = start(), n_part = 0;
    }
    parts[threadIdx.x] = join(acc, part);
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) {
            parts[threadIdx.x] = join(parts[threadIdx.x], parts[threadIdx.x + half]);
        }
        __syncthreads();
    }
    Acc all = parts[0];
    __syncthreads();
    return all;
}

// One block for each output.
extern "C" __global__ void rows(i64 n, Walk<1> kept, i64 count, Walk<1> folded, const T *x, Out *out) {
    for (i64 i = blockIdx.x; i < n; i += gridDim.x) {
        i64 base;
        kept.find(i, &base);
        Acc all = fold_row(x + base, folded, count, 0, 256);
        if (threadIdx.x == 0) out[i] = finish(all, count);
    }
}

// Rows that lie together and are read in packs: a warp to a row.
extern "C" __global__ void warp_rows(i64 n, i64 count, const T *x, Out *out) {
    i64 row = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    Acc acc = start();
    if (row < n) {
        for (i64 j = (i64)(threadIdx.x % 32) * PACK; j < count; j += 32 * PACK) {
            Pack<T, PACK> pack = *(const Pack<T, PACK> *)(x + row * count + j);
            Acc part = start();
#pragma unroll
            for (int k = 0; k < PACK; k++) part = join(part, lift(pack.at[k]));
            acc = join(acc, part);
        }
    }
    for (int mask = 16; mask > 0; mask /= 2) acc = join(acc, exchanged(acc, mask));
    if (row < n && threadIdx.x % 32 == 0) out[row] = finish(acc, count);
}

// Parts of few long rows: block x has every gridDim.x-th group of 256 elements of row y.
extern "C" __global__ void row_parts(
    i64 n, Walk<1> kept, i64 count, Walk<1> folded, const T *x, Acc *out) {
    i64 base;
    kept.find(blockIdx.y, &base);
    Acc all = fold_row(x + base, folded, count, (i64)blockIdx.x * 256, (i64)gridDim.x * 256);
    if (threadIdx.x == 0) out[blockIdx.x * n + blockIdx.y] = all;
}

// One thread for each output.
extern "C" __global__ void short_rows(i64 n, Walk<1> kept, i64 count, Walk<1> folded, const T *x, Out *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 base;
        kept.find(i, &base);
        Acc acc = start();
        for (i64 j = 0; j < count; j++) {
            i64 at;
            folded.find(j, &at);
            acc = join(acc, lift(x[base + at]));
        }
        out[i] = finish(acc, count);
    }
}

// The leading dimension is reduced: 32 columns to a block, 8 threads to a column. Block y has
// matrix y.
extern "C" __global__ void columns(i64 count, i64 n, const T *x, Out *out) {
    __shared__ Acc parts[8][32];
    x += (i64)blockIdx.y * count * n;
    out += (i64)blockIdx.y * n;
    i64 column = (i64)blockIdx.x * 32 + threadIdx.x;
    Acc acc = start(), part = start();
    int n_part = 0;
    if (column < n) {
        for (i64 j = threadIdx.y; j < count; j += 8) {
            part = join(part, lift(x[j * n + column]));
            if (++n_part == 64) acc = join(acc, part), part = start(), n_part = 0;
        }
    }
    parts[threadIdx.y][threadIdx.x] = join(acc, part);
    __syncthreads();
    for (int half = 4; half > 0; half /= 2) {
        if ((int)threadIdx.y < half) {
            parts[threadIdx.y][threadIdx.x] =
                join(parts[threadIdx.y][threadIdx.x], parts[threadIdx.y + half][threadIdx.x]);
        }
        __syncthreads();
    }
    if (threadIdx.y == 0 && column < n) out[column] = finish(parts[0][threadIdx.x], count);
}

// Parts of columns: block y has every gridDim.y-th group of rows, and each thread N columns.
template <int N> __device__ inline void fold_parts(i64 count, i64 n, const T *x, Acc *out) {
    __shared__ Acc parts[8][32][N];
    i64 column = ((i64)blockIdx.x * 32 + threadIdx.x) * N;
    Acc acc[N], part[N];
    for (int k = 0; k < N; k++) acc[k] = part[k] = start();
    int n_part = 0;
    if (column < n) {
        for (i64 j = (i64)blockIdx.y * 8 + threadIdx.y; j < count; j += (i64)gridDim.y * 8) {
            Pack<T, N> row = *(const Pack<T, N> *)(x + j * n + column);
#pragma unroll
            for (int k = 0; k < N; k++) part[k] = join(part[k], lift(row.at[k]));
            if (++n_part == 64) {
                for (int k = 0; k < N; k++) acc[k] = join(acc[k], part[k]), part[k] = start();
                n_part = 0;
            }
        }
    }
    for (int k = 0; k < N; k++) parts[threadIdx.y][threadIdx.x][k] = join(acc[k], part[k]);
    __syncthreads();
    for (int half = 4; half > 0; half /= 2) {
        if ((int)threadIdx.y < half) {
            for (int k = 0; k < N; k++) {
                parts[threadIdx.y][threadIdx.x][k] = join(
                    parts[threadIdx.y][threadIdx.x][k], parts[threadIdx.y + half][threadIdx.x][k]);
            }
        }
        __syncthreads();
    }
    if (threadIdx.y == 0 && column < n) {
        for (int k = 0; k < N; k++) out[(i64)blockIdx.y * n + column + k] = parts[0][threadIdx.x][k];
    }
}
extern "C" __global__ void parts(i64 count, i64 n, const T *x, Acc *out) {
    fold_parts<1>(count, n, x, out);
}
extern "C" __global__ void packed_parts(i64 count, i64 n, const T *x, Acc *out) {
    fold_parts<PACK>(count, n, x, out);
}

// Joins the parts of columns or rows: 8 threads to each output.
extern "C" __global__ void joined_parts(i64 parts, i64 n, i64 count, const Acc *x, Out *out) {
    __shared__ Acc lanes[8][32];
    i64 column = (i64)blockIdx.x * 32 + threadIdx.x;
    Acc acc = start();
    if (column < n) {
        for (i64 j = threadIdx.y; j < parts; j += 8) acc = join(acc, x[j * n + column]);
    }
    lanes[threadIdx.y][threadIdx.x] = acc;
    __syncthreads();
    if (threadIdx.y == 0 && column < n) {
        for (int k = 1; k < 8; k++) acc = join(acc, lanes[k][threadIdx.x]);
        out[column] = finish(acc, count);
    }
}
"#;
