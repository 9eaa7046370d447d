"""The two matrices that make up a head, as wide as X, and the cost of more heads.

References
----------
Vaswani et al. 2017, section 3.2.2: the heads divide D, so that the cost of the layer stays. Elhage
et al. 2021, "A Mathematical Framework for Transformer Circuits": the QK and the OV circuit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32, F64, frozen
from simulator.base.matmul import matmul
from simulator.problem.layer import Layer
from simulator.run.whole_layer import LayerRun


@dataclass(frozen=True, slots=True, eq=False)
class HeadMatrices:
    """The products of a head's weights, without the head's own dimensions."""

    # (D, D) float64, W_Q W_Kᵀ of the head: x_i W_Q W_Kᵀ x_jᵀ is q_i · k_j without biases
    reads: F64
    writes: F64  # (D, D) float64, W_V W_O of the head: from x of a token to its part of Y
    # ``‖A − Aᵀ‖ / ‖A‖`` of `reads`, Frobenius: 0 if it is symmetric, √2 if A and Aᵀ have nothing in
    # common, 2 if Aᵀ = −A; 0 for a matrix of zeros
    asymmetry: float


def head_matrices(layer: Layer, head: int) -> HeadMatrices:
    """Return the matrices of a query head with the KV head that it reads."""
    (heads, _, depth), (kv_heads, _, _), (_, _, value) = layer.shapes
    shared = head * kv_heads // heads
    w = {name: values.astype(np.float64) for name, values in layer.weights.items()}
    reads = matmul(_columns(w["wq"], head, depth), _columns(w["wk"], shared, depth).T)
    rows = w["wo"][head * value : (head + 1) * value]
    writes = matmul(_columns(w["wv"], shared, value), rows)
    return HeadMatrices(frozen(reads), frozen(writes), asymmetry_of(reads))


def asymmetry_of(reads: F64 | F32) -> float:
    """Return ``‖A − Aᵀ‖ / ‖A‖`` of a matrix."""
    exact = reads.astype(np.float64)
    size = float(np.linalg.norm(exact))
    return float(np.linalg.norm(exact - exact.T)) / size if size else 0.0


def _columns(weights: F64, head: int, each: int) -> F64:
    return weights[:, head * each : (head + 1) * each]


@dataclass(frozen=True, slots=True, eq=False)
class RowShares:
    """The share of each head in one row of Y."""

    given: F64  # (H, D) float64, the shares, which sum to the row of Y without the bias of W_O
    total: F64  # (D,) float64, that row of Y less the bias
    # (H,) float64, how much of `total` each head gives in its direction, ``given · total /
    # ‖total‖²``: they sum to 1, and one below 0 works against the others. 0 where the total is 0
    along: F64
    size: F64  # (H,) float64, ``‖given‖``

    @property
    def ends(self) -> tuple[F64, F64]:
        """Where the pieces of a signed stack begin and end, (H, D) each.

        Positive numbers are stacked upwards from 0, head after head, negative ones downwards: the
        two ends of a stack sum to the total.
        """
        up, down = np.maximum(self.given, 0), np.minimum(self.given, 0)
        above, below = np.cumsum(up, axis=0), np.cumsum(down, axis=0)
        start = np.where(self.given >= 0, above - up, below - down)
        return start, start + self.given


def row_shares(run: LayerRun, row: int) -> RowShares:
    """Return the share of each head in a row of Y."""
    given = run.shares[:, row].astype(np.float64)
    total = run.arrays["y"][row].astype(np.float64) - run.bias
    whole = float(matmul(total, total))
    along = matmul(given, total) / whole if whole else np.zeros(len(given))
    return RowShares(frozen(given), frozen(total), along, np.linalg.norm(given, axis=1))


@dataclass(frozen=True, slots=True)
class HeadCount:
    """A layer that divides its width among some heads, each with its own K and V."""

    width: int  # D, of X and of Y
    rows: int  # N, of queries and of keys; every query sees every key
    heads: int  # h, which divides D

    @property
    def depth(self) -> int:
        """Width of a head: d = D / h."""
        return self.width // self.heads

    @property
    def parameters(self) -> int:
        """Weights of W_Q, W_K, W_V and W_O, without biases: 4 D²."""
        return 4 * self.width * self.heads * self.depth

    @property
    def projection_flops(self) -> int:
        """FLOPs of the four products with weights: 8 N D²."""
        return 2 * self.rows * self.parameters

    @property
    def tile_flops(self) -> int:
        """FLOPs of QKᵀ and PV of all heads: 4 N² D."""
        return self.heads * 2 * self.rows**2 * (self.depth + self.depth)

    @property
    def scores(self) -> int:
        """Numbers in the score maps of all heads: h N²."""
        return self.heads * self.rows**2

    @property
    def exponentials(self) -> int:
        """Exponentials of the softmax, one for each score."""
        return self.scores


def head_counts(width: int, rows: int) -> tuple[HeadCount, ...]:
    """Return a layer with each number of heads that divides its width, fewest first."""
    return tuple(HeadCount(width, rows, h) for h in range(1, width + 1) if width % h == 0)
