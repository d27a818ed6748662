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
// The first and the last position under window `i`, and one past it.
__device__ inline i64 first_under(const Axis &a, i64 i) {
    i64 at = i * a.stride - a.before;
    return at > 0 ? at : 0;
}
__device__ inline i64 end_under(const Axis &a, i64 i) {
    i64 at = i * a.stride - a.before + a.window;
    return at < a.input ? at : a.input;
}
// The first window over position `at`, and one past the last.
__device__ inline i64 first_over(const Axis &a, i64 at) {
    i64 from = at + a.before - a.window + 1;
    return from > 0 ? (i64)((u32)(from + a.stride - 1) / (u32)a.stride) : 0;
}
__device__ inline i64 end_over(const Axis &a, i64 at) {
    i64 end = (i64)((u32)(at + a.before) / (u32)a.stride) + 1;
    return end < a.output ? end : a.output;
}

struct Place { i64 b, d, h, w, c; };
__device__ inline Place place(i64 i, i64 d, i64 h, i64 w, i64 channels) {
    Place p;
    p.c = cut(i, channels);
    p.w = cut(i, w);
    p.h = cut(i, h);
    p.d = cut(i, d);
    p.b = i;
    return p;
}
__device__ inline Place output_place(i64 i, const Axes &x, i64 channels) {
    return place(i, x.d.output, x.h.output, x.w.output, channels);
}
__device__ inline Place input_place(i64 i, const Axes &x, i64 channels) {
    return place(i, x.d.input, x.h.input, x.w.input, channels);
}
// The number of the window at these coordinates and the channel of `p`.
__device__ inline i64 window_number(const Place &p, i64 d, i64 h, i64 w, const Axes &x, i64 channels) {
    return (((p.b * x.d.output + d) * x.h.output + h) * x.w.output + w) * channels + p.c;
}
#define EACH_UNDER(x, p)                                                                           \
    for (i64 d = first_under((x).d, (p).d); d < end_under((x).d, (p).d); d++)                      \
        for (i64 h = first_under((x).h, (p).h); h < end_under((x).h, (p).h); h++)                  \
            for (i64 w = first_under((x).w, (p).w); w < end_under((x).w, (p).w); w++)
#define EACH_OVER(x, p)                                                                            \
    for (i64 d = first_over((x).d, (p).d); d < end_over((x).d, (p).d); d++)                        \
        for (i64 h = first_over((x).h, (p).h); h < end_over((x).h, (p).h); h++)                    \
            for (i64 w = first_over((x).w, (p).w); w < end_over((x).w, (p).w); w++)

// The largest element under each window, and where it is within its image: the first of the
// largest. The index is -1 for an empty window. `best` or `index` may be null.
extern "C" __global__ void largest(i64 n, Axes x, i64 channels, const T *image, T *best, i64 *index,
                                   i64 per_batch) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = output_place(i, x, channels);
        i64 pixels = x.d.input * x.h.input * x.w.input, at = -1;
        W top = (W)LOWEST;
        const T *mine = image + p.b * pixels * channels;
        EACH_UNDER(x, p) {
            i64 here = ((d * x.h.input + h) * x.w.input + w) * channels + p.c;
            W value = wide(mine[here]);
            if (value > top || (at < 0 && index)) top = value, at = here;
        }
        if (best) best[i] = Narrow<T>::from(top);
        if (index) index[i] = at < 0 ? at : at + p.b * per_batch;
    }
}

// The gradients of the windows that picked each element.
extern "C" __global__ void of_picked(i64 n, Axes x, i64 channels, const i64 *index, const T *dy, T *dx) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = input_place(i, x, channels);
        i64 here = i - p.b * x.d.input * x.h.input * x.w.input * channels;
        T sum = Narrow<T>::from(W(0));
        EACH_OVER(x, p) {
            i64 window = window_number(p, d, h, w, x, channels);
            if (index[window] == here) sum = Narrow<T>::from(wide(sum) + wide(dy[window]));
        }
        dx[i] = sum;
    }
}

