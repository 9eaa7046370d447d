"""The fields of a scenario, one row each, and how their texts become a scenario.

A form has one text for each field, which is blank if the author says nothing. Texts can say what a
`Scenario` cannot (half of a change, a word instead of a number), so a form edits texts and asks
`tables` for the scenario when it needs one. Fields are made of the scenario's own tables, whose
keys have names and meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any, get_args

from annotated_types import Ge
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simulator.base.assets import ASSETS
from simulator.base.errors import safe_text, shortened
from simulator.base.tables import read_toml
from simulator.problem.facts import PACKED, RULES, SKIPPING
from simulator.problem.filling import capture_names, capture_text
from simulator.problem.hardware import gpus
from simulator.problem.input_files import InputFile
from simulator.problem.recurrence import DECAY, STRENGTH
from simulator.problem.scenario import (
    Algorithm,
    Scenario,
    ScoresTable,
    parse_scenario,
    scenario_tables,
)
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.program.faults import FAULTS

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
    label: str  # its name
    kind: FieldKind  # the kind of its value
    group: str  # the section of the form; empty: above all sections
    help: str  # its meaning
    # the choices of a CHOICE or TRI_STATE; a blank text among them means "not said"
    choices: Callable[[], Choices] = tuple
    default: str = ""  # the choice that a blank text stands for if there is no blank choice
    only_for: tuple[str, ...] = ()  # the input sources that the field belongs to; empty: all
    of: tuple[str, ...] = ()  # the algorithms that have the field; empty: all
    least: int = 1  # smallest value of a WHOLE or WINDOW, where stepping down ends

    @property
    def name(self) -> str:
        """The dotted name, as errors give it."""
        return f"{self.table}.{self.key}" if self.table else self.key

    @property
    def brief(self) -> str:
        """The field in a few words: the first sentence of its meaning."""
        return self.help.partition(". ")[0].partition(": ")[0].removesuffix(".")

    @property
    def title(self) -> str:
        """The name by which a search finds the field."""
        return self.label

    @property
    def does(self) -> str:
        """The meaning, which a search finds, too."""
        return self.help

    @property
    def also(self) -> tuple[str, ...]:
        """Other names of the field: by people, in the file, and the name of its section."""
        words = self.name.replace(".", " ").replace("_", " ")
        return (*_called().get(self.name, ()), words, self.name, self.group)

    def belongs(self, algorithm: str, source: str) -> bool:
        """Return whether runs of an algorithm with an input of some source have the field."""
        return (not self.of or algorithm in self.of) and (
            not self.only_for or source in self.only_for
        )


def _switch() -> Choices:
    return (("", ""), ("true", "on"), ("false", "off"))


_CHOICES: dict[str, Callable[[], Choices]] = {
    "attention.algorithm": lambda: tuple((name, own.title) for name, own in ALGORITHMS.items()),
    "input.name": lambda: tuple((name, capture_text(name).title) for name in capture_names()),
    "hardware.preset": lambda: tuple((name, gpu.words) for name, gpu in gpus().items()),
}
_KINDS = {
    "mask.window": FieldKind.WINDOW,
    "mask.documents": FieldKind.LENGTHS,
    "batch.lengths": FieldKind.LENGTHS,
    "batch.queries": FieldKind.LENGTHS,
    "scores.alibi": FieldKind.SLOPES,
    "scores.sink_logits": FieldKind.LOGITS,
    "tiling.splits": FieldKind.WHOLE,
    "input.path": FieldKind.PATH,
    "input.head": FieldKind.HEADS,
    **dict.fromkeys(_CHOICES, FieldKind.CHOICE),
}
"""Kinds that do not follow from the type of a value."""
_OF_TYPE = {
    bool: FieldKind.TRI_STATE,
    int: FieldKind.WHOLE,
    float: FieldKind.NUMBER,
    str: FieldKind.TEXT,
}
GROUPS = (
    "Algorithm", "Shapes", "Scores", "Mask", "Position", "Tiling", "Input", "Hardware", "Faults",
)  # fmt: skip
_GROUP_OF = {"attention": "Algorithm", "batch": "Shapes"}
"""Sections of tables whose names differ from the section's."""


