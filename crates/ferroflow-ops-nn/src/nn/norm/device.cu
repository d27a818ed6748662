// T is the type of images, which have channels last. Blocks are of 32 channels by 8 rows.
typedef WideOf<T>::type W;

// The sums of two numbers for each channel, over the rows of one part of the image. They are made
// in a fixed order: 64 at a time as floats, then as doubles.
template <class F> __device__ void sum_pairs(i64 rows, i64 channels, F pair, f64 *out) {
    __shared__ f64 sums[2][8][32];
    i64 c = (i64)blockIdx.x * 32 + threadIdx.x, parts = gridDim.y;
    f64 a = 0, b = 0;
    f32 a_part = 0, b_part = 0;
    int n = 0;
    if (c < channels) {
        for (i64 i = (i64)blockIdx.y * 8 + threadIdx.y; i < rows; i += parts * 8) {
            f32 x, y;
            pair(i * channels + c, c, x, y);
            a_part += x;
            b_part += y;
            if (++n == 64) a += a_part, b += b_part, a_part = b_part = 0, n = 0;
        }
    }
    sums[0][threadIdx.y][threadIdx.x] = a + a_part;
    sums[1][threadIdx.y][threadIdx.x] = b + b_part;
    __syncthreads();
    if (threadIdx.y == 0 && c < channels) {
        f64 x = 0, y = 0;
        for (int i = 0; i < 8; i++) x += sums[0][i][threadIdx.x], y += sums[1][i][threadIdx.x];
        out[((i64)blockIdx.y * 2) * channels + c] = x;
        out[((i64)blockIdx.y * 2 + 1) * channels + c] = y;
    }
}

// The same for N channels at once, where the channels of a block's threads repeat: there are
// `channels / N` threads to a row, which is a divisor of 256. Block `blockIdx.x` is one part.
template <int N, class F> __device__ void sum_packed_pairs(i64 rows, i64 channels, F pairs, f64 *out) {
    __shared__ f64 sums[2][256];
    int to_a_row = (int)(channels / N), at_once = 256 / to_a_row;
    int c = (int)(threadIdx.x % to_a_row) * N, line = threadIdx.x / to_a_row;
    f64 a[N], b[N];
    f32 a_part[N], b_part[N];
    for (int k = 0; k < N; k++) a[k] = b[k] = a_part[k] = b_part[k] = 0;
    int n = 0;
    for (i64 i = (i64)blockIdx.x * at_once + line; i < rows; i += (i64)gridDim.x * at_once) {
        f32 x[N], y[N];
        pairs(i * channels + c, c, x, y);
#pragma unroll
        for (int k = 0; k < N; k++) a_part[k] += x[k], b_part[k] += y[k];
        if (++n == 64) {
            for (int k = 0; k < N; k++) {
                a[k] += a_part[k], b[k] += b_part[k];
                a_part[k] = b_part[k] = 0;
            }
            n = 0;
        }
    }
    for (int k = 0; k < N; k++) {
        __syncthreads();
        sums[0][threadIdx.x] = a[k] + a_part[k];
        sums[1][threadIdx.x] = b[k] + b_part[k];
        __syncthreads();
        if (line == 0) {
            f64 x = 0, y = 0;
            for (int l = 0; l < at_once; l++) {
                x += sums[0][l * to_a_row + threadIdx.x];
                y += sums[1][l * to_a_row + threadIdx.x];
            }
            out[(i64)blockIdx.x * 2 * channels + c + k] = x;
            out[((i64)blockIdx.x * 2 + 1) * channels + c + k] = y;
        }
    }
}

// The sums of all parts for channel `c`. The 32 threads of a channel share the work; blocks are of
// 8 channels by 32 threads, all of which call this.
__device__ inline void all_parts(i64 parts, i64 channels, i64 c, const f64 *sums, f64 &x, f64 &y) {
    __shared__ f64 lanes[2][32][8];
    f64 a = 0, b = 0;
    if (c < channels) {
        for (i64 p = threadIdx.y; p < parts; p += 32) {
            a += sums[p * 2 * channels + c];
            b += sums[(p * 2 + 1) * channels + c];
        }
    }
    lanes[0][threadIdx.y][threadIdx.x] = a;
    lanes[1][threadIdx.y][threadIdx.x] = b;
    __syncthreads();
    x = y = 0;
    if (threadIdx.y == 0) {
        for (int k = 0; k < 32; k++) x += lanes[0][k][threadIdx.x], y += lanes[1][k][threadIdx.x];
    }
}

