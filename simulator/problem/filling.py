"""Filling in a scenario's blanks: from its input file, or by a rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import psutil

from simulator.base.assets import CAPTURES
from simulator.base.dtypes import F32, DType, round_to
from simulator.base.errors import SCENARIO, InputError, Mistake, Remedy, refuse, shown
from simulator.base.picture import BOXES, IMAGE, checked_picture
from simulator.problem.facts import BACKWARD, RULES
from simulator.problem.hardware import Gpu
from simulator.problem.input_files import (
    BIAS,
    BYTES,
    GATE,
    REAL,
    SINKS,
    UPSTREAM,
    InputFile,
    check_finite,
    done_after,
    read_header,
    read_kind,
    read_tensor,
)
from simulator.problem.latent import check_latent, is_latent, latent_dims, read_latent_header
from simulator.problem.layer import read_layer_header
from simulator.problem.masks import Mask
from simulator.problem.scenario import Attention, Scenario, with_values
from simulator.problem.scores import BiasTable, alibi_slopes
from simulator.problem.sentence import sentence_file
from simulator.problem.tiling import fa2_tiles, fa3_tiles, paper_tiles

if TYPE_CHECKING:
    from simulator.problem.workload import Workload

PART = 2**18  # numbers of the input that are float64 at once, while they are drawn or compared
CHECKED_SCORES = 2**22  # scores compared in float64 at once, unless one row has more

MAX_BLOCKS = 2**18
"""Most row blocks and most column blocks: tables of the tile program grow with them."""


def attention_of(scenario: Scenario) -> Attention:
    """Return the shapes of a run's sequence; a batch gives its keys, and maybe its queries."""
    said, batch = scenario.attention, scenario.batch
    if not batch.lengths:
        return said
    if scenario.input.source != "random":
        expected = f'none with input.source = "{scenario.input.source}", which brings its keys'
        raise refuse(SCENARIO, "batch.lengths", list(batch.lengths), expected)
    if said.seqlen_k is not None:
        expected = "nothing: batch.lengths says how many keys each sequence has"
        raise refuse(SCENARIO, "attention.seqlen_k", said.seqlen_k, expected)
    if batch.blind and (said.algorithm in RULES or said.algorithm in BACKWARD):
        expected = f"keys of each sequence that has queries: {said.algorithm} needs some"
        raise refuse(SCENARIO, "batch.lengths", list(batch.lengths), expected)
    sizes = {"seqlen_k": batch.lengths[batch.shown]}
    if batch.queries:
        if said.seqlen_q is not None:
            expected = "nothing: batch.queries says how many queries each sequence has"
            raise refuse(SCENARIO, "attention.seqlen_q", said.seqlen_q, expected)
        sizes["seqlen_q"] = batch.queries[batch.shown]
    return said.model_copy(update=sizes)


