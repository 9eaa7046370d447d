// What kernels share that keep a state of all keys in the place of scores.
//
// The loader (kernels/build/sources.py) puts this text in the place of `#include "state.cuh"`, after
// common.cuh.
//
// Compile-time, beside those of common.cuh: FEATURES; PROJECTS (0 elu(x) + 1, 1 Performer) where rows
// have a feature map; and SUMS (1: the last column of the state has the sum of the weights), which the
// kernel's file defines.

#define TOTALS (VALUE_DIM + SUMS)  // of a feature in the state

// Of a visit that is gone through only for the state that it leaves.
__device__ __forceinline__ Visit unrecorded()
{
    Visit visit;
    RECORDED(visit.kind_ = nullptr; visit.m_ = visit.l_ = visit.alpha_ = nullptr;
             visit.counters_ = nullptr; visit.detail_ = nullptr; visit.columns_ = 1;)
    return visit;
}

// One feature of a row: Katharopoulos et al. 2020, equation 7; Choromanski et al. 2021, lemma 1.
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
    return expf(exponent) / sqrtf((float)FEATURES);
#else
    const float x = widen(row[f]);
    return x > 0.0f ? x + 1.0f : expf(x);
#endif
}
