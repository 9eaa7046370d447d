// Naive attention, backward, in five launches.
//
// Paper      Dao et al. 2022, "FlashAttention", Algorithm 3 (standard attention backward pass).
// Grids      dV, dK: (column blocks, KV heads); dP, dQ: (row blocks, heads); dS: (rows, heads).
// Block      WARPS warps, a warp owns ROWS query rows or OWN_KEYS keys (gradients.cuh);
//            dS: one warp on one row.
// Shared     dV  4 TILE_ROWS BC + b TILE_ROWS dv bytes: one tile of P and of dO;
//            dP  4 TILE_ROWS BC + b (TILE_ROWS dv + BC (dv + pad)): dP, dO, one tile of V;
//            dS  8 Nk: a row of P and of dP, so that both are read once;
//            dQ  4 TILE_ROWS BC + b BC (d + pad): one tile of dS and of K;
//            dK  4 TILE_ROWS BC + b TILE_ROWS d: one tile of dS and of Q (kernels/cuda/specs.py).
// Registers  the sums that grow: dV, dQ or dK, float32.
// Changed    since naive.cu: P comes from HBM as the forward pass has left it, and with a soft-cap S
//            does, too. Nothing is computed again. Every tile is visited.
//
// P, dP, dS and S lie in HBM as float32 unless -DSCORES_AS_ELEMENT says that they are as wide as Q;
// the bytes that are counted are those of the latter in both builds, as in naive.cu.

#include "common.cuh"
#include "gradients.cuh"

#ifdef SCORES_AS_ELEMENT
typedef element pair;
#else
typedef float pair;
#endif

// HBM to shared memory, by the whole block. Rows and keys past the end become zeros.
__device__ __forceinline__ void load_pairs(
    float* pairs_shared,    // [TILE_ROWS, BC]
    const pair* pairs_hbm,  // [rows, seqlen_k], from the tile's first key on
    int rows, int keys, int seqlen_k, const Visit& visit, Counter counter)
{
    int loaded = 0;
    for (int n = threadIdx.x; n < TILE_ROWS * BC; n += THREADS) {
        const int row = n / BC, key = n % BC;
        pairs_shared[n] = 0.0f;
        if (row < rows && key < keys) {
            pairs_shared[n] = widen(pairs_hbm[(Index)row * seqlen_k + key]);
            ++loaded;
        }
    }
    visit.count(counter, loaded * (int)sizeof(element));
}

// ptxas naive_backward_values fast: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_values trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_values trace NVRTC 12: at most 72 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) naive_backward_values(
    const pair* P_hbm,      // [heads, Nq, Nk]
    const int* kv_head_of,  // [heads]
    const element* dO_hbm,  // [heads, Nq, VALUE_DIM]
    element* dV_hbm,        // [kv heads, Nk, VALUE_DIM]
    int seqlen_q, int seqlen_k, int heads, int first_column,
    int first_head, int first_block  // whose visit is recorded in detail
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* P_shared = (float*)shared_memory;                     // [TILE_ROWS, BC]
    element* dO_shared = (element*)(P_shared + TILE_ROWS * BC);  // [TILE_ROWS, VALUE_DIM]

    const int j = first_column + blockIdx.x, kv_head = blockIdx.y, first_key = j * BC;
    const int row_blocks = (seqlen_q + BR - 1) / BR, column_blocks = (seqlen_k + BC - 1) / BC;
    const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;

    float dV[OWN_KEYS][VALUES] = {};  // [start gradients] Dao et al. 2022, Algorithm 3, line 1
    Visit visit;
    for (int head = 0; head < heads; ++head) {
        if (kv_head_of[head] != kv_head) continue;
        const Trace trace(head, row_blocks, column_blocks TRACE_ARGUMENTS);
        for (int i = 0; i < row_blocks; ++i) {
            const int first_row = i * BR;
            const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
            const Index row = (Index)head * seqlen_q + first_row;
            visit = trace.visit(i, j);
            visit.kind(FULL);
            RECORDED(if (head != first_head || i != first_block) visit.detail_ = nullptr;
                     if (visit.detail_) copy_keys(detail_of(visit)->dv_before, dV, keys);)

            __syncthreads();  // every warp is done with the tiles of the visit before
            load_pairs(P_shared,  // [load] Dao et al. 2022, Algorithm 3, line 1
                       P_hbm + row * seqlen_k + first_key, rows, keys, seqlen_k, visit, READ_P);
            load_tile(dO_shared, TILE_ROWS, VALUE_DIM,  // [load] Dao et al. 2022, Algorithm 3, line 1
                      dO_hbm + row * VALUE_DIM, rows, VALUE_DIM, visit, READ_dO);
            __syncthreads();  // the tiles are whole
            add_over_rows<VALUE_DIM>(  // [value gradient] Dao et al. 2022, Algorithm 3, line 1
                dV, P_shared, dO_shared, rows, keys, visit);
            RECORDED(if (visit.detail_) copy_keys(detail_of(visit)->dv, dV, keys);)
        }
    }
    const Index key = (Index)kv_head * seqlen_k + first_key;
    store_keys<VALUE_DIM>(  // [store] Dao et al. 2022, Algorithm 3, line 1
        dV_hbm + key * VALUE_DIM, dV, 1.0f, keys, visit, WRITE_dV);
}

