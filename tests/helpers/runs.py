"""Scenarios to draw, and plain counts and sums made from the conventions alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, tanh
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st

from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import reference_gradients
from simulator.problem.facts import PACKED, RULES
from simulator.problem.masks import Align, BlockMask, Mask, PairMask
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace

ALGORITHMS = ("naive", "flash1", "flash2")
"""Those whose tiles and bytes are counted here again, for each query head by itself."""
WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class Pairs:
    """A mask, pair by pair."""

    nq: int
    nk: int
    causal: bool = False
    window: int | tuple[int, int] = 0
    sinks: int = 0
    dilation: int = 1
    global_tokens: int = 0
    documents: tuple[int, ...] = ()
    block: int = 0
    blocks: tuple[tuple[bool, ...], ...] = ()
    tensor: tuple[tuple[bool, ...], ...] = ()
    align: Align = "bottom-right"

    def aligned(self, i: int) -> int:
        """Return the key with which query row i is aligned."""
        return i + (self.nk - self.nq if self.align == "bottom-right" else 0)

    def sees(self, i: int, j: int) -> bool:
        """Return whether query row i sees key j: docs/files.md, "Masks", word by word."""
        shifted = self.aligned(i)
        if self.causal and j > shifted:
            return False
        if self.documents:
            belongs = [n for n, length in enumerate(self.documents) for _ in range(length)]
            if not 0 <= shifted < self.nk or belongs[shifted] != belongs[j]:
                return False
        if self.block and not self.blocks[i // self.block][j // self.block]:
            return False
        if self.tensor and not self.tensor[i][j]:
            return False
        if not self.window:
            return True
        w = self.window
        left, right = (w - 1, w - 1) if isinstance(w, int) else w
        near = left == -1 or shifted - j <= left
        if not self.causal:
            near = near and (right == -1 or j - shifted <= right)
        near = near and (shifted - j) % self.dilation == 0
        if self.global_tokens and shifted < self.global_tokens:
            return True
        return near or j < self.sinks or j < self.global_tokens

    def mask(self) -> Mask:
        """Return the same as the program has it."""
        blocks = BlockMask(self.block, np.array(self.blocks, dtype=bool)) if self.block else None
        tensor = PairMask(np.array([self.tensor], dtype=bool)) if self.tensor else None
        return Mask(
            self.nq, self.nk, self.causal, self.window, self.sinks,
            self.dilation, self.global_tokens, self.documents, blocks, tensor, self.align,
        )  # fmt: skip

    def matrix(self) -> np.ndarray:
        """Return all pairs, (nq, nk) bool."""
        rows = [[self.sees(i, j) for j in range(self.nk)] for i in range(self.nq)]
        return np.array(rows, dtype=bool)

    def kinds(self, rows: int, cols: int) -> np.ndarray:
        """Return 0 skipped, 1 partial or 2 full of each tile."""
        seen = self.matrix()
        out = np.zeros((ceil(self.nq / rows), ceil(self.nk / cols)), dtype=int)
        for i, j in product(*(range(n) for n in out.shape)):
            tile = seen[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols]
            out[i, j] = 2 if tile.all() else int(tile.any())
        return out


Rows = np.ndarray


def scenario(
    algorithm: str = "flash2",
    nq: int = 8,
    nk: int | None = None,
    d: int | None = 4,
    dv: int | None = None,
    heads: int = 1,
    kv_heads: int | None = None,
    rows: int = 4,
    cols: int = 4,
    dtype: str = "float32",
    seed: int = 0,
    head: list[int] | None = None,
    mask: dict[str, Any] | None = None,
    scores: dict[str, Any] | None = None,
    position: dict[str, Any] | None = None,
    **attention: Any,
) -> Scenario:
    """Return a scenario with random input; documents are made to fit it."""
    if mask and mask.get("documents"):
        mask = {**mask, "documents": list(fitting(mask["documents"], nk or nq))}
    table = {
        "algorithm": algorithm,
        "heads": heads,
        "kv_heads": kv_heads or heads,
        "seqlen_q": nq,
        "seqlen_k": nk or nq,
        "head_dim": d,
        "value_dim": dv or d,
        "dtype": dtype,
        **attention,
    }
    if d is None:  # of a latent
        del table["head_dim"], table["value_dim"]
    return parse_scenario(
        {
            "attention": table,
            "scores": scores or {},
            "position": position or {},
            "mask": mask or {},
            "tiling": {"rows": rows, "cols": cols},
            "input": {"source": "random", "seed": seed, "head": "all" if head is None else head},
        }
    )


def needed_mask(algorithm: str) -> dict[str, Any]:
    """Return what an algorithm needs of a [mask] table: a run token by token is causal."""
    rule = RULES.get(algorithm)
    return {"causal": True} if rule and rule.tokens else {}


def fitted(algorithm: str, **said: Any) -> dict[str, Any]:
    """Return what `scenario` is told, without what an algorithm cannot do.

    A latent has as many numbers as values would have, and as many more as make keys of them.
    """
    if PACKED.get(algorithm) == "latent":
        dv = said.pop("dv", None) or said.get("d", 2)
        sizes = {"latent_dim": dv, "rope_dim": said.pop("d", 2) if dv > 1 else 0}
        return {**said, **sizes, "d": None, "dv": None, "kv_heads": 1}
    rule = RULES.get(algorithm)
    if rule is None:
        return said
    mask = {"causal": bool((said.get("mask") or {}).get("causal")), **needed_mask(algorithm)}
    dropped = ("temperature", "scale", "scores", *(("nk",) if mask["causal"] else ()))
    return {**{key: value for key, value in said.items() if key not in dropped}, "mask": mask}


def windows(longest: int) -> st.SearchStrategy[int | tuple[int, int]]:
    """Draw windows: none, a number, or how far to the left and to the right."""
    side = st.integers(-1, longest)
    pairs = st.tuples(side, side).filter(lambda pair: pair != (-1, -1))
    return st.one_of(st.just(0), st.integers(1, longest), pairs)


def masks(longest: int) -> st.SearchStrategy[dict[str, Any]]:
    """Draw [mask] tables; documents of lengths that `scenario` makes fit."""
    some = st.one_of(st.just(0), st.integers(0, longest + 2))
    plain = {
        "causal": st.booleans(),
        "align": st.sampled_from(get_args(Align)),
        "window": windows(longest + 5),
        "sinks": some,
    }
    more = {
        "dilation": st.integers(1, 5),
        "global_tokens": some,
        "documents": st.lists(st.integers(1, longest), max_size=4),
    }
    return st.one_of(st.fixed_dictionaries(plain), st.fixed_dictionaries({**plain, **more}))


def fitting(lengths: Sequence[int], keys: int) -> tuple[int, ...]:
    """Return documents of about these lengths that add up to so many keys; none for none."""
    out: list[int] = []
    for length in lengths:
        out.append(min(length, keys - sum(out)))
    if out:
        out.append(keys - sum(out))
    return tuple(length for length in out if length)


def score_tables(heads: int) -> st.SearchStrategy[dict[str, Any]]:
    """Draw [scores] tables for so many query heads."""
    logits = st.lists(
        st.sampled_from([-30.0, -1.0, 0.5, 3.0, 20.0]), min_size=heads, max_size=heads
    )
    sinks = st.one_of(st.just({}), st.fixed_dictionaries({"sink_logits": logits}))
    return st.builds(lambda one, other: {**one, **other}, changed_scores(), sinks)


def changed_scores() -> st.SearchStrategy[dict[str, Any]]:
    """Draw what is done to scores before the mask."""
    caps = st.fixed_dictionaries({"softcap": st.sampled_from([0.5, 3.0, 30.0])})
    return st.one_of(
        st.just({}), caps, st.just({"alibi": True}), st.just({"softcap": 2.0, "alibi": True})
    )


@st.composite
def scenarios(
    draw: st.DrawFn,
    algorithms: Sequence[str] = ALGORITHMS,
    longest: int = 18,
    dtypes: Sequence[str] = ("float32", "float16", "bfloat16"),
    most_groups: int = 2,
) -> Scenario:
    """Draw scenarios of any shape, mask, scores and tiling, value_dim apart from head_dim."""
    kv_heads = draw(st.integers(1, most_groups))
    heads = kv_heads * draw(st.integers(1, 2))
    chosen = st.lists(st.integers(0, heads - 1), min_size=1, unique=True)
    return scenario(
        algorithm=draw(st.sampled_from(algorithms)),
        nq=draw(st.integers(1, longest)),
        nk=draw(st.integers(1, longest)),
        d=draw(st.integers(1, 5)),
        dv=draw(st.integers(1, 5)),
        heads=heads,
        kv_heads=kv_heads,
        rows=draw(st.integers(1, longest + 3)),
        cols=draw(st.integers(1, longest + 3)),
        dtype=draw(st.sampled_from(dtypes)),
        seed=draw(st.integers(0, 99)),
        head=draw(st.one_of(st.none(), chosen)),
        mask=draw(masks(longest)),
        scores=draw(score_tables(heads)),
        temperature=draw(st.sampled_from([1.0, 0.5, 3.0])),
    )


def program_of(chosen: Scenario) -> TileProgram:
    """Return the tile program of a scenario."""
    return tile_program(resolve(chosen))


def trace_of(chosen: Scenario | Workload, inputs: Inputs | None = None) -> Trace:
    """Return a trace on NumPy, of other numbers than the scenario's if some are given."""
    w = resolve(chosen) if isinstance(chosen, Scenario) else chosen
    numbers = inputs or read_inputs(w)
    return Trace(tile_program(w), numpy_engine(w, numbers), numbers)


