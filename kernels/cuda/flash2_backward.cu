// FlashAttention-2, backward.
//
// Paper      Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
//            Partitioning", Algorithm 2.
// Grid       backward_dots, backward_convert: (row blocks, heads). backward_tiles: (column blocks, KV
//            heads), so no two blocks ever write the same dK or dV, but all of them add to dQ.
// Block      WARPS warps. A warp owns ROWS query rows of S, P, dP, dS and dQ, as in common.cuh, and
//            OWN_KEYS keys of dK and dV, each of its lanes every 32nd column of them.
// Shared     P and dS as float32, Q, dO and one tile of K and V as wide as in HBM:
//            4 (2 TILE_ROWS BC) + b (TILE_ROWS (d + dv) + BC (d + dv + 2 pad)) bytes, and with a
//            soft-cap its slopes, 4 TILE_ROWS BC (kernels/cuda/specs.py).
// Registers  dK and dV of the warp's keys, and what the tile adds to dQ of its rows, float32.
// Changed    since flash2.cu: keys stay and rows come by. There is no running maximum, because
//            LSE of the forward pass gives P back at once. dQ is added up in HBM with atomics, so
//            the order of its terms, and with it the last bits, is another one in every run.
// In turn    -DIN_TURN makes the deterministic build: column blocks add to the rows of a row block
//            one after the other, as with `deterministic` of FlashAttention
//            (hopper/mainloop_bwd_sm90_tma_gmma_ws.hpp, dq_semaphore). They are numbered as they
//            start, so a block waits only for blocks that are at work: it cannot wait for ever.

#include "common.cuh"
#include "gradients.cuh"

#ifdef IN_TURN
// Returns how many column blocks before `column` visit the row block that these runs are of.
__device__ __forceinline__ int turns_before(const Run* run, int column)
{
    int turns = 0;
    for (; run->stop != 0 && run->start < column; ++run)
        turns += (run->stop < column ? run->stop : column) - run->start;
    return turns;
}

// Returns a count that other blocks raise; what they did before they raised it is seen from here on.
__device__ __forceinline__ int acquired(int* count)
{
#if __CUDA_ARCH__ >= 700
    int found;  // a plain read: blocks that wait do not hold up the one that is to raise it
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(found) : "l"(count) : "memory");
    return found;
#else
    const int found = atomicAdd(count, 0);
    __threadfence();
    return found;
#endif
}

// Lets the whole block wait until the column blocks before `column` have added to the rows.
__device__ __forceinline__ void await_turn(int* turns, const Run* columns, int column)
{
    if (threadIdx.x == 0) {
        const int turn = turns_before(columns, column);
        while (acquired(turns) != turn) {
#if __CUDA_ARCH__ >= 700
            __nanosleep(64);  // the multiprocessor's other warps have the time
#endif
        }
    }
    __syncthreads();  // it is the turn of all warps
}

// Says that the block has added to the rows, once the others can see what it has added.
__device__ __forceinline__ void end_turn(int* turns)
{
    __threadfence();
    __syncthreads();  // every warp has added
    if (threadIdx.x == 0) atomicAdd(turns, 1);
}

// Returns a number of its own for each block of a KV head, in the order in which they start. It
// passes through `taken`, shared memory that nothing else uses before the next barrier.
__device__ __forceinline__ int take_number(int* number, int* taken)
{
    if (threadIdx.x == 0) *taken = atomicAdd(number, 1);
    __syncthreads();  // all warps have the number
    return *taken;
}

#define COUNT_PARAMETERS                                                                           \
    , int* turns_hbm  /* [heads, row blocks + 1]: who has added, and at last numbers */
#define TURN_PARAMETERS                                                                            \
    , int* turns_hbm             /* as of backward_dots */                                         \
    , const int* column_offsets  /* [row blocks] */                                                \
    , const Run* columns_hbm     /* column blocks that visit a row block: as runs_hbm */
#else
#define COUNT_PARAMETERS
#define TURN_PARAMETERS
#endif

// dQ += dS K in HBM, each warp its rows, each lane its columns: one atomic addition for each number.
__device__ __forceinline__ void add_to_queries(
    float* dQ_acc_hbm,        // [rows, HEAD_DIM]
    const float* dS_shared,   // [TILE_ROWS, BC]
    const element* K_shared,  // [BC, KEY_STRIDE]
    int rows, int keys, const Visit& visit)
{
    float sum[ROWS][DEPTHS] = {};
    add_over_keys(sum, dS_shared, K_shared, keys);
    int added = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int n = 0; n < DEPTHS; ++n) {
            const int row = own_row(r), depth = lane() + n * WARP;
            if (row >= rows || depth >= HEAD_DIM) continue;
            float* place = dQ_acc_hbm + (Index)row * HEAD_DIM + depth;
            const float before =  // [load] Dao 2023, Algorithm 2, line 15
                atomicAdd(place, sum[r][n]);  // [store] Dao 2023, Algorithm 2, line 15
            RECORDED(if (visit.detail_) {
                detail_of(visit)->dq_acc_before[row][depth] = before;
                detail_of(visit)->dq_acc[row][depth] = before + sum[r][n];
            })
            ++added;
        }
    visit.count(READ_dQ_acc, added * (int)sizeof(float));
    visit.count(WRITE_dQ_acc, added * (int)sizeof(float));
    visit.count(FLOPS, added * 2 * keys);
}

