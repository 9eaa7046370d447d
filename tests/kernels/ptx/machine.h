// The memory of a GPU and what its threads do together, for PTX that runs on fibers.
//
// Written from "Matrix fragments for mma.m16n8k16", "ldmatrix", "cp.async" and "shfl.sync" of the
// PTX ISA, apart from the project's own mma_on_cpu.h: a mistake there is not repeated here.
#pragma once

#include "numbers.h"

namespace ptx {

// --- memory: every address is held against its bounds and its alignment ------------------------

constexpr u64 FIXED = 1 << 24;  // where arrays of a stated size lie; the launch's part begins at 0

struct Window {  // a block's shared memory
    unsigned char *launched, *fixed;
    u64 fixed_bytes;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(const char* space, u64 at, u64 bytes, int line)
{
    const u64 launched = host::block->shared_bytes;
    if (at % bytes)
        host::fail("line %d of the PTX: %s address %#llx is not a multiple of %llu", line, space,
                   (unsigned long long)at, (unsigned long long)bytes);
    if (*space == 'g')
        host::fail("line %d of the PTX: %llu bytes at global address %#llx lie outside of every array",
                   line, (unsigned long long)bytes, (unsigned long long)at);
    host::fail("line %d of the PTX: %llu bytes at %s address %#llx lie outside (a launch gave %llu)",
               line, (unsigned long long)bytes, space, (unsigned long long)at,
               (unsigned long long)launched);
}

template <u64 BYTES> inline unsigned char* shared(const Window& window, u64 at, int line)
{
    const bool fixed = at >= FIXED;
    const u64 place = fixed ? at - FIXED : at;
    const u64 end = fixed ? window.fixed_bytes : host::block->shared_bytes;
    if (at % BYTES || place + BYTES > end) refuse("shared", at, BYTES, line);
    return (fixed ? window.fixed : window.launched) + place;
}

constexpr u64 NOTHING = 4096;  // no array begins below: such an address is an offset to null

// Where arrays are, in their order, if whoever launches says so: gpu_double/driver.cpp does.
struct Span { u64 first, end; };
struct Spans { const Span* spans; u64 count; };
extern "C" __attribute__((visibility("default"))) Spans allocated;
Spans allocated = {nullptr, 0};

inline bool in_an_array(u64 at, u64 bytes)
{
    u64 low = 0, high = allocated.count;
    while (low < high) {  // the first that ends beyond the address
        const u64 middle = (low + high) / 2;
        if (allocated.spans[middle].end > at) high = middle;
        else low = middle + 1;
    }
    return low < allocated.count && allocated.spans[low].first <= at &&
           at + bytes <= allocated.spans[low].end;
}

template <u64 BYTES> inline unsigned char* global(u64 at, int line)
{
    if (at % BYTES || at < NOTHING || (allocated.spans && !in_an_array(at, BYTES)))
        refuse("global", at, BYTES, line);
    return reinterpret_cast<unsigned char*>(at);
}

template <class T> inline T load(const unsigned char* place)
{
    T x;
    memcpy(&x, place, sizeof x);
    return x;
}
template <class T> inline void store(unsigned char* place, T x) { memcpy(place, &x, sizeof x); }

template <class T> inline T atomic_add(unsigned char* place, T x)
{
    return __atomic_fetch_add(reinterpret_cast<T*>(place), x, __ATOMIC_RELAXED);
}
inline u32 atomic_add_f32(unsigned char* place, u32 x)
{
    u32 *bits = reinterpret_cast<u32*>(place), before = __atomic_load_n(bits, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(bits, &before, add_f32<true>(before, x), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return before;
}
template <class T> inline T atomic_or(unsigned char* place, T x)
{
    return __atomic_fetch_or(reinterpret_cast<T*>(place), x, __ATOMIC_RELAXED);
}
template <class T> inline T atomic_exchange(unsigned char* place, T x)
{
    return __atomic_exchange_n(reinterpret_cast<T*>(place), x, __ATOMIC_RELAXED);
}

// --- waiting ---------------------------------------------------------------------------------

inline void barrier(u32 number, int line)
{
    if (number) host::fail("line %d of the PTX: barrier %u, where kernels use 0 alone", line, number);
    host::block_barrier("bar.sync", line);
}

// --- cp.async: 16 bytes of which the first `bytes` are read, the others zero -------------------
//
// A schedule says whether copies land at once or when their group is waited for.

inline void arrive(const host::Copy& copy)
{
    unsigned char whole[16] = {};
    if (copy.bytes) memcpy(whole, copy.from, copy.bytes);
    memcpy(copy.to, whole, 16);
}

inline void copy_async(unsigned char* to, u64 from, u32 bytes, int line)
{
    if (bytes > 16) host::fail("line %d of the PTX: cp.async reads %u bytes of 16", line, bytes);
    const void* source = bytes ? global<16>(from, line) : nullptr;
    host::Thread& me = *host::block->running;
    const host::Copy copy{to, source, bytes, me.groups};
    if (!host::block->late) return arrive(copy);
    memset(to, 0xff, 16);  // NaN until then
    me.copies.push_back(copy);
}

inline void commit_group() { ++host::block->running->groups; }

// All groups but the `pending` last land; copies of no group yet stay under way.
inline void wait_group(u32 pending)
{
    host::Thread& me = *host::block->running;
    std::vector<host::Copy> under_way;
    for (const host::Copy& copy : me.copies)
        if (copy.group + pending < me.groups) arrive(copy);
        else under_way.push_back(copy);
    me.copies.swap(under_way);
}

// --- shuffles --------------------------------------------------------------------------------

enum Way { UP, DOWN, BUTTERFLY, INDEX };

// The value of another lane; from outside of the segment that `clamp` states: one's own.
template <Way WAY> inline u32 shuffle(u32 mine, u32 by, u32 clamp, u32 members, int line, bool& inside)
{
    const int lane = host::block->running->lane, steps = by & 31;
    const host::Slot* slots = host::gather(members, &mine, sizeof mine, "shfl.sync", line);
    const int segment = clamp >> 8 & 31, bound = clamp & 31;
    const int first = lane & segment, last = first | (bound & ~segment);
    int from = lane;
    if (WAY == UP) from = lane - steps;
    if (WAY == DOWN) from = lane + steps;
    if (WAY == BUTTERFLY) from = lane ^ steps;
    if (WAY == INDEX) from = first | (steps & ~segment);
    inside = WAY == UP ? from >= last : from <= last;
    if (!inside) from = lane;
    if (!(members >> from & 1))
        host::fail("line %d of the PTX: lane %d reads lane %d, which does not take part", line, lane, from);
    return load<u32>(slots[from].bytes);
}

// --- matrices --------------------------------------------------------------------------------

// Row r of matrix n lies where lane 8 n + r points. Lane l gets of row l / 4 the elements
// 2 (l % 4) and the next; transposed: of column l / 4.
template <int MATRICES, bool TRANSPOSED>
inline void load_matrices(u32 (&found)[MATRICES], const Window& window, u64 row, int line)
{
    const int lane = host::block->running->lane;
    u16 mine[8] = {};
    if (lane < 8 * MATRICES) memcpy(mine, shared<16>(window, row, line), sizeof mine);
    const host::Slot* rows = host::gather(~0u, mine, sizeof mine, "ldmatrix", line);
    for (int n = 0; n < MATRICES; ++n) {
        u16 matrix[8][8];
        for (int r = 0; r < 8; ++r) memcpy(matrix[r], rows[8 * n + r].bytes, sizeof matrix[r]);
        const int major = lane / 4, minor = lane % 4 * 2;
        const u16 low = TRANSPOSED ? matrix[minor][major] : matrix[major][minor];
        const u16 high = TRANSPOSED ? matrix[minor + 1][major] : matrix[major][minor + 1];
        found[n] = u32(high) << 16 | low;
    }
}

// A sum of products, which are exact, and an addend. In float64 it is rounded once; those of tensor cores, as far as
// has been measured of them, lose what lies below the largest addend's last bits, and are cut off.
inline float tensor_sum(const double (&terms)[17])
{
    double largest = 0, sum = 0;
    for (const double term : terms) {
        largest = fmax(largest, fabs(term));
        sum += term;
    }
    if (!TRUNCATES || sum != sum || isinf(sum) || largest == 0) return float(sum);
    const double unit = ldexp(1.0, ilogb(largest) - 24);
    sum = 0;
    for (const double term : terms) sum += trunc(term / unit) * unit;
    if (sum == 0) return 0;
    const double last = ldexp(1.0, ilogb(sum) - 23);
    return float(trunc(sum / last) * last);
}

// mma.m16n8k16: A, B and C whole, from the registers of all lanes, then one lane's part of D.
// With group = lane / 4 and thread = lane % 4, element i of a lane stands at
//   A  row group (i = 0, 1, 4, 5) or group + 8, column 2 thread + i % 2, + 8 from i = 4 on
//   B  row 2 thread + i % 2, + 8 from i = 2 on, column group
//   C  row group (i < 2) or group + 8, column 2 thread + i % 2
template <bool BFLOAT>
inline void multiply(u32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const u32 (&c)[4], int line)
{
    const auto widened = [](u32 both, int half) {
        const u16 bits = u16(both >> 16 * half);
        return double(unpacked(BFLOAT ? u32(bits) << 16 : from_half(bits)));
    };
    const u32 mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const host::Slot* all = host::gather(~0u, mine, sizeof mine, "mma.sync", line);
    double A[16][16], B[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, thread = lane % 4;
        u32 theirs[6];
        memcpy(theirs, all[lane].bytes, sizeof theirs);
        for (int i = 0; i < 8; ++i)
            A[i % 4 < 2 ? group : group + 8][2 * thread + i % 2 + (i < 4 ? 0 : 8)] =
                widened(theirs[i / 2], i % 2);
        for (int i = 0; i < 4; ++i)
            B[2 * thread + i % 2 + (i < 2 ? 0 : 8)][group] = widened(theirs[4 + i / 2], i % 2);
    }
    const int group = host::block->running->lane / 4, thread = host::block->running->lane % 4;
    for (int i = 0; i < 4; ++i) {
        const int row = i < 2 ? group : group + 8, column = 2 * thread + i % 2;
        double terms[17];
        for (int k = 0; k < 16; ++k) terms[k] = A[row][k] * B[k][column];
        terms[16] = unpacked(c[i]);
        d[i] = packed(tensor_sum(terms));
    }
}

}  // namespace ptx