def pairs_of(w: Workload, head: int = 0) -> Pairs:
    """Return the mask of a head that the scenario's tables describe, with what its file has."""
    said, tensor = w.scenario.mask, w.mask.tensor
    table = tensor.table[head % len(tensor.table)].tolist() if tensor else ()
    return Pairs(
        w.seqlen_q, w.seqlen_k, bool(said.causal), said.window or 0, said.sinks,
        said.dilation, said.global_tokens, said.documents, said.block or 0,
        tuple(map(tuple, w.mask.blocks.table.tolist())) if w.mask.blocks else (),
        tuple(map(tuple, table)), said.align,
    )  # fmt: skip


def visits_in_order(w: Workload) -> Iterator[tuple[int, int, int, int]]:
    """Yield (launch, head, i, j) of every visit, in the algorithm's order, by plain loops."""
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    Tr, Tc = kinds.shape
    if w.algorithm == "naive":
        for launch in range(3):
            inner = 1 if launch == 1 else Tc
            yield from product([launch], range(w.heads), range(Tr), range(inner))
        return
    outer, inner = (Tr, Tc) if w.algorithm == "flash2" else (Tc, Tr)
    for head, a, b in product(range(w.heads), range(outer), range(inner)):
        i, j = (a, b) if w.algorithm == "flash2" else (b, a)
        if kinds[i, j]:
            yield 0, head, i, j