// The same two for packs of 16 bytes: N channels of one pixel. There are `channels / N` packs to a
// pixel, and `n` packs.
extern "C" __global__ void packed_largest(i64 n, Axes x, i64 channels, const T *image, T *best,
                                          i64 *index, i64 per_batch) {
    const int N = 16 / sizeof(T);
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = output_place(i, x, channels / N);
        i64 pixels = x.d.input * x.h.input * x.w.input;
        const T *mine = image + p.b * pixels * channels;
        W top[N];
        i64 at[N];
#pragma unroll
        for (int k = 0; k < N; k++) top[k] = (W)LOWEST, at[k] = -1;
        EACH_UNDER(x, p) {
            i64 here = ((d * x.h.input + h) * x.w.input + w) * channels + p.c * N;
            Pack<T, N> pack = *(const Pack<T, N> *)(mine + here);
#pragma unroll
            for (int k = 0; k < N; k++) {
                W value = wide(pack.at[k]);
                if (value > top[k] || (at[k] < 0 && index)) top[k] = value, at[k] = here + k;
            }
        }
        if (best) {
            Pack<T, N> pack;
#pragma unroll
            for (int k = 0; k < N; k++) pack.at[k] = Narrow<T>::from(top[k]);
            *(Pack<T, N> *)(best + i * N) = pack;
        }
        if (index) {
#pragma unroll
            for (int k = 0; k < N; k++) index[i * N + k] = at[k] < 0 ? at[k] : at[k] + p.b * per_batch;
        }
    }
}
extern "C" __global__ void packed_of_picked(i64 n, Axes x, i64 channels, const i64 *index, const T *dy,
                                            T *dx) {
    const int N = 16 / sizeof(T);
    i64 packs = channels / N;
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = input_place(i, x, packs);
        i64 here = (i - p.b * x.d.input * x.h.input * x.w.input * packs) * N;
        Pack<T, N> sum;
#pragma unroll
        for (int k = 0; k < N; k++) sum.at[k] = Narrow<T>::from(W(0));
        EACH_OVER(x, p) {
            i64 window = window_number(p, d, h, w, x, packs) * N;
            Pack<T, N> pack = *(const Pack<T, N> *)(dy + window);
#pragma unroll
            for (int k = 0; k < N; k++) {
                if (index[window + k] == here + k) {
                    sum.at[k] = Narrow<T>::from(wide(sum.at[k]) + wide(pack.at[k]));
                }
            }
        }
        *(Pack<T, N> *)(dx + i * N) = sum;
    }
}

// The gradients of the windows in which each element is among the largest.
extern "C" __global__ void of_ties(i64 n, Axes x, i64 channels, const T *image, const T *best,
                                   const T *dy, T *dx) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = input_place(i, x, channels);
        T sum = Narrow<T>::from(W(0));
        EACH_OVER(x, p) {
            i64 window = window_number(p, d, h, w, x, channels);
            if (wide(image[i]) == wide(best[window])) {
                sum = Narrow<T>::from(wide(sum) + wide(dy[window]));
            }
        }
        dx[i] = sum;
    }
}

// The element of each window that was picked.
extern "C" __global__ void picked(i64 n, i64 outputs, i64 inputs, const i64 *index, const T *from, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 at = index[i];
        bool is_inside = 0 <= at && at < inputs;
        out[i] = is_inside ? from[i / outputs * inputs + at] : Narrow<T>::from(W(0));
    }
}

extern "C" __global__ void to_narrow_index(i64 n, const i64 *index, i32 *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) out[i] = (i32)index[i];
}

__device__ inline i64 count_under(const Axes &x, i64 d, i64 h, i64 w) {
    return (end_under(x.d, d) - first_under(x.d, d)) * (end_under(x.h, h) - first_under(x.h, h)) *
           (end_under(x.w, w) - first_under(x.w, w));
}

extern "C" __global__ void average(i64 n, Axes x, i64 channels, const T *image, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = output_place(i, x, channels);
        W sum = 0;
        const T *mine = image + p.b * x.d.input * x.h.input * x.w.input * channels;
        EACH_UNDER(x, p) sum += wide(mine[((d * x.h.input + h) * x.w.input + w) * channels + p.c]);
        out[i] = Narrow<T>::from(sum / (W)count_under(x, p.d, p.h, p.w));
    }
}

extern "C" __global__ void of_average(i64 n, Axes x, i64 channels, const T *dy, T *dx) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        Place p = input_place(i, x, channels);
        W sum = 0;
        EACH_OVER(x, p) {
            sum += wide(dy[window_number(p, d, h, w, x, channels)]) / (W)count_under(x, d, h, w);
        }
        dx[i] = Narrow<T>::from(sum);
    }
}