// Distances from the first row, and their squares.
struct Distances {
    const T *image;
    __device__ void operator()(i64 at, i64 c, f32 &x, f32 &y) const {
        x = wide(image[at]) - wide(image[c]);
        y = x * x;
    }
};
template <int N> struct PackedDistances {
    const T *image;
    __device__ void operator()(i64 at, i64 c, f32 *x, f32 *y) const {
        Pack<T, N> here = *(const Pack<T, N> *)(image + at), first = *(const Pack<T, N> *)(image + c);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = wide(here.at[k]) - wide(first.at[k]), y[k] = x[k] * x[k];
    }
};
extern "C" __global__ void packed_moments(i64 rows, i64 channels, const T *image, f64 *sums) {
    PackedDistances<16 / sizeof(T)> pairs = {image};
    sum_packed_pairs<16 / sizeof(T)>(rows, channels, pairs, sums);
}
extern "C" __global__ void moments(i64 rows, i64 channels, const T *image, f64 *sums) {
    Distances pair = {image};
    sum_pairs(rows, channels, pair, sums);
}

// Mean and variance, the outputs, and the factors of `y = a x + b`.
extern "C" __global__ void finish_moments(i64 channels, i64 rows, i64 parts, i64 is_training,
                                          f64 epsilon, f32 factor, const T *image, const f64 *sums,
                                          const f32 *scale, const f32 *offset, const f32 *old_mean,
                                          const f32 *old_variance, f32 *batch_mean,
                                          f32 *batch_variance, f32 *mean_out, f32 *variance_out,
                                          f32 *a, f32 *b) {
    i64 c = (i64)blockIdx.x * 8 + threadIdx.x;
    f64 x, y;
    all_parts(is_training ? parts : 0, channels, c, sums, x, y);
    if (threadIdx.y == 0 && c < channels) {
        f32 mean, variance;
        if (is_training) {
            f64 n = rows > 0 ? (f64)rows : 1;
            x /= n;
            mean = (f32)((f64)wide(image[c]) + x);
            variance = (f32)(y / n - x * x);
            if (variance < 0) variance = 0;
            f32 less = (f32)rows - 1 > 1 ? (f32)rows - 1 : 1, unbiased = variance * ((f32)rows / less);
            bool is_mixed = factor != 1;
            batch_mean[c] = (1 - factor) * (is_mixed ? old_mean[c] : 0) + factor * mean;
            batch_variance[c] = (1 - factor) * (is_mixed ? old_variance[c] : 0) + factor * unbiased;
        } else {
            batch_mean[c] = mean = old_mean[c];
            batch_variance[c] = variance = old_variance[c];
        }
        mean_out[c] = mean;
        variance_out[c] = variance;
        a[c] = (f32)((f64)scale[c] / sqrt((f64)variance + epsilon));
        b[c] = offset[c] - mean * a[c];
    }
}

// Gradients, and their products with the distance from the mean.
struct Gradients {
    const T *image, *dy;
    const f32 *mean;
    __device__ void operator()(i64 at, i64 c, f32 &x, f32 &y) const {
        x = wide(dy[at]);
        y = x * (wide(image[at]) - mean[c]);
    }
};
template <int N> struct PackedGradients {
    const T *image, *dy;
    const f32 *mean;
    __device__ void operator()(i64 at, i64 c, f32 *x, f32 *y) const {
        Pack<T, N> here = *(const Pack<T, N> *)(image + at), gradient = *(const Pack<T, N> *)(dy + at);
#pragma unroll
        for (int k = 0; k < N; k++) {
            x[k] = wide(gradient.at[k]);
            y[k] = x[k] * (wide(here.at[k]) - mean[c + k]);
        }
    }
};
extern "C" __global__ void packed_gradient_sums(i64 rows, i64 channels, const T *image, const T *dy,
                                                const f32 *mean, f64 *sums) {
    PackedGradients<16 / sizeof(T)> pairs = {image, dy, mean};
    sum_packed_pairs<16 / sizeof(T)>(rows, channels, pairs, sums);
}
extern "C" __global__ void gradient_sums(i64 rows, i64 channels, const T *image, const T *dy,
                                         const f32 *mean, f64 *sums) {
    Gradients pair = {image, dy, mean};
    sum_pairs(rows, channels, pair, sums);
}

// The gradients of scale and offset, and the factors of `dx = p dy + q x + r`.
extern "C" __global__ void finish_gradients(i64 channels, i64 rows, i64 parts, i64 is_training,
                                            f64 epsilon, const f64 *sums, const f32 *scale,
                                            const f32 *mean, const f32 *variance, f32 *d_scale,
                                            f32 *d_offset, f32 *p, f32 *q, f32 *r) {
    i64 c = (i64)blockIdx.x * 8 + threadIdx.x;
    f64 sum_dy, sum_dy_x;
    all_parts(parts, channels, c, sums, sum_dy, sum_dy_x);
    if (threadIdx.y == 0 && c < channels) {
        f64 n = rows > 0 ? (f64)rows : 1, spread = (f64)variance[c] + epsilon;
        f64 slope = (f64)scale[c] / sqrt(spread), of_x = 0, rest = 0;
        if (is_training) {
            of_x = -slope * sum_dy_x / (n * spread);
            rest = -slope * sum_dy / n - of_x * (f64)mean[c];
        }
        p[c] = (f32)slope;
        q[c] = (f32)of_x;
        r[c] = (f32)rest;
        d_scale[c] = (f32)(sum_dy_x / sqrt(spread));
        d_offset[c] = (f32)sum_dy;
    }
}
