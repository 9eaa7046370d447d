"""Attention as a kernel smoother: the keys of a head as points, the weights as a cloud among them.

With queries and keys multiplied by the root of the scale, a score is ``q·k``, and
``exp(q·k) = exp(|q|²/2) exp(|k|²/2) exp(-|q - k|²/2)``. The first factor is the same for all keys
of a row, so the softmax does not see it: a weight is the norm factor of its key times a radial
kernel of the distance, divided by the sum of these.

References
----------
Nadaraya 1964; Watson 1964. Tsai et al. 2019, "Transformer Dissection", section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import frozen
from simulator.base.matmul import matmul
from simulator.base.softmax import softmax_rows
from simulator.problem.workload import Inputs, Workload

F64 = NDArray[np.float64]

MOST = 512
"""Most rows and keys of a head that are taken: of more, evenly spread ones."""


@dataclass(frozen=True, eq=False)
class HeadPoints:
    """Queries and keys of one head, on the scale on which a score is q·k; arrays are read-only."""

    head: int  # which query head
    # rows, keys: query rows and keys that were taken
    rows: tuple[int, ...]
    keys: tuple[int, ...]
    q: F64  # (n, d) float64, queries times the root of scale over temperature
    k: F64  # (m, d) float64, keys times the same
    v: F64  # (m, dv) float64, values
    seen: NDArray[np.bool_]  # (n, m) bool, pairs that the mask leaves
    of_keys: int  # number of all keys
    added: F64  # (n, m) float64, what a soft-cap and a bias add to q·k; zeros where nothing does
    sink: float | None = None  # the logit that joins the denominator of every row

    @property
    def changed(self) -> bool:
        """Whether weights are not those of q·k alone."""
        return self.sink is not None or bool(self.added.any())

    @property
    def whole(self) -> bool:
        """Whether all keys were taken; else weights are among the taken keys."""
        return len(self.keys) == self.of_keys

    @cached_property
    def weights(self) -> F64:
        """The softmax of the scores over visible keys, (n, m); 0 for a row that sees nothing."""
        scores = np.where(self.seen, matmul(self.q, self.k.T) + self.added, -np.inf)
        return frozen(softmax_rows(scores, self.sink))

    @cached_property
    def plain_weights(self) -> F64:
        """The softmax of q·k alone, (n, m): without soft-cap, bias and sink."""
        return frozen(softmax_rows(np.where(self.seen, matmul(self.q, self.k.T), -np.inf)))


def head_points(w: Workload, inputs: Inputs, head: int, row: int, most: int = MOST) -> HeadPoints:
    """Return the queries, keys and values of a head, of a long input evenly spread ones.

    w: shapes, mask and scale, its heads one by one.
    head, row: the head, and a row that is taken in any case; so is the key with which it is
        aligned.
    """
    at = int(w.mask.positions(range(row, row + 1))[0])
    rows, keys = _spread(w.seqlen_q, most, row), _spread(w.seqlen_k, most, at)
    root = math.sqrt(w.logit_scale)
    kv_head = w.kv_head_of[head]
    mask = w.mask.of_head(head)
    seen = np.concatenate(
        [mask.visible(range(r, r + 1), range(w.seqlen_k))[:, list(keys)] for r in rows]
    )
    q = root * inputs.q[head, list(rows)].astype(np.float64)
    k = root * inputs.k[kv_head, list(keys)].astype(np.float64)
    return HeadPoints(
        head=head,
        rows=rows,
        keys=keys,
        q=frozen(q),
        k=frozen(k),
        v=frozen(inputs.v[kv_head, list(keys)].astype(np.float64)),
        seen=frozen(seen),
        of_keys=w.seqlen_k,
        added=frozen(_added(w, head, rows, keys, matmul(q, k.T))),
        sink=w.scoring.sink(head),
    )


def _added(
    w: Workload, head: int, rows: tuple[int, ...], keys: tuple[int, ...], products: F64
) -> F64:
    """Return the differences between scores and scaled products of some pairs."""
    if not w.changes_scores:
        return np.zeros_like(products)
    out = np.empty_like(products)
    every = np.zeros((1, w.seqlen_k))
    for n, row in enumerate(rows):
        every[0, list(keys)] = products[n]
        changed = w.changed(head, range(row, row + 1), range(w.seqlen_k), every)
        out[n] = changed[0, list(keys)] - products[n]
    return out


def _spread(length: int, most: int, own: int) -> tuple[int, ...]:
    """Return all places of a length, or evenly spread ones with `own` in place of a near one."""
    if length <= most:
        return tuple(range(length))
    places = np.linspace(0, length - 1, most).astype(int)
    if 0 <= own < length:
        places[np.abs(places - own).argmin()] = own
    return tuple(int(n) for n in places)


# --- two dimensions --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class KeyPlane:
    """The plane in which the keys of a head spread most, and the points in it."""

    share: float  # of the keys' variance, 0 to 1, that lies in the plane
    shares: tuple[float, float]  # of each of the two axes
    # (2, d) float64, the axes, each of length 1, or 0 where the keys have no such dimension
    axes: F64
    # keys, queries, blends: (m, 2), (n, 2), (n, 2) float64, read-only: keys, queries, and for each
    # row the mean of the keys under its weights; from the mean of the keys on
    keys: F64
    queries: F64
    blends: F64


def key_plane(points: HeadPoints) -> KeyPlane:
    """Return the first two principal components of a head's keys.

    An axis points to where its largest coefficient is positive, so the same keys give the same
    picture. Keys in fewer than two dimensions have zeros along the axes that are missing.

    References
    ----------
    Pearson 1901.
    """
    mean = points.k.mean(axis=0)
    from_mean = points.k - mean
    _, sizes, axes = np.linalg.svd(from_mean, full_matrices=False)
    plane = np.zeros((2, points.k.shape[1]))
    count = min(2, len(axes))
    plane[:count] = axes[:count]
    signs = np.sign(plane[np.arange(2), np.abs(plane).argmax(axis=1)])
    plane *= np.where(signs == 0, 1, signs)[:, None]
    variance = np.zeros(len(plane))
    total = float((sizes**2).sum())
    if total > 0:
        variance[:count] = sizes[:count] ** 2 / total
    keys = matmul(from_mean, plane.T)
    return KeyPlane(
        share=float(variance.sum()),
        shares=(float(variance[0]), float(variance[1])),
        axes=frozen(plane),
        keys=frozen(keys),
        queries=frozen(matmul(points.q - mean, plane.T)),
        blends=frozen(matmul(points.weights, keys)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class MovedQuery:
    """The weights of a row if its query were elsewhere in the plane."""

    place: tuple[float, float]  # where in the plane; the query's parts in other directions stay
    weights: F64  # (m,) float64, read-only
    blend: tuple[float, float]  # the mean of the keys under them


def moved_query(
    points: HeadPoints, plane: KeyPlane, at: int, place: tuple[float, float]
) -> MovedQuery:
    """Return the weights of a row whose query is moved within the plane.

    at: place of the row among `HeadPoints.rows`.
    place: the new place; along an axis that the keys do not have, the query does not move.
    """
    by = np.array(place) - plane.queries[at]
    q = points.q[at] + matmul(by, plane.axes)
    scores = np.where(points.seen[at], matmul(points.k, q) + points.added[at], -np.inf)
    weights = softmax_rows(scores[None, :], points.sink)[0]
    x, y = matmul(weights, plane.keys).tolist()
    return MovedQuery(place, frozen(weights), (x, y))


# --- two factors ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """``exp(q·k)`` as a factor of the query, one of the key and a radial kernel of their distance.

    A soft-cap, a bias and a sink come after q·k, and are not in the factors.
    """

    log_query: F64  # (n,) float64, ``|q|² / 2``
    log_norm: F64  # (m,) float64, ``|k|² / 2``
    log_radial: F64  # (n, m) float64, ``-|q - k|² / 2``, of the differences themselves
    off: float  # largest relative difference between ``exp(q·k)`` and the product of the three
    # radial_weights, norm_weights: (n, m) float64, each factor alone divided by its sum over the
    # visible keys
    radial_weights: F64
    norm_weights: F64
    # (n,) float64, the share of each row's weight that the norm factor moves to other keys: half
    # the sum of absolute differences between the weights of q·k and `radial_weights`
    moved: F64


def factors(points: HeadPoints) -> Factors:
    """Return the factors of a head's weights, and how far their product is from ``exp(q·k)``."""
    q, k = points.q, points.k
    log_query, log_norm = (q**2).sum(axis=1) / 2, (k**2).sum(axis=1) / 2
    log_radial = np.stack([-((row - k) ** 2).sum(axis=1) / 2 for row in q])
    product = log_query[:, None] + log_norm + log_radial
    # Factors of large norms overflow; the ratio of the two sides does not.
    off = float(np.abs(np.expm1(product - matmul(q, k.T))).max())
    hidden = np.where(points.seen, 0.0, -np.inf)
    radial = softmax_rows(log_radial + hidden)
    return Factors(
        log_query=frozen(log_query),
        log_norm=frozen(log_norm),
        log_radial=frozen(log_radial),
        off=off,
        radial_weights=frozen(radial),
        norm_weights=frozen(softmax_rows(log_norm + hidden)),
        moved=frozen(np.abs(points.plain_weights - radial).sum(axis=1) / 2),
    )


def rounding_bound(points: HeadPoints) -> float:
    """Return how far apart the two sides may be by rounding alone.

    Each exponent is a sum of d products, off by at most about ``(d + 4) u`` times the sum of its
    terms' magnitudes, which ``(|q| + |k|)²`` bounds; an exponential turns that into a relative
    error.
    """
    q, k = np.linalg.norm(points.q, axis=1).max(), np.linalg.norm(points.k, axis=1).max()
    u = float(np.finfo(np.float64).eps) / 2
    return float(np.expm1(2 * (points.k.shape[1] + 4) * u * (q + k) ** 2))