def each_sequence(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return one scenario for each sequence of a batch, or only the sequence that is named."""
    batch = scenario.batch
    if not batch.lengths or batch.sequence is not None:
        return (scenario,)
    return tuple(
        scenario.model_copy(update={"batch": batch.model_copy(update={"sequence": number})})
        for number in batch.running  # valid already: each is read in a moment
    )


def alone(scenario: Scenario) -> Scenario:
    """Return the scenario without its batch, for another number of keys."""
    none: dict[str, None] = dict.fromkeys(type(scenario.batch).model_fields)
    changes: dict[str, dict[str, int | None]] = {"batch": {**none}}
    if scenario.batch.queries:
        changes["attention"] = {"seqlen_q": scenario.batch.queries[scenario.batch.shown]}
    return with_values(scenario, changes)


def file_shapes(file: InputFile) -> dict[str, int]:
    """Return the sizes of a file's tensors by the keys of a scenario."""
    heads, seqlen_q, head_dim = file.q.shape
    kv_heads, seqlen_k, value_dim = file.v.shape
    return {
        "heads": heads,
        "kv_heads": kv_heads,
        "seqlen_q": seqlen_q,
        "seqlen_k": seqlen_k,
        "head_dim": head_dim,
        "value_dim": value_dim,
    }


def random_shapes(scenario: Scenario) -> dict[str, int]:
    """Return the sizes of random input by the keys of a scenario, which must give them."""
    said = attention_of(scenario)
    latent = is_latent(said)
    needed = ("seqlen_q",) if latent else ("seqlen_q", "head_dim")
    missing = [name for name in needed if getattr(said, name) is None]
    if missing:
        expected = 'a whole number: input.source = "random" brings no shapes'
        raise InputError(SCENARIO, [Mistake(f"attention.{n}", "", expected) for n in missing])
    assert said.seqlen_q is not None
    heads = said.heads or said.kv_heads or 1
    if latent:
        value_dim, rope_dim = latent_dims(said)
        head_dim = value_dim + rope_dim
    else:
        assert said.head_dim is not None
        head_dim, value_dim = said.head_dim, said.value_dim or said.head_dim
    return {
        "heads": heads,
        "kv_heads": 1 if latent else said.kv_heads or heads,
        "seqlen_q": said.seqlen_q,
        "seqlen_k": said.seqlen_q if said.seqlen_k is None else said.seqlen_k,
        "head_dim": head_dim,
        "value_dim": value_dim,
    }


def picked_heads(
    scenario: Scenario, heads: int, kv_heads: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the chosen query heads and the KV head of each."""
    said = scenario.input.head
    picked = tuple(range(heads)) if said == "all" else said
    if max(picked) >= heads:
        raise refuse(SCENARIO, "input.head", list(picked), f"numbers from 0 to {heads - 1}")
    return picked, tuple(head * kv_heads // heads for head in picked)


def slopes(
    scenario: Scenario, file: InputFile | None, heads: int, picked: tuple[int, ...]
) -> tuple[float, ...]:
    """Return ALiBi's slopes of the picked heads; empty if neither scenario nor file has any."""
    said = scenario.scores.alibi
    if said is None and file:
        said = file.said.alibi
    if not said:
        return ()
    of_all = said if isinstance(said, tuple) else alibi_slopes(heads)
    if len(of_all) != heads:
        expected = f"{heads} slopes, one for each query head"
        raise refuse(SCENARIO, "scores.alibi", list(of_all), expected)
    return tuple(of_all[head] for head in picked)


def sink_logits(
    scenario: Scenario, file: InputFile | None, heads: int, picked: tuple[int, ...]
) -> tuple[float, ...]:
    """Return the sink logits of the picked heads, as float32 has them; empty for none."""
    said, source = scenario.scores.sink_logits, SCENARIO
    stored = dict(file.extra).get(SINKS) if file else None
    if said is False or (said is None and stored is None):
        return ()
    if isinstance(said, tuple):
        of_all = np.array(said, dtype=np.float32)
    elif file is None or stored is None:
        expected = f"a list, or an input file with a tensor {SINKS}"
        raise refuse(SCENARIO, "scores.sink_logits", said, expected)
    else:
        source = str(file.path)
        of_all = read_tensor(file.path, SINKS, stored)
        check_finite(source, SINKS, of_all)
    if len(of_all) != heads:
        expected = f"{heads}, one for each query head"
        raise refuse(source, "number of sink_logits", len(of_all), expected)
    return tuple(float(of_all[head]) for head in picked)


def biases(scenario: Scenario, file: InputFile | None, picked: tuple[int, ...]) -> BiasTable | None:
    """Return the bias of scores at each distance, if the file has one and the scenario wants it."""
    said = scenario.scores.bias
    stored = dict(file.extra).get(BIAS) if file else None
    if said is False or (said is None and stored is None):
        return None
    if file is None or stored is None:
        raise refuse(SCENARIO, "scores.bias", said, f"an input file with a tensor {BIAS}")
    table = read_tensor(file.path, BIAS, stored)
    check_finite(str(file.path), BIAS, table)
    table = table[list(picked)]
    table.flags.writeable = False
    return BiasTable(table)


def disagreements(
    scenario: Scenario, file: InputFile, shapes: dict[str, int], heads: int, kv_heads: int
) -> list[Mistake]:
    """Return where a scenario and its file disagree, with both values."""
    said = scenario.attention
    # If only some heads are picked, a scenario may count the picked heads or the file's heads.
    allowed = {name: {size} for name, size in shapes.items()}
    allowed["heads"].add(heads)
    allowed["kv_heads"].add(kv_heads)
    mistakes = []

    def disagree(key: str, value: object, theirs: object) -> None:
        expected = f"{shown(theirs)} as in {file.path.name}"
        mistakes.append(Mistake(key, shown(value), expected))

    for name, sizes in allowed.items():
        value = getattr(said, name)
        if value is not None and value not in sizes:
            disagree(f"attention.{name}", value, shapes[name])
    if said.dtype is not None and said.dtype != file.q.dtype:
        disagree("attention.dtype", said.dtype, file.q.dtype)
    if (
        said.scale
        and file.said.scale
        and not math.isclose(said.scale, file.said.scale, rel_tol=1e-6)
    ):
        disagree("attention.scale", said.scale, file.said.scale)
    causal = scenario.mask.causal
    if causal is not None and file.said.causal is not None and causal != file.said.causal:
        disagree("mask.causal", causal, file.said.causal)
    return mistakes


def check_agreement(
    scenario: Scenario,
    file: InputFile,
    mistakes: Sequence[Mistake],
    check: Callable[[Scenario], object],
) -> None:
    """Refuse a scenario that disagrees with its file, unless its `input.what_if` is true.

    check: raises an `InputError` if the scenario with the remedy cannot be used either; the remedy
        is then not offered.
    """
    if not mistakes or scenario.input.what_if:
        return
    sizes = any(is_size(each) for each in mistakes)
    words = random_instead(scenario, file, mistakes).words
    if not sizes:
        words = f"What if: {', '.join(map(_wanted, mistakes))}"
    remedy = Remedy(words, {"input": {"what_if": True}})
    first, *others = mistakes
    try:
        check(with_values(scenario, remedy.values))
    except InputError:
        pass
    else:
        first = replace(first, remedy=remedy)
    raise InputError(SCENARIO, [first, *others])


def is_size(mistake: Mistake) -> bool:
    """Return whether a mistake is about a number of heads, rows, keys or dimensions."""
    return mistake.key.partition(".")[2] in {*_SIZES, *_HEADS}


def as_dtype(file: InputFile, dtype: DType) -> InputFile:
    """Return a file whose numbers are read as another dtype."""
    q, k, v = (each.taken_as(dtype) for each in (file.q, file.k, file.v))
    extra = tuple(
        (name, each.taken_as(dtype) if name in (UPSTREAM, GATE) else each)
        for name, each in file.extra
    )
    return replace(file, q=q, k=k, v=v, extra=extra)


_HEADS = {"heads": "H", "kv_heads": "Hkv"}
_SIZES = {"seqlen_q": "Nq", "seqlen_k": "Nk", "head_dim": "d", "value_dim": "dv"}


def random_instead(scenario: Scenario, file: InputFile, wrong: Sequence[Mistake]) -> Remedy:
    """Return the remedy for a scenario of other sizes than its file: random numbers."""
    sizes = file_shapes(file)
    for name, other in (("kv_heads", "heads"), ("seqlen_k", "seqlen_q"), ("value_dim", "head_dim")):
        if sizes[name] == sizes[other]:  # this size follows the other
            del sizes[name]
    shapes = {**sizes, "dtype": file.q.dtype}
    said = scenario.attention
    values: dict[str, dict[str, object]] = {
        "input": {"source": "random"},
        "attention": {key: value for key, value in shapes.items() if getattr(said, key) is None},
    }
    if file.said.causal and scenario.mask.causal is None:
        values["mask"] = {"causal": True}
    return Remedy(f"Random Q, K, V with {', '.join(map(_wanted, wrong))}", values)


def _wanted(mistake: Mistake) -> str:
    """Return the refused value in the words of a button."""
    key = mistake.key.partition(".")[2]
    if key == "causal":
        return "a causal mask" if mistake.value == "true" else "no causal mask"
    return f"{_SIZES.get(key, key)} = {mistake.value}"


def tiles(
    scenario: Scenario, shapes: dict[str, int], dtype: DType, mask: Mask, gpu: Gpu
) -> tuple[int, int]:
    """Return Br and Bc."""
    said = scenario.tiling
    if said.rows and said.cols:
        rows, cols, key = said.rows, said.cols, "rows"
    else:
        key, causal, window = "rule", mask.reach[1] == 0, mask.local
        if said.rule == "paper":
            rows, cols = paper_tiles(shapes["head_dim"], dtype, gpu)
        elif said.rule == "fa3":
            rows, cols = fa3_tiles(shapes["head_dim"], shapes["value_dim"], causal, window)
        else:
            rows, cols = fa2_tiles(shapes["head_dim"], causal, window, gpu)
    for name, size, length in (("rows", rows, "seqlen_q"), ("cols", cols, "seqlen_k")):
        blocks = math.ceil(shapes[length] / size)
        if blocks > MAX_BLOCKS:
            raise refuse(
                SCENARIO,
                f"tiling.{name if key == 'rows' else key}",
                size,
                f"tiles that cut {length} = {shapes[length]} into at most {MAX_BLOCKS} blocks",
            )
    return rows, cols


def capture_names() -> tuple[str, ...]:
    """Return the names of the shipped captures."""
    return tuple(sorted(path.stem for path in CAPTURES.glob("*.safetensors")))


class CaptureText(NamedTuple):
    """How users see a shipped capture named: by its sentence, not by its file."""

    words: str
    tokens: int
    layer: str

    @property
    def title(self) -> str:
        """Sentence and layer in one line: the same sentence ships in several layers."""
        return f"{self.words} · layer {self.layer}"


@cache
def capture_text(name: str) -> CaptureText:
    """Return the sentence of a shipped capture, without the marks of its begin and end."""
    said = read_header(CAPTURES / f"{name}.safetensors").said
    words = " ".join(token for token in said.tokens if token not in ("[CLS]", "[SEP]"))
    return CaptureText(words.replace(" ##", ""), len(said.tokens), said.layer)


def input_file(scenario: Scenario) -> InputFile | None:
    """Return the header of a scenario's input, with its picture; None for random input."""
    file = _header(scenario)
    if file is None or file.computed:
        return file
    tensors = read_kind(file.path, IMAGE, BYTES), read_kind(file.path, BOXES, REAL)
    return replace(file, picture=checked_picture(str(file.path), *tensors, file.k.shape[1]))


def _header(scenario: Scenario) -> InputFile | None:
    said = scenario.input
    attention_of(scenario)  # keys of a batch and keys of a file exclude each other
    if is_latent(scenario.attention):
        check_latent(scenario)
        path = Path(said.path or "")
        if said.source == "file":
            return read_latent_header(path, scenario.attention, said.layout)
    if said.source == "random":
        return None
    if said.source == "sentence":
        return sentence_file(scenario)
    if said.path is not None and said.source in ("file", "layer"):
        path = Path(said.path)
        whole = said.source == "layer"
        if whole:
            return read_layer_header(path, scenario.attention)
        return read_header(path, dtype=scenario.attention.dtype, layout=said.layout)
    if said.name not in capture_names():
        raise refuse(SCENARIO, "input.name", said.name, f"one of {', '.join(capture_names())}")
    return read_header(CAPTURES / f"{said.name}.safetensors")


def check_memory(source: str, rows: int, need: int) -> None:
    """Refuse a run that would not fit, before anything is allocated."""
    free = psutil.virtual_memory().available
    if need > 0.9 * free:
        room = f"{need / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free"
        expected = f"a run that fits in memory: this one needs {room}"
        raise refuse(source, "attention.seqlen_q", rows, expected)


def read_upstream(file: InputFile | None, drawn: Callable[[], F32]) -> F32:
    """Return the gradient of O of all heads, (H, Nq, dv): from the file, or random numbers."""
    found = read_as_output(file, UPSTREAM)
    return drawn() if found is None else found


def read_as_output(file: InputFile | None, name: str) -> F32 | None:
    """Return a file's tensor in the shape of O, (H, Nq, dv); None if there is no such tensor."""
    stored = dict(file.extra).get(name) if file else None
    if file is None or stored is None:
        return None
    wanted = (*file.q.shape[:2], file.v.shape[2])
    if stored.shape != wanted:
        expected = f"{wanted}: query heads, queries and value_dim, as O has"
        raise refuse(str(file.path), f"shape of {name}", stored.shape, expected)
    if stored.dtype != file.q.dtype and not file.stored:
        raise refuse(str(file.path), f"tensor {name}", stored.dtype, f"{file.q.dtype} as in q")
    numbers = read_tensor(file.path, name, stored)
    check_finite(str(file.path), name, numbers)
    return round_to(numbers, file.q.dtype) if file.stored else numbers


def done_after_words(file: InputFile | None) -> str:
    """Return `done_after` as two sentences; empty if the layer does nothing."""
    done = done_after(file)
    words = "Do not take O of this run for what its output projection W_O is given."
    return done and f"After attention the recorded layer {done}. {words}"


def drawn(w: Workload, progress: Callable[[float], None] | None = None) -> tuple[F32, ...]:
    """Return random Q, K and V, before positions turn them; also dO of a backward pass.

    All heads are drawn in their order. Without a file, only the heads that run are kept: even if
    the whole run is larger than the memory, these heads have the same numbers as in the whole run.
    """
    rng, done = np.random.default_rng(w.scenario.seed), 0
    total = sum(map(math.prod, w.input_shapes))

    def normal(shape: tuple[int, int, int], kept: Sequence[int]) -> F32:
        nonlocal done
        size = shape[1] * shape[2]
        out, unused = np.empty((len(kept), size), np.float32), np.empty(min(PART, size))
        for head in range(shape[0]):
            for start in range(0, size, PART):
                count = min(PART, size - start)
                part = rng.standard_normal(out=unused[:count])
                if head in kept:
                    rounded = round_to(part.astype(np.float32), w.dtype)
                    out[kept.index(head), start : start + count] = rounded
                done += count
            if progress:
                progress(done / total)
        return out.reshape(len(kept), *shape[1:])

    q, k, *own = map(normal, w.input_shapes, _kept_heads(w))
    return (q, k, k[..., : w.value_dim], *own) if w.latent else (q, k, *own)


def _kept_heads(w: Workload) -> list[Sequence[int]]:
    """Return the heads of each input that stay in memory: all of a file, else heads that run."""
    heads, kv_heads = w.input_heads
    rows = tuple(range(heads)) if w.file else w.picked
    keys = tuple(sorted({head * kv_heads // heads for head in rows}))
    last = len(w.input_shapes) - 1
    return [rows if n == 0 or (w.backward and n == last) else keys for n in range(last + 1)]


def input_bytes(w: Workload) -> int:
    """Return the memory that drawing or reading the inputs takes at its peak."""
    sizes = _held(w)
    if w.file is None:  # drawn in parts: two parts in float64, one in float32 and being rounded
        return 4 * sum(sizes) + 40 * min(PART, max(sizes))
    # All in float32, and for a while one tensor a second time, as it is stored or being rounded.
    as_stored = w.dtype != "bfloat16" and not any(
        each.other_than_read for each in (w.file.q, w.file.k, w.file.v)
    )
    return 4 * sum(sizes) + (8 if as_stored else 16) * max(sizes)


def run_bytes(w: Workload) -> int:
    """Return the memory that a run takes at its peak, whatever engine computes it.

    Q, K and V stay as float32. A kernel has a copy of each in a narrower dtype or in pages; while
    a copy is made, one tensor is in memory once more. A row block, or all rows of a backward pass,
    is compared with float64: each score takes five numbers, or twelve in a backward pass (S, P, dP,
    dS, the mask), beside a part of the keys. A computed tile has two float32 numbers for each pair.
    """
    sizes = _held(w)
    same = w.dtype == "float32" and w.pages is None
    copied = 0 if same else w.width * sum(sizes) + 4 * max(sizes)
    rows = w.seqlen_q if w.backward else min(w.rows, w.seqlen_q)
    scores = min(rows * w.seqlen_k, max(CHECKED_SCORES, w.seqlen_k))
    numbers = (12 if w.backward else 5) * scores + 3 * min(PART, max(sizes))
    tile = min(w.rows, w.seqlen_q) * min(w.cols, w.seqlen_k)
    pairs = 2 * w.mask.tensor.table.nbytes if w.mask.tensor else 0  # kernels have a copy
    return max(input_bytes(w), 4 * sum(sizes) + copied + 8 * numbers + 8 * tile) + pairs


def _held(w: Workload) -> list[int]:
    """Return how many numbers each input keeps in memory."""
    kept = map(len, _kept_heads(w))
    sizes = [n * math.prod(shape[1:]) for n, shape in zip(kept, w.input_shapes, strict=True)]
    if w.pages is not None:  # a kernel's K and V have free places, too
        sizes[1:] = [n // w.seqlen_k * w.pages.places * w.pages.size for n in sizes[1:]]
    if w.file:
        sizes += [math.prod(each.shape) for name, each in w.file.extra if name == GATE]
    return sizes + (sizes[:2] if w.position is not None else [])  # also unturned
