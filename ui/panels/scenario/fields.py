"""The fields of a scenario, one row each, and how their texts become a scenario.

A form has one text for each field, which is blank if the author says nothing. Texts can say what a
`Scenario` cannot (half of a change, a word instead of a number), so a form edits texts and asks
`tables` for the scenario when it needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, get_args

from simulator.base.dtypes import TYPE_NAMES
from simulator.base.errors import safe_text, shortened
from simulator.language.models import ModelName
from simulator.problem.facts import PACKED, RULES, SKIPPING
from simulator.problem.features import FeatureName
from simulator.problem.filling import capture_names
from simulator.problem.hardware import gpus
from simulator.problem.input_files import FileLayout
from simulator.problem.masks import Align
from simulator.problem.paging import USUAL_PAGE
from simulator.problem.recurrence import DECAY, STRENGTH
from simulator.problem.scenario import (
    MAX_SEQLEN,
    InputSource,
    KernelName,
    PairDType,
    Scenario,
    TilingRule,
    parse_scenario,
    scenario_tables,
)
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, USUAL
from simulator.program.faults import FAULTS
from simulator.study.ring.dealing import LAYOUTS

Choices = tuple[tuple[str, str], ...]
"""Text in the form and words on the screen, of each choice."""
Texts = Mapping[str, str]
"""The text of each field, by dotted name (``attention.heads``); blank: not said."""

OWN = "own"
"""The tiling rule in a form if rows and cols are given. In a file this is no rule."""


class FieldKind(Enum):
    """The kind of value in a field."""

    CHOICE = auto()
    TRI_STATE = auto()
    """Yes, no, or as the input says."""
    WHOLE = auto()
    WINDOW = auto()
    """A whole number, or two: to the left and to the right."""
    NUMBER = auto()
    TEXT = auto()
    HEADS = auto()
    """``all`` or a list of head numbers."""
    LENGTHS = auto()
    """A list of numbers of tokens."""
    SLOPES = auto()
    """``yes``, ``no`` or a list of numbers."""
    LOGITS = auto()
    """``file``, ``no`` or a list of numbers."""
    PATH = auto()


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field."""

    table: str  # table, key: its place in the scenario file; `table` is empty for the title
    key: str
    label: str  # the key, beside the field, so that messages with keys are understood
    kind: FieldKind  # the kind of its value
    group: str  # the section of the form; empty: above all sections
    help: str  # shown as a tooltip
    # the choices of a CHOICE or TRI_STATE; a blank text among them means "not said"
    choices: Callable[[], Choices] = tuple
    default: str = ""  # the choice that a blank text stands for if there is no blank choice
    only_for: tuple[str, ...] = ()  # the input sources that the field belongs to; empty: all
    least: int = 1  # smallest value of a WHOLE or WINDOW, where stepping down ends

    @property
    def name(self) -> str:
        """The dotted name, as errors give it."""
        return f"{self.table}.{self.key}" if self.table else self.key


def _same(*names: str) -> Callable[[], Choices]:
    return lambda: tuple((name, name) for name in names)


def _captures() -> Choices:
    return tuple((name, name) for name in capture_names())


def _presets() -> Choices:
    return tuple((name, name) for name in gpus())


def _kernels() -> Choices:
    return (("", "usual"), *((name, name) for name in get_args(KernelName)))


def _rules() -> Choices:
    return ((OWN, "own sizes"), *((rule, rule) for rule in get_args(TilingRule)))


def _causal() -> Choices:
    return (("", ""), ("true", "yes"), ("false", "no"))


_FAULT_LABELS = {
    "forget_alpha": "no alpha",
    "no_maximum": "no max",
    "drop_previous_maximum": "drop max",
    "late_scale": "late scale",
    "late_mask": "late mask",
    "half_accumulator": "fp16 sums",
    "stale_frame": "stale P",
    "fp8_saturation": "fp8 limit",
    "unconverted_sink": "sink base",
    "lse_base_2": "LSE base",
    "early_mask": "early mask",
    "finite_mask": "finite mask",
    "repeated_sink": "more sinks",
    "forget_tile_sum": "no tile ℓ",
    "wide_window": "window + 1",
    "forget_dots": "no D",
    "weights_of_maximum": "P of m",
    "unscaled_queries": "raw dQ",
    "one_head_of_group": "dK 1 head",
}
"""The keys are too long to be beside a field."""


