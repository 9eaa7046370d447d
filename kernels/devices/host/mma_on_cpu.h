// What tensor cores do, on the CPU: mma.sync, ldmatrix and cp.async as the PTX ISA defines them.
//
// cuda_on_cpu.h includes this; kernels reach it through cuda/mma.cuh. All three
// respect the rules whose breach a GPU would not report: addresses are aligned and inside the
// block's shared memory, and a copy that is not waited for is not there.
#pragma once

namespace host {

unsigned char* dynamic_shared();  // of the block that is running

// The window of shared memory begins at the dynamic part.
inline unsigned shared_address(const void* place)
{
    return static_cast<unsigned>(static_cast<const unsigned char*>(place) - dynamic_shared());
}

// The 16 bytes at an address of shared memory.
inline unsigned char* chunk_at(unsigned address, const char* what)
{
    if (address % 16) fail("%s: address %u is not a multiple of 16", what, address);
    if (address + 16ull > block->shared_bytes)
        fail("%s: address %u lies past its %llu bytes of shared memory", what, address,
             static_cast<unsigned long long>(block->shared_bytes));
    return dynamic_shared() + address;
}

// --- cp.async --------------------------------------------------------------------------------
//
// A copy may land at any time until it is waited for. Early: at once, so that whoever still
// reads what was there sees it go. Late: when the thread waits for its group, and until then the
// place holds NaN, so that whoever reads too soon sees that.

inline void land(const Copy& copy)
{
    memset(copy.to, 0, 16);  // what is not read becomes zero
    if (copy.bytes) memcpy(copy.to, copy.from, copy.bytes);
}

__forceinline__ void copy_async(unsigned to, const void* from, unsigned bytes)
{
    if (bytes && reinterpret_cast<uintptr_t>(from) % 16)
        fail("cp.async: %p in global memory is not a multiple of 16", from);
    Thread& me = *block->running;
    const Copy copy = {chunk_at(to, "cp.async"), from, bytes, me.groups};
    if (block->late) {
        memset(copy.to, 0xff, 16);
        me.copies.push_back(copy);
    } else {
        land(copy);
    }
    WATCHED(watch::copies_to(copy.to, from, bytes);)
}

inline void commit_copies() { ++block->running->groups; }

inline void wait_for_copies(unsigned pending)
{
    Thread& me = *block->running;
    WATCHED(watch::waited(pending);)
    const auto waited_for = [&](const Copy& copy) { return copy.group + pending < me.groups; };
    size_t left = 0;
    for (const Copy& copy : me.copies) {
        if (waited_for(copy)) land(copy);
        else me.copies[left++] = copy;
    }
    me.copies.resize(left);
}

// --- ldmatrix --------------------------------------------------------------------------------
//
// The first 8 x MATRICES lanes name a row each. Every one reads its row and shows it to the
// others, so a row is read when its lane arrives, not when the last one does.

template <bool TRANSPOSED, int MATRICES>
__forceinline__ void ldmatrix(unsigned (&r)[MATRICES], unsigned row, int line)
{
    static_assert(MATRICES == 1 || MATRICES == 2 || MATRICES == 4, ".x1, .x2, .x4");
    const int lane = block->running->lane, group = lane / 4, pair = lane % 4 * 2;
    uint16_t mine[8] = {};
    if (lane < 8 * MATRICES) {
        const unsigned char* chunk = chunk_at(row, "ldmatrix");
        WATCHED(watch::reads(chunk, sizeof mine);)
        memcpy(mine, chunk, sizeof mine);
    }
    const Slot* rows = gather(0xffffffffu, mine, sizeof mine, "ldmatrix", line);
    const auto element = [&](int matrix, int at_row, int column) -> unsigned {
        uint16_t x;
        memcpy(&x, rows[8 * matrix + at_row].bytes + 2 * column, sizeof x);
        return x;
    };
    for (int n = 0; n < MATRICES; ++n)
        r[n] = TRANSPOSED ? element(n, pair, group) | element(n, pair + 1, group) << 16
                          : element(n, group, pair) | element(n, group, pair + 1) << 16;
}

// --- mma.sync.m16n8k16 -----------------------------------------------------------------------

// A lane's part of A, 8 elements, and of B, 4, widened to float32: in the order of its registers.
struct Fragments { float of[12]; };

// C += A B, each sum in the order of k. Tensor cores add in an order of their own, and cut off
// what float32 cannot hold instead of rounding it: the same number up to a few units of 2^-23.
inline void mma_m16n8k16(float (&c)[4], const Fragments& mine, int line)
{
    const int lane = block->running->lane, group = lane / 4, pair = lane % 4 * 2;
    const Slot* slots = gather(0xffffffffu, &mine, sizeof mine, "mma.sync", line);
    const auto of = [&](int n) { return reinterpret_cast<const float*>(slots[n].bytes); };
    for (int half = 0; half < 2; ++half)         // row group, row group + 8
        for (int column = 0; column < 2; ++column)  // pair, pair + 1
            for (int k = 0; k < 16; ++k) {
                const int owner = k % 8 / 2, low = k % 2, upper = k / 8;
                const float a = of(group * 4 + owner)[4 * upper + 2 * half + low];
                const float b = of((pair + column) * 4 + owner)[8 + 2 * upper + low];
                c[2 * half + column] += a * b;
            }
}

}  // namespace host