// ptxas backward_dots fast: at most 40 registers, 0 bytes of stack, 0 bytes spilled
// ptxas backward_dots in_turn: at most 40 registers, 0 bytes of stack, 0 bytes spilled
// ptxas backward_dots trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) backward_dots(
    const element* O_hbm,   // [heads, Nq, VALUE_DIM]
    const element* dO_hbm,  // [heads, Nq, VALUE_DIM]
    float* D_hbm,           // [heads, Nq]
    float* dQ_acc_hbm,      // [heads, Nq, HEAD_DIM]
    int seqlen_q, int first_head, int first_block
    COUNT_PARAMETERS
    TRACE_PARAMETERS)
{
    const int head = first_head + blockIdx.y, first_row = (first_block + blockIdx.x) * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
#ifdef IN_TURN
    if (threadIdx.x < 2 && (threadIdx.x == 0 || blockIdx.x == 0)) {  // nobody has added yet
        const int row_blocks = (seqlen_q + BR - 1) / BR;
        const int place = threadIdx.x == 0 ? first_block + blockIdx.x : row_blocks;
        turns_hbm[head * (row_blocks + 1) + place] = 0;
    }
#endif
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    const Trace trace(blockIdx.y, gridDim.x, 1 TRACE_ARGUMENTS);
    const Visit visit = trace.visit(blockIdx.x, 0);
    visit.kind(FULL);

    int loaded = 0;
    for (int r = 0; r < ROWS && own_row(r) < rows; ++r) {
        const Index row = row_of_head + own_row(r);
        float sum = 0.0f;
        for (int value = lane(); value < VALUE_DIM; value += WARP) {
            sum = multiply_add(widen(dO_hbm[row * VALUE_DIM + value]),  // [load] Dao 2023, Algorithm 2, line 4
                               widen(O_hbm[row * VALUE_DIM + value]), sum);
            ++loaded;
        }
        sum = warp_sum(sum);  // [row dots] Dao 2023, Algorithm 2, line 4
        if (lane() == 0) {
            D_hbm[row] = sum;  // [store] Dao 2023, Algorithm 2, line 4
            visit.count(WRITE_D, (int)sizeof(float));
        }
    }
    visit.count(READ_O, loaded * (int)sizeof(element));
    visit.count(READ_dO, loaded * (int)sizeof(element));
    for (int n = threadIdx.x; n < rows * HEAD_DIM; n += THREADS) {
        dQ_acc_hbm[row_of_head * HEAD_DIM + n] = 0.0f;  // [clear] Dao 2023, Algorithm 2, line 3
        visit.count(WRITE_dQ_acc, (int)sizeof(float));
    }
}

// ptxas backward_tiles fast: at most 128 registers, 16 bytes of stack, 32 bytes spilled
// ptxas backward_tiles in_turn: at most 128 registers, 48 bytes of stack, 64 bytes spilled
// ptxas backward_tiles trace: at most 128 registers, 32 bytes of stack, 144 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) backward_tiles(
    const element* Q_hbm,   // [heads, Nq, HEAD_DIM]
    const element* K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,   // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,  // [heads]
    const element* dO_hbm,  // [heads, Nq, VALUE_DIM]
    const float* LSE_hbm,   // [heads, Nq]
    const float* D_hbm,     // [heads, Nq]
    float* dQ_acc_hbm,      // [heads, Nq, HEAD_DIM]
    element* dK_hbm,        // [kv heads, Nk, HEAD_DIM]
    element* dV_hbm,        // [kv heads, Nk, VALUE_DIM]
    VISIT_PARAMETERS,       // row blocks of each column block
    MASK_PARAMETERS, SCORE_PARAMETERS,
    int heads, int first_column,
    int first_head, int first_block  // whose visit is recorded in detail
    TURN_PARAMETERS
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* P_shared = (float*)shared_memory;                    // [TILE_ROWS, BC]: first S, then P
    float* dS_shared = P_shared + TILE_ROWS * BC;               // [TILE_ROWS, BC]: first dP, then dS
#ifdef SOFTCAP
    float* slope_shared = dS_shared + TILE_ROWS * BC;           // [TILE_ROWS, BC]
    element* Q_shared = (element*)(slope_shared + TILE_ROWS * BC);  // [TILE_ROWS, HEAD_DIM]
