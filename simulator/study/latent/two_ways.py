"""Attending to a latent in two ways: its projections absorbed, or keys and values made of it first.

Keys of head h are ``[c W_UK, k_rope]`` and values ``c W_UV``, c being the latent. As
``q · (c W_UK) = (q W_UKᵀ) · c``, the projection of keys can be applied to the queries, and the
projection of values to the weighted sum of latents: then K and V of single heads never exist. Per
query and key that is more work, as a latent is longer than a key of a head; but keys and values
need not be made.

References
----------
Liu et al. (DeepSeek-AI) 2024, "DeepSeek-V2", section 2.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.hardware import TimeEstimate, time_estimate
from simulator.problem.input_files import WUK, WUV, check_finite, read_tensor
from simulator.problem.masks import Mask
from simulator.problem.models import AttentionModel, models
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import LATENT, USUAL, tile_program
from simulator.run.trace import Trace
from simulator.study.sweep import Figures, figures_of

Way = Literal["absorbed", "projected"]
Quantity = Literal["flops", "bytes", "time"]
WAYS: tuple[Way, ...] = get_args(Way)
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
NARROWER = 4
"""How many times narrower a key of a head is than the latent if nothing says it, as in DeepSeek-V3:
512 and 128."""
FEWEST_KEYS = 4096
"""Keys of the model that is shown if a run has no latent."""
_MOST = 2**28
"""Most FLOPs of the up-projection where both ways are computed: beyond that, fewer heads."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one way."""

    attention: Figures  # of its tile program
    # bytes, flops: of attention and of the projections, which move each operand and each result
    # once
    bytes: int
    flops: int
    time: TimeEstimate  # of both sums on the GPU

    def of(self, quantity: Quantity) -> float:
        """Return one of its figures: FLOPs, bytes or seconds."""
        found = {"flops": self.flops, "bytes": self.bytes, "time": self.time.seconds}
        return float(found[quantity])


@dataclass(frozen=True, slots=True)
class LatentLayer:
    """Attention to a latent, with the sizes of the keys and values that are made of it."""

    workload: Workload  # its heads one by one, with keys and values that are a latent
    nope: int  # nope, value: numbers of a key of a head that are made of the latent, and of a value
    value: int
    model: AttentionModel | None = None  # the model with these shapes if the run has no latent

    @property
    def rope(self) -> int:
        """Numbers of a key that positions have turned, the same for all heads."""
        return self.workload.head_dim - self.workload.value_dim

    def price(self, way: Way, queries: int) -> Price:
        """Return the price of a way for so many queries of each head at the end of the keys.

        way: ``absorbed`` or ``projected``.
        """
        w = self.workload
        heads, keys, latent, b = w.heads, w.seqlen_k, w.value_dim, w.width
        weights = heads * latent * (self.nope + self.value)
        attention = figures_of(self.attention(way, queries))
        if way == "absorbed":
            rows = heads * queries
            flops = 2 * rows * latent * (self.nope + self.value)
            # q W_UKᵀ, then O W_UV: both read a row and write another.
            moved = weights + rows * (self.nope + latent) + rows * (latent + self.value)
        else:
            flops = 2 * keys * weights
            # The latent is read, keys and values of every head are written.
            moved = weights + keys * w.head_dim
            moved += keys * heads * (self.nope + self.rope + self.value)
        total, all_flops = attention.bytes + moved * b, attention.flops + flops
        time = time_estimate(w.gpu, total, all_flops, w.dtype)
        return Price(attention, total, all_flops, time)

    def crossover(self, quantity: Quantity) -> int | None:
        """Return the fewest queries for which making keys and values costs less; None: never.

        Costs grow in steps of row blocks; the search is between two neighbouring numbers of
        `counts`.
        """
        low = 0
        for high in self.counts:
            if self._projected_wins(quantity, high):
                while high - low > 1:
                    middle = (low + high) // 2
                    if self._projected_wins(quantity, middle):
                        high = middle
                    else:
                        low = middle
                return high
            low = high
        return None

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of queries that are shown: powers of two up to the keys, and all keys."""
        keys = self.workload.seqlen_k
        return tuple(sorted({*(2**n for n in range(keys.bit_length()) if 2**n <= keys), keys}))

    def _projected_wins(self, quantity: Quantity, queries: int) -> bool:
        prices = [self.price(way, queries).of(quantity) for way in WAYS]
        return prices[1] < prices[0]

    def attention(self, way: Way, queries: int | None = None) -> Workload:
        """Return the attention of a way with the run's tiles and some queries, or its own."""
        w = step = self.workload
        if queries is not None:
            mask = Mask(queries, w.seqlen_k, w.mask.causal, w.mask.window, w.mask.sinks)
            step = replace(w, seqlen_q=queries, mask=mask)
        if way == "absorbed":
            return step.as_algorithm(LATENT.name)
        return replace(
            step, kv_heads=w.heads, kv_head_of=tuple(range(w.heads)), latent=False,
            head_dim=self.nope + self.rope, value_dim=self.value,
        )  # fmt: skip


