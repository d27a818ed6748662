// Philox 4x32-10 and the distributions: the same words and the same steps as on the CPU. T is the
// type of the output.
typedef WideOf<T>::type W;
// Numbers that come from one call.
const int GROUP = sizeof(T) == 8 ? 2 : 4;
struct Words { u32 w[4]; };
struct Stream { u64 low, high; u32 k0, k1; };

// The words that come `skip` calls after the start of the stream.
__device__ inline Words draw(const Stream &stream, u64 skip) {
    u64 low = stream.low + skip, high = stream.high + (low < stream.low ? 1 : 0);
    u32 a = (u32)low, b = (u32)(low >> 32), c = (u32)high, d = (u32)(high >> 32);
    u32 k0 = stream.k0, k1 = stream.k1;
    for (int round = 0; round < 10; round++) {
        if (round > 0) k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
        u64 p = (u64)a * 0xd2511f53u, q = (u64)c * 0xcd9e8d57u;
        u32 next_a = (u32)(q >> 32) ^ b ^ k0, next_c = (u32)(p >> 32) ^ d ^ k1;
        a = next_a, b = (u32)q, c = next_c, d = (u32)p;
    }
    Words words = {{a, b, c, d}};
    return words;
}

__device__ inline f32 unit(u32 x) { return from_bits((127u << 23) | (x & 0x7fffffu)) - 1.0f; }
__device__ inline f64 unit(u32 high, u32 low) {
    u64 bits = (1023ull << 52) | ((u64)(high & 0xfffffu) << 32) | low;
#ifdef FERROFLOW_EMULATOR
    f64 x;
    __builtin_memcpy(&x, &bits, 8);
#else
    f64 x = __longlong_as_double((long long)bits);
#endif
    return x - 1.0;
}

struct Pair32 { f32 a, b; };
struct Pair64 { f64 a, b; };
__device__ inline Pair32 normals(u32 x, u32 y) {
    f32 u = unit(x);
    if (u < 1.0e-7f) u = 1.0e-7f;
    f32 angle = (f32)(2.0 * 3.14159265358979323846 * (f64)unit(y)), radius = sqrtf(-2.0f * logf(u));
    Pair32 both = {sinf(angle) * radius, cosf(angle) * radius};
    return both;
}
__device__ inline Pair64 normals(const Words &w) {
    f64 u = unit(w.w[0], w.w[1]);
    if (u < 1.0e-7) u = 1.0e-7;
    f64 angle = 2.0 * 3.14159265358979323846 * unit(w.w[2], w.w[3]), radius = sqrt(-2.0 * log(u));
    Pair64 both = {sin(angle) * radius, cos(angle) * radius};
    return both;
}

// A uniform number of each type from word `i` of a call.
template <class X> struct Uniform {};
template <> struct Uniform<f32> {
    static __device__ inline f32 from(const Words &w, int i) { return unit(w.w[i]); }
};
template <> struct Uniform<f64> {
    static __device__ inline f64 from(const Words &w, int i) { return unit(w.w[2 * i], w.w[2 * i + 1]); }
};
template <> struct Uniform<f16> {
    static __device__ inline f16 from(const Words &w, int i) {
        f16 x;
        x.bits = (u16)((15 << 10) | (w.w[i] & 0x3ff));
        return Narrow<f16>::from(wide(x) - 1.0f);
    }
};
template <> struct Uniform<bf16> {
    static __device__ inline bf16 from(const Words &w, int i) {
        bf16 x;
        x.bits = (u16)((127 << 7) | (w.w[i] & 0x7f));
        return Narrow<bf16>::from(wide(x) - 1.0f);
    }
};

// Two normal numbers in the wide type: pair `i` of a call.
template <class X> struct Normal {
    static const int CALL_PAIRS = 2;
    static __device__ inline Pair32 pair(const Words &w, int i) {
        return normals(w.w[2 * i], w.w[2 * i + 1]);
    }
};
template <> struct Normal<f64> {
    static const int CALL_PAIRS = 1;
    static __device__ inline Pair64 pair(const Words &w, int) { return normals(w); }
};