#else
    element* Q_shared = (element*)(dS_shared + TILE_ROWS * BC);  // [TILE_ROWS, HEAD_DIM]
#endif
    element* dO_shared = Q_shared + TILE_ROWS * HEAD_DIM;       // [TILE_ROWS, VALUE_DIM]
    element* K_shared = dO_shared + TILE_ROWS * VALUE_DIM;      // [BC, KEY_STRIDE]
    element* V_shared = K_shared + BC * KEY_STRIDE;             // [BC, VALUE_STRIDE]

    const Mask mask = MASK;
    const Score score = SCORE;
    Score unscaled = score;
    unscaled.scale = 1.0f;
    const int kv_head = blockIdx.y, row_blocks = (seqlen_q + BR - 1) / BR;
#ifdef IN_TURN
    const int j = take_number(turns_hbm + kv_head * (row_blocks + 1) + row_blocks,
                              (int*)shared_memory);
#else
    const int j = first_column + blockIdx.x;
#endif
    const int first_key = j * BC;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
    const Index key = (Index)kv_head * seqlen_k + first_key;

    float dK[OWN_KEYS][DEPTHS], dV[OWN_KEYS][VALUES];
    #pragma unroll
    for (int c = 0; c < OWN_KEYS; ++c) {  // [start gradients] Dao 2023, Algorithm 2, line 7
        #pragma unroll
        for (int n = 0; n < DEPTHS; ++n) dK[c][n] = 0.0f;
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) dV[c][n] = 0.0f;
    }

    bool loaded = false;
    Visit visit;
    for (int head = 0; head < heads; ++head) {
        if (kv_head_of[head] != kv_head) continue;
        const Trace trace(head, row_blocks, column_blocks TRACE_ARGUMENTS);
        if (!loaded) visit = trace.visit(0, j);  // keys that nobody sees count there
        Walk tile(runs_hbm + run_offsets[j]);
        for (; tile.more(); tile.next()) {  // Dao 2023, Algorithm 2, line 8
            const int first_row = tile.at * BR;
            const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
            const Index row_of_head = (Index)head * seqlen_q + first_row;
            visit = trace.visit(tile.at, j);
            visit.kind(tile.kind());
            RECORDED(if (head != first_head || tile.at != first_block) visit.detail_ = nullptr;
                     if (visit.detail_) {
                         copy_keys(detail_of(visit)->dk_before, dK, keys);
                         copy_keys(detail_of(visit)->dv_before, dV, keys);
                     })

            __syncthreads();  // every warp is done with the tiles of the visit before
            if (!loaded) {  // once, before the first rows that see these keys
                load_tile(K_shared, BC, KEY_STRIDE,  // [load] Dao 2023, Algorithm 2, line 6
                          K_hbm + key * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
                load_tile(V_shared, BC, VALUE_STRIDE,  // [load] Dao 2023, Algorithm 2, line 6
                          V_hbm + key * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
                loaded = true;
            }
            load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Dao 2023, Algorithm 2, line 9
                      Q_hbm + row_of_head * HEAD_DIM, rows, HEAD_DIM, visit, READ_Q);
            load_tile(dO_shared, TILE_ROWS, VALUE_DIM,  // [load] Dao 2023, Algorithm 2, line 9
                      dO_hbm + row_of_head * VALUE_DIM, rows, VALUE_DIM, visit, READ_dO);
            __syncthreads();  // the tiles are whole

            scores(P_shared, Q_shared, K_shared,  // [scores] Dao 2023, Algorithm 2, line 10
                   score, rows, keys, visit);
            RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->s, P_shared, rows, keys);)
#ifdef SOFTCAP
            for (int r = 0; r < ROWS; ++r)
                for (int n = lane(); n < keys; n += WARP) {
                    const float tanh_s = tanhf(P_shared[own_row(r) * BC + n] / score.softcap);
                    slope_shared[own_row(r) * BC + n] = 1.0f - tanh_s * tanh_s;
                }
#endif
            change_scores(P_shared, score, mask, head,  // [soft-cap] Dao 2023, Algorithm 2, line 10
                          first_row, rows, first_key, keys);  // [bias] Dao 2023, Algorithm 2, line 10
            if (tile.kind() == PARTIAL)
                apply_mask(P_shared, mask, head, first_row, first_key, keys);  // [mask] Dao 2023, section 3.1
            scores<VALUE_DIM, VALUE_STRIDE>(  // [weight gradient] Dao 2023, Algorithm 2, line 13
                dS_shared, dO_shared, V_shared, unscaled, rows, keys, visit);
            RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->dp, dS_shared, rows, keys);)

            int statistics = 0;
            for (int r = 0; r < ROWS && own_row(r) < rows; ++r) {
                float* P_row = P_shared + own_row(r) * BC;
                float* dS_row = dS_shared + own_row(r) * BC;
                const float LSE = LSE_hbm[row_of_head + own_row(r)];  // [load] Dao 2023, Algorithm 2, line 9
                const float D = D_hbm[row_of_head + own_row(r)];  // [load] Dao 2023, Algorithm 2, line 9
                if (lane() == 0) ++statistics;
                exponentials(P_row, LSE, keys);  // [weights] Dao 2023, Algorithm 2, line 11
                for (int n = lane(); n < keys; n += WARP) {
                    dS_row[n] = P_row[n] * (dS_row[n] - D);  // [score gradient] Dao 2023, Algorithm 2, line 14
                    RECORDED(if (visit.detail_) detail_of(visit)->ds[own_row(r)][n] = dS_row[n];)
#ifdef SOFTCAP
                    dS_row[n] *= slope_shared[own_row(r) * BC + n];  // [cap gradient] Dao 2023, Algorithm 2, line 14
#endif
                }
            }
            visit.count(READ_LSE, statistics * (int)sizeof(float));
            visit.count(READ_D, statistics * (int)sizeof(float));
            RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->p, P_shared, rows, keys);)
