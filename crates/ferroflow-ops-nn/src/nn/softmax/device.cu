// T is the type of logits, L that of labels. A block has a power of two of threads, at most 256.
typedef WideOf<T>::type W;

struct Add { static __device__ W join(W a, W b) { return a + b; } };
struct Max { static __device__ W join(W a, W b) { return larger(a, b); } };

// Joins the values of all threads of a block, in the same order in every run.
template <class J> __device__ W block_join(W x) {
    __shared__ W parts[256];
    __syncthreads();
    parts[threadIdx.x] = x;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half) {
            parts[threadIdx.x] = J::join(parts[threadIdx.x], parts[threadIdx.x + half]);
        }
        __syncthreads();
    }
    return parts[0];
}

// The largest of a row whose elements are `step` apart.
__device__ W row_top(i64 cols, const T *x, i64 step) {
    W top = lowest<T>();
    for (i64 j = threadIdx.x; j < cols; j += blockDim.x) top = larger(top, wide(x[j * step]));
    return block_join<Max>(top);
}

__device__ W row_total(i64 cols, const T *x, i64 step, W top) {
    W total = 0;
    for (i64 j = threadIdx.x; j < cols; j += blockDim.x) total += exp(wide(x[j * step]) - top);
    return block_join<Add>(total);
}

extern "C" __global__ void softmax(i64 rows, i64 cols, const T *logits, T *out) {
    for (i64 i = blockIdx.x; i < rows; i += gridDim.x) {
        const T *x = logits + i * cols;
        W top = row_top(cols, x, 1);
        W total = row_total(cols, x, 1, top);
        for (i64 j = threadIdx.x; j < cols; j += blockDim.x) {
            out[i * cols + j] = Narrow<T>::from(exp(wide(x[j]) - top) / total);
        }
    }
}

// Rows of at most 1024 elements: a warp to a row, which it keeps in registers. The width is a
// multiple of N, and so is the alignment of rows.
template <int N> __device__ inline void softmax_by_warp(i64 rows, i64 cols, const T *logits, T *out) {
    const int PACKS = 1024 / 32 / N;
    i64 row = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    bool is_valid = row < rows;
    const T *x = logits + (is_valid ? row : 0) * cols;
    i64 lane = (threadIdx.x % 32) * N;
    W values[PACKS][N];
    W top = lowest<T>();
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        i64 at = p * 32 * N + lane;
        if (at < cols) {
            Pack<T, N> pack = *(const Pack<T, N> *)(x + at);
#pragma unroll
            for (int k = 0; k < N; k++) {
                values[p][k] = wide(pack.at[k]);
                top = larger(top, values[p][k]);
            }
        }
    }
    for (int mask = 16; mask > 0; mask /= 2) top = larger(top, exchanged(top, mask));
    W total = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        if (p * 32 * N + lane < cols) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                values[p][k] = exp(values[p][k] - top);
                total += values[p][k];
            }
        }
    }
    for (int mask = 16; mask > 0; mask /= 2) total += exchanged(total, mask);
    if (!is_valid) return;
    // A quotient costs as much as several products, and half types do not show the difference.
    W part = W(1) / total;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        i64 at = p * 32 * N + lane;
        if (at < cols) {
            Pack<T, N> pack;
#pragma unroll
            for (int k = 0; k < N; k++) {
                pack.at[k] = Narrow<T>::from(sizeof(T) == 2 ? values[p][k] * part : values[p][k] / total);
            }
            *(Pack<T, N> *)(out + row * cols + at) = pack;
        }
    }
}
extern "C" __global__ void narrow_softmax(i64 rows, i64 cols, const T *logits, T *out) {
    softmax_by_warp<16 / sizeof(T)>(rows, cols, logits, out);
}

extern "C" __global__ void log_softmax(i64 rows, i64 cols, const T *logits, T *out) {
    for (i64 i = blockIdx.x; i < rows; i += gridDim.x) {
        const T *x = logits + i * cols;
        W top = row_top(cols, x, 1);
        W log_total = log(row_total(cols, x, 1, top));
        for (i64 j = threadIdx.x; j < cols; j += blockDim.x) {
            out[i * cols + j] = Narrow<T>::from(wide(x[j]) - top - log_total);
        }
    }
}

extern "C" __global__ void sparse_cross_entropy(i64 rows, i64 cols, const T *logits, const L *labels,
                                                T *loss, T *back) {
    for (i64 i = blockIdx.x; i < rows; i += gridDim.x) {
        const T *x = logits + i * cols;
        i64 label = (i64)labels[i];
        bool is_valid = 0 <= label && label < cols;
        W top = row_top(cols, x, 1);
        W total = row_total(cols, x, 1, top);
        W nan = (W)from_bits(0x7fc00000u);
        for (i64 j = threadIdx.x; j < cols; j += blockDim.x) {
            W y = exp(wide(x[j]) - top) / total - (j == label ? W(1) : W(0));
            back[i * cols + j] = Narrow<T>::from(is_valid ? y : nan);
        }
        if (threadIdx.x == 0) {
            loss[i] = Narrow<T>::from(is_valid ? log(total) - (wide(x[label]) - top) : nan);
        }
    }
}

extern "C" __global__ void cross_entropy(i64 rows, i64 cols, const T *logits, i64 x_row, i64 x_col,
                                         const T *labels, i64 y_row, i64 y_col, T *loss, T *back) {
    for (i64 i = blockIdx.x; i < rows; i += gridDim.x) {
        const T *x = logits + i * x_row, *y = labels + i * y_row;
        W top = row_top(cols, x, x_col);
        W total = row_total(cols, x, x_col, top);
        W log_total = log(total), sum = 0;
        for (i64 j = threadIdx.x; j < cols; j += blockDim.x) {
            W moved = wide(x[j * x_col]) - top, want = wide(y[j * y_col]);
            back[i * cols + j] = Narrow<T>::from(exp(moved) / total - want);
            sum += want * (log_total - moved);
        }
        sum = block_join<Add>(sum);
        if (threadIdx.x == 0) loss[i] = Narrow<T>::from(sum);
    }
}