def latent_layer(w: Workload) -> LatentLayer:
    """Return a run's attention to a latent, or the first latent model's if the run has no latent.

    Raises InputError: the file has projections that do not fit.
    """
    if w.latent:
        nope, value = _projected_dims(w)
        return LatentLayer(w.as_algorithm(USUAL.name), nope, value)
    model = next(each for each in models().values() if each.is_latent)
    said = {
        "heads": model.heads, "seqlen_q": 1, "seqlen_k": max(w.seqlen_k, FEWEST_KEYS),
        "latent_dim": model.latent_dim, "rope_dim": model.rope_dim, "dtype": "bfloat16",
    }  # fmt: skip
    scenario = parse_scenario(
        {
            "attention": said,
            "mask": {"causal": True},
            "tiling": {"rows": 64, "cols": 64},
            "hardware": {"preset": w.gpu.name},
        }
    )
    return LatentLayer(resolve(scenario), model.head_dim, model.head_dim, model)


# --- both computed -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BothWays:
    """O of some heads computed in both ways."""

    heads: int  # how many of the first heads
    apart: float  # largest difference between the two, relative to the largest number of O
    drawn: bool  # whether the projections were drawn from the seed; else they are the file's
    # absorbed, projected: (heads, Nq, dv) float32, O of both ways, read-only
    absorbed: F32
    projected: F32


