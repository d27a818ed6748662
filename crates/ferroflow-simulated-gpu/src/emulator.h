// Runs CUDA kernels on the processor. The threads of a block are fibers that run one at a time, in
// a random order that changes at each barrier, so that a missing barrier shows as a wrong result.
#define FERROFLOW_EMULATOR 1
#include <cmath>
#include <math.h>
#include <stdlib.h>
#include <ucontext.h>
#include <utility>

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __shared__ static thread_local
#define __restrict__ __restrict
#define __launch_bounds__(...)

// Functions of CUDA that the processor's library lacks.
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
// The library throws where the result is too large for a double.
static inline double bessel_i(double order, double x) {
    return x < 713 ? std::cyl_bessel_i(order, x) : x + HUGE_VAL;
}
static inline double cyl_bessel_i0(double x) { return bessel_i(0, fabs(x)); }
static inline double cyl_bessel_i1(double x) { return copysign(bessel_i(1, fabs(x)), x); }
static inline double normcdfinv(double p) {
    if (!(p > 0 && p < 1)) return p == 0 ? -HUGE_VAL : p == 1 ? HUGE_VAL : NAN;
    // Bisection, then Newton's steps, on the smaller tail.
    double tail = p < 0.5 ? p : 1 - p, low = -40, high = 0;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        (0.5 * erfc(-middle / M_SQRT2) < tail ? low : high) = middle;
    }
    double x = (low + high) / 2;
    for (int i = 0; i < 3; i++)
        x -= (0.5 * erfc(-x / M_SQRT2) - tail) * sqrt(2 * M_PI) * exp(x * x / 2);
    return p < 0.5 ? x : -x;
}
static inline double erfinv(double y) {
    if (!(y > -1 && y < 1)) return y == 1 ? HUGE_VAL : y == -1 ? -HUGE_VAL : NAN;
    if (fabs(y) > 0.5) return normcdfinv((y + 1) / 2) / M_SQRT2;
    double x = y * 0.886226925452758;
    for (int i = 0; i < 20; i++) x -= (erf(x) - y) * 0.886226925452758 * exp(x * x);
    return x;
}

// The library's functions look at bits, so they do not take denormals as zero.
static inline float wide(float x) {
    return fabsf(x) < __FLT_MIN__ ? copysignf(0.0f, x) : x;
}

struct EmulatedIndex { unsigned x, y, z; };
static thread_local EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

struct Order {
    unsigned long long state;
    unsigned next(unsigned below) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (unsigned)((state >> 33) % below);
    }
};

struct Fiber {
    ucontext_t context;
    EmulatedIndex index;
    bool done;
};

const unsigned STACK = 64 << 10;
static thread_local ucontext_t scheduler;
static thread_local Fiber *current = 0;
static thread_local void (*body)(const void *const *) = 0;
static thread_local const void *const *arguments = 0;

static void start() {
    body(arguments);
    current->done = true;
    swapcontext(&current->context, &scheduler);
}

static EmulatedIndex index_of(unsigned i, EmulatedIndex n) {
    EmulatedIndex at = {i % n.x, i / n.x % n.y, i / n.x / n.y};
    return at;
}

// A block without barriers: each thread runs to its end.
static void run_plain(Order &order, unsigned threads) {
    unsigned first = order.next(threads);
    bool back = order.next(2);
    for (unsigned i = 0; i < threads; i++) {
        unsigned at = (first + (back ? threads - i : i)) % threads;
        threadIdx = index_of(at, blockDim);
        body(arguments);
    }
}

// A block with barriers: each round runs every thread up to its next barrier.
static void run_fibers(Order &order, unsigned threads) {
    static thread_local Fiber *fibers = 0;
    static thread_local char *stacks = 0;
    static thread_local unsigned capacity = 0;
    if (capacity < threads) {
        free(fibers);
        free(stacks);
        fibers = (Fiber *)malloc(sizeof(Fiber) * threads);
        stacks = (char *)malloc((size_t)STACK * threads);
        capacity = threads;
    }
    for (unsigned i = 0; i < threads; i++) {
        Fiber &fiber = fibers[i];
        fiber.done = false;
        fiber.index = index_of(i, blockDim);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = stacks + (size_t)STACK * i;
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = 0;
        makecontext(&fiber.context, start, 0);
    }
    for (bool any = true; any;) {
        any = false;
        unsigned first = order.next(threads);
        bool back = order.next(2);
        for (unsigned i = 0; i < threads; i++) {
            Fiber &fiber = fibers[(first + (back ? threads - i : i)) % threads];
            if (fiber.done) continue;
            current = &fiber;
            threadIdx = fiber.index;
            swapcontext(&scheduler, &fiber.context);
            any |= !fiber.done;
        }
    }
}

static void barrier() {
    Fiber *me = current;
    swapcontext(&me->context, &scheduler);
}

// The value that another thread of the block has: that with number `me ^ mask`.
template <class T> static T exchange(T x, int mask) {
    static thread_local T values[1024];
    unsigned me = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    values[me] = x;
    barrier();
    T theirs = values[me ^ mask];
    barrier();
    return theirs;
}

static void run(void (*f)(const void *const *), const void *const *args, const unsigned *grid,
                const unsigned *block, unsigned long long seed, bool has_barriers) {
    Order order = {seed};
    body = f;
    arguments = args;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    unsigned blocks = grid[0] * grid[1] * grid[2], threads = block[0] * block[1] * block[2];
    unsigned first = order.next(blocks);
    for (unsigned i = 0; i < blocks; i++) {
        blockIdx = index_of((first + i) % blocks, gridDim);
        if (has_barriers) run_fibers(order, threads);
        else run_plain(order, threads);
    }
}

template <class... A, size_t... I>
static void invoke(void (*f)(A...), const void *const *args, std::index_sequence<I...>) {
    f(*(const A *)args[I]...);
}

template <class... A> static void call(void (*f)(A...), const void *const *args) {
    invoke(f, args, std::index_sequence_for<A...>());
}

} // namespace emulator

static inline void __syncthreads() { emulator::barrier(); }

// Makes `run_NAME`, which Rust calls, of the kernel NAME.
#define EMULATED_KERNEL(NAME, BARRIERS)                                                            \
    static void body_##NAME(const void *const *args) { emulator::call(NAME, args); }              \
    extern "C" __attribute__((visibility("default"))) void run_##NAME(                            \
        const void *const *args, const unsigned *grid, const unsigned *block,                     \
        unsigned long long seed) {                                                                \
        emulator::run(body_##NAME, args, grid, block, seed, BARRIERS);                            \
    }
