// FlashAttention-2, forward, on tensor cores.
//
// Paper      Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
//            Partitioning", Algorithm 1; every line of it is cited where it is done.
// Limits     float16 or bfloat16, HEAD_DIM = VALUE_DIM = 64 or 128, CAUSAL = 1 or 0 (no mask);
//            sm_80 and later. Q, K, V and O begin at multiples of 16 bytes.
// Grid       (row blocks, heads): the last row block first, which under a causal mask has the
//            most to do, so that no long one is left over at the end.
// Block      WARPS warps; a warp owns ROWS = BR / WARPS query rows, as fragments of 16
//            (mma.cuh says which lane holds what). With BR = 128 and 4 warps that is 32, and what
//            a warp reads of K and V serves two fragments: shared memory then has half to do.
// Shared     Q and BUFFERS tiles each of K and V: 2 d (BR + 2 BUFFERS BC) bytes, 96 or 64 KiB at
//            d = 128 and BC = 64 (kernels/cuda/tensor_core.py: shared_bytes). O leaves through
//            Q's place.
// Buffers    With two, tile j + 1 is on its way (cp.async) while tile j is worked on, and one barrier
//            a tile is enough. With one, V_j is on its way while S is made, K_(j + 1) while O is,
//            and there are two barriers; but two blocks are on a multiprocessor where two buffers
//            leave room for one (tensor_core.py: most_resident).
// Registers  S and O of a warp's rows, float32: ROWS (BC + d) / 32, which is 192 a lane at d = 128;
//            Q as well where it takes no more than 32, else it is read from shared memory again.
// Changed    since flash2.cu: S = Q K^T and O += P V are mma.sync on elements as they lie in HBM,
//            P is rounded to them, too; S and P never leave the registers; tiles are on their way
//            while others are worked on; shared memory is swizzled; exp is exp2, log2(e) in the
//            scale. There is no trace build: what it computes is flash2's, which has one.
//
// The swizzle. Shared memory has 32 banks of 4 bytes; 16 bytes are a chunk, eight chunks fill all
// banks. ldmatrix reads the same chunk of eight rows, and whole rows are copied in. As rows are 8
// or 16 chunks long, chunk c of every row would lie in the same banks: eight reads, one after
// another. So row r keeps chunk c at place c ^ (r % 8): eight rows in turn have it at eight
// different places, and eight chunks of one row are only put in another order. Both meet no
// conflict, and no byte is spent on padding.
//
//            place 0   1   2   3   4   5   6   7
//   row 0          c0  c1  c2  c3  c4  c5  c6  c7
//   row 1          c1  c0  c3  c2  c5  c4  c7  c6
//   row 2          c2  c3  c0  c1  c6  c7  c4  c5

#include "common.cuh"
#include "mma.cuh"

#define CHUNKS (HEAD_DIM / CHUNK)              // of a row of Q, K, V or O
#define TILE_BYTES (BC * HEAD_DIM * 2)         // of K or V
#define ROW_FRAGMENTS (ROWS / FRAGMENT)        // of a warp's rows
#define KEEP_Q (ROWS * HEAD_DIM / 64 <= 32)    // in registers, of which it takes so many
#define LOG2_E 1.4426950408889634f
#ifndef SWIZZLE
#define SWIZZLE 1  // 0: every row in the same order, a rung of kernels/checks/ladder.py
#endif

// Offset in bytes of a chunk in a swizzled tile.
__device__ __forceinline__ unsigned swizzled(int row, int chunk)
{
    return (unsigned)(row * CHUNKS + (chunk ^ SWIZZLE * (row & 7))) * 16;
}

// The address of the chunk 2 n after one of the first two of a row. There + 2 n is ^ 2 n, which
// the swizzle leaves alone: one xor of the address (tiles begin at multiples of 128 bytes), and
// ldmatrix adds the rest as a constant. Few registers, as each tile has its own addresses anyway.
__device__ __forceinline__ unsigned further(unsigned chunk_shared, int n)
{
    return (chunk_shared ^ n % 4 * 32) + n / 4 * 128;
}

