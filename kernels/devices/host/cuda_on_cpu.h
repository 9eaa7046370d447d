// The CUDA of this project's kernels, as far as they use it, for an ordinary C++17 compiler.
//
// A kernel is compiled as it stands, with this file in front of it. Each CUDA thread becomes a
// fiber, each block runs on one thread of the operating system, and `__shared__` becomes
// thread_local: one copy for each block that is running. runtime.cpp holds the rest.
//
// Collectives are built on host::gather. What tensor cores need is in mma_on_cpu.h.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <utility>
#include <vector>

#define CUDA_ON_CPU 1

// --- words of the language -------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local  // inside a function: static, and extern where it says extern

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };

static constexpr int warpSize = 32;

// --- where a thread is, and what it may wait for ---------------------------------------------

namespace host {

// A cp.async under way: 16 bytes of shared memory, the first `bytes` of them copied, the rest 0.
struct Copy {
    unsigned char* to;
    const void* from;
    unsigned bytes, group;
};

struct Thread {
    uint3 index;  // threadIdx
    int warp, lane;
    std::vector<Copy> copies;  // that have not landed
    unsigned groups;           // of copies, closed so far
};

struct Block {
    Thread* running;
    uint3 index;  // blockIdx
    dim3 size;    // blockDim
    dim3 grid;    // gridDim
    uint64_t shared_bytes;  // dynamic
    bool late;    // cp.async lands when it is waited for, not at once
};

extern __thread Block* block;  // the one that this thread of the operating system works on

struct Slot { alignas(16) unsigned char bytes[64]; };

// Wait for the whole block. `line` names the place: all threads must wait at the same one.
void block_barrier(const char* what, int line);

// Wait for the lanes of `mask`, which must wait at the same place.
void warp_barrier(unsigned mask, const char* what, int line);

// Leave up to 64 bytes, wait for the lanes of `mask`, return what each left: Slot[32].
const Slot* gather(unsigned mask, const void* mine, size_t bytes, const char* what, int line);

// End the launch with an error.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

template <class T>
inline T shuffle(unsigned mask, T mine, int source, const char* what, int line)
{
    static_assert(sizeof(T) <= sizeof(Slot), "a shuffle moves at most 64 bytes");
    const Slot* slots = gather(mask, &mine, sizeof(T), what, line);
    if (!(mask >> source & 1)) fail("%s, line %d: lane %d is not in its mask", what, line, source);
    T theirs;
    memcpy(&theirs, slots[source].bytes, sizeof(T));
    return theirs;
}

}  // namespace host

#define threadIdx (host::block->running->index)
#define blockIdx (host::block->index)
#define blockDim (host::block->size)
#define gridDim (host::block->grid)

#define __syncthreads() host::block_barrier("__syncthreads", __LINE__)
#define __syncwarp() host::warp_barrier(0xffffffffu, "__syncwarp", __LINE__)
#define __shfl_xor_sync(mask, value, bits) \
    host::shuffle(mask, value, host::block->running->lane ^ (bits), "__shfl_xor_sync", __LINE__)
#define __shfl_sync(mask, value, source) \
    host::shuffle(mask, value, (source) & 31, "__shfl_sync", __LINE__)

// --- arithmetic ------------------------------------------------------------------------------

static inline float __int_as_float(int bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }

template <class T>
static inline T atomicAdd(T* place, T amount)
{
    return __atomic_fetch_add(place, amount, __ATOMIC_RELAXED);
}

// The order of floats that are added up is that of the blocks and threads, and the last bits follow
// it: the builds agree where one worker takes the blocks in a fixed order.
static inline float atomicAdd(float* place, float amount)
{
    unsigned *bits = (unsigned*)place, before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
    do after = __float_as_uint(__uint_as_float(before) + amount);
    while (!__atomic_compare_exchange_n(bits, &before, after, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    return __uint_as_float(before);
}

#include "mma_on_cpu.h"

// --- what a module offers to Python: launch_NAME and sizes_NAME for each kernel --------------

namespace host {

struct Launch {
    unsigned grid[3], block[3];
    uint64_t shared_bytes;
    int order;  // of threads and blocks: 0 forward, 1 reverse, 2 random
    unsigned seed;
    int workers;  // threads of the operating system
    int late;     // copies: 0 early, 1 late
};

struct Body {
    virtual void run() const = 0;
};

// Run all blocks; 0, or 1 and a message of at most `size` bytes.
int launch(const Launch& launch, const Body& body, char* message, int size);

template <class... A>
struct Call : Body {
    void (*kernel)(A...);
    void** arguments;

    Call(void (*k)(A...), void** a) : kernel(k), arguments(a) {}
    void run() const override { with(std::index_sequence_for<A...>{}); }
    template <size_t... I>
    void with(std::index_sequence<I...>) const
    {
        kernel(*static_cast<std::remove_const_t<A>*>(arguments[I])...);
    }
};

template <class... A>
int call(void (*kernel)(A...), const Launch* plan, void** arguments, char* message, int size)
{
    return launch(*plan, Call<A...>(kernel, arguments), message, size);
}

template <class... A>
const int* sizes(void (*)(A...))
{
    static const int bytes[] = {static_cast<int>(sizeof(A))..., 0};  // ends with 0
    return bytes;
}

}  // namespace host

#define HOST_PUBLIC extern "C" __attribute__((visibility("default")))
#define HOST_EXPORT(kernel)                                                                     \
    HOST_PUBLIC const int* sizes_##kernel() { return host::sizes(&kernel); }                    \
    HOST_PUBLIC int launch_##kernel(const host::Launch* plan, void** arguments, char* message,  \
                                    int size)                                                   \
    {                                                                                           \
        return host::call(&kernel, plan, arguments, message, size);                             \
    }
