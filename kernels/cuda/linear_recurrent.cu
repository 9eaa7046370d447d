// Linear attention token by token: the state is updated with a key and read with its query.
//
// Paper      Katharopoulos, Vyas, Pappas, Fleuret 2020, "Transformers are RNNs: Fast Autoregressive
//            Transformers with Linear Attention", section 3.4; Performer's features: Choromanski et
//            al. 2021, "Rethinking Attention with Performers", lemma 1.
// Grid       (1, heads): a thread block, which is one warp, goes through the tokens of a head.
// Shared     the features of the token's query and key, and the state, float32; its rows of
//            Q, K and V (kernels/cuda/specs.py).
// Registers  l and O of the token, float32.
// Changed    since linear.cu: no weight of a pair is formed, and no row waits for others.
//
// Compile-time, beside those of common.cuh: FEATURES, and PROJECTS (0 elu(x) + 1, 1 Performer).

#include "common.cuh"
#define SUMS 1
#include "recurrence.cuh"

// One feature of a row.
__device__ __forceinline__ float feature(
    const element* row,                        // [HEAD_DIM], in shared memory
    const float* __restrict__ projection_hbm,  // [FEATURES, HEAD_DIM]; null where PROJECTS is 0
    int f)
{
#if PROJECTS
    const float shrink = 1.0f / sqrtf(sqrtf((float)HEAD_DIM));
    float along = 0.0f, square = 0.0f;
    #pragma unroll 4
    for (int d = 0; d < HEAD_DIM; ++d) {
        const float y = widen(row[d]) * shrink;
        along = multiply_add(projection_hbm[f * HEAD_DIM + d], y, along);
        square = multiply_add(y, y, square);
    }
    const float exponent = along - square * 0.5f;
    return expf(exponent) / sqrtf((float)FEATURES);  // [features] Choromanski et al. 2021, lemma 1
#else
    const float x = widen(row[f]);
    return x > 0.0f ? x + 1.0f : expf(x);  // [features] Katharopoulos et al. 2020, equation 7
#endif
}

// ptxas linear_recurrent fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas linear_recurrent trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(WARP) linear_recurrent(
    const element* Q_hbm,         // [heads, N, HEAD_DIM]
    const element* K_hbm,         // [kv heads, N, HEAD_DIM]
    const element* V_hbm,         // [kv heads, N, VALUE_DIM]
    const int* kv_head_of,        // [heads]
    const float* projection_hbm,  // [FEATURES, HEAD_DIM]; null where PROJECTS is 0
    element* O_hbm,               // [heads, N, VALUE_DIM]
    int seqlen_k,
    int first_head, int first_block, int blocks  // tokens before the first are gone through, too
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* phi_Q_shared = (float*)shared_memory;            // [FEATURES]
    float* phi_K_shared = phi_Q_shared + FEATURES;          // [FEATURES]
    float* state_shared = phi_K_shared + FEATURES;         // [FEATURES, TOTALS]
    element* Q_shared = (element*)(state_shared + FEATURES * TOTALS);  // [HEAD_DIM]
    element* K_shared = Q_shared + HEAD_DIM;                // [HEAD_DIM]
    element* V_shared = K_shared + HEAD_DIM;                // [VALUE_DIM]

    const int head = first_head + blockIdx.y;
    const Trace trace(blockIdx.y, blocks, 1 TRACE_ARGUMENTS);
    for (int n = lane(); n < FEATURES * TOTALS; n += WARP)
        state_shared[n] = 0.0f;  // [start state] Katharopoulos et al. 2020, equations 16 and 17

    for (int t = 0; t < first_block + blocks; ++t) {
        const Index row = (Index)head * seqlen_k + t;
        const Index key = (Index)kv_head_of[head] * seqlen_k + t;
        const Visit visit = t < first_block ? unrecorded() : trace.visit(t - first_block, 0);
        visit.kind(FULL);

        __syncwarp();  // every lane is done with the token before
        load_tile(Q_shared, 1, HEAD_DIM,  // [load] Katharopoulos et al. 2020, equations 18 and 19
                  Q_hbm + row * HEAD_DIM, 1, HEAD_DIM, visit, READ_Q);
        load_tile(K_shared, 1, HEAD_DIM,  // [load] Katharopoulos et al. 2020, equations 18 and 19
                  K_hbm + key * HEAD_DIM, 1, HEAD_DIM, visit, READ_K);
        load_tile(V_shared, 1, VALUE_DIM,  // [load] Katharopoulos et al. 2020, equations 18 and 19
                  V_hbm + key * VALUE_DIM, 1, VALUE_DIM, visit, READ_V);
        __syncwarp();  // the rows are whole
        int projected = 0;
        #pragma unroll 1
        for (int f = lane(); f < FEATURES; f += WARP) {
            phi_Q_shared[f] = feature(Q_shared, projection_hbm, f);
            phi_K_shared[f] = feature(K_shared, projection_hbm, f);
            if (PROJECTS) projected += 2;
        }
        visit.count(FLOPS, projected * 2 * HEAD_DIM);
        __syncwarp();  // the features are there
        RECORDED(if (visit.detail_) {
            copy_shared(detail_of(visit)->phi_q[0], phi_Q_shared, FEATURES);
            copy_shared(detail_of(visit)->phi_k[0], phi_K_shared, FEATURES);
            copy_shared(detail_of(visit)->state_before[0], state_shared, FEATURES * TOTALS);
            __syncwarp();  // before it changes
        })

        float v[VALUES], O[VALUES];
        own_values(v, V_shared);
        add_product(state_shared, phi_K_shared,  // [update state] Katharopoulos et al. 2020, equations 18 and 19
                    v, visit);
        for (int f = lane(); f < FEATURES; f += WARP)
            state_shared[f * TOTALS + VALUE_DIM] += phi_K_shared[f];
        __syncwarp();  // the sums of the weights are there
        RECORDED(if (visit.detail_) {
            __syncwarp();  // the state is whole
            copy_shared(detail_of(visit)->state[0], state_shared, FEATURES * TOTALS);
        })
        times_state(O, phi_Q_shared,  // [read state] Katharopoulos et al. 2020, equation 20
                    state_shared, visit);
        float l = 0.0f;
        for (int f = lane(); f < FEATURES; f += WARP)
            l = multiply_add(phi_Q_shared[f], state_shared[f * TOTALS + VALUE_DIM], l);
        l = warp_sum(l);
        RECORDED(if (visit.detail_) {
            copy_own(detail_of(visit)->o[0], O);
            detail_of(visit)->l[0] = l;
        }
        if (visit.l_ && lane() == 0) *visit.l_ = l;)
        #pragma unroll
        for (int n = 0; n < VALUES; ++n)
            O[n] = over(O[n], l);  // [normalise] Katharopoulos et al. 2020, equation 20
        if (t < first_block) continue;
        store_row(O_hbm + row * VALUE_DIM,  // [store] Katharopoulos et al. 2020, equation 20
                  O, visit);
    }
}
