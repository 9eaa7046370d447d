// Split-KV (Flash-Decoding), in two launches.
//
// Paper      Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference"; each
//            split is Dao 2023, "FlashAttention-2", Algorithm 1. Splits and their joining are dealt
//            out as in Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_kernel.h
//            (n_blocks_per_split, combine_attn_seqk_parallel).
// Grids      split_kv (row blocks, kv heads, splits); split_kv_combine (row blocks, kv heads).
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     split_kv          as flash2: S, Q and one tile of K and V;
//            split_kv_combine  4 WARPS splits bytes: the weights of the row that a warp is at
//            (kernels/cuda/launch.py: shared_bytes).
// Registers  m, l and O of the warp's rows, float32; in split_kv_combine O of one of them.
// Changed    since FlashAttention-2: with few queries and a long cache there are too few row blocks
//            to fill a GPU, so the column blocks of one are dealt out to several thread blocks.
//            Each leaves a partial O and its LSE in HBM, in float32, for a second launch to join.
//            The query heads of a KV head are packed: they lie below each other as the rows of one
//            head, `queries` of each, so K and V are loaded once for all of them.

#include "common.cuh"

// A mask of packed rows: row r sees what row r mod queries of its head sees.
// simulator/problem/packing.py says the same to the CPU.
struct PackedMask {
    Mask of_head;  // its seqlen_q are the queries of one head

    __device__ int last_key() const { return of_head.last_key(); }
    __device__ int shifted(int row) const { return of_head.shifted(row % of_head.seqlen_q); }
    __device__ int query_head(int first, int row) const { return first + row / of_head.seqlen_q; }

    __device__ __forceinline__ bool sees(int row, int key) const
    {
        return of_head.sees(row % of_head.seqlen_q, key);
    }
};

// Where the partials of a row block's first row lie: [kv heads of the launch, splits, rows of the
// launch], so that a launch of few row blocks needs memory for those alone.
__device__ __forceinline__ Index partial_row(int split, int splits, int launch_rows)
{
    return ((Index)blockIdx.y * splits + split) * launch_rows + blockIdx.x * BR;
}

