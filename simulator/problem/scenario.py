"""Scenarios: everything that determines one run, as a user writes it; TOML is read and written.

A `Scenario` contains what its author said and nothing more. `simulator.problem.workload` fills the
blanks from the input and from defaults.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from simulator.base.dtypes import DType
from simulator.base.errors import refuse
from simulator.base.files import write_atomically
from simulator.base.limits import TEXT_LETTERS, TITLE_LETTERS
from simulator.base.tables import Table, input_error, read_toml
from simulator.language.models import ModelName
from simulator.problem.features import FeatureName
from simulator.problem.hardware import gpus
from simulator.problem.input_files import FileLayout
from simulator.problem.masks import Align, Window

Algorithm = Literal[
    "naive", "flash1", "flash2", "split-kv", "paged", "mla", "linear", "linear-recurrent", "gla",
    "deltanet", "naive-backward", "flash2-backward",
]  # fmt: skip
USUAL: Algorithm = "flash2"
"""The algorithm of a scenario that names none."""
TilingRule = Literal["paper", "fa2", "fa3"]
Layout = Literal["contiguous", "zigzag", "striped"]
"""How rows and keys are dealt out to the devices of a ring."""
InputSource = Literal["random", "file", "capture", "layer", "sentence"]

PairDType = Literal["float32", "storage"]
"""The type of P before P V: float32, or that of Q, K and V."""

MAX_SEQLEN = 2**24
"""Longest sequence: with it, the byte counts of 4096 heads fit into 64-bit integers."""

MAX_SPLITS = 256
"""Most splits: FlashAttention's combine takes no more."""
MAX_DEVICES = 8
"""Most devices of a ring: a picture has a lane for each."""
MAX_THRESHOLD = 64.0
"""Largest rescale threshold, in log2: sums of 2**24 exponentials of 2**64 are far from overflow."""
MAX_LOGIT = 1e30
"""Largest sink logit: float32 holds it and its differences from scores."""

Heads = Annotated[int, Field(ge=1, le=4096)]
Seqlen = Annotated[int, Field(ge=1, le=MAX_SEQLEN)]
Dim = Annotated[int, Field(ge=1, le=4096)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]


def _preset_name(name: object) -> object:
    if isinstance(name, str) and name not in gpus():
        raise PydanticCustomError("choice", "one of {names}", {"names": ", ".join(gpus())})
    return name


def _as_tuple(value: object) -> object:
    """Accept a TOML list for the frozen tuple."""
    return tuple(value) if isinstance(value, list) else value


def _lengths(value: object, least: int = 1) -> object:
    """Accept numbers of tokens: errors of a list name a place in it, which no form has."""
    if isinstance(value, list | tuple):
        whole = [each for each in value if isinstance(each, int) and not isinstance(each, bool)]
        if len(whole) == len(value) and all(least <= each <= MAX_SEQLEN for each in whole):
            return tuple(whole)
    words = "a list of numbers of tokens, each at least {least}"
    raise PydanticCustomError("lengths", words, {"least": least})


def _lengths_or_none(value: object) -> object:
    """Accept numbers of tokens, 0 among them."""
    return _lengths(value, 0)


def _window(value: object) -> object:
    """Accept a number or a pair: a union would name each of its types in an error."""
    if isinstance(value, list | tuple):
        whole = [each for each in value if isinstance(each, int) and not isinstance(each, bool)]
        if len(whole) == len(value) == 2 and all(-1 <= each <= MAX_SEQLEN for each in whole):
            return tuple(whole)
    elif value is None:
        return value
    elif isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value <= MAX_SEQLEN:
            return value
        bound = f"at most {MAX_SEQLEN}" if value > 0 else "at least 0"
        raise PydanticCustomError("window", "{bound}, or a pair [left, right]", {"bound": bound})
    raise PydanticCustomError(
        "window", "a number of keys, or a pair [left, right] of numbers from -1, which is no bound"
    )


