"""A scenario with every blank filled in, and its Q, K and V."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, F64, WIDTH, DType
from simulator.base.errors import SCENARIO, refuse
from simulator.problem.facts import BACKWARD, PACKED, RULES, SKIPPING
from simulator.problem.features import FeatureMap, MapName
from simulator.problem.filling import (
    MAX_BLOCKS,
    as_dtype,
    biases,
    check_agreement,
    check_memory,
    disagreements,
    drawn,
    file_shapes,
    input_file,
    is_size,
    picked_heads,
    random_instead,
    random_shapes,
    read_as_output,
    read_upstream,
    run_bytes,
    sink_logits,
    slopes,
    tiles,
)
from simulator.problem.hardware import Gpu, gpus
from simulator.problem.input_files import (
    GATE,
    PROJECTION,
    InputFile,
    check_finite,
    is_gated,
    read_tensors,
)
from simulator.problem.latent import LATENT, is_latent, read_latent
from simulator.problem.layer import Layer, read_layer
from simulator.problem.linear import check_linear, check_mask, read_projection
from simulator.problem.mask_input import mask_of
from simulator.problem.masks import Mask
from simulator.problem.packing import (
    SplitChoice,
    check_split_size,
    chosen_splits,
    group_of,
    packed,
    unpacked,
)
from simulator.problem.paging import PageTable, check_pages, page_size_of, page_table, pages_of
from simulator.problem.positions import Rotary, check_share, rotary
from simulator.problem.recurrence import Rule, check_gate, check_tokens, read_gate
from simulator.problem.scenario import USUAL, Algorithm, Faults, Scenario, with_values
from simulator.problem.scores import BiasTable, DistanceBias, ScoreChange, Scoring, T
from simulator.problem.sentence import read_sentence
from simulator.problem.tiling import TileGrid

Variant = Literal["changes", "sinks", "threshold", "rounding", "gate"]
"""In this order: changed scores, sink logits, skipped rescales, rounded numbers of pairs, a gated
O."""


@dataclass(frozen=True)
class Workload:
    """A scenario without blanks: tile programs and engines are made from it."""

    scenario: Scenario  # as its author wrote it
    algorithm: Algorithm  # as in scenarios
    # heads, kv_heads: Query heads that run, and the distinct KV heads that they read. Packed query
    # heads of one KV head count as one head here.
    heads: int
    kv_heads: int
    kv_head_of: tuple[int, ...]  # KV head of each query head, (heads,)
    # seqlen_q, seqlen_k, head_dim, value_dim: ``Nq`` (if heads are packed, the rows of all of
    # them); ``Nk``, ``d``, ``dv``
    seqlen_q: int
    seqlen_k: int
    head_dim: int
    value_dim: int
    dtype: DType  # of Q, K, V, O in HBM
    scale: float  # softmax scale before the temperature
    temperature: float  # divides the scaled scores
    mask: Mask  # visibility
    # rows, cols: ``Br`` and ``Bc``; the same if a run is `chunked`, and 1 if a run goes token by
    # token
    rows: int
    cols: int
    gpu: Gpu  # preset whose limits are shown
    file: InputFile | None  # header of the input file; None for random input
    picked: tuple[int, ...]  # the input's numbers of the chosen query heads, (heads,)
    input_heads: tuple[int, int]  # query heads and KV heads of the input, before any are picked
    group: int = 1  # how many query heads are packed into one
    slopes: tuple[float, ...] = ()  # ALiBi's slopes of the chosen query heads; empty for none
    softcap: float = 0.0  # the cap of scaled scores; 0 for none
    biases: BiasTable | None = None  # bias of the chosen query heads' scores at each distance
    # numbers of float32 that join the softmax of the chosen query heads; empty for none
    sink_logits: tuple[float, ...] = ()
    # rows and columns of a tile of the same problem for an algorithm that has tiles
    tile: tuple[int, int] = (0, 0)
    # whether O is multiplied by the gate of the file before it is stored
    gated: bool = False
    # whether keys and values are one latent that all heads share: a value is the first `value_dim`
    # numbers of its key
    latent: bool = False
    # keys of the scenario that differ from its file: a what-if. If these are sizes, the run has
    # random numbers of these sizes
    what_if: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Make row blocks the same as chunks of keys where a state passes from chunk to chunk."""
        if self.rule and self.rule.tokens:
            if self.tile == (0, 0) or (self.rows, self.cols) != (1, 1):
                object.__setattr__(self, "tile", (self.rows, self.cols))
            object.__setattr__(self, "cols", 1)
        if self.chunked:
            object.__setattr__(self, "rows", self.cols)

    @property
    def backward(self) -> bool:
        """Whether gradients are computed, from the gradient of O."""
        return self.algorithm in BACKWARD

    @property
    def input_shapes(self) -> tuple[tuple[int, int, int], ...]:
        """The input's shapes of Q, K and, without a latent, V; also of dO in a backward pass."""
        heads, kv_heads = self.input_heads
        rows, keys = (heads, self.queries), (kv_heads, self.seqlen_k)
        values = () if self.latent else ((*keys, self.value_dim),)
        upstream = ((*rows, self.value_dim),) if self.backward else ()
        return (*rows, self.head_dim), (*keys, self.head_dim), *values, *upstream

    @property
    def rule(self) -> Rule | None:
        """How an algorithm without a softmax updates its state; None with a softmax."""
        return RULES.get(self.algorithm)

    @property
    def chunked(self) -> bool:
        """Whether each row block works on its own keys and on a state of the keys before."""
        return self.rule is not None and self.mask.causal

    @cached_property
    def feature_map(self) -> FeatureMap | None:
        """φ of linear attention; None with a softmax."""
        said, d = self.scenario.attention, self.head_dim
        if self.rule is None:
            return None
        chosen: MapName = said.feature_map or ("performer" if said.features else "elu1")
        name = self.rule.own_map or chosen
        stored = dict(self.file.extra).get(PROJECTION) if self.file else None
        features = said.features or (stored.shape[0] if stored else 2 * d)
        return FeatureMap(name, features if name == "performer" else d, d)

    @property
    def width(self) -> int:
        """Bytes of one element of Q, K, V, O in HBM."""
        return WIDTH[self.dtype]

    @property
    def sizes(self) -> dict[str, int]:
        """How long the axes of the tensors of one head are."""
        return {"split": self.splits, "row": self.seqlen_q, "key": self.seqlen_k,
                "depth": self.head_dim, "value": self.value_dim,
                "feature": self.feature_map.features if self.feature_map else 0,
                "total": self.value_dim + (not self.rule or self.rule.sums),
                "own": self.group, "page": pages_of(self.seqlen_k, self.page_size)}  # fmt: skip

    @property
    def page_size(self) -> int:
        """Tokens of a page: the scenario's number, or its largest divisor that divides a tile."""
        return page_size_of(self.scenario.tiling.page_size, self.cols)

    @cached_property
    def pages(self) -> PageTable | None:
        """Where the pages of K and V lie; None if K and V do not lie in pages."""
        if PACKED.get(self.algorithm) != "pages":
            return None
        return page_table(self.scenario, self.file, self.page_size, self.seqlen_k)

    @property
    def scoring(self) -> Scoring:
        """How q·k becomes a score."""
        return Scoring(self.scale, self.temperature, self.softcap, self.slopes, self.sink_logits)

    @property
    def logit_scale(self) -> float:
        """The factor of q·k: scale over temperature."""
        return self.scoring.factor

    @property
    def faults(self) -> Faults:
        """Mistakes that are made on purpose."""
        return self.scenario.faults

    @property
    def scoring_before_softmax(self) -> Scoring:
        """How q·k enters the softmax: unscaled if the fault `late_scale` scales P instead."""
        return self.scoring.unscaled if self.faults.late_scale else self.scoring

    @cached_property
    def position(self) -> Rotary | None:
        """How Q and K are turned by their positions; None: not at all."""
        return rotary(self.scenario.position, self.head_dim)

    @property
    def changes_scores(self) -> bool:
        """Whether a scaled product changes before it is a score."""
        return bool(self.softcap or self.biased)

    @property
    def biased(self) -> bool:
        """Whether scores change with the distance of query and key."""
        return bool(self.slopes) or self.biases is not None

    @property
    def variant(self) -> frozenset[Variant]:
        """How the run's ops differ from the papers'."""
        on: dict[Variant, bool] = {
            "changes": self.changes_scores,
            "sinks": bool(self.sink_logits),
            "threshold": self.keeps is not None,
            "rounding": self.pair_dtype is not None,
            "gate": self.gated,
        }
        return frozenset(name for name, is_on in on.items() if is_on)

    @property
    def threshold(self) -> float | None:
        """By how much m must grow to move, in log2 (FlashAttention-4); None: by anything."""
        said = self.scenario.attention.rescale_threshold
        return said if self.algorithm in SKIPPING else None

    @property
    def keeps(self) -> float | None:
        """The rescale threshold in the units of scores."""
        return None if self.threshold is None else self.threshold * math.log(2)

    @property
    def pair_dtype(self) -> DType | None:
        """The type that P, and S where it is stored, are rounded to; None: both stay float32."""
        rounds = self.scenario.attention.p_dtype == "storage" and self.rule is None
        return self.dtype if rounds and self.dtype != "float32" else None

    @property
    def ungated(self) -> Workload:
        """The same problem without its gate."""
        return replace(self, gated=False)

    @property
    def sinks(self) -> NDArray[np.float32] | None:
        """The sink logits in HBM, (heads, query heads packed into one); None without any."""
        if not self.sink_logits:
            return None
        return np.array(self.sink_logits, dtype=np.float32).reshape(self.heads, self.group)

    def start(self, head: int, rows: range, split: int = 0) -> tuple[F64, F64]:
        """Return m and l of some rows before their first key; a sink is in the first split."""
        sinks = self.sinks
        if sinks is None or split:
            return np.full(len(rows), -np.inf), np.zeros(len(rows))
        own = np.arange(rows.start, rows.stop) // self.queries
        return sinks[head].astype(np.float64)[own], np.ones(len(rows))

    def bias(self, head: int) -> DistanceBias | None:
        """Return the bias of a head's scores with distance; None for no bias."""
        if not self.biased:
            return None
        own = slice(head * self.group, (head + 1) * self.group)
        table = None if self.biases is None else self.biases.values[own]
        return DistanceBias(self.mask, self.slopes[own], self.queries, table)

    @property
    def score_changes(self) -> tuple[ScoreChange, ...]:
        """The changes of a scaled product before the mask, in their order."""
        cap = f"{self.softcap:g}"
        known = (
            (self.softcap, f"soft-capped at {cap}", "soft-capped", f"soft-cap {cap}", "softcap"),
            (self.slopes, "less slope · |i′ − j|", "less its bias", "ALiBi", "alibi"),
            (self.biases, "plus b(j − i′)", "with its bias", "position bias", "bias"),
        )
        return tuple(ScoreChange(*words) for on, *words in known if on)

    @property
    def change_names(self) -> tuple[str, ...]:
        """The names of the score changes, and of a sink logit."""
        sink = ("sink logit",) if self.sink_logits else ()
        return (*(change.name for change in self.score_changes), *sink)

    def changed(self, head: int, rows: range, keys: range, s: NDArray[T]) -> NDArray[T]:
        """Return the scores that belong to scaled products (rows, keys), of the same type."""
        s, bias = self.scoring.capped(s), self.bias(head)
        return s if bias is None else s - bias.of(rows, keys).astype(s.dtype)

    @property
    def queries(self) -> int:
        """Query rows of one head: `seqlen_q` unless heads are packed."""
        return self.seqlen_q // self.group

    def as_algorithm(self, name: Algorithm) -> Workload:
        """Return the same problem for another algorithm, with its query heads packed or not."""
        if PACKED.get(name) == "latent" and not self.latent:
            expected = f"a whole number: {name} reads a latent in the place of K and V"
            raise refuse(SCENARIO, "attention.latent_dim", "", expected)
        rule = RULES.get(name)
        if rule:
            check_mask(self.mask)
            check_tokens(rule, self.mask.causal, self.seqlen_k, MAX_BLOCKS)
        if self.gated and (rule or name in BACKWARD):
            gate = f"the gate of {self.file.path.name if self.file else 'a file'}"
            expected = f"a forward pass with a softmax: O is multiplied by {gate}"
            raise refuse(SCENARIO, "attention.algorithm", name, expected)
        if self.rule and self.rule.tokens:
            rows, cols = self.tile
            own = replace(self, algorithm=USUAL, rows=rows, cols=cols, tile=(0, 0))
            return own.as_algorithm(name)
        packs = name in PACKED
        if packs == (self.algorithm in PACKED):
            return replace(self, algorithm=name)
        queries = self.queries
        if not packs:
            return replace(
                self,
                algorithm=name,
                heads=len(self.picked),
                kv_head_of=tuple(kv for kv in self.kv_head_of for _ in range(self.group)),
                seqlen_q=queries,
                mask=unpacked(self.mask),
                group=1,
            )
        group = group_of(self.picked, self.kv_head_of)
        rows = queries * group
        return replace(
            self, algorithm=name, heads=self.kv_heads, kv_head_of=tuple(range(self.kv_heads)),
            seqlen_q=rows, mask=packed(self.mask, group), group=group,
        )  # fmt: skip

    @cached_property
    def splits(self) -> int:
        """Into how many runs the column blocks are divided."""
        if self.algorithm not in PACKED:
            return 1
        said = self.scenario.tiling
        if said.split_size:
            return max(1, -(-self.grid.Tc // self.split_blocks))
        return said.splits if isinstance(said.splits, int) else self.split_choice.splits

    @property
    def split_blocks(self) -> int:
        """Column blocks of a split; the last splits may have fewer, or none."""
        size = self.scenario.tiling.split_size
        if size and self.algorithm in PACKED:
            return max(1, size // self.cols)
        return -(-self.grid.Tc // self.splits)

    @cached_property
    def split_choice(self) -> SplitChoice:
        """The splits of ``splits = "auto"`` for packed heads: one number for a batch, and why.

        All sequences of a batch run in one launch: their thread blocks together fill the GPU.
        """
        batch, keys, queries = self.scenario.batch, [self.seqlen_k], [self.queries]
        if batch.lengths and keys == [batch.lengths[batch.shown]]:  # not another length of a sweep
            keys = [batch.lengths[number] for number in batch.running]
            rows = batch.queries or tuple(queries * len(batch.lengths))
            queries = [rows[number] for number in (*batch.running, *batch.blind)]
        blocks = self.heads * sum(math.ceil(each * self.group / self.rows) for each in queries)
        return chosen_splits(math.ceil(max(keys) / self.cols), blocks, self.gpu)

    def split_keys(self, split: int) -> range:
        """Return the keys of a split: whole column blocks; the last splits may have none."""
        keys = self.split_blocks * self.cols
        return range(self.seqlen_k)[split * keys : (split + 1) * keys]

    @property
    def split_ranges(self) -> tuple[range, ...]:
        """The keys of every split."""
        return tuple(map(self.split_keys, range(self.splits)))

    def posed(self, inputs: Inputs) -> Inputs:
        """Return the same inputs, with heads packed as in this workload."""
        shape = self.heads, self.seqlen_q, self.head_dim
        if inputs.q.shape == shape:
            return inputs
        unturned = inputs.unturned and (inputs.unturned[0].reshape(shape), inputs.unturned[1])
        after = inputs.output_gate
        after = None if after is None else after.reshape(*shape[:2], -1)
        return replace(inputs, q=inputs.q.reshape(shape), unturned=unturned, output_gate=after)

    def head_name(self, head: int) -> str:
        """Return a head's number in the input, or the numbers of heads that are packed into one."""
        own = self.picked[head * self.group : (head + 1) * self.group]
        return str(own[0]) if len(own) == 1 else f"{own[0]}–{own[-1]}"

    def row_name(self, head: int, row: int) -> str:
        """Return the number of a row; if heads are packed, also the head of the row."""
        if self.group == 1:
            return f"row {row}"
        own, query = self.single(head, row)
        words = f", query {query}" if self.queries > 1 else ""
        return f"row {row} (head {self.picked[own]}{words})"

    def single(self, head: int, row: int) -> tuple[int, int]:
        """Return which picked head a row belongs to, and the number of the row in this head."""
        return head * self.group + row // self.queries, row % self.queries

    def packed(self, head: int, row: int) -> tuple[int, int]:
        """Return the place of a picked head's row in this workload: head and row."""
        return head // self.group, head % self.group * self.queries + row

    def unpacked(self, per_row: F32) -> F32:
        """Return an array of all heads and rows, (heads, Nq, ...), by query head."""
        shape = (len(self.picked), self.queries, *per_row.shape[2:])
        return per_row.reshape(shape)

    @cached_property
    def grid(self) -> TileGrid:
        """The tiles of one head."""
        return TileGrid(self.mask, self.rows, self.cols)

    @property
    def tokens(self) -> tuple[str, ...]:
        """One text for each key, or empty."""
        return self.file.said.tokens if self.file else ()

    @property
    def typed(self) -> bool:
        """Whether Q, K and V come from a typed text."""
        return self.file is not None and self.file.computed

    @property
    def query_tokens(self) -> tuple[str, ...]:
        """One text for each query if queries come from another text than keys; else empty."""
        return self.file.said.query_tokens if self.file else ()

    @property
    def has_tokens(self) -> bool:
        """Whether queries or keys have tokens."""
        return bool(self.tokens or self.query_tokens)

    @property
    def aligned_tokens(self) -> tuple[str, ...]:
        """The tokens of keys, if queries come from the same text; else empty."""
        return () if self.query_tokens else self.tokens

    def key_token(self, key: int) -> str:
        """Return the token of a key; "" if unknown."""
        return self.tokens[key] if 0 <= key < len(self.tokens) else ""

    def query_token(self, row: int) -> str:
        """Return the token of a query row, or of the key where the row stands; "" if unknown."""
        if self.query_tokens:
            return self.query_tokens[row % self.queries]
        place = int(self.mask.positions(range(row, row + 1))[0])
        return self.tokens[place] if 0 <= place < len(self.tokens) else ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Q, K and V of a workload, read-only."""

    q: F32  # (heads, Nq, d) float32, values representable in the workload's dtype
    k: F32  # (kv_heads, Nk, d) float32, likewise
    v: F32  # (kv_heads, Nk, dv) float32, likewise
    layer: Layer | None = None  # the layer whose x and weights Q, K and V are made of
    projection: F32 | None = None  # (f, d) float32, the directions of a feature map that projects
    # (kv_heads, Nk, f) or (kv_heads, Nk) float32, numbers that a state's update takes for each key
    gate: F32 | None = None
    # (heads, Nq, dv) float32, the gradient of O, if gradients are computed
    upstream: F32 | None = None
    # Q and K before positions turned them; None without positions
    unturned: tuple[F32, F32] | None = None
    # (heads, Nq, dv) float32, the factors of O before the output projection of the file's layer
    output_gate: F32 | None = None

    def given(self, w: Workload) -> dict[str, F32]:
        """Return the tensors that a workload reads beside Q, K and V, by name."""
        gate = w.rule.gate if w.rule else None
        found = {gate.name: self.gate} if gate and self.gate is not None else {}
        if w.gated and self.output_gate is not None:
            found[GATE] = self.output_gate
        return found if self.upstream is None else {**found, "dO": self.upstream}


def resolve(scenario: Scenario, *, computes: bool = True) -> Workload:
    """Fill in a scenario's blanks, without reading Q, K and V of its file.

    computes: whether the run is to be computed; if not, the run may be larger than the memory.
    """
    file = input_file(scenario)
    said = scenario.attention
    source = str(file.path) if file else SCENARIO
    shapes = file_shapes(file) if file else random_shapes(scenario)
    picked, kv_picked = picked_heads(scenario, shapes["heads"], shapes["kv_heads"])
    wrong = disagreements(scenario, file, shapes, len(picked), len(set(kv_picked))) if file else []
    what_if = tuple(each.key for each in wrong)
    if file:
        check_agreement(scenario, file, wrong, resolve)
        if any(is_size(each) for each in wrong):
            instead = with_values(scenario, random_instead(scenario, file, wrong).values)
            found = resolve(instead, computes=computes)
            return replace(found, scenario=scenario, what_if=what_if)
        if "attention.dtype" in what_if and said.dtype is not None:
            file = as_dtype(file, said.dtype)
    dtype: DType = (file.q.dtype if file else said.dtype) or "float32"
    scale = said.scale or (file.said.scale if file else None) or 1 / math.sqrt(shapes["head_dim"])
    softmax = said.algorithm not in RULES
    softcap = scenario.scores.softcap
    if file and softmax:
        softcap = file.said.softcap if softcap is None else softcap
    mask = mask_of(scenario, file, shapes, picked)
    group = group_of(picked, kv_picked) if said.algorithm in PACKED else 1
    gpu = gpus()[scenario.hardware.preset]
    packed_shapes = {**shapes, "seqlen_q": shapes["seqlen_q"] * group}
    rows, cols = tiles(scenario, packed_shapes, dtype, mask, gpu)
    distinct = sorted(set(kv_picked))
    scored = file if softmax else None
    workload = Workload(
        scenario=scenario, algorithm=USUAL, heads=len(picked), kv_heads=len(distinct),
        kv_head_of=tuple(distinct.index(kv) for kv in kv_picked),
        seqlen_q=shapes["seqlen_q"], seqlen_k=shapes["seqlen_k"],
        head_dim=shapes["head_dim"], value_dim=shapes["value_dim"],
        dtype=dtype, scale=scale, temperature=said.temperature, mask=mask, rows=rows, cols=cols,
        gpu=gpu, file=file, picked=picked, input_heads=(shapes["heads"], shapes["kv_heads"]),
        what_if=what_if, gated=is_gated(file), latent=is_latent(said),
        slopes=slopes(scenario, scored, shapes["heads"], picked), softcap=softcap or 0.0,
        sink_logits=sink_logits(scenario, scored, shapes["heads"], picked),
    ).as_algorithm(said.algorithm)  # fmt: skip
    workload.scoring.check(max(shapes["seqlen_q"], shapes["seqlen_k"]) - 1)
    if workload.position is not None:
        check_share(scenario.position.fraction, workload.head_dim)
    check_pages(workload.pages, scenario, workload.cols)
    check_split_size(workload)
    if workload.feature_map:
        check_linear(workload.feature_map, workload.mask, scenario, file)
    if workload.rule:
        check_gate(workload.rule, file, workload.sizes["feature"])
    if computes:
        check_memory(source, workload.seqlen_q, run_bytes(workload))
    if softmax:
        return replace(workload, biases=biases(scenario, file, picked))
    return workload


def read_inputs(workload: Workload, progress: Callable[[float], None] | None = None) -> Inputs:
    """Draw or read Q, K and V; Q and K are turned by their positions, and rounded again.

    Random input is ``numpy.random.default_rng(seed).standard_normal``, for q, then k, then v (or
    q, then a latent), then dO of a backward pass, as float32, rounded to the dtype.
    """
    w = workload
    heads, kv_heads = w.input_heads
    layer = None
    if w.file and w.file.stored:
        layer = read_layer(w.file, w.position)
        q, k, v = layer.unturned()
    elif w.file and w.latent:
        q, k = read_latent(w.file)
        v = k[..., : w.value_dim]
        for name, tensor in (("q", q), (LATENT, k[0])):
            check_finite(str(w.file.path), name, tensor)
    elif w.typed:
        q, k, v = read_sentence(w.scenario.input, w.dtype)
    elif w.file:
        q, k, v = read_tensors(w.file)
    else:
        q, k, v = drawn(w, progress)[:3]
    if w.file:
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            check_finite(str(w.file.path), name, tensor)
    gate = read_gate(w.rule, w.scenario, w.file, (kv_heads, w.seqlen_k, w.sizes["feature"]))
    upstream = read_upstream(w.file, lambda: drawn(w)[-1]) if w.backward else None
    after = read_as_output(w.file, GATE)
    if w.picked != tuple(range(heads)):
        kv_picked = sorted({head * kv_heads // heads for head in w.picked})
        gate = None if gate is None else gate[kv_picked]
        if w.file:  # random input has only the picked heads already
            q, k, v = q[list(w.picked)], k[kv_picked], v[kv_picked]
            upstream = None if upstream is None else upstream[list(w.picked)]
        after = None if after is None else after[list(w.picked)]
    unturned = None if w.position is None else (q, k)
    if w.position is not None:
        q, k = w.position.both(q, k, w.dtype)
    projection = read_projection(w.feature_map, w.file, w.scenario.input.seed)
    for each in (q, k, v, projection, gate, upstream, after, *(unturned or ())):
        if each is not None:
            each.flags.writeable = False
    return w.posed(Inputs(q, k, v, layer, projection, gate, upstream, unturned, after))