def papers_elements(algorithm: str, N: int, d: int, Br: int, Bc: int) -> int:
    """Return the papers' count of HBM elements: one head, no mask, tiles that divide N.

    References
    ----------
    Dao et al. 2022, Theorem 2 and appendix; Dao 2023, section 3.1.
    """
    Tr, Tc = N // Br, N // Bc
    return {
        "naive": 2 * N * d + 2 * Tr * N * d + 4 * N**2,
        "flash1": Tc * (3 * N * d + 4 * N) + 2 * N * d + N * d + 2 * N,
        "flash2": 2 * Tr * N * d + 2 * N * d + N,
    }[algorithm]


def scored(
    w: Workload, head: int, rows: Sequence[int], keys: Sequence[int], scaled: np.ndarray
) -> np.ndarray:
    """Return what a soft-cap and ALiBi make of scaled products (rows, keys), by plain loops."""
    said, out = w.scenario.scores, scaled.astype(np.float64)
    if not said.softcap and not said.alibi:
        return out
    for r, row in enumerate(rows):
        own, query = w.single(head, row)
        for c, key in enumerate(keys):
            if said.softcap:
                out[r, c] = said.softcap * tanh(out[r, c] / said.softcap)
            if said.alibi:
                out[r, c] -= w.slopes[own] * abs(query + w.seqlen_k - w.queries - key)
    return out


def features(x: np.ndarray, directions: np.ndarray | None) -> np.ndarray:
    """Return φ of each row: elu(x) + 1, or Performer's with directions."""
    if directions is None:
        return np.where(x > 0, x + 1, np.exp(x))
    y = x / x.shape[1] ** 0.25
    return np.exp(y @ directions.astype(float).T - (y**2).sum(axis=1)[:, None] / 2)