def _splits(value: object) -> object:
    """Accept a number or "auto": a union would name each of its types in an error."""
    whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SPLITS
    if value is None or value == "auto" or whole:
        return value
    words = {"most": MAX_SPLITS}
    raise PydanticCustomError("splits", 'a whole number from 1 to {most}, or "auto"', words)


def _slopes(value: object) -> object:
    """Accept true, false or slopes: a union would name each of its types in an error."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list | tuple) and value:
        numbers = [float(each) for each in value if isinstance(each, int | float)]
        if len(numbers) == len(value) and all(0 <= each < math.inf for each in numbers):
            return tuple(numbers)
    raise PydanticCustomError("slopes", "true, false, or a list of slopes, none below 0")


def _sink_logits(value: object) -> object:
    """Accept "file", false or a logit of each head."""
    if value == "file" or value is False:
        return value
    if isinstance(value, list | tuple) and value:
        numbers = [float(each) for each in value if isinstance(each, int | float)]
        if len(numbers) == len(value) and all(abs(each) <= MAX_LOGIT for each in numbers):
            return tuple(numbers)
    raise PydanticCustomError("sinks", '"file", false, or numbers, one for each query head')


class Attention(Table):
    """Shapes and algorithm. None: taken from the input, else the default."""

    algorithm: Algorithm = USUAL
    heads: Heads | None = None
    kv_heads: Heads | None = None
    seqlen_q: Seqlen | None = None
    seqlen_k: Seqlen | None = None
    head_dim: Dim | None = None
    value_dim: Dim | None = None
    latent_dim: Dim | None = None
    rope_dim: Annotated[int, Field(ge=0, le=4096)] | None = None
    dtype: DType | None = None
    p_dtype: PairDType = "float32"
    scale: Positive | None = None
    temperature: Positive = 1.0
    deterministic: bool = False
    rescale_threshold: Annotated[float, Field(ge=0, le=MAX_THRESHOLD)] | None = None
    feature_map: FeatureName | None = None
    features: Annotated[int, Field(ge=1, le=65536)] | None = None
    decay: Share | None = None
    strength: Share | None = None

    @model_validator(mode="after")
    def _features(self) -> Attention:
        if self.features and self.feature_map == "elu1":
            raise PydanticCustomError(
                "features",
                'no features without feature_map = "performer": other maps have head_dim of them',
                {"key": "features", "value": self.features},
            )
        return self

    @model_validator(mode="after")
    def _groups(self) -> Attention:
        if self.heads and self.kv_heads and self.heads % self.kv_heads:
            raise PydanticCustomError(
                "kv_heads",
                "a divisor of attention.heads = {heads}",
                {"heads": self.heads, "key": "kv_heads", "value": self.kv_heads},
            )
        return self


class ScoresTable(Table):
    """What is done to a scaled score before the mask, and the logit that joins the softmax.

    What is not said is as the file says.
    """

    softcap: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    alibi: Annotated[bool | tuple[float, ...] | None, BeforeValidator(_slopes)] = None
    bias: bool | None = None
    sink_logits: Annotated[
        Literal["file", False] | tuple[float, ...] | None, BeforeValidator(_sink_logits)
    ] = None


class MaskTable(Table):
    """Which pairs are visible. What is not said of causal and window is as the input file says."""

    causal: bool | None = None
    align: Align = "bottom-right"
    window: Annotated[Window | None, BeforeValidator(_window)] = None
    sinks: Annotated[int, Field(ge=0, le=MAX_SEQLEN)] = 0
    dilation: Annotated[int, Field(ge=1, le=MAX_SEQLEN)] = 1
    global_tokens: Annotated[int, Field(ge=0, le=MAX_SEQLEN)] = 0
    documents: Annotated[tuple[int, ...], BeforeValidator(_lengths)] = ()
    block: Seqlen | None = None


class Batch(Table):
    """Sequences that are answered at once: how many keys each has, and of which one a run is.

    One without queries is nothing: it has no run. One with queries and without keys has none
    either, but its rows are stored: zeros.
    """

    lengths: Annotated[tuple[int, ...], BeforeValidator(_lengths_or_none)] = ()
    queries: Annotated[tuple[int, ...], BeforeValidator(_lengths_or_none)] = ()
    sequence: Annotated[int, Field(ge=0)] | None = None

    @property
    def running(self) -> tuple[int, ...]:
        """The numbers of the sequences that have queries and keys."""
        return tuple(n for n in self._asked if self.lengths[n])

    @property
    def blind(self) -> tuple[int, ...]:
        """The numbers of those that have queries and no keys."""
        return tuple(n for n in self._asked if not self.lengths[n])

    @property
    def _asked(self) -> tuple[int, ...]:
        rows = self.queries or (1,) * len(self.lengths)
        both = enumerate(zip(rows, self.lengths, strict=False))
        return tuple(number for number, (count, _) in both if count)

    @property
    def shown(self) -> int:
        """The sequence that a run is of: the first with queries and keys if none is said."""
        return next(iter(self.running), 0) if self.sequence is None else self.sequence

    @model_validator(mode="after")
    def _own_queries(self) -> Batch:
        if not self.queries:
            return self
        expected = ""
        if len(self.queries) != len(self.lengths):
            expected = f"a number for each of the {len(self.lengths)} of batch.lengths"
        elif not self.running:
            expected = "a sequence that has queries and keys"
        elif sum(self.queries) > MAX_SEQLEN:
            expected = f"at most {MAX_SEQLEN} queries of all sequences"
        if expected:
            words = {"words": expected, "key": "queries", "value": list(self.queries)}
            raise PydanticCustomError("batch", "{words}", words)
        return self

    @model_validator(mode="after")
    def _one_of_them(self) -> Batch:
        number, count = self.sequence, len(self.lengths)
        if count and not self.running:
            words = "a sequence that has keys"
            raise PydanticCustomError(
                "batch", "{words}", {"words": words, "key": "lengths", "value": list(self.lengths)}
            )
        if number is not None and number >= max(count, 1):
            words = f"a number from 0 to {count - 1}" if count else "batch.lengths beside it"
            raise PydanticCustomError(
                "batch", "{words}", {"words": words, "key": "sequence", "value": number}
            )
        if count and number is not None and number not in self.running:
            running = ", ".join(map(str, self.running))
            words = f"one of {running}, which have queries and keys"
            raise PydanticCustomError(
                "batch", "{words}", {"words": words, "key": "sequence", "value": number}
            )
        if sum(self.lengths) > MAX_SEQLEN:
            raise PydanticCustomError(
                "batch",
                "at most {most} tokens of all sequences",
                {"most": MAX_SEQLEN, "key": "lengths", "value": list(self.lengths)},
            )
        return self


class PositionTable(Table):
    """Positions that turn Q and K; `kind` None: none."""

    kind: Literal["rope"] | None = None
    theta: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10000.0
    interleaved: bool = False
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    offset: Annotated[int, Field(ge=-MAX_SEQLEN, le=MAX_SEQLEN)] = 0


class Tiling(Table):
    """Tile sizes, or the rule that gives them, `fa2` when nothing is said; and who has which."""

    rows: Annotated[int, Field(ge=1, le=MAX_SEQLEN)] | None = None
    cols: Annotated[int, Field(ge=1, le=MAX_SEQLEN)] | None = None
    rule: TilingRule | None = None
    splits: Annotated[int | Literal["auto"] | None, BeforeValidator(_splits)] = None
    split_size: Seqlen | None = None
    page_size: Seqlen | None = None
    devices: Annotated[int, Field(ge=2, le=MAX_DEVICES)] | None = None
    layout: Layout | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Tiling:
        if self.rule and (self.rows or self.cols):
            raise PydanticCustomError(
                "tiling",
                "either a rule or rows and cols, not both",
                {"key": "rule", "value": self.rule},
            )
        if (self.rows is None) != (self.cols is None):
            said, missing = ("rows", "cols") if self.cols is None else ("cols", "rows")
            raise PydanticCustomError(
                "tiling",
                "tiling.{missing} beside it",
                {"missing": missing, "key": said, "value": self.rows or self.cols},
            )
        if self.splits and self.split_size:
            raise PydanticCustomError(
                "tiling",
                "no tiling.splits beside it: either their number or their size",
                {"key": "split_size", "value": self.split_size},
            )
        return self


class Input(Table):
    """Where Q, K and V come from."""

    source: InputSource = "random"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    path: str | None = None
    layout: FileLayout = "hnd"
    name: str | None = None
    text: Annotated[str, Field(max_length=TEXT_LETTERS)] | None = None
    model: ModelName = "own"
    layer: Annotated[int, Field(ge=0)] = 0
    what_if: bool = False
    head: Annotated[
        Literal["all"] | tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_as_tuple)
    ] = "all"

    @model_validator(mode="after")
    def _named(self) -> Input:
        needed = {"file": "path", "capture": "name", "layer": "path", "sentence": "text"}
        needs = needed.get(self.source)
        if needs and not getattr(self, needs):
            raise PydanticCustomError(
                "input",
                'input.{needs} with source = "{source}"',
                {"needs": needs, "source": self.source, "key": needs, "value": None},
            )
        if isinstance(self.head, tuple) and (not self.head or len(set(self.head)) < len(self.head)):
            raise PydanticCustomError(
                "input",
                'distinct head numbers, at least one, or "all"',
                {"key": "head", "value": list(self.head)},
            )
        return self


KernelName = Literal["fa1", "fa2", "fa3"]
"""Kinds of kernels of the time model (assets/kernels.toml)."""


class Hardware(Table):
    """The GPU whose limits and rates are shown."""

    preset: Annotated[str, BeforeValidator(_preset_name)] = "H100-SXM"
    kernel: KernelName | None = None


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

    Fields follow the scenario file: ``title``, ``attention``, ``batch``, ``scores``, ``mask``,
    ``position``, ``tiling``, ``input``, ``hardware``, ``faults``. A relative ``input.path`` is made
    absolute when a file is loaded and relative again when one is saved.
    """

    title: Annotated[str, Field(max_length=TITLE_LETTERS)] = ""
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
    """Validate plain tables into a scenario.

    data: what `tomllib` returns.
    Raises InputError: names every key at fault, its value and what was expected.
    """
    try:
        return Scenario.model_validate(dict(data))
    except ValidationError as error:
        raise input_error(source, error, Scenario) from None


