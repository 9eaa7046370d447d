// The joining of splits, of kernels that deal keys out to some.
//
// The loader (kernels/build/sources.py) puts this text in the place of `#include "join_splits.cuh"`,
// after split_kv.cuh.

// ptxas split_kv_combine fast: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas split_kv_combine trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas split_kv_combine fast NVRTC 12: at most 64 registers, 24 bytes of stack, 40 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) split_kv_combine(
    const float* O_partial_hbm,    // [kv heads, splits, rows, VALUE_DIM] of the launch
    const float* LSE_partial_hbm,  // [kv heads, splits, rows] of the launch
    element* O_hbm,                // [kv heads, rows, VALUE_DIM]
    float* LSE_hbm,                // [kv heads, rows]
    int seqlen_q, int splits GATE_PARAMETERS,
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
#ifdef OUTPUT_GATE
            O *= widen(  // [gate] Dao et al. 2023, step 3
                gate_hbm[(row_of_head + row) * VALUE_DIM + value]);  // [load] Dao et al. 2023, step 3
#endif
            put(O_hbm + (row_of_head + row) * VALUE_DIM + value, O);  // [store] Dao et al. 2023, step 3
            ++stored;
        }
        if (lane() == 0) {
            LSE_hbm[row_of_head + row] =  // [store] Dao et al. 2023, step 3
                l == 0.0f ? minus_infinity() : m + logf(l);
            ++stored_lse;
            RECORDED(visit.m_[(Index)row * splits] = m; visit.l_[(Index)row * splits] = l;)
        }
        __syncwarp();  // the weights have been read: the next row's may take their place
    }
    visit.count(READ_O_partial, read * (int)sizeof(float));
    visit.count(READ_LSE_partial, read_lse * (int)sizeof(float));
#ifdef OUTPUT_GATE
    visit.count(READ_gate, stored * (int)sizeof(element));
#endif
    visit.count(WRITE_O, stored * (int)sizeof(element));
    visit.count(WRITE_LSE, stored_lse * (int)sizeof(float));
}