def gated(name: str, q: Rows, k: Rows, v: Rows, gate: Rows) -> Rows:
    """Return O of an update with a gate, token by token and as its formula has it."""
    state, rows = np.zeros((q.shape[1], v.shape[1])), []
    for t in range(len(q)):
        query, key = q[t], k[t]
        if name == "gla":
            state = np.diag(gate[t]) @ state + np.outer(key, v[t])
        else:
            query, key = (x / np.sqrt(x @ x) for x in (query, key))
            forgets = np.eye(len(key)) - gate[t] * np.outer(key, key)
            state = forgets @ state + gate[t] * np.outer(key, v[t])
        rows.append(query @ state)
    return np.array(rows)


def textbook(w: Workload, inputs: Inputs, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Return O and lse of a head, one row at a time in float64."""
    pairs = pairs_of(w, head)
    o, lse = np.zeros((w.seqlen_q, w.value_dim)), np.full(w.seqlen_q, -np.inf)
    group = w.kv_head_of[head]
    q, k, v = (t.astype(np.float64) for t in (inputs.q[head], inputs.k[group], inputs.v[group]))
    if inputs.gate is not None:
        return gated(w.algorithm, q, k, v, inputs.gate[group].astype(float)), lse
    linear = w.algorithm in RULES
    if linear:
        q, k = (features(x, inputs.projection) for x in (q, k))
    for row in range(w.seqlen_q):
        keys = [j for j in range(w.seqlen_k) if pairs.sees(row, j)]
        sink = w.sink_logits[w.single(head, row)[0]] if w.sink_logits else None
        if not keys and sink is not None:
            lse[row] = sink
        if keys:
            products = k[keys] @ q[row]
            scores = np.log(products) if linear else products * w.scale / w.temperature
            scores = scored(w, head, [row], keys, scores[None, :])[0]
            top = max(scores.max(), -np.inf if sink is None else sink)
            weights = np.exp(scores - top)
            total = weights.sum() + (0 if sink is None else np.exp(sink - top))
            o[row] = weights @ v[keys] / total
            lse[row] = top + np.log(total)
    return o, lse


def exact_gradients(w: Workload, inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dQ, dK and dV of all heads in float64."""
    dq = np.zeros(inputs.q.shape)
    dk, dv = np.zeros(inputs.k.shape), np.zeros(inputs.v.shape)
    for head in range(w.heads):
        dq[head], to_k, to_v = reference_gradients(w, inputs, head, range(w.seqlen_q))
        dk[w.kv_head_of[head]] += to_k
        dv[w.kv_head_of[head]] += to_v
    return dq, dk, dv


def rounding(w: Workload, inputs: Inputs) -> float:
    """Return how far float32 may put P and alpha, which are at most 1, from the true numbers.

    A score is a sum of d products, so its error is at most (d + 2) u times the sum of their
    magnitudes, u = 2**-24; in an exponent that becomes a relative error, of two scores. Sums
    over the keys add Nk u, the exponential and the few products after it a handful more. The
    bound is generous by the usual sqrt(n), so the factor 2 is left for the rest.
    """
    largest = 0.0
    for head, group in enumerate(w.kv_head_of):
        magnitudes = np.abs(inputs.q[head].astype(float)) @ np.abs(inputs.k[group].astype(float)).T
        largest = max(largest, float(magnitudes.max()) * w.scale / w.temperature)
    largest *= 2 * (w.head_dim + 2)
    largest += 2 * max((abs(sink) for sink in w.sink_logits), default=0.0)
    largest += 8 * (w.scoring.softcap + max(w.slopes, default=0.0) * max(w.seqlen_q, w.seqlen_k))
    return 2 * (largest + w.seqlen_k + 16) * 2.0**-24


def check_close(got: np.ndarray, exact: np.ndarray, tolerance: float, what: str = "") -> None:
    """Compare numbers: infinities and NaN in the same places, the rest within `tolerance`."""
    assert got.shape == exact.shape, f"{what}: shape {got.shape}, expected {exact.shape}"
    special = ~np.isfinite(exact)
    np.testing.assert_array_equal(got[special], exact[special], err_msg=what)
    # Written so that NaN, for which every comparison is false, fails.
    off = ~(np.abs(got[~special].astype(np.float64) - exact[~special]) <= tolerance)
    assert not off.any(), f"{what}: {got[~special][off]} for {exact[~special][off]}"