def _positions() -> Choices:
    return (("", ""), ("rope", "rope"))


def _switch() -> Choices:
    return (("", ""), ("true", "on"), ("false", "off"))


_ALGORITHM, _SHAPES, _SCORES, _MASK, _POSITION, _TILING, _INPUT, _HARDWARE, _FAULTS = GROUPS = (
    "Algorithm", "Shapes", "Scores", "Mask", "Position", "Tiling", "Input", "Hardware", "Faults",
)  # fmt: skip

PAGED = ", ".join(name for name, how in PACKED.items() if how == "pages")
"""The algorithms whose keys and values lie in pages."""
SPLIT = ", ".join(name for name, algorithm in ALGORITHMS.items() if algorithm.splits)
"""The algorithms that deal keys out to splits."""
ADDING = ", ".join(name for name, own in ALGORITHMS.items() if own.adds)
MAPPED = ", ".join(name for name, rule in RULES.items() if rule.own_map is None)
"""The algorithms with a feature map in the place of the softmax, which one may choose."""
DECAYS, CORRECTS = (
    ", ".join(name for name, rule in RULES.items() if rule.gate is gate)
    for gate in (DECAY, STRENGTH)
)
"""The algorithms that take a gate."""

SKIPS = ", ".join(sorted(SKIPPING))
FIELDS = (
    FieldSpec("", "title", "title", FieldKind.TEXT, "", "Shown in the title bar."),
    FieldSpec(
        "attention", "algorithm", "algorithm", FieldKind.CHOICE, _ALGORITHM,
        " ".join(f"{name}: {each.about}." for name, each in ALGORITHMS.items()),
        choices=_same(*ALGORITHMS), default=USUAL.name,
    ),
    FieldSpec(
        "attention", "dtype", "dtype", FieldKind.CHOICE, _ALGORITHM,
        "Of Q, K, V and O in HBM; sums are float32.", choices=_same("", *TYPE_NAMES),
    ),
    FieldSpec(
        "attention", "p_dtype", "P before P V", FieldKind.CHOICE, _ALGORITHM,
        "float32: P stays as it is. storage: P is rounded to the dtype before P V, as in published "
        "kernels; naive stores S and P in it.",
        choices=_same(*get_args(PairDType)), default="float32",
    ),
    FieldSpec(
        "attention", "scale", "scale", FieldKind.NUMBER, _ALGORITHM,
        "What q·k is multiplied by. Blank: as the input says, else 1/√head_dim.",
    ),
    FieldSpec(
        "attention", "temperature", "temperature", FieldKind.NUMBER, _ALGORITHM,
        "Divides the scaled scores: below 1 the softmax gets sharper, above 1 flatter.",
    ),
    FieldSpec(
        "attention", "rescale_threshold", "threshold", FieldKind.NUMBER, _ALGORITHM,
        f"By how much m must grow to move, in log2, of {SKIPS}: FlashAttention-4 skips rescales "
        "of smaller steps, at 8. Blank: m moves at every step.",
    ),
    FieldSpec(
        "attention", "deterministic", "deterministic", FieldKind.TRI_STATE, _ALGORITHM,
        f"Whether thread blocks of {ADDING} add to dQ in turn, which costs time "
        "and leaves the same bits in every run, as deterministic = True of FlashAttention.",
        choices=_switch,
    ),
    FieldSpec(
        "attention", "feature_map", "feature map", FieldKind.CHOICE, _ALGORITHM,
        f"φ of {MAPPED}. elu1: elu(x) + 1. performer: random features, on average a softmax.",
        choices=_same("", *get_args(FeatureName)),
    ),
    FieldSpec(
        "attention", "features", "features", FieldKind.WHOLE, _ALGORITHM,
        "How many random features performer takes. Blank: 2 head_dim.",
    ),
    FieldSpec(
        "attention", "decay", "decay α", FieldKind.NUMBER, _ALGORITHM,
        f"Of {DECAYS}: what each token leaves of the state, 0 to 1. Blank: of the file, or drawn.",
    ),
    FieldSpec(
        "attention", "strength", "strength β", FieldKind.NUMBER, _ALGORITHM,
        f"Of {CORRECTS}: how much of a new value is written, 0 to 1. "
        "Blank: of the file, or drawn.",
    ),
    FieldSpec(
        "attention", "heads", "heads", FieldKind.WHOLE, _SHAPES, "Query heads, H.",
    ),
    FieldSpec(
        "attention", "kv_heads", "kv_heads", FieldKind.WHOLE, _SHAPES,
        "Heads of K and V; divides heads. As heads: MHA, 1: MQA, between: GQA.",
    ),
    FieldSpec(
        "attention", "seqlen_q", "seqlen_q", FieldKind.WHOLE, _SHAPES, "Query rows, Nq, in tokens.",
    ),
    FieldSpec(
        "attention", "seqlen_k", "seqlen_k", FieldKind.WHOLE, _SHAPES, "Keys, Nk, in tokens.",
    ),
    FieldSpec(
        "batch", "lengths", "batch", FieldKind.LENGTHS, _SHAPES,
        "Keys of each sequence of a batch, such as 38, 13, 61, in the place of seqlen_k: a run is "
        f"of one of them, and of {PAGED} the pages of all lie in one cache.",
        only_for=("random",),
    ),
    FieldSpec(
        "batch", "queries", "queries", FieldKind.LENGTHS, _SHAPES,
        "Queries of each sequence of the batch, such as 38, 1, 0, in the place of seqlen_q. One "
        "without queries is nothing.", only_for=("random",),
    ),
    FieldSpec(
        "batch", "sequence", "sequence", FieldKind.WHOLE, _SHAPES,
        "Which sequence of the batch is shown, from 0. Blank: the first with queries.", least=0,
        only_for=("random",),
    ),
    FieldSpec(
        "attention", "head_dim", "head_dim", FieldKind.WHOLE, _SHAPES,
        "Numbers of a query or key, d.",
    ),
    FieldSpec(
        "attention", "value_dim", "value_dim", FieldKind.WHOLE, _SHAPES, "Numbers of a value, dv.",
    ),
    FieldSpec(
        "attention", "latent_dim", "latent_dim", FieldKind.WHOLE, _SHAPES,
        "Numbers of a token's latent, dc, which all heads share: it stands for K and V, and is "
        "their value. With it, no head_dim, value_dim or kv_heads.",
    ),
    FieldSpec(
        "attention", "rope_dim", "rope_dim", FieldKind.WHOLE, _SHAPES,
        "Numbers of a key beside the latent, dr, which positions have turned.", least=0,
    ),
    FieldSpec(
        "scores", "softcap", "softcap", FieldKind.NUMBER, _SCORES,
        "No score is larger: S = softcap · tanh(S / softcap), before the mask. 0: none.",
    ),
    FieldSpec(
        "scores", "alibi", "alibi", FieldKind.SLOPES, _SCORES,
        "A score loses slope · |i' − j| with distance. yes: ALiBi's slopes; or a slope for each "
        "head.",
    ),
    FieldSpec(
        "scores", "bias", "bias", FieldKind.TRI_STATE, _SCORES,
        "A score gains what the input file has for its distance (T5). Blank: if it has that.",
        choices=_switch,
    ),
    FieldSpec(
        "scores", "sink_logits", "sink_logits", FieldKind.LOGITS, _SCORES,
        "A logit of each head joins its softmax and has no value, as in gpt-oss: a number for "
        "each head. file, or blank: as the input has them. no: none.",
    ),
    FieldSpec(
        "mask", "causal", "causal", FieldKind.TRI_STATE, _MASK,
        "A query sees no key after its own place, which align sets.", choices=_causal,
    ),
    FieldSpec(
        "mask", "align", "align", FieldKind.CHOICE, _MASK,
        "Own place of a query, if there are more or fewer queries than keys. bottom-right: the "
        "last query sits at the last key, as in FlashAttention since 2.1. top-left: the first "
        "query sits at the first key, as with is_causal in PyTorch.",
        choices=_same("", *get_args(Align)),
    ),
    FieldSpec(
        "mask", "window", "window", FieldKind.WINDOW, _MASK,
        "Keys that a query sees, counted back from its own place. 0: no window. Two numbers, such "
        "as 5, 11: how far it sees to the left and to the right, and -1 is no bound.", least=0,
    ),
    FieldSpec(
        "mask", "sinks", "sinks", FieldKind.WHOLE, _MASK,
        "First keys, which the window never hides.", least=0,
    ),
    FieldSpec(
        "mask", "dilation", "dilation", FieldKind.WHOLE, _MASK,
        "Of the keys in its window a query sees one in so many. 1: all.",
    ),
    FieldSpec(
        "mask", "global_tokens", "global", FieldKind.WHOLE, _MASK,
        "First keys, which the window never hides, and whose queries see past it.", least=0,
    ),
    FieldSpec(
        "mask", "documents", "documents", FieldKind.LENGTHS, _MASK,
        "Lengths of packed documents, such as 13, 30, 17: a query sees the keys of its own. They "
        "add up to seqlen_k.",
    ),
    FieldSpec(
        "mask", "block", "block", FieldKind.WHOLE, _MASK,
        "Rows and keys of a block of the input file's tensor block_mask, which says which blocks "
        "are visible. Blank: none.", only_for=("file", "layer"),
    ),
    FieldSpec(
        "position", "kind", "kind", FieldKind.CHOICE, _POSITION,
        "rope: Q and K are turned by their positions before everything else.", choices=_positions,
    ),
    FieldSpec(
        "position", "theta", "theta", FieldKind.NUMBER, _POSITION,
        "Base of the angles: pair n turns by position · theta^(−2n/d).",
    ),
    FieldSpec(
        "position", "interleaved", "interleaved", FieldKind.TRI_STATE, _POSITION,
        "Pairs of neighbours, x₂ₙ with x₂ₙ₊₁; else of halves, xₙ with the one half a head on.",
        choices=_switch,
    ),
    FieldSpec(
        "position", "fraction", "fraction", FieldKind.NUMBER, _POSITION,
        "Share of a head's numbers that is turned, from the first on.",
    ),
    FieldSpec(
        "position", "offset", "offset", FieldKind.WHOLE, _POSITION, "Added to every position.",
        least=-MAX_SEQLEN,
    ),
    FieldSpec(
        "tiling", "rule", "rule", FieldKind.CHOICE, _TILING,
        "paper: Bc = ceil(M/4d), Br = min(Bc, d), M in elements of the GPU's SRAM. "
        "fa2, fa3: the tiles that the published kernels ship with.",
        choices=_rules, default="fa2",
    ),
    FieldSpec("tiling", "rows", "rows (Br)", FieldKind.WHOLE, _TILING, "Query rows of a tile."),
    FieldSpec("tiling", "cols", "cols (Bc)", FieldKind.WHOLE, _TILING, "Keys of a tile."),
    FieldSpec(
        "tiling", "splits", "splits", FieldKind.WHOLE, _TILING,
        f"Into how many runs {SPLIT} deals out the keys. Blank: as FlashAttention-3 chooses, "
        "so that the thread blocks fill the GPU.",
    ),
    FieldSpec(
        "tiling", "split_size", "split size", FieldKind.WHOLE, _TILING,
        f"Keys of a split of {SPLIT}, a multiple of Bc, in the place of splits: keys are cut at "
        "the same places whatever else the GPU has to do, so results are the same in bits.",
    ),
    FieldSpec(
        "tiling", "page_size", "page size", FieldKind.WHOLE, _TILING,
        f"Tokens of a page of {PAGED}, which divides Bc. Blank: {USUAL_PAGE}, or as many of "
        "them as divide Bc.",
    ),
    FieldSpec(
        "tiling", "devices", "devices", FieldKind.WHOLE, _TILING,
        "Of the ring in the Ring panel, 2 to 8; the run itself is on one device.",
    ),
    FieldSpec(
        "tiling", "layout", "layout", FieldKind.CHOICE, _TILING,
        "How the Ring panel deals rows and keys out to its devices.",
        choices=_same("", *LAYOUTS),
    ),
    FieldSpec(
        "input", "source", "source", FieldKind.CHOICE, _INPUT,
        "Where Q, K and V come from. capture: a real layer that ships with Tilescope. sentence: "
        "a text of yours that a small language model computes.",
        choices=_same(*get_args(InputSource)), default="random",
    ),
    FieldSpec(
        "input", "seed", "seed", FieldKind.WHOLE, _INPUT, "Of the random numbers.",
        only_for=("random",), least=0,
    ),
    FieldSpec(
        "input", "path", "path", FieldKind.PATH, _INPUT,
        "A .safetensors or .npz file with q, k and v; of a layer with x, wq, wk, wv and wo.",
        only_for=("file", "layer"),
    ),
    FieldSpec(
        "input", "layout", "layout", FieldKind.CHOICE, _INPUT,
        "The order of the axes of q, k and v in the file: heads, tokens, dim, or tokens, heads, "
        "dim.", choices=_same("", *get_args(FileLayout)), only_for=("file",),
    ),
    FieldSpec(
        "input", "name", "name", FieldKind.CHOICE, _INPUT, "Which of the shipped layers.",
        choices=_captures, only_for=("capture",),
    ),
    FieldSpec(
        "input", "text", "text", FieldKind.TEXT, _INPUT,
        "What the small language model reads; its tokens are the rows and keys.",
        only_for=("sentence",),
    ),
    FieldSpec(
        "input", "model", "model", FieldKind.CHOICE, _INPUT,
        "Which language model reads the text: our own, or SmolLM2-135M after make sentence-models.",
        choices=_same(*get_args(ModelName)), default="own", only_for=("sentence",),
    ),
    FieldSpec(
        "input", "layer", "layer", FieldKind.WHOLE, _INPUT,
        "Which layer of the model, from 0.", only_for=("sentence",), least=0,
    ),
    FieldSpec(
        "input", "what_if", "what if", FieldKind.TRI_STATE, _INPUT,
        "Whether the scenario may say other than its input: another mask, scale or type, or other "
        "sizes, then with random numbers.",
        choices=_switch, only_for=("file", "capture", "layer", "sentence"),
    ),
    FieldSpec(
        "input", "head", "head", FieldKind.HEADS, _INPUT,
        "Which query heads run: all, or numbers from 0 such as 0, 3, 5.",
    ),
    FieldSpec(
        "hardware", "preset", "GPU preset", FieldKind.CHOICE, _HARDWARE,
        "The GPU whose limits and rates are shown.", choices=_presets, default="H100-SXM",
    ),
    FieldSpec(
        "hardware", "kernel", "kernel", FieldKind.CHOICE, _HARDWARE,
        "Which release's kernel times are those of. Usual: fa1 for FlashAttention-1, fa3 for "
        "FlashAttention-2 on Hopper, else fa2.", choices=_kernels,
    ),
    *(
        FieldSpec(
            "faults", fault.name, _FAULT_LABELS[fault.name], FieldKind.TRI_STATE, _FAULTS,
            f"{fault.words} ({fault.cites})", choices=_switch,
        )
        for fault in FAULTS
    ),
)  # fmt: skip
"""Every key of the scenario file, in the order of the form."""

