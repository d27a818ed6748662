// T is the type of elements. Images have channels last.
typedef WideOf<T>::type W;

// A spatial dimension: sizes of input, window and output, steps of and within the window, and
// positions before the input that the first window covers.
struct Axis { i64 input, window, output, stride, dilation, before; };
struct Axes { Axis d, h, w; };

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
    return from > 0 ? (from + a.stride - 1) / a.stride : 0;
}
__device__ inline i64 end_over(const Axis &a, i64 at) {
    i64 end = (at + a.before) / a.stride + 1;
    return end < a.output ? end : a.output;
}

struct Place { i64 b, d, h, w, c; };
__device__ inline Place place(i64 i, i64 d, i64 h, i64 w, i64 channels) {
    Place p;
    p.c = i % channels; i /= channels;
    p.w = i % w; i /= w;
    p.h = i % h; i /= h;
    p.d = i % d; p.b = i / d;
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
