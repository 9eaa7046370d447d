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
#define GATE 0
#define SUMS 1
#include "state.cuh"
#include "recurrence.cuh"

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
    const Shared own = shared_in(shared_memory);

    const int head = first_head + blockIdx.y;
    const Trace trace(blockIdx.y, blocks, 1 TRACE_ARGUMENTS);
    own.start();  // [start state] Katharopoulos et al. 2020, equations 16 and 17

    for (int t = 0; t < first_block + blocks; ++t) {
        const Index row = (Index)head * seqlen_k + t;
        const Index key = (Index)kv_head_of[head] * seqlen_k + t;
        const Visit visit = t < first_block ? unrecorded() : trace.visit(t - first_block, 0);
        visit.kind(FULL);

        // Others are done with Q and K since the features were there, and V is each lane's own.
        load_rows(own, Q_hbm + row * HEAD_DIM,  // [load] Katharopoulos et al. 2020, equations 18 and 19
                  K_hbm + key * HEAD_DIM, V_hbm + key * VALUE_DIM, visit);
        __syncwarp();  // the rows are whole
        int projected = 0;
        #pragma unroll 1
        for (int f = lane(); f < FEATURES; f += WARP) {
            own.phi_Q[f] =  // [features] Katharopoulos et al. 2020, equation 7; Choromanski et al. 2021, lemma 1
                feature(own.Q, projection_hbm, f);
            own.phi_K[f] =  // [features] Katharopoulos et al. 2020, equation 7; Choromanski et al. 2021, lemma 1
                feature(own.K, projection_hbm, f);
            if (PROJECTS) projected += 2;
        }
        visit.count(FLOPS, projected * 2 * HEAD_DIM);
        __syncwarp();  // the features are there
        RECORDED(record_before(own, visit);)

        float v[VALUES], O[VALUES];
        own_values(v, own.V);
        add_product(own.state, own.phi_K,  // [update state] Katharopoulos et al. 2020, equations 18 and 19
                    v, visit);
        for (int f = lane(); f < FEATURES; f += WARP)
            own.state[f * TOTALS + VALUE_DIM] += own.phi_K[f];
        RECORDED(record_state(own, visit);)
        times_state(O, own.phi_Q,  // [read state] Katharopoulos et al. 2020, equation 20
                    own.state, visit);
        float l = 0.0f;
        for (int f = lane(); f < FEATURES; f += WARP)
            l = multiply_add(own.phi_Q[f], own.state[f * TOTALS + VALUE_DIM], l);
        l = warp_sum(l);
        RECORDED(if (visit.detail_) {
            copy_own(detail_of(visit)->o[0], O);
            if (lane() == 0) detail_of(visit)->l[0] = l;
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