#ifdef ROUND_PAIRS
            round_pairs(P_shared, keys);  // [round] Dao 2023, Algorithm 2, line 12
            round_pairs(dS_shared, keys);  // [round] Dao 2023, Algorithm 2, line 14
#endif
            __syncthreads();  // every warp needs P and dS of all rows

            add_over_rows<VALUE_DIM>(  // [value gradient] Dao 2023, Algorithm 2, line 12
                dV, P_shared, dO_shared, rows, keys, visit);
#ifdef IN_TURN
            await_turn(turns_hbm + head * (row_blocks + 1) + tile.at,
                       columns_hbm + column_offsets[tile.at], first_key / BC);
#endif
            add_to_queries(  // [query gradient] Dao 2023, Algorithm 2, line 15
                dQ_acc_hbm + row_of_head * HEAD_DIM, dS_shared, K_shared, rows, keys, visit);
#ifdef IN_TURN
            end_turn(turns_hbm + head * (row_blocks + 1) + tile.at);
#endif
            add_over_rows<HEAD_DIM>(  // [key gradient] Dao 2023, Algorithm 2, line 16
                dK, dS_shared, Q_shared, rows, keys, visit);
            RECORDED(if (visit.detail_) {
                copy_keys(detail_of(visit)->dk, dK, keys);
                copy_keys(detail_of(visit)->dv, dV, keys);
            })
        }
    }

    // Keys that nobody sees have dK = dV = 0.  [clear] Dao 2023, Algorithm 2, line 18
    store_keys<HEAD_DIM>(  // [store] Dao 2023, Algorithm 2, line 18
        dK_hbm + key * HEAD_DIM, dK,
        score.scale,  // [scale keys] Dao 2023, Algorithm 2, line 16
        keys, visit, WRITE_dK);
    store_keys<VALUE_DIM>(  // [store] Dao 2023, Algorithm 2, line 18
        dV_hbm + key * VALUE_DIM, dV, 1.0f, keys, visit, WRITE_dV);
}

// ptxas backward_convert fast: at most 40 registers, 0 bytes of stack, 0 bytes spilled
// ptxas backward_convert in_turn: at most 40 registers, 0 bytes of stack, 0 bytes spilled
// ptxas backward_convert trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) backward_convert(
    const float* dQ_acc_hbm,  // [heads, Nq, HEAD_DIM]
    element* dQ_hbm,          // [heads, Nq, HEAD_DIM]
    int seqlen_q, float scale, int first_head, int first_block
    TRACE_PARAMETERS)
{
    const int head = first_head + blockIdx.y, first_row = (first_block + blockIdx.x) * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const Index first = ((Index)head * seqlen_q + first_row) * HEAD_DIM;
    const Trace trace(blockIdx.y, gridDim.x, 1 TRACE_ARGUMENTS);
    const Visit visit = trace.visit(blockIdx.x, 0);
    visit.kind(FULL);

    int moved = 0;
    for (int n = threadIdx.x; n < rows * HEAD_DIM; n += THREADS) {
        const float sum = dQ_acc_hbm[first + n];  // [load] Dao 2023, Algorithm 2, line 20
        const float dQ = scale * sum;  // [convert] Dao 2023, Algorithm 2, line 20
        put(dQ_hbm + first + n, dQ);  // [store] Dao 2023, Algorithm 2, line 20
        ++moved;
    }
    visit.count(READ_dQ_acc, moved * (int)sizeof(float));
    visit.count(WRITE_dQ, moved * (int)sizeof(element));
}
