// One split of a row block, of kernels that deal keys out to splits: what split_kv.cu says of it holds.
//
// The loader (kernels/build/sources.py) puts this text in the place of `#include "split_kv.cuh"`, after
// common.cuh. How K and V lie in HBM is not known here: a kernel's own `Cache` loads their tiles.

// A mask of packed rows: row r sees what row r mod queries of its head sees.
// simulator/problem/packing.py says the same to the CPU.
struct PackedMask {
    Mask of_head;  // its seqlen_q are the queries of one head
    int rows;      // of all its heads

    __device__ int last_key() const { return of_head.last_key(); }
    __device__ int shifted(int row) const { return of_head.shifted(row % of_head.seqlen_q); }
    __device__ int query_head(int first, int row) const { return first + row / of_head.seqlen_q; }

    __device__ __forceinline__ bool sees(int first, int row, int key) const
    {
#ifdef PATTERN
        if (row >= rows) return false;  // of a tile's end, which nobody stores
#endif
        return of_head.sees(query_head(first, row), row % of_head.seqlen_q, key);
    }
};

// Where the partials of a row block's first row lie: [kv heads of the launch, splits, rows of the
// launch], so that a launch of few row blocks needs memory for those alone.
__device__ __forceinline__ Index partial_row(int split, int splits, int launch_rows)
{
    return ((Index)blockIdx.y * splits + split) * launch_rows + blockIdx.x * BR;
}

// A thread block's work: the column blocks of one split of one row block, into a partial O and LSE.
// If keys are LATENT, a value is the first numbers of its key, and there is no tile of V.
template <bool LATENT = false, class Cache>
__device__ __forceinline__ void work_on_split(
    const element* Q_hbm,      // [kv heads, rows, HEAD_DIM]; rows are packed
    const Cache& cache,        // K and V of the keys
    float* O_partial_hbm,      // [kv heads, splits, rows, VALUE_DIM] of the launch
    float* LSE_partial_hbm,    // [kv heads, splits, rows] of the launch
    VISIT_PARAMETERS,          // column blocks of each row block, of all its splits
    int seqlen_q, int seqlen_k, int queries, int split_blocks,
    const PackedMask& mask, const Score& score, const Sinks& sink THRESHOLD_PARAMETERS,
    int first_head, int first_block, const Trace& trace)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* S_shared = (float*)shared_memory;                           // [TILE_ROWS, BC]
    element* Q_shared = (element*)(S_shared + TILE_ROWS * BC);         // [TILE_ROWS, HEAD_DIM]
    element* K_shared = Q_shared + TILE_ROWS * HEAD_DIM;               // [BC, KEY_STRIDE]
    element* V_shared = K_shared + (LATENT ? 0 : BC * KEY_STRIDE);     // [BC, VALUE_STRIDE]
    const int VALUE_STRIDE = LATENT ? KEY_STRIDE : VALUE_DIM;

    const int splits = gridDim.z, split = blockIdx.z;
    const int head = first_head + blockIdx.y, i = first_block + blockIdx.x;
    const int first_row = i * BR, top_row = first_block * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int most_rows = gridDim.x * BR;
    const int launch_rows = seqlen_q - top_row < most_rows ? seqlen_q - top_row : most_rows;
    const Index row_of_head = (Index)head * seqlen_q + first_row;

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
    Walk tile(runs_hbm + run_offsets[i], split * split_blocks, (split + 1) * split_blocks);
    for (; tile.more(); tile.next()) {  // Dao 2023, Algorithm 1, line 6: of others nothing is loaded
        const int first_key = tile.at * BC;
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
        cache.load(K_shared, V_shared, head, first_key, keys, visit);
        __syncthreads();  // the tiles are whole

        scores(S_shared, Q_shared, K_shared,  // [scores] Dao 2023, Algorithm 1, line 8
               score, rows, keys, visit);
        visit.scores(S_shared, rows, keys);
        change_scores(S_shared, score, mask,  // [soft-cap] Dao 2023, Algorithm 1, line 8
                      head * (seqlen_q / queries), first_row, rows, first_key, keys);  // [bias] Dao 2023, Algorithm 1, line 8
        if (tile.kind() == PARTIAL)
            apply_mask(S_shared, mask, head * (seqlen_q / queries),  // [mask] Dao 2023, section 3.1
                       first_row, first_key, keys);

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
        accumulate<2, VALUE_STRIDE>(O, S_shared, V_shared,  // [accumulate] Dao 2023, line 10
                                    rows, keys, visit);
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
                l[r] == 0.0f ? minus_infinity() : m[r] + logf(l[r]);
            ++stored;
        }
    }
    visit.count(WRITE_LSE_partial, stored * (int)sizeof(float));
    // Of a split that sees nothing  [clear] Dao et al. 2023, step 1
    store_output(O_partial_hbm + place * VALUE_DIM,  // [store] Dao et al. 2023, step 2
                 O, rows, visit, WRITE_O_partial);
}
