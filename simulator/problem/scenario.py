"""Scenarios: everything that determines one run, as a user writes it; TOML is read and written.

A `Scenario` contains what its author said and nothing more. `simulator.problem.workload` fills the
blanks from the input and from defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from simulator.base.dtypes import DType
from simulator.base.errors import refuse
from simulator.base.files import write_atomically
from simulator.base.limits import TEXT_LETTERS, TITLE_LETTERS
from simulator.base.tables import Table, as_tuple, input_error, key, read_toml
from simulator.language.models import ModelName
from simulator.problem.features import FeatureName
from simulator.problem.input_files import FileLayout
from simulator.problem.masks import Align, Window
from simulator.problem.values import (
    MAX_DEVICES,
    MAX_SEQLEN,
    MAX_THRESHOLD,
    Dim,
    Heads,
    Lengths,
    LengthsOrNone,
    Positive,
    Seqlen,
    Share,
    SinkLogits,
    Slopes,
    Splits,
    Tokens,
    preset_name,
    window_value,
)

Algorithm = Literal[
    "naive", "flash1", "flash2", "split-kv", "paged", "mla", "linear", "linear-recurrent", "gla",
    "deltanet", "naive-backward", "flash2-backward",
]  # fmt: skip
USUAL: Algorithm = "flash2"  # the algorithm of a scenario that names none
TilingRule = Literal["paper", "fa2", "fa3"]
Layout = Literal["contiguous", "zigzag", "striped"]
"""How rows and keys are dealt out to the devices of a ring."""
InputSource = Literal["random", "file", "capture", "layer", "sentence"]

PairDType = Literal["float32", "storage"]
"""The type of P before P V: float32, or the type of Q, K and V."""


class Attention(Table):
    """Shapes and algorithm. None: taken from the input, else the default."""

    algorithm: Algorithm = key(USUAL, "Algorithm", "What runs over the tiles.")
    heads: Heads | None = key(None, "Heads", "Query heads, H.", section="Shapes")
    kv_heads: Heads | None = key(
        None,
        "KV heads",
        "Heads of K and V; divides heads. As heads: MHA, 1: MQA, between: GQA.",
        section="Shapes",
    )
    seqlen_q: Seqlen | None = key(None, "N, tokens", "Query rows, Nq, in tokens.", section="Shapes")
    seqlen_k: Seqlen | None = key(None, "Nk, keys", "Keys, Nk, in tokens.", section="Shapes")
    head_dim: Dim | None = key(
        None, "d, head width", "Numbers of a query or key, d.", section="Shapes"
    )
    value_dim: Dim | None = key(
        None, "dv, value width", "Numbers of a value, dv.", section="Shapes"
    )
    latent_dim: Dim | None = key(
        None,
        "dc, latent width",
        "Numbers of a token's latent, dc, which all heads share. It stands for K and V, and is "
        "their value. With it, no head_dim, value_dim or kv_heads.",
        section="Shapes",
    )
    rope_dim: Annotated[int, Field(ge=0, le=4096)] | None = key(
        None,
        "dr, RoPE width",
        "Numbers of a key beside the latent, dr, which positions have turned.",
        section="Shapes",
    )
    dtype: DType | None = key(None, "Type", "Of Q, K, V and O in HBM; sums are float32.")
    p_dtype: PairDType = key(
        "float32",
        "P before P V",
        "The type of P before P V. float32: P stays as it is. storage: P is rounded to the dtype "
        "before P V, as in published kernels; naive stores S and P in it.",
    )
    scale: Positive | None = key(
        None, "Scale", "What q·k is multiplied by. Blank: as the input says, else 1/√head_dim."
    )
    temperature: Positive = key(
        1.0,
        "Temperature",
        "Divides the scaled scores: below 1 the softmax gets sharper, above 1 flatter.",
    )
    deterministic: bool = key(
        False,
        "Deterministic",
        "Whether thread blocks add to dQ in turn. It costs time and leaves the same bits in every "
        "run, as deterministic = True of FlashAttention.",
    )
    rescale_threshold: Annotated[float, Field(ge=0, le=MAX_THRESHOLD)] | None = key(
        None,
        "Rescale threshold",
        "By how much m must grow to move, in log2. FlashAttention-4 skips rescales of smaller "
        "steps, at 8. Blank: m moves at every step.",
    )
    feature_map: FeatureName | None = key(
        None,
        "Feature map",
        "φ in the place of the softmax. elu1: elu(x) + 1. performer: random features, on average "
        "a softmax.",
    )
    features: Annotated[int, Field(ge=1, le=65536)] | None = key(
        None, "Features", "How many random features performer takes. Blank: 2 head_dim."
    )
    decay: Share | None = key(
        None,
        "Decay α",
        "What each token leaves of the state, 0 to 1. Blank: of the file, or drawn.",
    )
    strength: Share | None = key(
        None,
        "Strength β",
        "How much of a new value is written, 0 to 1. Blank: of the file, or drawn.",
    )

    @model_validator(mode="after")
    def _features(self) -> Attention:
        if self.features and self.feature_map == "elu1":
            expected = 'no features without feature_map = "performer": other maps have head_dim'
            raise self.wrong_key("features", f"{expected} of them")
        return self

    @model_validator(mode="after")
    def _groups(self) -> Attention:
        if self.heads and self.kv_heads and self.heads % self.kv_heads:
            raise self.wrong_key("kv_heads", f"a divisor of attention.heads = {self.heads}")
        return self


class ScoresTable(Table):
    """Changes of a scaled score before the mask, and the logit that joins the softmax."""

    softcap: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = key(
        None,
        "Soft-cap",
        "No score is larger: S = softcap · tanh(S / softcap), before the mask. 0: none.",
    )
    alibi: Slopes = key(
        None,
        "ALiBi",
        "A score loses slope · |i′ − j| with distance. yes: ALiBi's slopes; or a slope for each "
        "head.",
    )
    bias: bool | None = key(
        None,
        "Bias",
        "A score gains what the input file has for its distance (T5). Blank: if it has that.",
    )
    sink_logits: SinkLogits = key(
        None,
        "Sink logits",
        "A logit of each head joins its softmax and has no value, as in gpt-oss. A number for "
        "each head. file, or blank: as the input has them. no: none.",
    )


class MaskTable(Table):
    """Which pairs are visible. None for causal or window: as the input file says."""

    causal: bool | None = key(
        None,
        "Causal",
        "No token sees ahead: a query sees no key after its own place, which align sets.",
    )
    align: Align = key(
        "bottom-right",
        "Align",
        "Own place of a query, if there are more or fewer queries than keys. bottom-right: the "
        "last query sits at the last key, as in FlashAttention since 2.1. top-left: the first "
        "query sits at the first key, as with is_causal in PyTorch.",
    )
    window: Annotated[Window | None, BeforeValidator(window_value)] = key(
        None,
        "Window",
        "Keys that a query sees, counted back from its own place. 0: no window. Two numbers, such "
        "as 5, 11: how far it sees to the left and to the right, and -1 is no bound.",
    )
    sinks: Tokens = key(0, "Sinks", "First keys, which the window never hides.")
    dilation: Seqlen = key(
        1, "Dilation", "Of the keys in its window a query sees one in so many. 1: all."
    )
    global_tokens: Tokens = key(
        0,
        "Global tokens",
        "First keys, which the window never hides, and whose queries see past it.",
    )
    documents: Lengths = key(
        (),
        "Documents",
        "Lengths of packed documents, such as 13, 30, 17. A query sees the keys of its own. They "
        "add up to seqlen_k.",
    )
    block: Seqlen | None = key(
        None,
        "Block mask",
        "Rows and keys of a block of the input file's tensor block_mask, which says which blocks "
        "are visible. Blank: none.",
        sources=("file", "layer"),
    )


class Batch(Table):
    """Sequences that are answered at once: how many keys each has, and which one is shown.

    A sequence without queries has no run. A sequence with queries and without keys has no run
    either, but its rows are stored: zeros.
    """

    lengths: LengthsOrNone = key(
        (),
        "Batch",
        "Keys of each sequence of a batch, such as 38, 13, 61, in the place of seqlen_k. A run is "
        "of one of them; in pages, those of all lie in one cache.",
        sources=("random",),
    )
    queries: LengthsOrNone = key(
        (),
        "Queries of the batch",
        "Queries of each sequence of the batch, such as 38, 1, 0, in the place of seqlen_q. One "
        "without queries is nothing.",
        sources=("random",),
    )
    sequence: Annotated[int, Field(ge=0)] | None = key(
        None,
        "Sequence",
        "Which sequence of the batch is shown, from 0. Blank: the first with queries.",
        sources=("random",),
    )

    @property
    def running(self) -> tuple[int, ...]:
        """The numbers of the sequences that have queries and keys."""
        return tuple(n for n in self._asked if self.lengths[n])

    @property
    def blind(self) -> tuple[int, ...]:
        """The numbers of the sequences that have queries and no keys."""
        return tuple(n for n in self._asked if not self.lengths[n])

    @property
    def _asked(self) -> tuple[int, ...]:
        rows = self.queries or (1,) * len(self.lengths)
        both = enumerate(zip(rows, self.lengths, strict=False))
        return tuple(number for number, (count, _) in both if count)

    @property
    def shown(self) -> int:
        """The sequence of the run: the first with queries and keys if none is named."""
        return next(iter(self.running), 0) if self.sequence is None else self.sequence

    @model_validator(mode="after")
    def _fits(self) -> Batch:
        number, count = self.sequence, len(self.lengths)
        running = ", ".join(map(str, self.running))
        if self.queries and len(self.queries) != count:
            raise self.wrong_key("queries", f"a number for each of the {count} of batch.lengths")
        if self.queries and not running:
            raise self.wrong_key("queries", "a sequence that has queries and keys")
        if sum(self.queries) > MAX_SEQLEN:
            raise self.wrong_key("queries", f"at most {MAX_SEQLEN} queries of all sequences")
        if count and not running:
            raise self.wrong_key("lengths", "a sequence that has keys")
        if number is not None and number >= max(count, 1):
            expected = f"a number from 0 to {count - 1}" if count else "batch.lengths beside it"
            raise self.wrong_key("sequence", expected)
        if count and number is not None and number not in self.running:
            raise self.wrong_key("sequence", f"one of {running}, which have queries and keys")
        if sum(self.lengths) > MAX_SEQLEN:
            raise self.wrong_key("lengths", f"at most {MAX_SEQLEN} tokens of all sequences")
        return self


class PositionTable(Table):
    """Positions that turn Q and K; `kind` None: none."""

    kind: Literal["rope"] | None = key(
        None, "Positions", "Whether positions turn Q and K before everything else: rope, or none."
    )
    theta: Annotated[float, Field(gt=1, allow_inf_nan=False)] = key(
        10000.0, "Theta", "Base of the angles: pair n turns by position · theta^(−2n/d)."
    )
    interleaved: bool = key(
        False,
        "Interleaved",
        "Pairs of neighbours, x₂ₙ with x₂ₙ₊₁; else of halves, xₙ with the one half a head on.",
    )
    fraction: Annotated[float, Field(gt=0, le=1)] = key(
        1.0, "Fraction", "Share of a head's numbers that is turned, from the first on."
    )
    offset: Annotated[int, Field(ge=-MAX_SEQLEN, le=MAX_SEQLEN)] = key(
        0, "Offset", "Added to every position."
    )


class Tiling(Table):
    """Tile sizes, or the rule that gives them (default: `fa2`); splits, pages and devices."""

    rows: Seqlen | None = key(
        None, "Br × Bc", "Rows and columns of a tile: query rows, Br, and keys, Bc."
    )
    cols: Seqlen | None = key(None, "Bc", "Keys of a tile.")
    rule: TilingRule | None = key(
        None,
        "Tile rule",
        "Which rule gives the tiles. paper: Bc = ceil(M/4d), Br = min(Bc, d), M in elements of "
        "the GPU's SRAM. fa2, fa3: the tiles that the published kernels ship with.",
    )
    splits: Splits = key(
        None,
        "Splits",
        "Into how many runs the keys are dealt out. Blank: as FlashAttention-3 chooses, so that "
        "the thread blocks fill the GPU.",
    )
    split_size: Seqlen | None = key(
        None,
        "Split size",
        "Keys of a split, a multiple of Bc, in the place of splits. Keys are cut at the same "
        "places whatever else the GPU has to do, so results are the same in bits.",
    )
    page_size: Seqlen | None = key(
        None,
        "Page size",
        "Tokens of a page of the cache, which divides Bc. Blank: 16, or as many of them as divide "
        "Bc.",
    )
    devices: Annotated[int, Field(ge=2, le=MAX_DEVICES)] | None = key(
        None, "Devices", "Of the ring in the Ring panel, 2 to 8; the run itself is on one device."
    )
    layout: Layout | None = key(
        None, "Layout", "How the Ring panel deals rows and keys out to its devices."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Tiling:
        if self.rule and (self.rows or self.cols):
            raise self.wrong_key("rule", "either a rule or rows and cols, not both")
        if (self.rows is None) != (self.cols is None):
            said, missing = ("rows", "cols") if self.cols is None else ("cols", "rows")
            raise self.wrong_key(said, f"tiling.{missing} beside it")
        if self.splits and self.split_size:
            expected = "no tiling.splits beside it: either their number or their size"
            raise self.wrong_key("split_size", expected)
        return self


class Input(Table):
    """Where Q, K and V come from."""

    source: InputSource = key(
        "random",
        "Source",
        "Where Q, K and V come from. capture: a real layer that ships with Tilescope. sentence: a "
        "text of yours that a small language model computes.",
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = key(
        0, "Seed", "Of the random numbers.", sources=("random",)
    )
    path: str | None = key(
        None,
        "File",
        "A .safetensors or .npz file with q, k and v; of a layer with x, wq, wk, wv and wo.",
        sources=("file", "layer"),
    )
    layout: FileLayout = key(
        "hnd",
        "Axes",
        "The order of the axes of q, k and v in the file: heads, tokens, dim, or tokens, heads, "
        "dim.",
        sources=("file",),
    )
    name: str | None = key(
        None,
        "Sentence",
        "By its text; or type one. Sentences that ship are layers of a real model; yours is "
        "computed by a small one.",
    )
    text: Annotated[str, Field(max_length=TEXT_LETTERS)] | None = key(
        None,
        "Text",
        "What the language model reads; its tokens are the rows and keys.",
        sources=("sentence",),
    )
    model: ModelName = key(
        "own",
        "Model",
        "Which language model reads the text. Our own, or SmolLM2-135M after make sentence-models.",
        sources=("sentence",),
    )
    layer: Annotated[int, Field(ge=0)] = key(
        0, "Layer", "Which layer of the language model, from 0.", sources=("sentence",)
    )
    what_if: bool = key(
        False,
        "What if",
        "Whether the scenario may say other than its input: another mask, scale or type, or other "
        "sizes, then with random numbers.",
        sources=("file", "capture", "layer", "sentence"),
    )
    head: Annotated[
        Literal["all"] | tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(as_tuple)
    ] = key("all", "Head", "Which query heads run: all, or numbers from 0 such as 0, 3, 5.")

    @model_validator(mode="after")
    def _named(self) -> Input:
        needed = {"file": "path", "capture": "name", "layer": "path", "sentence": "text"}
        needs = needed.get(self.source)
        if needs and not getattr(self, needs):
            raise self.wrong_key(needs, f'input.{needs} with source = "{self.source}"')
        if isinstance(self.head, tuple) and (not self.head or len(set(self.head)) < len(self.head)):
            raise self.wrong_key("head", 'distinct head numbers, at least one, or "all"')
        return self


KernelName = Literal["fa1", "fa2", "fa3"]
"""Kinds of kernels of the time model (assets/kernels.toml)."""


class Hardware(Table):
    """The GPU whose limits and rates are shown."""

    preset: Annotated[str, BeforeValidator(preset_name)] = key(
        "H100-SXM", "GPU", "For bytes, time and limits: the GPU whose limits and rates are shown."
    )
    kernel: KernelName | None = key(
        None,
        "Kernel",
        "Which release's kernel times are those of. Usual: fa1 for FlashAttention-1, fa3 for "
        "FlashAttention-2 on Hopper, else fa2.",
    )


class Faults(Table):
    """Mistakes to make on purpose; `simulator.program.faults` says what each is."""

    forget_alpha: bool = False
    no_maximum: bool = False
    drop_previous_maximum: bool = False
    late_scale: bool = False
    late_mask: bool = False
    half_accumulator: bool = False
    stale_frame: bool = False
    fp8_saturation: bool = False
    unconverted_sink: bool = False
    lse_base_2: bool = False
    early_mask: bool = False
    finite_mask: bool = False
    repeated_sink: bool = False
    forget_tile_sum: bool = False
    wide_window: bool = False
    forget_dots: bool = False
    weights_of_maximum: bool = False
    unscaled_queries: bool = False
    one_head_of_group: bool = False

    @property
    def on(self) -> tuple[str, ...]:
        """Names of the faults that are on, in the order of the file's keys."""
        return tuple(name for name, is_on in self if is_on)  # asked many times in each picture

    @property
    def leaks(self) -> bool:
        """Whether pairs that the mask hides count in the softmax."""
        return self.late_mask or self.early_mask or self.finite_mask or self.wide_window


