// The first rungs of the ladder from flash2.cu to flash2_mma.cu (kernels/checks/ladder.py).
//
// RUNG 1     16 bytes a load: a thread copies a chunk of eight elements at a time, from HBM to
//            shared memory and from there. Rows begin at multiples of 16 bytes, so they are a chunk
//            longer than their elements instead of one bank.
// RUNG 2     cp.async: two tiles each of K and V, of which one is on its way while the other is
//            worked on, past registers. One barrier a tile.
//
// Everything else is flash2.cu's, to the last bit; the rungs above are flash2_mma.cu's.
// Limits     float16 or bfloat16, HEAD_DIM = VALUE_DIM a multiple of 8, CAUSAL = 1 or 0 (no mask).
// Shared     S as float32, Q, and RUNG tiles each of K and V.

#include "common.cuh"
#include "mma.cuh"

#define CHUNKS (HEAD_DIM / CHUNK)       // of a row
#define STRIDE (HEAD_DIM + CHUNK)       // of a row of Q, K or V in shared memory

// A tile from HBM to shared memory by whole chunks, by the whole block; zeros past the end.
__device__ __forceinline__ void load_chunks(element* tile_shared, const element* tile_hbm,
                                            int tile_rows, int rows)
{
    for (int n = threadIdx.x; n < tile_rows * CHUNKS; n += THREADS) {
        const int row = n / CHUNKS, column = n % CHUNKS * CHUNK;
        element* to = tile_shared + row * STRIDE + column;
        const element* from = tile_hbm + (Index)row * HEAD_DIM + column;
#if RUNG == 1
        const Chunk zeros = {};
        if (row < rows) *(Chunk*)to = *(const Chunk*)from;
        else *(Chunk*)to = zeros;
#else
        copy_async(shared_address(to), from, row < rows);
#endif
    }
}

// S of Q K^T, each warp its rows, each lane its keys, a chunk of K and of Q at a time.
__device__ __forceinline__ void scores_by_chunks(float* S_shared, const element* Q_shared,
                                                 const element* K_shared, float scale, int keys)
{
    for (int key = lane(); key < keys; key += WARP) {
        float sum[ROWS] = {};
        #pragma unroll 1
        for (int d = 0; d < HEAD_DIM; d += CHUNK) {
            const Chunk k = *(const Chunk*)(K_shared + key * STRIDE + d);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const Chunk q = *(const Chunk*)(Q_shared + own_row(r) * STRIDE + d);
                #pragma unroll
                for (int n = 0; n < CHUNK; ++n) {
                    const int part = n / 2, shift = n % 2 * 16;
                    sum[r] = multiply_add(widen((element)(q.pairs[part] >> shift)),
                                          widen((element)(k.pairs[part] >> shift)), sum[r]);
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) S_shared[own_row(r) * BC + key] = scale * sum[r];
    }
}

// ptxas ladder fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) ladder(
    const element* Q_hbm,   // [heads, Nq, HEAD_DIM]
    const element* K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,   // [kv heads, Nk, HEAD_DIM]
    const int* kv_head_of,  // [heads]
    element* O_hbm,         // [heads, Nq, HEAD_DIM]
    float* LSE_hbm,         // [heads, Nq]
    int seqlen_q, int seqlen_k, float scale)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* S_shared = (float*)shared_memory;                    // [TILE_ROWS, BC]
    element* Q_shared = (element*)(S_shared + TILE_ROWS * BC);  // [TILE_ROWS, STRIDE]
    element* K_shared = Q_shared + TILE_ROWS * STRIDE;          // [RUNG, BC, STRIDE]
    element* V_shared = K_shared + RUNG * BC * STRIDE;          // [RUNG, BC, STRIDE]

    const Mask mask = {seqlen_q, seqlen_k, CAUSAL, 0, 0};
    const int head = blockIdx.y, i = blockIdx.x, first_row = i * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int seen = CAUSAL ? first_row + seqlen_k - seqlen_q + 1 : seqlen_k;  // keys that row 0 sees
    const int tiles = (seen + CAUSAL * (rows - 1) + BC - 1) / BC;              // that the last row sees
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    const Index key_of_head = (Index)kv_head_of[head] * seqlen_k;
    const auto load_tile_of = [&](int j) {
        const Index first = (key_of_head + j * BC) * HEAD_DIM;
        const int other = j % RUNG * BC * STRIDE;
        load_chunks(K_shared + other, K_hbm + first, BC, seqlen_k - j * BC);
        load_chunks(V_shared + other, V_hbm + first, BC, seqlen_k - j * BC);
        if (RUNG == 2) commit_copies();
    };

    float m[ROWS], l[ROWS], O[ROWS][VALUES];
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        m[r] = minus_infinity();
        l[r] = 0.0f;
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) O[r][n] = 0.0f;
    }

    const Visit visit = {};
    if (tiles > 0) load_chunks(Q_shared, Q_hbm + row_of_head * HEAD_DIM, TILE_ROWS, rows);
    if (RUNG == 2 && tiles > 0) load_tile_of(0);
    for (int j = 0; j < tiles; ++j) {
        const int first_key = j * BC;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        const element* K_tile = K_shared + j % RUNG * BC * STRIDE;
        const element* V_tile = V_shared + j % RUNG * BC * STRIDE;
#if RUNG == 1
        __syncthreads();  // every warp is done with the tile before
        load_tile_of(j);
        __syncthreads();  // the tile is whole
#else
        wait_for_copies<0>();
        __syncthreads();  // the tile is whole, and every warp is done with the one before
        if (j + 1 < tiles) load_tile_of(j + 1);
#endif
        scores_by_chunks(S_shared, Q_shared, K_tile, scale, keys);
        if (first_key + keys > seen) apply_mask(S_shared, mask, head, first_row, first_key, keys);
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float* S_row = S_shared + own_row(r) * BC;
            const float m_new = larger(m[r], row_max(S_row, keys));
            const float alpha = exp_below(m[r], m_new);
            exponentials(S_row, m_new, keys);
            l[r] = multiply_add(alpha, l[r], row_sum(S_row, keys));
            m[r] = m_new;
            #pragma unroll
            for (int n = 0; n < VALUES; ++n) O[r][n] *= alpha;
        }
        __syncwarp();  // each lane needs what the others made of its warp's rows
        accumulate<2, STRIDE>(O, S_shared, V_tile, rows, keys, visit);
    }

    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) O[r][n] = over(O[r][n], l[r]);
        if (own_row(r) < rows && lane() == 0)
            LSE_hbm[row_of_head + own_row(r)] = l[r] == 0.0f ? minus_infinity() : m[r] + logf(l[r]);
    }
    store_output(O_hbm + row_of_head * VALUE_DIM, O, rows, visit);
}
