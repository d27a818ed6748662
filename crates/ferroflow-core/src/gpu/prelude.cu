// Types and conversions for all kernels. Compiled by NVRTC without headers, and by g++ for tests,
// which defines FERROFLOW_EMULATOR and the keywords of CUDA.
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

struct f16 { u16 bits; };
struct bf16 { u16 bits; };

// The type that a type is computed in.
template <class T> struct WideOf { typedef T type; };
template <> struct WideOf<f16> { typedef f32 type; };
template <> struct WideOf<bf16> { typedef f32 type; };

// The type that sums and means are made in.
template <class T> struct SumOf { typedef T type; };
template <> struct SumOf<f16> { typedef f32 type; };
template <> struct SumOf<bf16> { typedef f32 type; };

__device__ inline u32 bits_of(f32 x) {
#ifdef FERROFLOW_EMULATOR
    u32 bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
#else
    return __float_as_uint(x);
#endif
}

__device__ inline f32 from_bits(u32 bits) {
#ifdef FERROFLOW_EMULATOR
    f32 x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
#else
    return __uint_as_float(bits);
#endif
}

__device__ inline f32 wide(bf16 x) { return from_bits((u32)x.bits << 16); }

__device__ inline f32 wide(f16 x) {
#ifdef FERROFLOW_EMULATOR
    _Float16 half;
    __builtin_memcpy(&half, &x.bits, 2);
    return (f32)half;
#else
    f32 y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
#endif
}

template <class T> __device__ inline T wide(T x) { return x; }

// From the wide type to the type itself, to the nearest, ties to even.
template <class T> struct Narrow {
    template <class W> static __device__ inline T from(W x) { return (T)x; }
};
template <> struct Narrow<bf16> {
    static __device__ inline bf16 from(f32 x) {
        bf16 y;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
        u32 bits = bits_of(x);
        y.bits = x != x ? (u16)((bits >> 16) | 64) : (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
        return y;
    }
};
template <> struct Narrow<f16> {
    static __device__ inline f16 from(f32 x) {
        f16 y;
#ifdef FERROFLOW_EMULATOR
        _Float16 half = (_Float16)x;
        __builtin_memcpy(&y.bits, &half, 2);
#else
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#endif
        return y;
    }
};

// A number as it is after it was stored as a `T`.
template <class T> __device__ inline typename WideOf<T>::type rounded(typename WideOf<T>::type x) {
    return wide(Narrow<T>::from(x));
}

// `exp(x) - 1`. For half types the steps are rounded, as TensorFlow does.
template <class T> __device__ inline typename WideOf<T>::type exp_less_one(typename WideOf<T>::type x) {
    if (sizeof(T) == 2) return rounded<T>(rounded<T>(exp(x)) - 1);
    return expm1(x);
}

// The hyperbolic tangent, to be stored as a `T`.
template <class T> struct Tanh {
    template <class W> static __device__ inline W of(W x) { return tanh(x); }
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
// One instruction is precise enough: its error is a quarter of that of the rounding.
template <> struct Tanh<bf16> {
    static __device__ inline f32 of(f32 x) {
        f32 y;
        asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }
};
#endif

// The larger and the smaller of two numbers; NaN if either is.
template <class T> __device__ inline T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> __device__ inline T smaller(T a, T b) { return a < b || a != a ? a : b; }

// The ends of a type's range, in its wide type.
template <class T> __device__ inline typename WideOf<T>::type lowest();
template <class T> __device__ inline typename WideOf<T>::type highest();
#define RANGE(T, LOW, HIGH)                                                                        \
    template <> __device__ inline WideOf<T>::type lowest<T>() { return LOW; }                     \
    template <> __device__ inline WideOf<T>::type highest<T>() { return HIGH; }
RANGE(i8, -128, 127)
RANGE(i16, -32768, 32767)
RANGE(i32, -2147483647 - 1, 2147483647)
RANGE(i64, -9223372036854775807ll - 1, 9223372036854775807ll)
RANGE(u8, 0, 255)
RANGE(u16, 0, 65535)
RANGE(u32, 0, 4294967295u)
RANGE(u64, 0, 18446744073709551615ull)
RANGE(f16, from_bits(0xff800000u), from_bits(0x7f800000u))
RANGE(bf16, from_bits(0xff800000u), from_bits(0x7f800000u))
RANGE(f32, from_bits(0xff800000u), from_bits(0x7f800000u))
RANGE(f64, (f64)from_bits(0xff800000u), (f64)from_bits(0x7f800000u))

// The absolute value.
template <class T> __device__ inline T magnitude(T x) { return x < (T)0 ? (T)-x : x; }
__device__ inline f32 magnitude(f32 x) { return fabsf(x); }
__device__ inline f64 magnitude(f64 x) { return fabs(x); }

// A float as an integer of type `T`. One that does not fit becomes the least integer of the width,
// as on x86.
template <class T, class W> __device__ inline T whole(W x) {
    if (sizeof(T) == 8) {
        bool fits = x >= (W)-9223372036854775808.0 && x < (W)9223372036854775808.0;
        return (T)(fits ? (i64)x : -9223372036854775807ll - 1);
    }
    bool fits = x > (W)-2147483649.0 && x < (W)2147483648.0;
    return (T)(fits ? (i32)x : -2147483647 - 1);
}

// -1, 0 or 1.
template <class T> __device__ inline T sign_of(T x) { return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x; }

// The remainder of a division that is rounded down: it has the sign of `y`.
template <class T> __device__ inline T floor_mod(T x, T y) {
    T rest = fmod(x, y);
    return rest != (T)0 && (rest < (T)0) != (y < (T)0) ? rest + y : rest;
}

// The number of this thread among all of the launch, and the number of threads.
__device__ inline i64 thread_number() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return (i64)gridDim.x * blockDim.x; }

// Two neighbours. Those of a half type are computed at once, with the same bits: a sum, a difference
// or a product that is rounded to 32 bits and then to a half type is the one rounded once.
template <class T> struct alignas(2 * sizeof(T)) Two { T at[2]; };
template <> struct Two<f16> { u32 bits; };
template <> struct Two<bf16> { u32 bits; };

template <class T> __device__ inline typename WideOf<T>::type first_of(Two<T> x) { return wide(x.at[0]); }
template <class T> __device__ inline typename WideOf<T>::type second_of(Two<T> x) { return wide(x.at[1]); }
__device__ inline f32 first_of(Two<f16> x) { return wide(f16{(u16)x.bits}); }
__device__ inline f32 second_of(Two<f16> x) { return wide(f16{(u16)(x.bits >> 16)}); }
__device__ inline f32 first_of(Two<bf16> x) { return from_bits(x.bits << 16); }
__device__ inline f32 second_of(Two<bf16> x) { return from_bits(x.bits & 0xffff0000u); }

template <class T> __device__ inline Two<T> pair_of(T x) { return Two<T>{{x, x}}; }
__device__ inline Two<f16> pair_of(f16 x) { return Two<f16>{x.bits * 0x10001u}; }
__device__ inline Two<bf16> pair_of(bf16 x) { return Two<bf16>{x.bits * 0x10001u}; }

// From the wide type to a pair.
template <class T> struct Both {
    template <class A, class B> static __device__ inline Two<T> from(A a, B b) {
        return Two<T>{{Narrow<T>::from(a), Narrow<T>::from(b)}};
    }
};
template <> struct Both<bf16> {
    static __device__ inline Two<bf16> from(f32 a, f32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        u32 bits;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(b), "f"(a));
        return Two<bf16>{bits};
#else
        return Two<bf16>{Narrow<bf16>::from(a).bits | (u32)Narrow<bf16>::from(b).bits << 16};
#endif
    }
};
template <> struct Both<f16> {
    static __device__ inline Two<f16> from(f32 a, f32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        u32 bits;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(b), "f"(a));
        return Two<f16>{bits};
#else
        return Two<f16>{Narrow<f16>::from(a).bits | (u32)Narrow<f16>::from(b).bits << 16};
#endif
    }
};

