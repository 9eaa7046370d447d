// What backward passes share: sums over rows or over keys of a tile, and what is recorded of a visit.
//
// The algorithm's source has included common.cuh before. A warp owns ROWS query rows, as there, and
// OWN_KEYS keys of dK and dV, each of its lanes every 32nd column of them.

#define OWN_KEYS ((BC + WARPS - 1) / WARPS)          // keys of dK and dV that a warp owns
#define DEPTHS ((HEAD_DIM + WARP - 1) / WARP)        // columns of dQ and dK that a lane owns
// A row of V is one bank longer than its elements, because lanes side by side read keys side by side.
#define VALUE_STRIDE (VALUE_DIM + 4 / (int)sizeof(element))

__device__ __forceinline__ int own_key(int c) { return threadIdx.x / WARP * OWN_KEYS + c; }

// One visit under the magnifier; kernels/cuda/records.py has the same layout.
struct GradientDetail {
    float s[BR][BC];  // scaled scores before the mask
    float p[BR][BC], dp[BR][BC], ds[BR][BC];
    float dq_acc_before[BR][HEAD_DIM], dq_acc[BR][HEAD_DIM];  // before and after, scaled last
    float dk_before[BC][HEAD_DIM], dk[BC][HEAD_DIM];          // sums of the rows so far
    float dv_before[BC][VALUE_DIM], dv[BC][VALUE_DIM];
    float d[BR];  // D of the rows, where the visit makes it
};

#ifdef TRACE
__device__ __forceinline__ GradientDetail* detail_of(const Visit& visit)
{
    return (GradientDetail*)visit.detail_;
}
#endif

// sums[key][column] += Σ over rows of weights[row][key] x[row][column], each warp its keys.
template <int WIDTH, int COLUMNS>
__device__ __forceinline__ void add_over_rows(
    float (&sums)[OWN_KEYS][COLUMNS],
    const float* weights_shared,  // [TILE_ROWS, BC]
    const element* x_shared,      // [TILE_ROWS, WIDTH]
    int rows, int keys, const Visit& visit)
{
    for (int row = 0; row < rows; ++row) {
        float x[COLUMNS];
        #pragma unroll
        for (int n = 0; n < COLUMNS; ++n) {
            const int column = lane() + n * WARP;  // past the end: any, it is not stored
            x[n] = widen(x_shared[row * WIDTH + (column < WIDTH ? column : 0)]);
        }
        #pragma unroll
        for (int c = 0; c < OWN_KEYS; ++c) {
            const int key = own_key(c);  // past the end: any, it is not stored
            const float weight = weights_shared[row * BC + (key < keys ? key : 0)];
            #pragma unroll
            for (int n = 0; n < COLUMNS; ++n) sums[c][n] = multiply_add(weight, x[n], sums[c][n]);
        }
    }
    int summed = 0;
    for (int c = 0; c < OWN_KEYS && own_key(c) < keys; ++c)
        for (int column = lane(); column < WIDTH; column += WARP) summed += rows;
    visit.count(FLOPS, summed * 2);
}

// sum[row][depth] += Σ over keys of dS[row][key] K[key][depth], each warp its rows.
__device__ __forceinline__ void add_over_keys(
    float (&sum)[ROWS][DEPTHS],
    const float* dS_shared,   // [TILE_ROWS, BC]
    const element* K_shared,  // [BC, KEY_STRIDE]
    int keys)
{
    for (int key = 0; key < keys; ++key) {
        float k[DEPTHS];
        #pragma unroll
        for (int n = 0; n < DEPTHS; ++n) {
            const int depth = lane() + n * WARP;
            k[n] = widen(K_shared[key * KEY_STRIDE + (depth < HEAD_DIM ? depth : 0)]);
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float ds = dS_shared[own_row(r) * BC + key];
            #pragma unroll
            for (int n = 0; n < DEPTHS; ++n) sum[r][n] = multiply_add(ds, k[n], sum[r][n]);
        }
    }
}

// Registers to HBM, each warp its own keys.
template <int WIDTH, int COLUMNS>
__device__ __forceinline__ void store_keys(
    element* keys_hbm,  // [keys, WIDTH]
    const float (&sums)[OWN_KEYS][COLUMNS], float factor, int keys, const Visit& visit,
    Counter counter)
{
    int stored = 0;
    #pragma unroll
    for (int c = 0; c < OWN_KEYS; ++c)
        #pragma unroll
        for (int n = 0; n < COLUMNS; ++n) {
            const int key = own_key(c), column = lane() + n * WARP;
            if (key >= keys || column >= WIDTH) continue;
            put(keys_hbm + (Index)key * WIDTH + column, factor * sums[c][n]);
            ++stored;
        }
    visit.count(counter, stored * (int)sizeof(element));
}

#ifdef TRACE
template <int WIDTH, int COLUMNS>
__device__ __forceinline__ void copy_keys(float (*into)[WIDTH],
                                          const float (&sums)[OWN_KEYS][COLUMNS], int keys)
{
    #pragma unroll
    for (int c = 0; c < OWN_KEYS; ++c)
        #pragma unroll
        for (int n = 0; n < COLUMNS; ++n)
            if (own_key(c) < keys && lane() + n * WARP < WIDTH)
                into[own_key(c)][lane() + n * WARP] = sums[c][n];
}

__device__ __forceinline__ void copy_depths(float (*into)[HEAD_DIM],
                                            const float (&sums)[ROWS][DEPTHS], int rows)
{
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int n = 0; n < DEPTHS; ++n)
            if (own_row(r) < rows && lane() + n * WARP < HEAD_DIM)
                into[own_row(r)][lane() + n * WARP] = sums[r][n];
}
#endif