class Scenario(Table):
    """Everything that determines one run, as its author wrote it (immutable).

    A relative ``input.path`` becomes absolute when a file is loaded, relative again when saved.
    """

    title: Annotated[str, Field(max_length=TITLE_LETTERS)] = key(
        "", "Title", "Shown in the title bar."
    )
    attention: Attention = Attention()
    batch: Batch = Batch()
    scores: ScoresTable = ScoresTable()
    mask: MaskTable = MaskTable()
    position: PositionTable = PositionTable()
    tiling: Tiling = Tiling()
    input: Input = Input()
    hardware: Hardware = Hardware()
    faults: Faults = Faults()

    @property
    def seed(self) -> int | list[int]:
        """The seed of random input: each sequence of a batch has its own."""
        return [self.input.seed, 0, self.batch.shown] if self.batch.lengths else self.input.seed


def parse_scenario(data: Mapping[str, Any], source: str = "scenario") -> Scenario:
    """Validate plain tables into a scenario."""
    try:
        return Scenario.model_validate(dict(data))
    except ValidationError as error:
        raise input_error(source, error, Scenario) from None


def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario file."""
    if Path(path).suffix.lower() in (".npz", ".safetensors"):
        expected = f'a scenario (.toml) whose [input] has source = "file" and path = "{path}"'
        raise refuse(str(path), "", "", expected)
    data = read_toml(path)
    scenario = parse_scenario(data, str(path))
    if scenario.input.path:
        absolute = (Path(path).parent / scenario.input.path).absolute()
        return with_values(scenario, {"input": {"path": os.path.normpath(absolute)}})
    return scenario


def with_values(scenario: Scenario, changes: Mapping[str, Mapping[str, Any] | str]) -> Scenario:
    """Return `scenario` with some values replaced; None removes a value.

    changes: tables and keys as in the file, e.g. ``{"mask": {"causal": True}}``.
    """
    data = scenario_tables(scenario)
    for table, values in changes.items():
        if isinstance(values, str):
            data[table] = values
            continue
        merged = {**data.get(table, {}), **values}
        data[table] = {name: value for name, value in merged.items() if value is not None}
    return parse_scenario(data)


def merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain tables with some keys changed; a value that is no table replaces a table."""
    out = dict(tables)
    for table, values in changes.items():
        both = isinstance(values, dict) and isinstance(out.get(table, {}), dict)
        out[table] = {**out.get(table, {}), **values} if both else values
    return out


def scenario_tables(scenario: Scenario) -> dict[str, Any]:
    """Return the keys that the author set, as plain tables ready for TOML."""
    data = scenario.model_dump(exclude_none=True, exclude_unset=True)
    for table in data.values():
        if isinstance(table, dict):
            table |= {key: list(value) for key, value in table.items() if type(value) is tuple}
    return {name: value for name, value in data.items() if value not in ({}, "")}


def scenario_toml(scenario: Scenario, folder: Path | None = None) -> str:
    """Return the scenario as TOML text, its input path relative to `folder` if possible."""
    data = scenario_tables(scenario)
    path = data.get("input", {}).get("path")
    if path and folder is not None:
        try:
            data["input"]["path"] = Path(os.path.relpath(path, folder.absolute())).as_posix()
        except ValueError:  # another drive on Windows: only the absolute path reaches it
            data["input"]["path"] = path
    return tomli_w.dumps(data)


def save_scenario(scenario: Scenario, path: str | os.PathLike[str]) -> None:
    """Write a scenario file, whole or not at all."""
    file = Path(path)
    text = scenario_toml(scenario, file.parent)
    write_atomically(file, lambda out: out.write(text.encode("utf-8")))