// Begins to copy a tile from HBM, by the whole block. Rows past the end become zeros: a key that
// is not there scores 0 before it is masked, and its P = 0 meets V = 0, never a NaN.
template <int TILE>
__device__ __forceinline__ void load_rows(unsigned tile_shared, const element* tile_hbm, int rows)
{
    const int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    const unsigned to_shared = tile_shared + swizzled(row, chunk);
    const element* from_hbm = tile_hbm + (row * HEAD_DIM + chunk * CHUNK);
    #pragma unroll
    for (int n = 0; n < TILE; n += THREADS / CHUNKS)  // a multiple of 8: swizzled alike
        copy_async(to_shared + n * HEAD_DIM * 2, from_hbm + n * HEAD_DIM, row + n < rows);
}

__device__ __forceinline__ void clear(float (&c)[4]) { c[0] = c[1] = c[2] = c[3] = 0.0f; }

// Of the four lanes that share a row of S.
__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// ptxas flash2_mma fast: at most 255 registers, 0 bytes of stack, 0 bytes spilled, 43 KiB of code
extern "C" __global__ void __launch_bounds__(THREADS) flash2_mma(
    const element* __restrict__ Q_hbm,   // [heads, Nq, HEAD_DIM]
    const element* __restrict__ K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const element* __restrict__ V_hbm,   // [kv heads, Nk, HEAD_DIM]
    const int* __restrict__ kv_head_of,  // [heads]
    element* __restrict__ O_hbm,         // [heads, Nq, HEAD_DIM]
    float* __restrict__ LSE_hbm,         // [heads, Nq]
    int seqlen_q, int seqlen_k, float scale)
{
    extern __shared__ __align__(128) unsigned char shared_memory[];
    const unsigned Q_shared = shared_address(shared_memory);   // [BR, HEAD_DIM], swizzled
    const unsigned K_shared = Q_shared + BR * HEAD_DIM * 2;    // [BUFFERS, BC, HEAD_DIM], swizzled
    const unsigned V_shared = K_shared + BUFFERS * TILE_BYTES; // [BUFFERS, BC, HEAD_DIM], swizzled

    const int head = blockIdx.y, i = gridDim.x - 1 - blockIdx.x;
    const int rows = seqlen_q - i * BR < BR ? seqlen_q - i * BR : BR;
    const int warp_row = threadIdx.x / WARP * ROWS;            // the warp's first, in the row block
    const int group = lane() / 4, pair = lane() % 4 * 2;
    const int seen = CAUSAL ? i * BR + seqlen_k - seqlen_q + 1 : seqlen_k;  // keys that row 0 sees
    const int tiles = (seen + CAUSAL * (rows - 1) + BC - 1) / BC;           // that the last row sees
    const Index row_of_head = (Index)head * seqlen_q + i * BR;
    const Index key_of_head = (Index)kv_head_of[head] * seqlen_k;
    const element* K_head_hbm = K_hbm + key_of_head * HEAD_DIM;
    const element* V_head_hbm = V_hbm + key_of_head * HEAD_DIM;

    const auto load_K = [&](int j) {
        load_rows<BC>(K_shared + j % BUFFERS * TILE_BYTES,  // [load] Dao 2023, Algorithm 1, line 7
                      K_head_hbm + (Index)j * BC * HEAD_DIM, seqlen_k - j * BC);
    };
    const auto load_V = [&](int j) {
        load_rows<BC>(V_shared + j % BUFFERS * TILE_BYTES,  // [load] Dao 2023, Algorithm 1, line 7
                      V_head_hbm + (Index)j * BC * HEAD_DIM, seqlen_k - j * BC);
    };
    if (tiles > 0) {
        load_rows<BR>(Q_shared,  // [load] Dao 2023, Algorithm 1, line 4
                      Q_hbm + row_of_head * HEAD_DIM, rows);
        commit_copies();
        load_K(0);
        if (BUFFERS == 2) load_V(0);
        commit_copies();
    }

    // Each lane's part of rows group and group + 8 of each fragment; of l, its own keys alone.
    float m[ROW_FRAGMENTS][2], l[ROW_FRAGMENTS][2];
    float O[ROW_FRAGMENTS][HEAD_DIM / 8][4];  // [initialise] Dao 2023, Algorithm 1, line 5
    #pragma unroll
    for (int f = 0; f < ROW_FRAGMENTS; ++f) {
        m[f][0] = m[f][1] = minus_infinity();
        l[f][0] = l[f][1] = 0.0f;
        #pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; ++n) clear(O[f][n]);
    }

    // What this lane names to ldmatrix: its row of the first fragment's four 8 x 8 matrices.
    const unsigned Q_lane = Q_shared + swizzled(warp_row + lane() % 16, lane() / 16);
    const unsigned K_lane = K_shared + swizzled(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
    const unsigned V_lane = V_shared + swizzled(lane() % 16, lane() / 16);

    unsigned Q[KEEP_Q ? HEAD_DIM / FRAGMENT : 1][ROW_FRAGMENTS][4];
    const auto load_Q = [&](unsigned (&fragments)[ROW_FRAGMENTS][4], int d) {
        #pragma unroll
        for (int f = 0; f < ROW_FRAGMENTS; ++f)
            ldmatrix(fragments[f], further(Q_lane, d) + f * FRAGMENT * HEAD_DIM * 2);
    };
    if (KEEP_Q && tiles > 0) {
        wait_for_copies<1>();
        __syncthreads();  // Q is whole; K and V may still be on their way
        #pragma unroll
        for (int d = 0; d < HEAD_DIM / FRAGMENT; ++d) load_Q(Q[d % (sizeof Q / sizeof Q[0])], d);
    }

    for (int j = 0; j < tiles; ++j) {  // Dao 2023, Algorithm 1, line 6: of others nothing is loaded
        const int first_key = j * BC;
        const unsigned K_tile = K_lane + j % BUFFERS * TILE_BYTES;
        const unsigned V_tile = V_lane + j % BUFFERS * TILE_BYTES;
        wait_for_copies<0>();
        __syncthreads();  // K is whole, and every warp is done with the tile before
        if (BUFFERS == 1) {
            load_V(j);
            commit_copies();
        }

        float S[ROW_FRAGMENTS][BC / 8][4];  // [scores] Dao 2023, Algorithm 1, line 8
        #pragma unroll
        for (int f = 0; f < ROW_FRAGMENTS; ++f)
            #pragma unroll
            for (int n = 0; n < BC / 8; ++n) clear(S[f][n]);
        #pragma unroll
        for (int d = 0; d < HEAD_DIM / FRAGMENT; ++d) {
            unsigned(&q)[ROW_FRAGMENTS][4] = Q[KEEP_Q ? d : 0];
            if (!KEEP_Q) load_Q(q, d);
            #pragma unroll
            for (int n = 0; n < BC / FRAGMENT; ++n) {
                // K lies by rows, so by columns for K^T, as B wants it: 16 keys, 16 of d.
                unsigned k[4];
                ldmatrix(k, further(K_tile, d) + n * FRAGMENT * HEAD_DIM * 2);
                #pragma unroll
                for (int f = 0; f < ROW_FRAGMENTS; ++f) {
                    mma(S[f][2 * n], q[f], k[0], k[1]);
                    mma(S[f][2 * n + 1], q[f], k[2], k[3]);
                }
            }
        }

        if (first_key + BC > seen) {  // else every row sees the whole tile
            #pragma unroll
            for (int f = 0; f < ROW_FRAGMENTS; ++f)
                #pragma unroll
                for (int n = 0; n < BC / 8; ++n)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int row = warp_row + f * FRAGMENT + group + e / 2 * 8;
                        const int key = first_key + n * 8 + pair + e % 2;
                        if (key >= seen + CAUSAL * row)
                            S[f][n][e] = minus_infinity();  // [mask] Dao 2023, section 3.1
                    }
        }

        if (BUFFERS == 1) {
            wait_for_copies<0>();
            __syncthreads();  // V is whole, and every warp is done with this K
            if (j + 1 < tiles) load_K(j + 1);
            commit_copies();
        }

        // m is kept before the scale: exp(scale (s - m)) is one multiply-add and one exp2.
        #pragma unroll
        for (int f = 0; f < ROW_FRAGMENTS; ++f)
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                float top = m[f][half];  // [row max] Dao 2023, Algorithm 1, line 9
                #pragma unroll
                for (int n = 0; n < BC / 8; ++n)
                    top = fmaxf(top, fmaxf(S[f][n][2 * half], S[f][n][2 * half + 1]));
                top = quad_max(top);
                // A row that has seen nothing yet: -inf - 0, not -inf - -inf.
                const float below = top == minus_infinity() ? 0.0f : top;
                const float subtract = below * (scale * LOG2_E);
                // Of the difference, so that it is 1, to the last bit, where m stays: a little less
                // would be lost at each tile.
                const float alpha = fast_exp2((m[f][half] - below) * (scale * LOG2_E));
                m[f][half] = top;
                l[f][half] *= alpha;
                #pragma unroll
                for (int n = 0; n < BC / 8; ++n)
                    #pragma unroll
                    for (int e = 2 * half; e < 2 * half + 2; ++e) {
                        S[f][n][e] =  // [exponentials] Dao 2023, Algorithm 1, line 9
                            fast_exp2(multiply_add(S[f][n][e], scale * LOG2_E, -subtract));
                        l[f][half] += S[f][n][e];  // [row sum] Dao 2023, Algorithm 1, line 9
                    }
                #pragma unroll
                for (int n = 0; n < HEAD_DIM / 8; ++n) {
                    O[f][n][2 * half] *= alpha;  // [rescale] Dao 2023, Algorithm 1, line 10
                    O[f][n][2 * half + 1] *= alpha;
                }
            }

        // The next tile takes the place of the one before, while the tensor cores sum. Begun before
        // the scores are exponentials it would have more time, but S, O and all that copies need take
        // more than 255 registers at d = 128.
        if (BUFFERS == 2 && j + 1 < tiles) {
            load_K(j + 1);
            load_V(j + 1);
            commit_copies();
        }

        #pragma unroll
        for (int k = 0; k < BC / FRAGMENT; ++k) {  // [accumulate] Dao 2023, Algorithm 1, line 10
            unsigned P[ROW_FRAGMENTS][4];  // two tiles of C, narrowed, are one of A
            #pragma unroll
            for (int f = 0; f < ROW_FRAGMENTS; ++f)
                #pragma unroll
                for (int part = 0; part < 4; ++part) {
                    const float* c = S[f][2 * k + part / 2] + part % 2 * 2;
                    P[f][part] = pack(c[0], c[1]);
                }
            #pragma unroll
            for (int n = 0; n < HEAD_DIM / FRAGMENT; ++n) {
                // V lies by rows and B wants columns: 16 keys, 16 values, transposed on the way.
                unsigned v[4];
                ldmatrix_transposed(v, further(V_tile, n) + k * FRAGMENT * HEAD_DIM * 2);
                #pragma unroll
                for (int f = 0; f < ROW_FRAGMENTS; ++f) {
                    mma(O[f][2 * n], P[f], v[0], v[1]);
                    mma(O[f][2 * n + 1], P[f], v[2], v[3]);
                }
            }
        }
    }

    // O leaves by whole chunks, side by side, through the place of the warp's own rows of Q, which
    // nobody else reads. The swizzle keeps the four bytes of each lane in a bank of their own.
    #pragma unroll
    for (int f = 0; f < ROW_FRAGMENTS; ++f)
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = warp_row + f * FRAGMENT + group + half * 8;
            const float sum = quad_sum(l[f][half]);
            __syncwarp();  // every lane has its part of the Q that lay there
            const float inverse = over(1.0f, sum);  // [normalise] Dao 2023, Algorithm 1, line 12
            #pragma unroll
            for (int n = 0; n < HEAD_DIM / 8; ++n)
                *(unsigned*)(shared_memory + swizzled(row, n) + pair * 2) =
                    pack(O[f][n][2 * half] * inverse, O[f][n][2 * half + 1] * inverse);
            if (pair == 0 && row < rows)
                LSE_hbm[row_of_head + row] =  // [store] Dao 2023, Algorithm 1, lines 13 and 15
                    sum == 0.0f ? minus_infinity() : multiply_add(m[f][half], scale, logf(sum));
        }
    __syncwarp();  // each lane needs what the others made of its warp's rows
    #pragma unroll
    for (int n = 0; n < ROWS * CHUNKS / WARP; ++n) {  // [store] Dao 2023, Algorithm 1, line 14
        const int place = lane() + n * WARP;
        const int row = warp_row + place / CHUNKS, chunk = place % CHUNKS;
        if (row < rows)  // a row that saw nothing has O = 0
            *(Chunk*)(O_hbm + (row_of_head + row) * HEAD_DIM + chunk * CHUNK) =
                *(const Chunk*)(shared_memory + swizzled(row, chunk));
    }
}
