// T is the type of elements. Images have channels last.
typedef WideOf<T>::type W;

// A spatial dimension: sizes of input, window and output, steps of and within the window, and
// positions before the input that the first window covers.
struct Axis { i64 input, window, output, stride, dilation, before; };
struct Axes { Axis d, h, w; };

// Divides, and returns the rest. Numbers are mostly small, for which it is much faster.
__device__ inline i64 cut(i64 &i, i64 by) {
    i64 q = i < 4294967296ll ? (i64)((u32)i / (u32)by) : i / by, rest = i - q * by;
    i = q;
    return rest;
}

// The input position under element `k` of window `i`; -1 outside.
__device__ inline i64 under(const Axis &a, i64 i, i64 k) {
    i64 at = i * a.stride + k * a.dilation - a.before;
    return at < a.input ? at : -1;
}

// The window whose element `k` is at input position `at`; -1 if there is none.
__device__ inline i64 window_at(const Axis &a, i64 at, i64 k) {
    i64 from = at + a.before - k * a.dilation;
    if (from < 0 || from % a.stride) return -1;
    from /= a.stride;
    return from < a.output ? from : -1;
}

// A row for each window from `first` on, with the elements under it of one group of channels.
extern "C" __global__ void patches(i64 n, Axes x, i64 channels, i64 group_channels, i64 from_channel,
                                   i64 first, const T *image, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 rest = i, c = cut(rest, group_channels);
        i64 kw = cut(rest, x.w.window), kh = cut(rest, x.h.window), kd = cut(rest, x.d.window);
        rest += first;
        i64 ow = cut(rest, x.w.output), oh = cut(rest, x.h.output), od = cut(rest, x.d.output);
        i64 b = rest;
        i64 id = under(x.d, od, kd), ih = under(x.h, oh, kh), iw = under(x.w, ow, kw);
        T value = Narrow<T>::from(W(0));
        if (id >= 0 && ih >= 0 && iw >= 0) {
            i64 pixel = ((b * x.d.input + id) * x.h.input + ih) * x.w.input + iw;
            value = image[pixel * channels + from_channel + c];
        }
        out[i] = value;
    }
}

// The sums of the elements of patches that lie over each pixel. Images are `first` and up.
extern "C" __global__ void sum_patches(i64 n, Axes x, i64 channels, i64 group_channels,
                                       i64 from_channel, i64 first, const T *rows, T *image) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 rest = i, c = cut(rest, group_channels);
        i64 iw = cut(rest, x.w.input), ih = cut(rest, x.h.input), id = cut(rest, x.d.input);
        i64 b = rest;
        W sum = 0;
        for (i64 kd = 0; kd < x.d.window; kd++) {
            i64 od = window_at(x.d, id, kd);
            if (od < 0) continue;
            for (i64 kh = 0; kh < x.h.window; kh++) {
                i64 oh = window_at(x.h, ih, kh);
                if (oh < 0) continue;
                for (i64 kw = 0; kw < x.w.window; kw++) {
                    i64 ow = window_at(x.w, iw, kw);
                    if (ow < 0) continue;
                    i64 row = ((b * x.d.output + od) * x.h.output + oh) * x.w.output + ow;
                    i64 tap = (kd * x.h.window + kh) * x.w.window + kw;
                    i64 taps = x.d.window * x.h.window * x.w.window;
                    sum += wide(rows[(row * taps + tap) * group_channels + c]);
                }
            }
        }
        i64 pixel = (((first + b) * x.d.input + id) * x.h.input + ih) * x.w.input + iw;
        image[pixel * channels + from_channel + c] = Narrow<T>::from(sum);
    }
}

// Each channel with `multiplier` filters of its own.
extern "C" __global__ void depthwise(i64 n, Axes x, i64 channels, i64 multiplier, const T *image,
                                     const T *filter, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 to = i % (channels * multiplier), rest = i / (channels * multiplier), c = to / multiplier;
        i64 ow = rest % x.w.output; rest /= x.w.output;
        i64 oh = rest % x.h.output, b = rest / x.h.output;
        W sum = 0;
        for (i64 kh = 0; kh < x.h.window; kh++) {
            i64 ih = under(x.h, oh, kh);
            if (ih < 0) continue;
            for (i64 kw = 0; kw < x.w.window; kw++) {
                i64 iw = under(x.w, ow, kw);
                if (iw < 0) continue;
                W value = wide(image[((b * x.h.input + ih) * x.w.input + iw) * channels + c]);
                sum += value * wide(filter[(kh * x.w.window + kw) * channels * multiplier + to]);
            }
        }
        out[i] = Narrow<T>::from(sum);
    }
}

extern "C" __global__ void depthwise_input(i64 n, Axes x, i64 channels, i64 multiplier,
                                           const T *filter, const T *dy, T *dx) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 c = i % channels, rest = i / channels;
        i64 iw = rest % x.w.input; rest /= x.w.input;
        i64 ih = rest % x.h.input, b = rest / x.h.input;
        W sum = 0;
        for (i64 kh = 0; kh < x.h.window; kh++) {
            i64 oh = window_at(x.h, ih, kh);
            if (oh < 0) continue;
            for (i64 kw = 0; kw < x.w.window; kw++) {
                i64 ow = window_at(x.w, iw, kw);
                if (ow < 0) continue;
                for (i64 m = 0; m < multiplier; m++) {
                    i64 to = c * multiplier + m, all = channels * multiplier;
                    W value = wide(dy[((b * x.h.output + oh) * x.w.output + ow) * all + to]);
                    sum += value * wide(filter[(kh * x.w.window + kw) * all + to]);
                }
            }
        }
        dx[i] = Narrow<T>::from(sum);
    }
}

// One block of 256 threads for each element of the filter.
extern "C" __global__ void depthwise_filter(i64 n, i64 batch, Axes x, i64 channels, i64 multiplier,
                                            const T *image, const T *dy, T *df) {
    __shared__ W sums[256];
    for (i64 i = blockIdx.x; i < n; i += gridDim.x) {
        i64 all = channels * multiplier, to = i % all, tap = i / all, c = to / multiplier;
        i64 kh = tap / x.w.window, kw = tap % x.w.window, rows = batch * x.h.output * x.w.output;
        W sum = 0;
        for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
            i64 ow = row % x.w.output, oh = row / x.w.output % x.h.output;
            i64 b = row / x.w.output / x.h.output;
            i64 ih = under(x.h, oh, kh), iw = under(x.w, ow, kw);
            if (ih < 0 || iw < 0) continue;
            W value = wide(image[((b * x.h.input + ih) * x.w.input + iw) * channels + c]);
            sum += value * wide(dy[row * all + to]);
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) df[i] = Narrow<T>::from(sums[0]);
        __syncthreads();
    }
}
