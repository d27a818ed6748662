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

// The sums of all parts for channel `c`.
__device__ inline void all_parts(i64 parts, i64 channels, i64 c, const f64 *sums, f64 &x, f64 &y) {
    x = y = 0;
    for (i64 p = 0; p < parts; p++) {
        x += sums[p * 2 * channels + c];
        y += sums[(p * 2 + 1) * channels + c];
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
    for (i64 c = thread_number(); c < channels; c += thread_count()) {
        f32 mean, variance;
        if (is_training) {
            f64 x, y, n = rows > 0 ? (f64)rows : 1;
            all_parts(parts, channels, c, sums, x, y);
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

extern "C" __global__ void scale_and_shift(i64 n, i64 channels, const T *image, const f32 *a,
                                           const f32 *b, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 c = i % channels;
        out[i] = Narrow<T>::from(wide(image[i]) * a[c] + b[c]);
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
    for (i64 c = thread_number(); c < channels; c += thread_count()) {
        f64 sum_dy, sum_dy_x, n = rows > 0 ? (f64)rows : 1, spread = (f64)variance[c] + epsilon;
        all_parts(parts, channels, c, sums, sum_dy, sum_dy_x);
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

extern "C" __global__ void of_image(i64 n, i64 channels, const T *image, const T *dy, const f32 *p,
                                    const f32 *q, const f32 *r, T *dx) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 c = i % channels;
        dx[i] = Narrow<T>::from(p[c] * wide(dy[i]) + q[c] * wide(image[i]) + r[c]);
    }
}