// A function of two pairs: one instruction, or number by number.
#define IN_PAIRS(T, NAME, INSTRUCTION)                                                             \
    __device__ inline Two<T> NAME(Two<T> x, Two<T> y) {                                            \
        u32 bits;                                                                                  \
        asm(INSTRUCTION " %0, %1, %2;" : "=r"(bits) : "r"(x.bits), "r"(y.bits));                   \
        return Two<T>{bits};                                                                       \
    }
#define ONE_BY_ONE(T, NAME, OP)                                                                    \
    __device__ inline Two<T> NAME(Two<T> x, Two<T> y) {                                            \
        return Both<T>::from(first_of(x) OP first_of(y), second_of(x) OP second_of(y));                        \
    }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
IN_PAIRS(bf16, sum_of, "add.rn.bf16x2")
IN_PAIRS(bf16, difference_of, "sub.rn.bf16x2")
IN_PAIRS(bf16, product_of, "mul.rn.bf16x2")
#else
ONE_BY_ONE(bf16, sum_of, +)
ONE_BY_ONE(bf16, difference_of, -)
ONE_BY_ONE(bf16, product_of, *)
#endif
#if defined(__CUDA_ARCH__)
IN_PAIRS(f16, sum_of, "add.rn.f16x2")
IN_PAIRS(f16, difference_of, "sub.rn.f16x2")
IN_PAIRS(f16, product_of, "mul.rn.f16x2")
#else
ONE_BY_ONE(f16, sum_of, +)
ONE_BY_ONE(f16, difference_of, -)
ONE_BY_ONE(f16, product_of, *)
#endif

// `N` elements that are read or written at once. Their address must be a multiple of their size.
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

// The value of the thread whose number in the warp differs by the bits of `mask`. All threads of a
// block call it.
template <class T> __device__ inline T exchanged(T x, int mask) {
#ifdef FERROFLOW_EMULATOR
    return emulator::exchange(x, mask);
#else
    return __shfl_xor_sync(0xffffffffu, x, mask);
#endif
}