// ptxas split_kv fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas split_kv trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) split_kv(
    const element* Q_hbm,      // [kv heads, rows, HEAD_DIM]; rows are packed
    const element* K_hbm,      // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,      // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,     // [kv heads of Q]
    float* O_partial_hbm,      // [kv heads, splits, rows, VALUE_DIM] of the launch
    float* LSE_partial_hbm,    // [kv heads, splits, rows] of the launch
    VISIT_PARAMETERS,          // column blocks of each row block, of all its splits
    MASK_PARAMETERS, int queries, SCORE_PARAMETERS SINK_PARAMETERS THRESHOLD_PARAMETERS,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* S_shared = (float*)shared_memory;                           // [TILE_ROWS, BC]
    element* Q_shared = (element*)(S_shared + TILE_ROWS * BC);         // [TILE_ROWS, HEAD_DIM]
    element* K_shared = Q_shared + TILE_ROWS * HEAD_DIM;               // [BC, KEY_STRIDE]
    element* V_shared = K_shared + BC * KEY_STRIDE;                    // [BC, VALUE_DIM]

    const PackedMask mask = {MASK_OF(queries)};
    const Score score = SCORE;
    const Sinks sink = SINKS;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const int splits = gridDim.z, split = blockIdx.z;
    const int run = (column_blocks + splits - 1) / splits;  // the last may be shorter, or empty
    const int head = first_head + blockIdx.y, i = first_block + blockIdx.x;
    const int first_row = i * BR, top_row = first_block * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int most_rows = gridDim.x * BR;
    const int launch_rows = seqlen_q - top_row < most_rows ? seqlen_q - top_row : most_rows;
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    const Trace trace(blockIdx.y, gridDim.x, column_blocks TRACE_ARGUMENTS);

    float m[ROWS], l[ROWS], O[ROWS][VALUES];  // [initialise] Dao 2023, Algorithm 1, line 5
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        // Only the first split counts the sink.
        sink.start(m[r], l[r],  // [load] Dao 2023, Algorithm 1, line 5
                   mask, head * (seqlen_q / queries), first_row + own_row(r),
                   own_row(r) < rows && split == 0);
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) O[r][n] = 0.0f;
    }

    Visit visit = trace.visit(blockIdx.x, 0);  // a split that sees nothing counts there
    bool loaded = false;
    Walk tile(runs_hbm + run_offsets[i], split * run, (split + 1) * run);
    for (; tile.more(); tile.next()) {  // Dao 2023, Algorithm 1, line 6: of others nothing is loaded
        const int first_key = tile.at * BC;
        const Index key = (Index)kv_head_of[head] * seqlen_k + first_key;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        visit = trace.visit(blockIdx.x, tile.at);
        visit.kind(tile.kind());

        if (!loaded) {  // once, before the first tile that is seen
            load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Dao 2023, Algorithm 1, line 4
                      Q_hbm + row_of_head * HEAD_DIM, rows, HEAD_DIM, visit, READ_Q);
            if (split == 0) sink.count(visit, mask, first_row, rows);
            loaded = true;
        }
        __syncthreads();  // every warp is done with the tiles of the visit before
        load_tile(K_shared, BC, KEY_STRIDE,  // [load] Dao 2023, Algorithm 1, line 7
                  K_hbm + key * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
        load_tile(V_shared, BC, VALUE_DIM,  // [load] Dao 2023, Algorithm 1, line 7
                  V_hbm + key * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
        __syncthreads();  // the tiles are whole

        scores(S_shared, Q_shared, K_shared,  // [scores] Dao 2023, Algorithm 1, line 8
               score, rows, keys, visit);
        visit.scores(S_shared, rows, keys);
        change_scores(S_shared, score, mask,  // [soft-cap] Dao 2023, Algorithm 1, line 8
                      head * (seqlen_q / queries), first_row, first_key, keys);  // [bias] Dao 2023, Algorithm 1, line 8
        if (tile.kind() == PARTIAL)
            apply_mask(S_shared, mask, first_row, first_key, keys);  // [mask] Dao 2023, section 3.1

        visit.output_before(O, rows);
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float* S_row = S_shared + own_row(r) * BC;
            const float m_tile = row_max(S_row, keys);  // [row max] Dao 2023, Algorithm 1, line 9
            const float m_new = NEW_MAXIMUM(m[r], m_tile);
            const float alpha = exp_below(m[r], m_new);
            exponentials(S_row, m_new, keys);  // [exponentials] Dao 2023, Algorithm 1, line 9
            const float l_tile = row_sum(S_row, keys);  // [row sum] Dao 2023, Algorithm 1, line 9
            l[r] = multiply_add(alpha, l[r], l_tile);
            m[r] = m_new;
            IF_RESCALES(alpha)
            #pragma unroll
            for (int n = 0; n < VALUES; ++n)
                O[r][n] *= alpha;  // [rescale] Dao 2023, Algorithm 1, line 10
            visit.row(r, rows, m[r], l[r], alpha, m_tile, l_tile, exp_below(m_tile, m_new));
        }
        visit.exponentials(S_shared, rows, keys);
        __syncwarp();  // each lane needs what the others made of its warp's rows
        accumulate<2>(O, S_shared, V_shared, rows, keys, visit);  // [accumulate] Dao 2023, line 10
        visit.output(O, rows);
    }

    // A split that sees nothing leaves O = 0 and LSE = -inf: it weighs nothing when all are joined.
    const Index place = partial_row(split, splits, launch_rows);
    if (!loaded && split == 0) sink.count(visit, mask, first_row, rows);
    int stored = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        #pragma unroll
        for (int n = 0; n < VALUES; ++n)
            O[r][n] = over(O[r][n], l[r]);  // [normalise] Dao 2023, Algorithm 1, line 12
        if (own_row(r) < rows && lane() == 0) {
            LSE_partial_hbm[place + own_row(r)] =  // [store] Dao et al. 2023, step 2
                l[r] > 0.0f ? m[r] + logf(l[r]) : minus_infinity();
            ++stored;
        }
    }
    visit.count(WRITE_LSE_partial, stored * (int)sizeof(float));
    // Of a split that sees nothing  [clear] Dao et al. 2023, step 1
    store_output(O_partial_hbm + place * VALUE_DIM,  // [store] Dao et al. 2023, step 2
                 O, rows, visit, WRITE_O_partial);
}

