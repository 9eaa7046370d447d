"""What a warp does together: a product of fragments and ldmatrix, as the PTX ISA defines them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.build.sources import FOLDER
from kernels.cuda.engine import narrowed

Kernel = Callable[..., object]
INCLUDED = "".join(
    (FOLDER / name).read_text(encoding="utf-8") for name in ("common.cuh", "mma.cuh")
)
TOGETHER = (
    INCLUDED
    + r"""
extern "C" __global__ void product_of(const unsigned* A, const unsigned* B, float* C)
{
    float c[4];
    unsigned a[4];
    for (int n = 0; n < 4; ++n) c[n] = C[4 * lane() + n];
    for (int n = 0; n < 4; ++n) a[n] = A[4 * lane() + n];
    mma(c, a, B[2 * lane()], B[2 * lane() + 1]);
    for (int n = 0; n < 4; ++n) C[4 * lane() + n] = c[n];
}

extern "C" __global__ void matrices(const element* x, const int* rows, unsigned* out)
{
    extern __shared__ __align__(128) unsigned char shared_memory[];
    for (int n = lane(); n < 64 * 8; n += 32) ((element*)shared_memory)[n] = x[n];
    __syncwarp();
    const unsigned place = shared_address(shared_memory) + rows[lane()] * 16;
    unsigned four[2][4];
    ldmatrix(four[0], place);
    ldmatrix_transposed(four[1], place);
    for (int n = 0; n < 8; ++n) out[8 * lane() + n] = four[n / 4][n % 4];
}
"""
)


def fragment(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the registers of each lane, two elements of 16 bits in each, the first lower."""
    halves = matrix[rows, columns].astype(np.uint32)
    return np.ascontiguousarray(halves[:, 0::2] | halves[:, 1::2] << 16)


def check_product(kernel: Kernel, dtype: str) -> None:
    """Compare `product_of`: "Matrix fragments for mma.m16n8k16" of the PTX ISA."""
    rng = np.random.default_rng(1)
    shapes = ((16, 16), (16, 8), (16, 8))
    a, b, c = (rng.integers(-8, 9, shape).astype(np.float32) for shape in shapes)
    lane = np.arange(32)[:, None]
    group, thread = lane // 4, lane % 4
    i = np.arange(8)
    a_rows = group + 8 * np.isin(i, (2, 3, 6, 7))  # groupID for 0 <= i < 2 and 4 <= i < 6
    a_columns = thread * 2 + i % 2 + 8 * (i >= 4)
    i = np.arange(4)
    b_rows, b_columns = thread * 2 + i % 2 + 8 * (i >= 2), group + 0 * i
    c_rows, c_columns = group + 8 * (i >= 2), thread * 2 + i % 2
    sums = np.ascontiguousarray(c[c_rows, c_columns])
    of_a = fragment(narrowed(a, dtype), a_rows, a_columns)
    of_b = fragment(narrowed(b, dtype), b_rows, b_columns)
    kernel((1,), (32,), (of_a, of_b, sums))
    np.testing.assert_array_equal(sums, (a @ b + c)[c_rows, c_columns])


def check_matrices(kernel: Kernel) -> None:
    """Compare `matrices`: a lane n receives of row n / 4 the elements 2 (n % 4) and the next."""
    x = np.arange(64 * 8, dtype=np.uint16).reshape(64, 8)
    rows = np.random.default_rng(2).permutation(64)[:32].astype(np.int32)
    out = np.zeros((32, 8), dtype=np.uint32)
    kernel((1,), (32,), (x, rows, out), shared_mem=64 * 16)
    four = x[rows].reshape(4, 8, 8)
    for turned, matrices in enumerate((four, four.transpose(0, 2, 1))):
        dealt = matrices.reshape(4, 32, 2).transpose(1, 0, 2)  # lane, matrix, which of its pair
        got = out[:, 4 * turned : 4 * turned + 4]
        np.testing.assert_array_equal(np.stack([got & 0xFFFF, got >> 16], 2), dealt)