@cache
def _called() -> dict[str, list[str]]:
    """Return other names of fields, by the field's name."""
    called: dict[str, list[str]] = read_toml(ASSETS / "search.toml")["fields"]
    return called


def _having(has: Callable[[Algorithm], bool]) -> tuple[str, ...]:
    return tuple(name for name, own in ALGORITHMS.items() if has(own.name))


_SOFTMAX = _having(lambda name: name not in RULES)
_MAPPED = _having(lambda name: name in RULES and RULES[name].own_map is None)
_SPLIT = _having(lambda name: bool(ALGORITHMS[name].splits))
_OF = {
    "attention.rescale_threshold": _having(lambda name: name in SKIPPING),
    "attention.deterministic": _having(lambda name: ALGORITHMS[name].adds),
    "attention.feature_map": _MAPPED,
    "attention.features": _MAPPED,
    "attention.decay": _having(lambda name: name in RULES and RULES[name].gate is DECAY),
    "attention.strength": _having(lambda name: name in RULES and RULES[name].gate is STRENGTH),
    "tiling.splits": _SPLIT,
    "tiling.split_size": _SPLIT,
    "tiling.page_size": _having(lambda name: PACKED.get(name) == "pages"),
    **dict.fromkeys(("attention.scale", "attention.temperature", "attention.p_dtype"), _SOFTMAX),
    **dict.fromkeys((f"scores.{key}" for key in ScoresTable.model_fields), _SOFTMAX),
    **dict.fromkeys(
        (f"mask.{key}" for key in (
            "align", "window", "sinks", "dilation", "global_tokens", "documents", "block"
        )), _SOFTMAX),
}  # fmt: skip
"""The algorithms that have a field, if not all have it."""


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the parts of a type: types, literal values, and metadata of annotations."""
    if isinstance(annotation, FieldInfo):
        yield from annotation.metadata
    elif get_args(annotation):
        for part in get_args(annotation):
            yield from _parts(part)
    else:
        yield annotation


def _spec(table: str, key: str, info: FieldInfo) -> FieldSpec:
    """Return the field of a key."""
    name = f"{table}.{key}" if table else key
    parts = [*_parts(info.annotation), *info.metadata]
    said = [part for part in parts if isinstance(part, str)]
    kind = _KINDS.get(name) or (
        FieldKind.CHOICE if said else next(_OF_TYPE[part] for part in parts if part in _OF_TYPE)
    )
    default = info.default if isinstance(info.default, str) else ""
    words = tuple((each, each) for each in ([] if default else [""]) + said)
    choices: Callable[[], Choices] = tuple
    if name == "tiling.rule":
        words, default = ((OWN, "own sizes"), *words[1:]), "fa2"
    if kind is FieldKind.CHOICE:
        choices = _CHOICES.get(name, lambda: words)
    elif kind is FieldKind.TRI_STATE:
        choices = _switch
    more: dict[str, Any] = info.json_schema_extra or {}  # type: ignore[assignment]
    bounds: list[Any] = [part.ge for part in parts if isinstance(part, Ge)]
    least = next(iter(bounds), 0 if kind is FieldKind.WINDOW else 1)
    group = more.get("section") or _GROUP_OF.get(table, table.title())
    return FieldSpec(
        table, key, info.title or key, kind, group, info.description or "", choices,
        default if kind is FieldKind.CHOICE else "",
        only_for=tuple(more.get("sources", ())), of=_OF.get(name, ()), least=int(least),
    )  # fmt: skip


def _specs() -> Iterator[FieldSpec]:
    for table, info in Scenario.model_fields.items():
        model = info.annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            yield _spec("", table, info)
        elif table == "faults":
            for fault in FAULTS:
                first, *rest = fault.title.split(" ")
                title = " ".join([first.capitalize() if first.isalpha() else first, *rest])
                yield FieldSpec(
                    table, fault.name, title.replace("Dk", "dK").replace("Lse", "LSE"),
                    FieldKind.TRI_STATE, "Faults", f"{fault.words} ({fault.cites})", _switch,
                    of=fault.algorithms,
                )  # fmt: skip
        else:
            yield from (_spec(table, key, each) for key, each in model.model_fields.items())


FIELDS = tuple(sorted(_specs(), key=lambda spec: ("", *GROUPS).index(spec.group)))
"""Every key of the scenario file, in the order of the form."""
SPECS = {spec.name: spec for spec in FIELDS}
FIRST = (
    "attention.algorithm", "input.name", "input.head", "mask.causal", "tiling.rows", "tiling.cols",
    "attention.seqlen_q", "attention.head_dim", "hardware.preset",
)  # fmt: skip
"""The fields that a form shows at first sight; Br and Bc are in one row."""

SHAPE_KEYS = ("heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim", "value_dim")
BROUGHT = (
    *(f"attention.{key}" for key in SHAPE_KEYS),
    "attention.dtype",
    "attention.scale",
    "mask.causal",
)
"""Fields that an input determines."""
_IMPLIED = {"input.name": "capture", "input.text": "sentence"}
"""The source that a user wants who fills this field."""
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
"""The text that is read until another one is typed."""


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
    """Return a value of a scenario as the text of a field."""
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
        values = {name: text}
        if name in _IMPLIED and text:
            values["input.source"] = _IMPLIED[name]
        return _with_input(said, values, workload)
    out = {**said, name: text}
    if {*workload.what_if} == {name}:  # perhaps the input's own value again
        out["input.what_if"] = ""
    if name == "batch.queries":  # queries are said in one of two ways
        out["attention.seqlen_q"] = "" if text.strip() else str(workload.queries)
    own = "" if workload.file is None else _own_values(workload.file).get(name, "")
    if text and own not in ("", text):  # asked of an input that has another value
        out["input.what_if"] = "true"
    if name in _OF_SPLITS and text.strip():  # the number of splits or their size
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


def _own_values(file: InputFile) -> Texts:
    """Return the fields in which a scenario may differ from an input, with the input's values."""
    _, queries, dim = file.q.shape
    causal = text_of(file.said.causal)
    return {
        "attention.seqlen_q": str(queries), "attention.head_dim": str(dim), "mask.causal": causal,
    }  # fmt: skip