// ptxas split_kv_combine fast: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas split_kv_combine trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) split_kv_combine(
    const float* O_partial_hbm,    // [kv heads, splits, rows, VALUE_DIM] of the launch
    const float* LSE_partial_hbm,  // [kv heads, splits, rows] of the launch
    element* O_hbm,                // [kv heads, rows, VALUE_DIM]
    float* LSE_hbm,                // [kv heads, rows]
    int seqlen_q, int splits,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* w_shared =  // [splits], of this warp
        (float*)shared_memory + threadIdx.x / WARP * splits;

    const int head = first_head + blockIdx.y, i = first_block + blockIdx.x;
    const int first_row = i * BR, top_row = first_block * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int most_rows = gridDim.x * BR;
    const int launch_rows = seqlen_q - top_row < most_rows ? seqlen_q - top_row : most_rows;
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    // A column for each split: w is recorded as alpha, all else in the first of them.
    const Trace trace(blockIdx.y, gridDim.x, splits TRACE_ARGUMENTS);
    const Visit visit = trace.visit(blockIdx.x, 0);

    int read = 0, read_lse = 0, stored = 0, stored_lse = 0;
    for (int r = 0; r < ROWS && own_row(r) < rows; ++r) {
        const int row = own_row(r);
        float top = minus_infinity();
        for (int split = lane(); split < splits; split += WARP) {
            const Index place = partial_row(split, splits, launch_rows) + row;
            w_shared[split] = LSE_partial_hbm[place];  // [load] Dao et al. 2023, step 3
            top = larger(top, w_shared[split]);
            ++read_lse;
        }
        const float m = warp_max(top);  // [row max] Dao et al. 2023, step 3

        float sum = 0.0f;
        for (int split = lane(); split < splits; split += WARP) {
            const float w =  // [exponentials] Dao et al. 2023, step 3
                exp_below(w_shared[split], m);
            w_shared[split] = w;
            sum += w;
            RECORDED(visit.alpha_[(Index)row * splits + split] = w;)
        }
        const float l = warp_sum(sum);  // [row sum] Dao et al. 2023, step 3
        __syncwarp();  // each lane needs the weights that the others made

        for (int value = lane(); value < VALUE_DIM; value += WARP) {
            float O = 0.0f;
            for (int split = 0; split < splits; ++split) {
                const Index place = partial_row(split, splits, launch_rows) + row;
                const float O_split =
                    O_partial_hbm[place * VALUE_DIM + value];  // [load] Dao et al. 2023, step 3
                O = multiply_add(  // [accumulate] Dao et al. 2023, step 3
                    w_shared[split], O_split, O);
                ++read;
            }
            RECORDED(if (visit.detail_) visit.detail_->o[row][value] = O;)
            O = over(O, l);  // [normalise] Dao et al. 2023, step 3
            put(O_hbm + (row_of_head + row) * VALUE_DIM + value, O);  // [store] Dao et al. 2023, step 3
            ++stored;
        }
        if (lane() == 0) {
            LSE_hbm[row_of_head + row] =  // [store] Dao et al. 2023, step 3
                l > 0.0f ? m + logf(l) : minus_infinity();
            ++stored_lse;
            RECORDED(visit.m_[(Index)row * splits] = m; visit.l_[(Index)row * splits] = l;)
        }
        __syncwarp();  // the weights have been read: the next row's may take their place
    }
    visit.count(READ_O_partial, read * (int)sizeof(float));
    visit.count(READ_LSE_partial, read_lse * (int)sizeof(float));
    visit.count(WRITE_O, stored * (int)sizeof(element));
    visit.count(WRITE_LSE, stored_lse * (int)sizeof(float));
}