// ptxas naive_backward_weights fast: at most 80 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_weights trace: at most 80 registers, 24 bytes of stack, 44 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) naive_backward_weights(
    const element* dO_hbm,  // [heads, Nq, VALUE_DIM]
    const element* V_hbm,   // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,  // [heads]
    pair* dP_hbm,           // [heads, Nq, Nk]
    int seqlen_q, int seqlen_k, int first_head, int first_block
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* dP_shared = (float*)shared_memory;                     // [TILE_ROWS, BC]
    element* dO_shared = (element*)(dP_shared + TILE_ROWS * BC);  // [TILE_ROWS, VALUE_DIM]
    element* V_shared = dO_shared + TILE_ROWS * VALUE_DIM;        // [BC, VALUE_STRIDE]

    Score unscaled = {};
    unscaled.scale = 1.0f;
    const int head = first_head + blockIdx.y, first_row = (first_block + blockIdx.x) * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    const Index key_of_head = (Index)kv_head_of[head] * seqlen_k;
    const Trace trace(blockIdx.y, gridDim.x, column_blocks TRACE_ARGUMENTS);

    load_tile(dO_shared, TILE_ROWS, VALUE_DIM,  // [load] Dao et al. 2022, Algorithm 3, line 2
              dO_hbm + row_of_head * VALUE_DIM, rows, VALUE_DIM, trace.visit(blockIdx.x, 0), READ_dO);
    for (int j = 0; j < column_blocks; ++j) {
        const int first_key = j * BC;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        const Visit visit = trace.visit(blockIdx.x, j);
        visit.kind(FULL);

        __syncthreads();  // every warp is done with the tile before
        load_tile(V_shared, BC, VALUE_STRIDE,  // [load] Dao et al. 2022, Algorithm 3, line 2
                  V_hbm + (key_of_head + first_key) * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
        __syncthreads();  // dO and V are whole
        scores<VALUE_DIM, VALUE_STRIDE>(  // [weight gradient] Dao et al. 2022, Algorithm 3, line 2
            dP_shared, dO_shared, V_shared, unscaled, rows, keys, visit);
        RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->dp, dP_shared, rows, keys);)

        int stored = 0;
        for (int r = 0; r < ROWS && own_row(r) < rows; ++r)
            for (int key = lane(); key < keys; key += WARP) {
                put(dP_hbm + (row_of_head + own_row(r)) * seqlen_k + first_key + key,
                    dP_shared[own_row(r) * BC + key]);  // [store] Dao et al. 2022, Algorithm 3, line 2
                ++stored;
            }
        visit.count(WRITE_dP, stored * (int)sizeof(element));
    }
}