def with_input(
    scenario: Scenario, input_values: Mapping[str, object], workload: Workload
) -> Scenario:
    """Return `scenario` with another input, without settings that hold only for the old input.

    A file gives the title. Shapes, dtype, scale and causal become blank if the new input determines
    them. Random input determines none: values that nobody said are taken from `workload`.

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
    if source != "capture":
        out["input.name"] = ""
    if source == "random":
        for name, text in _resolved(workload).items():
            out[name] = out[name] or text
        if out["batch.lengths"]:
            out["attention.seqlen_k"] = ""
        if out["batch.queries"]:
            out["attention.seqlen_q"] = ""
        return out
    heads = out["attention.heads"]
    out.update(dict.fromkeys((*BROUGHT, "input.what_if"), ""))
    if source in ("file", "layer") and values.get("input.path"):
        out["title"] = shortened(safe_text(Path(values["input.path"]).stem))
    if source == "layer":  # no shape of the weights says the number
        out["attention.heads"] = heads or str(workload.input_heads[0])
    if source == "capture":
        out["input.name"] = out["input.name"] or capture_names()[0]
    if source == "sentence":
        out["input.text"] = out["input.text"] or SENTENCE
    # All captures have the same heads; another file may have fewer.
    if not source == workload.scenario.input.source == "capture":
        out["input.head"] = values.get("input.head", "")
    return out


def _resolved(workload: Workload) -> dict[str, str]:
    """Return the current shapes as random input needs them; derived values stay blank."""
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
    """Return the change in words, for the undo menu: ``kv_heads 2 → 4``."""
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
