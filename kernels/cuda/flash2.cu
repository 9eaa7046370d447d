// FlashAttention-2, forward.
//
// Paper      Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
//            Partitioning", Algorithm 1; every line of it is cited where it is done.
// Grid       (row blocks, heads): every row block is a block of its own.
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     S as float32, Q and one tile of K and V as wide as in HBM:
//            4 TILE_ROWS BC + b (TILE_ROWS d + BC (d + pad) + BC dv) bytes
//            (kernels/cuda/specs.py: shared_bytes).
// Registers  m, l and O of the warp's rows, float32.
// Changed    since FlashAttention-1: the loops have changed places. O, m and l stay on chip until
//            their row block is done, and O is divided by l once, at the end. Row blocks depend
//            on nothing else, so they run side by side.

#include "common.cuh"

// ptxas flash2 fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas flash2 trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) flash2(
    const element* Q_hbm,   // [heads, Nq, HEAD_DIM]
    const element* K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,   // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,  // [heads]
    element* O_hbm,         // [heads, Nq, VALUE_DIM]
    float* LSE_hbm,         // [heads, Nq]
    VISIT_PARAMETERS,       // column blocks of each row block
    MASK_PARAMETERS, SCORE_PARAMETERS SINK_PARAMETERS THRESHOLD_PARAMETERS GATE_PARAMETERS,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* S_shared = (float*)shared_memory;                           // [TILE_ROWS, BC]
    element* Q_shared = (element*)(S_shared + TILE_ROWS * BC);         // [TILE_ROWS, HEAD_DIM]
    element* K_shared = Q_shared + TILE_ROWS * HEAD_DIM;               // [BC, KEY_STRIDE]
    element* V_shared = K_shared + BC * KEY_STRIDE;                    // [BC, VALUE_DIM]

    const Mask mask = MASK;
    const Score score = SCORE;
    const Sinks sink = SINKS;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const int head = first_head + blockIdx.y, i = first_block + blockIdx.x;
    const int first_row = i * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const Index row_of_head = (Index)head * seqlen_q + first_row;
    const Trace trace(blockIdx.y, gridDim.x, column_blocks TRACE_ARGUMENTS);

    float m[ROWS], l[ROWS], O[ROWS][VALUES];  // [initialise] Dao 2023, Algorithm 1, line 5
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        sink.start(m[r], l[r],  // [load] Dao 2023, Algorithm 1, line 5
                   mask, head, first_row + own_row(r), own_row(r) < rows);
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) O[r][n] = 0.0f;
    }

    Visit visit = trace.visit(blockIdx.x, 0);  // a row block that sees nothing counts there
    bool loaded = false;
    Walk tile(runs_hbm + run_offsets[i]);
    for (; tile.more(); tile.next()) {  // Dao 2023, Algorithm 1, line 6: of others nothing is loaded
        const int first_key = tile.at * BC;
        const Index key = (Index)kv_head_of[head] * seqlen_k + first_key;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        visit = trace.visit(blockIdx.x, tile.at);
        visit.kind(tile.kind());

        if (!loaded) {  // once, before the first tile that is seen
            load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Dao 2023, Algorithm 1, line 4
                      Q_hbm + row_of_head * HEAD_DIM, rows, HEAD_DIM, visit, READ_Q);
            sink.count(visit, mask, first_row, rows);
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
        change_scores(S_shared, score, mask, head,  // [soft-cap] Dao 2023, Algorithm 1, line 8
                      first_row, rows, first_key, keys);  // [bias] Dao 2023, Algorithm 1, line 8
        if (tile.kind() == PARTIAL)
            apply_mask(S_shared, mask, head, first_row, first_key, keys);  // [mask] Dao 2023, section 3.1

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
#ifdef ROUND_PAIRS
        round_pairs(S_shared, keys);  // [round] Dao 2023, Algorithm 1, line 10
#endif
        __syncwarp();  // each lane needs what the others made of its warp's rows
        accumulate<2>(O, S_shared, V_shared, rows, keys, visit);  // [accumulate] Dao 2023, line 10
        visit.output(O, rows);
    }

    if (!loaded) sink.count(visit, mask, first_row, rows);
    int stored = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        #pragma unroll
        for (int n = 0; n < VALUES; ++n)
            O[r][n] = over(O[r][n], l[r]);  // [normalise] Dao 2023, Algorithm 1, line 12
        if (own_row(r) < rows && lane() == 0) {
            LSE_hbm[row_of_head + own_row(r)] =  // [store] Dao 2023, Algorithm 1, lines 13 and 15
                l[r] == 0.0f ? minus_infinity() : m[r] + logf(l[r]);
            ++stored;
        }
    }
    visit.count(WRITE_LSE, stored * (int)sizeof(float));
#ifdef OUTPUT_GATE
    if (loaded)  // rows that see nothing need none
        gate_output(O,  // [gate] Dao 2023, Algorithm 1, line 12
                    gate_hbm + row_of_head * VALUE_DIM, rows, visit);  // [load] Dao 2023, Algorithm 1, line 12
#endif
    // A row that saw nothing has O = 0 and LSE = -inf.  [clear] Dao 2023, Algorithm 1, line 14
    store_output(O_hbm + row_of_head * VALUE_DIM, O, rows, visit);  // [store] Dao 2023, line 14
}