// ptxas naive_backward_scores fast: at most 72 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_scores trace: at most 80 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_scores fast NVRTC 12: at most 80 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(WARP) naive_backward_scores(
    const pair* P_hbm,   // [heads, Nq, Nk]
    const pair* dP_hbm,  // [heads, Nq, Nk]
    const pair* S_hbm,   // [heads, Nq, Nk] as naive.cu has left it; null without a soft-cap
    pair* dS_hbm,        // [heads, Nq, Nk]
    MASK_PARAMETERS, SCORE_PARAMETERS, int first_head, int first_block
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* P_shared = (float*)shared_memory;   // [Nk]
    float* dP_shared = P_shared + seqlen_k;    // [Nk]: first dP, then dS

    const int row = first_block * BR + blockIdx.x, head = first_head + blockIdx.y;
    const Index place = ((Index)head * seqlen_q + row) * seqlen_k;
    const Trace trace(blockIdx.y, (gridDim.x + BR - 1) / BR, 1 TRACE_ARGUMENTS);
    const Visit visit = trace.visit(blockIdx.x / BR, 0);
    if (blockIdx.x % BR == 0) visit.kind(FULL);  // once for each row block

    int passed = 0;
    float sum = 0.0f;
    for (int key = lane(); key < seqlen_k; key += WARP) {
        P_shared[key] = widen(P_hbm[place + key]);    // [load] Dao et al. 2022, Algorithm 3, line 3
        dP_shared[key] = widen(dP_hbm[place + key]);  // [load] Dao et al. 2022, Algorithm 3, line 3
        sum = multiply_add(P_shared[key], dP_shared[key], sum);
        ++passed;
    }
    const float D = warp_sum(sum);  // [weighted means] Dao et al. 2022, Algorithm 3, line 3
    RECORDED(if (visit.detail_ && lane() == 0) detail_of(visit)->d[blockIdx.x % BR] = D;)
#ifdef SOFTCAP
    const Mask mask = MASK;
    const Score score = SCORE;
#endif
    for (int key = lane(); key < seqlen_k; key += WARP) {
        float dS = P_shared[key] * (dP_shared[key] - D);  // [score gradient] Dao et al. 2022, Algorithm 3, line 3
        RECORDED(
            if (details_hbm && detail_from <= key / BC && key / BC < detail_to)
                ((GradientDetail*)details_hbm)[key / BC - detail_from].ds[blockIdx.x % BR][key % BC] = dS;)
#ifdef SOFTCAP
        const float S = widen(S_hbm[place + key]);  // [load] Dao et al. 2022, Algorithm 3, line 3
        if (S != minus_infinity()) {  // what the distance has changed does not count in the slope
            const float tanh_s = (S - score.changed(0.0f, mask, head, row, key)) / score.softcap;
            dS *= 1.0f - tanh_s * tanh_s;  // [cap gradient] Dao et al. 2022, Algorithm 3, line 3
        }
#endif
#ifdef ROUND_PAIRS
        dS = widen(narrow(dS));  // [round] Dao et al. 2022, Algorithm 3, line 3
#endif
        put(dS_hbm + place + key, dS);  // [store] Dao et al. 2022, Algorithm 3, line 3
    }
    visit.count(READ_P, passed * (int)sizeof(element));
    visit.count(READ_dP, passed * (int)sizeof(element));
#ifdef SOFTCAP
    visit.count(READ_S, passed * (int)sizeof(element));
#endif
    visit.count(WRITE_dS, passed * (int)sizeof(element));
}

// ptxas naive_backward_queries fast: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_queries trace: at most 72 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_queries trace NVRTC 12: at most 72 registers, 16 bytes of stack, 24 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) naive_backward_queries(
    const pair* dS_hbm,     // [heads, Nq, Nk]
    const element* K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const int* kv_head_of,  // [heads]
    element* dQ_hbm,        // [heads, Nq, HEAD_DIM]
    int seqlen_q, int seqlen_k, float scale, int first_head, int first_block
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* dS_shared = (float*)shared_memory;                    // [TILE_ROWS, BC]
    element* K_shared = (element*)(dS_shared + TILE_ROWS * BC);  // [BC, KEY_STRIDE]

    const int head = first_head + blockIdx.y, first_row = (first_block + blockIdx.x) * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    const Index key_of_head = (Index)kv_head_of[head] * seqlen_k;
    const Trace trace(blockIdx.y, gridDim.x, column_blocks TRACE_ARGUMENTS);

    float dQ[ROWS][DEPTHS] = {};  // [start gradients] Dao et al. 2022, Algorithm 3, line 4
    Visit visit;
    int own = 0;  // numbers of dQ that this thread adds up
    for (int r = 0; r < ROWS && own_row(r) < rows; ++r)
        for (int depth = lane(); depth < HEAD_DIM; depth += WARP) ++own;
    for (int j = 0; j < column_blocks; ++j) {
        const int first_key = j * BC;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        visit = trace.visit(blockIdx.x, j);
        visit.kind(FULL);
        RECORDED(if (visit.detail_) copy_depths(detail_of(visit)->dq_acc_before, dQ, rows);)

        __syncthreads();  // every warp is done with the tiles before
        load_pairs(dS_shared,  // [load] Dao et al. 2022, Algorithm 3, line 4
                   dS_hbm + row_of_head * seqlen_k + first_key, rows, keys, seqlen_k, visit, READ_dS);
        load_tile(K_shared, BC, KEY_STRIDE,  // [load] Dao et al. 2022, Algorithm 3, line 4
                  K_hbm + (key_of_head + first_key) * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
        __syncthreads();  // the tiles are whole
        add_over_keys(dQ, dS_shared, K_shared, keys);  // [query gradient] Dao et al. 2022, Algorithm 3, line 4
        visit.count(FLOPS, own * 2 * keys);
        RECORDED(if (visit.detail_) copy_depths(detail_of(visit)->dq_acc, dQ, rows);)
    }
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int n = 0; n < DEPTHS; ++n) {
            const int row = own_row(r), depth = lane() + n * WARP;
            if (row >= rows || depth >= HEAD_DIM) continue;
            const float sum = scale * dQ[r][n];  // [convert] Dao et al. 2022, Algorithm 3, line 4
            put(dQ_hbm + (row_of_head + row) * HEAD_DIM + depth, sum);  // [store] Dao et al. 2022, Algorithm 3, line 4
        }
    visit.count(WRITE_dQ, own * (int)sizeof(element));
}