SHAPE_KEYS = ("heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim", "value_dim")
BROUGHT = (
    *(f"attention.{key}" for key in SHAPE_KEYS),
    "attention.dtype",
    "attention.scale",
    "mask.causal",
)
"""What an input determines."""
WHICH_INPUT = (
    "input.source",
    "input.path",
    "input.layout",
    "input.name",
    "input.text",
    "input.model",
    "input.layer",
)
SENTENCE = "The cat sat on the mat because it was tired."
"""What is read until another text is typed."""


# --- texts and scenarios -----------------------------------------------------------------


def texts(scenario: Scenario) -> dict[str, str]:
    """Return the text of each field for a scenario."""
    said = scenario_tables(scenario)
    out = {}
    for spec in FIELDS:
        holder = said.get(spec.table, {}) if spec.table else said
        text = text_of(holder.get(spec.key))
        yes_no = spec.kind in (FieldKind.SLOPES, FieldKind.LOGITS)
        out[spec.name] = _YES_NO.get(text, text) if yes_no else text
    if out["tiling.rows"]:
        out["tiling.rule"] = out["tiling.rule"] or OWN
    return out


def tables(said: Texts) -> dict[str, Any]:
    """Return the values of the fields, as `parse_scenario` takes them.

    A text that is not of its field's kind is passed on as it is: the scenario refuses it with the
    same words as in a file.
    """
    out: dict[str, Any] = {}
    for spec in FIELDS:
        text = said.get(spec.name, "")
        if text.strip() and (spec.name, text) != ("tiling.rule", OWN):
            holder = out.setdefault(spec.table, {}) if spec.table else out
            holder[spec.key] = _value(spec.kind, text)
    return out


