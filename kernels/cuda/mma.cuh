// The instructions that tensor cores need, one function each; sm_80 and later.
//
// On a GPU each is a line of PTX, elsewhere kernels/devices/host/mma_on_cpu.h plays it: the text of a
// kernel is the same for both. After common.cuh, with ELEMENT 1 (float16) or 2 (bfloat16).
//
// A warp holds a small matrix together, a *fragment*. With group = lane / 4, pair = lane % 4 x 2,
// and two elements in a register, the lower column (A, C) or row (B) in the lower half
// (PTX ISA, "Matrix fragments for mma.m16n8k16"):
//
//   A  16 x 16   a[0] row group,     columns pair, pair + 1      a[2] the same, columns + 8
//                a[1] row group + 8, the same columns            a[3] row + 8, columns + 8
//   B  16 x 8    b[0] rows pair, pair + 1, column group          b[1] the same, rows + 8
//   C  16 x 8    c[0], c[1] row group, columns pair, pair + 1    c[2], c[3] row group + 8
//
// C, narrowed and two columns of registers side by side, is A: P needs no way through memory.

#define FRAGMENT 16  // rows of A; columns of A and rows of B; two B side by side have 16 columns
#define CHUNK 8      // elements of 16 bytes: what one thread copies, and one row of an 8 x 8 matrix

// Sixteen bytes that move at once.
struct __align__(16) Chunk { unsigned pairs[4]; };

#ifdef __CUDA_ARCH__

// Where a place in shared memory lies in the window that the instructions below address.
__device__ __forceinline__ unsigned shared_address(const void* place)
{
    return (unsigned)__cvta_generic_to_shared(place);
}

// Begins to copy 16 bytes from HBM to shared memory; unwanted, it writes zeros and reads nothing.
__device__ __forceinline__ void copy_async(unsigned to_shared, const element* from_hbm, bool wanted)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(to_shared), "l"(from_hbm), "r"(wanted ? 16 : 0) : "memory");
}

// Closes a group of copies of this thread.
__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups but the latest PENDING have landed: this thread's own, so that a barrier
// must follow before another thread reads them.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// Four 8 x 8 matrices. Lane n names the place of row n % 8 of matrix n / 8; each lane receives
// of each the elements pair, pair + 1 of row group, or of column group where it is transposed.
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned row_shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row_shared) : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(unsigned (&r)[4], unsigned row_shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row_shared) : "memory");
}

#if ELEMENT == 2
#define MMA_TYPE "bf16"
#else
#define MMA_TYPE "f16"
#endif

// C += A B. Products are exact, sums float32.
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two elements in a register, rounded to the nearest even.
__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// 2^x to about 2 units in the last place; 0 for -inf.
__device__ __forceinline__ float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#else

__device__ __forceinline__ unsigned shared_address(const void* place)
{
    return host::shared_address(place);
}

__device__ __forceinline__ void copy_async(unsigned to_shared, const element* from_hbm, bool wanted)
{
    host::copy_async(to_shared, from_hbm, wanted ? 16 : 0);
}

__device__ __forceinline__ void commit_copies() { host::commit_copies(); }

template <int PENDING>
__device__ __forceinline__ void wait_for_copies() { host::wait_for_copies(PENDING); }

__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned row_shared)
{
    host::ldmatrix<false>(r, row_shared, __LINE__);
}

__device__ __forceinline__ void ldmatrix_transposed(unsigned (&r)[4], unsigned row_shared)
{
    host::ldmatrix<true>(r, row_shared, __LINE__);
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    // Each lane widens its own elements, once for all lanes.
    const unsigned halves[6] = {a[0], a[1], a[2], a[3], b0, b1};
    host::Fragments wide;
    for (int n = 0; n < 6; ++n) {
        wide.of[2 * n] = widen((unsigned short)halves[n]);
        wide.of[2 * n + 1] = widen((unsigned short)(halves[n] >> 16));
    }
    host::mma_m16n8k16(c, wide, __LINE__);
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    return (unsigned)narrow(low) | (unsigned)narrow(high) << 16;
}

__device__ __forceinline__ float fast_exp2(float x) { return exp2f(x); }

#endif
