// FlashAttention-1, forward.
//
// Paper      Dao, Fu, Ermon, Rudra, Ré 2022, "FlashAttention: Fast and Memory-Efficient Exact
//            Attention with IO-Awareness", Algorithm 1; the mask as in Algorithm 2 (appendix B).
// Grid       (1, heads): a block walks all tiles of a head, for each depends on the one before.
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     S as float32, Q and one tile of K and V as wide as in HBM:
//            4 TILE_ROWS BC + b (TILE_ROWS d + BC (d + pad) + BC dv) bytes
//            (kernels/cuda/specs.py: shared_bytes).
// Registers  m, l and O of the warp's rows, and P V of one tile, float32.
// Changed    since naive attention: S and P never leave the chip. The price is that O, m and l,
//            float32 in HBM, are loaded and stored at every tile. O is kept normalised, so that
//            it is the right answer for the keys seen so far after each of them.

#include "common.cuh"

// HBM to registers: O, l and m of a row block as the visit before left them. Each lane loads the
// values of O that it owns, all lanes of a warp the statistics of its rows, which count once.
__device__ __forceinline__ void load_running(
    float (&m)[ROWS], float (&l)[ROWS], float (&O)[ROWS][VALUES],
    const float* m_hbm, const float* l_hbm,  // [rows]
    const float* O_hbm,                      // [rows, VALUE_DIM]
    int rows, const Visit& visit)
{
    int statistics = 0, values = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = own_row(r);
        const bool valid = row < rows;
        m[r] = valid ? m_hbm[row] : minus_infinity();
        l[r] = valid ? l_hbm[row] : 0.0f;
        if (valid && lane() == 0) ++statistics;
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) {
            const int value = lane() + n * WARP;
            O[r][n] = 0.0f;
            if (valid && value < VALUE_DIM) {
                O[r][n] = O_hbm[row * VALUE_DIM + value];
                ++values;
            }
        }
    }
    visit.count(READ_m, statistics * (int)sizeof(float));
    visit.count(READ_l, statistics * (int)sizeof(float));
    visit.count(READ_O, values * (int)sizeof(float));
}

__device__ __forceinline__ void store_statistics(
    float* m_hbm, float* l_hbm,  // [rows]
    const float (&m)[ROWS], const float (&l)[ROWS], int rows, const Visit& visit)
{
    int stored = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (own_row(r) < rows && lane() == 0) {
            m_hbm[own_row(r)] = m[r];
            l_hbm[own_row(r)] = l[r];
            ++stored;
        }
    visit.count(WRITE_m, stored * (int)sizeof(float));
    visit.count(WRITE_l, stored * (int)sizeof(float));
}