// ptxas naive_backward_keys fast: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_keys trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_backward_keys trace NVRTC 12: at most 72 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) naive_backward_keys(
    const pair* dS_hbm,     // [heads, Nq, Nk]
    const element* Q_hbm,   // [heads, Nq, HEAD_DIM]
    const int* kv_head_of,  // [heads]
    element* dK_hbm,        // [kv heads, Nk, HEAD_DIM]
    int seqlen_q, int seqlen_k, float scale, int heads, int first_column,
    int first_head, int first_block  // whose visit is recorded in detail
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* dS_shared = (float*)shared_memory;                    // [TILE_ROWS, BC]
    element* Q_shared = (element*)(dS_shared + TILE_ROWS * BC);  // [TILE_ROWS, HEAD_DIM]

    const int j = first_column + blockIdx.x, kv_head = blockIdx.y, first_key = j * BC;
    const int row_blocks = (seqlen_q + BR - 1) / BR, column_blocks = (seqlen_k + BC - 1) / BC;
    const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;

    float dK[OWN_KEYS][DEPTHS] = {};  // [start gradients] Dao et al. 2022, Algorithm 3, line 5
    Visit visit;
    for (int head = 0; head < heads; ++head) {
        if (kv_head_of[head] != kv_head) continue;
        const Trace trace(head, row_blocks, column_blocks TRACE_ARGUMENTS);
        for (int i = 0; i < row_blocks; ++i) {
            const int first_row = i * BR;
            const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
            const Index row = (Index)head * seqlen_q + first_row;
            visit = trace.visit(i, j);
            visit.kind(FULL);
            RECORDED(if (head != first_head || i != first_block) visit.detail_ = nullptr;
                     if (visit.detail_) copy_keys(detail_of(visit)->dk_before, dK, keys);)

            __syncthreads();  // every warp is done with the tiles of the visit before
            load_pairs(dS_shared,  // [load] Dao et al. 2022, Algorithm 3, line 5
                       dS_hbm + row * seqlen_k + first_key, rows, keys, seqlen_k, visit, READ_dS);
            load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Dao et al. 2022, Algorithm 3, line 5
                      Q_hbm + row * HEAD_DIM, rows, HEAD_DIM, visit, READ_Q);
            __syncthreads();  // the tiles are whole
            add_over_rows<HEAD_DIM>(  // [key gradient] Dao et al. 2022, Algorithm 3, line 5
                dK, dS_shared, Q_shared, rows, keys, visit);
            RECORDED(if (visit.detail_) copy_keys(detail_of(visit)->dk, dK, keys);)
        }
    }
    const Index key = (Index)kv_head * seqlen_k + first_key;
    store_keys<HEAD_DIM>(  // [store] Dao et al. 2022, Algorithm 3, line 5
        dK_hbm + key * HEAD_DIM, dK,
        scale,  // [scale keys] Dao et al. 2022, Algorithm 3, line 5
        keys, visit, WRITE_dK);
}