def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario file.

    Raises InputError: the file is missing, is not UTF-8, is not TOML, or holds a value that cannot
        be used.
    """
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
    """Return `scenario` with some values replaced; None removes one.

    changes: tables and keys as in the file, e.g. ``{"mask": {"causal": True}}``.
    Raises InputError: the result is not a valid scenario.
    """
    data = scenario_tables(scenario)
    for table, values in changes.items():
        if isinstance(values, str):
            data[table] = values
            continue
        merged = {**data.get(table, {}), **values}
        data[table] = {key: value for key, value in merged.items() if value is not None}
    return parse_scenario(data)


def scenario_tables(scenario: Scenario) -> dict[str, Any]:
    """Return what the author set, as plain tables ready for TOML."""
    data = scenario.model_dump(exclude_none=True, exclude_unset=True)
    lists = (
        ("input", "head"), ("scores", "alibi"), ("scores", "sink_logits"), ("mask", "window"),
        ("mask", "documents"), ("batch", "lengths"), ("batch", "queries"),
    )  # fmt: skip
    for table, key in lists:
        if isinstance(data.get(table, {}).get(key), tuple):
            data[table][key] = list(data[table][key])
    return {key: value for key, value in data.items() if value not in ({}, "")}


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
    """Write a scenario file, whole or not at all.

    Raises InputError: the file cannot be written.
    """
    file = Path(path)
    text = scenario_toml(scenario, file.parent)
    write_atomically(file, lambda out: out.write(text.encode("utf-8")))