// ptxas flash1 fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas flash1 trace: at most 168 registers, 64 bytes of stack, 144 bytes spilled
// ptxas flash1 fast NVRTC 12: at most 128 registers, 8 bytes of stack, 8 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) flash1(
    const element* Q_hbm,   // [heads, Nq, HEAD_DIM]
    const element* K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,   // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,  // [heads]
    float* O_hbm,           // [heads, Nq, VALUE_DIM]
    float* l_hbm,           // [heads, Nq]
    float* m_hbm,           // [heads, Nq]
    VISIT_PARAMETERS,       // row blocks of each column block
    MASK_PARAMETERS, SCORE_PARAMETERS SINK_PARAMETERS ENDING_PARAMETERS,
    int first_head, int first_block, int blocks  // the row blocks of this launch
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
    const int head = first_head + blockIdx.y;
    const int top_row = first_block * BR;
    const int all_rows = seqlen_q - top_row < blocks * BR ? seqlen_q - top_row : blocks * BR;
    const Index row_of_head = (Index)head * seqlen_q;
    const Trace trace(blockIdx.y, blocks, column_blocks TRACE_ARGUMENTS);

    for (int i = 0; i < blocks; ++i) {  // [clear] Dao et al. 2022, Algorithm 1, line 2
        const Visit visit = trace.visit(i, 0);
        const int rows = all_rows - i * BR < BR ? all_rows - i * BR : BR;
        const Index first = row_of_head + top_row + i * BR;
        if (first_block + i == 0) sink.count(visit, mask, 0, 1);  // once for each head
        for (int n = threadIdx.x; n < rows * VALUE_DIM; n += THREADS) {
            O_hbm[first * VALUE_DIM + n] = 0.0f;
            visit.count(WRITE_O, (int)sizeof(float));
        }
        for (int row = threadIdx.x; row < rows; row += THREADS) {
            sink.start(m_hbm[first + row], l_hbm[first + row],  // [load] Dao et al. 2022, Algorithm 1, line 2
                       mask, head, top_row + i * BR + row, true);
            visit.count(WRITE_l, (int)sizeof(float));
            visit.count(WRITE_m, (int)sizeof(float));
        }
    }

    for (int j = 0; j < column_blocks; ++j) {  // Dao et al. 2022, Algorithm 1, line 5
        const int first_key = j * BC;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        bool loaded = false;

        Walk tile(runs_hbm + run_offsets[j], first_block, first_block + blocks);
        for (; tile.more(); tile.next()) {  // Dao et al. 2022, Algorithm 1, line 7
            const int first_row = tile.at * BR;
            const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
            const Visit visit = trace.visit(tile.at - first_block, j);
            visit.kind(tile.kind());

            __syncthreads();  // every warp is done with the visit before, and O, l, m are in HBM
            if (!loaded) {  // once, before the first row block that sees these keys
                const Index key = (Index)kv_head_of[head] * seqlen_k + first_key;
                load_tile(K_shared, BC, KEY_STRIDE,  // [load] Dao et al. 2022, Algorithm 1, line 6
                          K_hbm + key * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
                load_tile(V_shared, BC, VALUE_DIM,  // [load] Dao et al. 2022, Algorithm 1, line 6
                          V_hbm + key * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
                loaded = true;
            }
            load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Dao et al. 2022, Algorithm 1, line 8
                      Q_hbm + (row_of_head + first_row) * HEAD_DIM, rows, HEAD_DIM, visit, READ_Q);
            float* O_here = O_hbm + (row_of_head + first_row) * VALUE_DIM;  // [rows, VALUE_DIM]
            float* l_here = l_hbm + row_of_head + first_row;                // [rows]
            float* m_here = m_hbm + row_of_head + first_row;                // [rows]
            float m[ROWS], l[ROWS], O[ROWS][VALUES];
            load_running(m, l, O,  // [load] Dao et al. 2022, Algorithm 1, line 8
                         m_here, l_here, O_here, rows, visit);
            __syncthreads();  // the tiles are whole

            scores(S_shared, Q_shared, K_shared,  // [scores] Dao et al. 2022, Algorithm 1, line 9
                   score, rows, keys, visit);
            visit.scores(S_shared, rows, keys);
            change_scores(S_shared, score, mask, head,  // [soft-cap] Dao et al. 2022, Algorithm 1, line 9
                          first_row, rows, first_key, keys);  // [bias] Dao et al. 2022, Algorithm 1, line 9
            if (tile.kind() == PARTIAL)  // [mask] Dao et al. 2022, Algorithm 2, line 11
                apply_mask(S_shared, mask, head, first_row, first_key, keys);

            visit.output_before(O, rows);
            float weight[ROWS];  // of this tile's P V in the new O
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                float* S_row = S_shared + own_row(r) * BC;
                const float m_tile = row_max(S_row, keys);  // [row max] Dao et al. 2022, line 10
                exponentials(S_row, m_tile, keys);  // [exponentials] Dao et al. 2022, line 10
                const float l_tile = row_sum(S_row, keys);  // [row sum] Dao et al. 2022, line 10

                const float m_new = larger(m[r], m_tile);  // [combine] Dao et al. 2022, line 11
                const float alpha = exp_below(m[r], m_new), beta = exp_below(m_tile, m_new);
                const float l_new = multiply_add(alpha, l[r], beta * l_tile);

                const float kept = over(alpha * l[r], l_new);
                #pragma unroll
                for (int n = 0; n < VALUES; ++n)
                    O[r][n] *= kept;  // [rescale] Dao et al. 2022, Algorithm 1, line 12
                weight[r] = over(beta, l_new);
                m[r] = m_new;
                l[r] = l_new;
                visit.row(r, rows, m_new, l_new, alpha, m_tile, l_tile, beta);
            }
            visit.exponentials(S_shared, rows, keys);
#ifdef ROUND_PAIRS
            round_pairs(S_shared, keys);  // [round] Dao et al. 2022, Algorithm 1, line 12
#endif
            __syncwarp();  // each lane needs what the others made of its warp's rows

            float product[ROWS][VALUES] = {};
            accumulate<1>(product, S_shared, V_shared, rows, keys, visit);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r)
                #pragma unroll
                for (int n = 0; n < VALUES; ++n)
                    O[r][n] =  // [accumulate] Dao et al. 2022, Algorithm 1, line 12
                        multiply_add(weight[r], product[r][n], O[r][n]);
            visit.output(O, rows);

#ifdef OUTPUT_GATE
            if (last_columns[tile.at] == j)
                gate_output(O,  // [gate] Dao et al. 2022, Algorithm 1, line 12
                            gate_hbm + (row_of_head + first_row) * VALUE_DIM,  // [load] Dao et al. 2022, Algorithm 1, line 12
                            rows, visit);
#endif
            store_output(O_here, O, rows, visit);  // [store] Dao et al. 2022, line 12
            store_statistics(m_here, l_here,  // [store] Dao et al. 2022, Algorithm 1, line 13
                             m, l, rows, visit);
        }
    }
}