def both_ways(layer: LatentLayer, inputs: Inputs | None = None) -> BothWays:
    """Compute attention to a latent with NumPy's tile programs in both ways, in float32.

    Queries before the absorption and the projections are drawn from the run's seed, unless the
    file has the projections: a run's queries are absorbed already, and cannot be recovered. The
    numbers that positions have turned are the run's own.

    inputs: the run's; without them they are drawn.
    """
    w = replace(layer.workload, dtype="float32")
    inputs = read_inputs(layer.workload) if inputs is None else w.posed(inputs)
    latent = w.value_dim
    work = 2 * w.seqlen_k * latent * (layer.nope + layer.value)
    heads = min(w.heads, max(1, _MOST // work))
    wuk, wuv, drawn = projections(layer, heads)
    rng = np.random.default_rng([w.scenario.input.seed, 1])
    nope = rng.standard_normal((heads, w.seqlen_q, layer.nope)).astype(np.float32)
    rope, c = inputs.q[:heads, :, latent:], inputs.k[0, :, :latent]
    turned = inputs.k[0, :, latent:]

    tensor = w.mask.tensor and w.mask.tensor.of_heads(range(heads))
    few = replace(w.ungated, heads=heads, kv_head_of=(0,) * heads, picked=w.picked[:heads],
                  slopes=(), biases=None, sink_logits=(),
                  mask=replace(w.mask, tensor=tensor))  # fmt: skip
    own = replace(layer, workload=few)
    absorbed_q = np.stack([matmul(nope[h], wuk[h].T) for h in range(heads)])
    q = np.concatenate([absorbed_q, rope], axis=2)
    sums = _output(own.attention("absorbed"), Inputs(q, inputs.k, inputs.v))
    absorbed = np.stack([matmul(sums[h], wuv[h]) for h in range(heads)])

    keys = np.stack([np.concatenate([matmul(c, wuk[h]), turned], axis=1) for h in range(heads)])
    values = np.stack([matmul(c, wuv[h]) for h in range(heads)])
    q = np.concatenate([nope, rope], axis=2)
    projected = _output(own.attention("projected"), Inputs(q, keys, values))

    largest = float(np.abs(projected).max()) or 1.0
    apart = float(np.abs(absorbed - projected).max()) / largest
    for each in (absorbed, projected):
        each.flags.writeable = False
    return BothWays(heads, apart, drawn, absorbed, projected)


def _output(w: Workload, inputs: Inputs) -> F32:
    """Return O of a run of NumPy, (heads, Nq, dv)."""
    posed = w.posed(inputs)
    return Trace(tile_program(w), numpy_engine(w, posed), posed).output


def projections(layer: LatentLayer, heads: int) -> tuple[F32, F32, bool]:
    """Return W_UK (heads, dc, nope) and W_UV (heads, dc, dv), float32, and whether they are drawn.

    Drawn ones are standard normal over √dc, so that keys and values are as large as the latent.

    Raises InputError: a number of the file is not finite.
    """
    w, picked = layer.workload, list(layer.workload.picked[:heads])
    stored = {} if w.file is None else dict(w.file.extra)
    if w.file is not None and {WUK, WUV} <= stored.keys():
        found = [read_tensor(w.file.path, name, stored[name]) for name in (WUK, WUV)]
        for name, values in zip((WUK, WUV), found, strict=True):
            check_finite(str(w.file.path), name, values)
        return found[0][picked], found[1][picked], False
    rng = np.random.default_rng([w.scenario.input.seed, 2])
    drawn = [
        (rng.standard_normal((heads, w.value_dim, size)) / w.value_dim**0.5).astype(np.float32)
        for size in (layer.nope, layer.value)
    ]
    return drawn[0], drawn[1], True


def _projected_dims(w: Workload) -> tuple[int, int]:
    """Return how many numbers of a key and of a value of a head are made of the latent."""
    stored = {} if w.file is None else dict(w.file.extra)
    sizes = []
    for name in (WUK, WUV):
        if name not in stored:
            sizes.append(max(w.value_dim // NARROWER, 1))
            continue
        shape, wanted = stored[name].shape, (w.input_heads[0], w.value_dim)
        if shape[:2] != wanted:
            assert w.file is not None
            expected = f"{wanted[0]} heads of {wanted[1]} rows, as many as the latent has numbers"
            raise refuse(str(w.file.path), f"shape of {name}", shape, expected)
        sizes.append(shape[2])
    return sizes[0], sizes[1]


# --- what is shown -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoWays:
    """The costs of both ways for a layer, and their results."""

    layer: LatentLayer  # a run's, or of a model if the run has no latent
    prices: dict[Way, tuple[Price, ...]]  # of each way, for each of the layer's numbers of queries
    # from how many queries on making K and V costs less, of each quantity
    crossovers: dict[Quantity, int | None]
    both: BothWays  # O in both ways
    queries: int | None  # of the run; None if the layer is not the run's


def two_ways(w: Workload, inputs: Inputs) -> TwoWays:
    """Compute both ways for a run, or for a model if the run has no latent."""
    layer = latent_layer(w)
    own = layer.model is None
    prices = {way: tuple(layer.price(way, n) for n in layer.counts) for way in WAYS}
    crossovers = {each: layer.crossover(each) for each in QUANTITIES}
    both = both_ways(layer, inputs if own else None)
    return TwoWays(layer, prices, crossovers, both, w.seqlen_q if own else None)