def text_of(value: object) -> str:
    """Return a value of a scenario as the form has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


_YES_NO = {"true": "yes", "false": "no"}
_SAID = {"true": True, "false": False, "yes": True, "no": False}


def _value(kind: FieldKind, text: str) -> object:
    bare = "".join(text.split())  # counts are shown with thin spaces, and one may paste them
    try:
        match kind:
            case FieldKind.WHOLE:
                return int(bare)
            case FieldKind.WINDOW:
                sides = [int(part) for part in bare.strip("[]").split(",")]
                return sides if len(sides) > 1 else sides[0]
            case FieldKind.NUMBER:
                return float(bare)
            case FieldKind.TRI_STATE:
                return {"true": True, "false": False}.get(bare, text)
            case FieldKind.LENGTHS:
                return [int(part) for part in text.strip(" []").replace(",", " ").split()]
            case FieldKind.HEADS if bare != "all":
                return [int(part) for part in text.strip(" []").replace(",", " ").split()]
            case FieldKind.HEADS:
                return bare
            case FieldKind.SLOPES if bare in _SAID:
                return _SAID[bare]
            case FieldKind.LOGITS if bare in ("file", "no", "false"):
                return bare if bare == "file" else False
            case FieldKind.SLOPES | FieldKind.LOGITS:
                return [float(part) for part in text.strip(" []").replace(",", " ").split()]
            case _:
                return text
    except ValueError:
        return text


# --- what one change brings with it -------------------------------------------------------


_OF_SPLITS = {
    "tiling.splits": "tiling.split_size", "tiling.split_size": "tiling.splits",
}  # fmt: skip


def edited(said: Texts, name: str, text: str, workload: Workload) -> dict[str, str]:
    """Return the texts after a user has put `text` into field `name`.

    workload: the current workload: gives the values that the change needs and nobody said.
    """
    if name in WHICH_INPUT:
        return _with_input(said, {name: text}, workload)
    out = {**said, name: text}
    if name == "batch.queries":  # queries are said in one of two ways
        out["attention.seqlen_q"] = "" if text.strip() else str(workload.queries)
    if name in _OF_SPLITS and text.strip():  # their number or their size
        out[_OF_SPLITS[name]] = ""
    sizes = {"tiling.rows": str(workload.rows), "tiling.cols": str(workload.cols)}
    if name == "tiling.rule":
        out.update(sizes if text == OWN else dict.fromkeys(sizes, ""))
    elif name in sizes:
        if not any(said[size] for size in sizes):  # a rule gave both, so it gives the other one
            out.update({"tiling.rule": OWN, **sizes, name: text})
        if not any(out[size].strip() for size in sizes):
            out["tiling.rule"] = ""
    return out


def with_input(
    scenario: Scenario, input_values: Mapping[str, object], workload: Workload
) -> Scenario:
    """Return `scenario` with another input, without what was true only of the old input.

    It is named after a file. Shapes, dtype, scale and causal become blank if the new input
    determines them. Random input determines none: those that nobody said are taken from `workload`.

    input_values: values of the table ``[input]``, e.g. ``{"source": "file", "path": "/a/b.npz"}``.
    Raises InputError: the result is not a valid scenario.
    """
    values = {f"input.{key}": text_of(value) for key, value in input_values.items()}
    return parse_scenario(tables(_with_input(texts(scenario), values, workload)))


def _with_input(said: Texts, values: Texts, workload: Workload) -> dict[str, str]:
    out = {**said, **values}
    source = out["input.source"] or "random"
    for spec in FIELDS:
        if spec.only_for and source not in spec.only_for:
            out[spec.name] = ""
    if source == "random":
        for name, text in _resolved(workload).items():
            out[name] = out[name] or text
        if out["batch.lengths"]:
            out["attention.seqlen_k"] = ""
        if out["batch.queries"]:
            out["attention.seqlen_q"] = ""
        return out
    heads = out["attention.heads"]
    out.update(dict.fromkeys(BROUGHT, ""))
    if source in ("file", "layer") and values.get("input.path"):
        out["title"] = shortened(safe_text(Path(values["input.path"]).stem))
    if source == "layer":  # no shape of its weights says it
        out["attention.heads"] = heads or str(workload.input_heads[0])
    if source == "capture":
        out["input.name"] = out["input.name"] or capture_names()[0]
    if source == "sentence":
        out["input.text"] = out["input.text"] or SENTENCE
    # The captures have the same heads; those of another file may be fewer.
    if not source == workload.scenario.input.source == "capture":
        out["input.head"] = values.get("input.head", "")
    return out


def _resolved(workload: Workload) -> dict[str, str]:
    """Return the current shapes as random input needs them; what follows from them stays blank."""
    w = workload
    heads, kv_heads = w.input_heads
    out = {
        "attention.heads": str(heads),
        "attention.seqlen_q": str(w.queries),
        "attention.head_dim": str(w.head_dim),
        "attention.dtype": w.dtype,
    }
    if kv_heads != heads:
        out["attention.kv_heads"] = str(kv_heads)
    if w.seqlen_k != w.queries:
        out["attention.seqlen_k"] = str(w.seqlen_k)
    if w.value_dim != w.head_dim:
        out["attention.value_dim"] = str(w.value_dim)
    if w.mask.causal:
        out["mask.causal"] = "true"
    return out


def change_words(before: Scenario, after: Scenario) -> str:
    """Return what was changed, for the undo menu: ``kv_heads 2 → 4``."""
    old, new = texts(before), texts(after)
    changed = [spec for spec in FIELDS if old[spec.name] != new[spec.name]]
    said = after.input
    if any(spec.name in WHICH_INPUT for spec in changed):
        return f"input {(said.path and Path(said.path).name) or said.name or said.source}"
    if any(spec.table == "tiling" for spec in changed):
        rows, cols, rule = after.tiling.rows, after.tiling.cols, after.tiling.rule
        return f"tiles {rows} × {cols}" if rows else f"tiles by {rule or 'fa2'}"
    return ", ".join(
        f"{spec.key} {old[spec.name] or 'default'} → {new[spec.name] or 'default'}"
        for spec in changed
    )
