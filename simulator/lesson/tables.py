"""The TOML of lessons: the keys of a step, and the keys of a link."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from simulator.base.limits import TEXT_LETTERS, TITLE_LETTERS
from simulator.base.tables import Table, Texts, as_tuple, wrong
from simulator.problem.models import models
from simulator.study.declared import CHOICES, load
from simulator.study.sparse.patterns import NAMES

Tensor = Literal["Q", "K", "V", "C", "S", "m", "l", "O"]
Number = Annotated[int, Field(ge=0)]


def _shaped(kinds: tuple[type, ...], words: str) -> BeforeValidator:
    """Return a validator that makes lists of certain types tuples and refuses anything else."""

    def shape(value: object) -> object:
        value = as_tuple(value)
        if value is None:
            return None
        fits = isinstance(value, tuple) and tuple(map(type, value)) == kinds
        if not fits or any(isinstance(part, int) and part < 0 for part in value):  # type: ignore[attr-defined]
            raise wrong(words)
        return value

    return BeforeValidator(shape)


Tile = Annotated[tuple[int, int], _shaped((int, int), "a tile as [i, j], counted from 0")]
CellList = Annotated[
    tuple[Tensor, int, int], _shaped((str, int, int), 'a cell as ["S", row, column]')
]


def _place(value: object) -> object:
    """Accept ``"first"``, ``"last"`` and a number for the table that means the same."""
    if isinstance(value, str):
        return {"end": value}
    return {"visit": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _op(value: object) -> object:
    # A union would name each of its types in an error.
    if value is None or isinstance(value, str) or (type(value) is int and value >= 0):
        return value
    raise wrong("the name of an op, or its number from 0")


class PlaceTable(Table):
    """A cursor: an end of the run, a visit by number or by tile, or an op of the previous visit."""

    end: Literal["first", "last"] | None = None
    visit: Number | None = None
    tile: Tile | None = None
    head: Number = 0
    launch: Number = 0
    op: Annotated[str | int | None, BeforeValidator(_op)] = None

    @model_validator(mode="after")
    def _one_way(self) -> PlaceTable:
        if sum(x is not None for x in (self.end, self.visit, self.tile)) > 1:
            raise wrong('one of "first", "last", visit and tile')
        if self.tile is None and (self.head or self.launch):
            raise wrong("tile beside head and launch")
        if self.end and self.op is not None:
            raise wrong("visit or tile beside op")
        return self


Place = Annotated[PlaceTable, BeforeValidator(_place)]


def _two(value: object) -> object:
    if isinstance(value, list) and len(value) != 2:
        raise wrong("two places, [from, to]")
    return as_tuple(value)


class PointTable(Table):
    """One thing to point at."""

    tile: Tile | None = None
    row: Number | None = None
    cell: CellList | None = None
    line: str | None = None
    barrier: Annotated[str, Field(min_length=1, max_length=TITLE_LETTERS)] | None = None

    @model_validator(mode="after")
    def _one(self) -> PointTable:
        told = (self.tile, self.row, self.cell, self.line, self.barrier)
        if sum(x is not None for x in told) != 1:
            raise wrong("one of tile, row, cell, line and barrier")
        return self


def _known_model(name: str) -> str:
    if name not in models():
        raise wrong(f"one of {', '.join(models())}")
    return name


def _known_mask(name: str) -> str:
    if name not in NAMES:
        raise wrong(f"one of {'; '.join(NAMES)}")
    return name


def _layer_and_head(value: object) -> object:
    if isinstance(value, list) and len(value) not in (0, 2):
        raise wrong("[layer, head], or [] for none")
    return as_tuple(value)


def _camera(value: object) -> object:
    """Accept ``"all"`` for the table that means the same."""
    return {"everything": True} if value == "all" else value


class CameraTable(Table):
    """The part of the score matrix in sight: all of it, or `tiles` tiles around one tile."""

    everything: bool = False
    tile: Tile | None = None
    tiles: Annotated[float, Field(ge=1, le=2**20)] = 3.0

    @model_validator(mode="after")
    def _one(self) -> CameraTable:
        if self.everything == (self.tile is not None):
            raise wrong('"all", or { tile = [i, j], tiles = 3 }')
        return self


load("choices")


class _Chosen(Table):
    """Choices in panels that are declared nowhere else, and numbers."""

    model: Annotated[str, AfterValidator(_known_model)] | None = None
    tokens: Annotated[int, Field(ge=1, le=2**20)] | None = None
    card: Literal["curve", "table", "formula", "decoding", "less"] | None = None
    policy: Literal["sinks + recent", "heavy hitters", "window", "random"] | None = None
    budget: Annotated[int, Field(ge=1, le=2**20)] | None = None
    memory: Literal["plain", "scale", "tilted"] | None = None
    summed: bool | None = None
    step: Number | None = None
    global_layers: Number | None = None
    mask: Annotated[str, AfterValidator(_known_mask)] | None = None
    jacobian: bool | None = None
    blend: bool | None = None
    off: Annotated[tuple[Number, ...], BeforeValidator(_layer_and_head)] | None = None


if TYPE_CHECKING:
    _ChosenInStudies = _Chosen
else:
    _ChosenInStudies = create_model(
        "_ChosenInStudies",
        __base__=_Chosen,
        **{
            choice.lesson: (Literal[choice.lesson_values] | None, None)
            for choices in CHOICES.values()
            for choice in choices
            if choice.lesson and not choice.open
        },
    )


class ChooseTable(_ChosenInStudies):
    """Choices in panels that are no keys of a scenario."""


MOST_CHOICES = 4  # most choices of a question: keys 1 to 4


def _ends(value: object) -> object:
    """Accept two numbers, the first below the second, for the ends of a scale."""
    ends = as_tuple(value)
    if isinstance(ends, tuple) and len(ends) == 2 and all(type(x) in (int, float) for x in ends):
        low, high = map(float, ends)
        if -math.inf < low < high < math.inf:
            return low, high
    elif value is None:
        return None
    raise wrong("the ends of the scale as [low, high]")


class PredictTable(Table):
    """A question that is asked before its answer is shown: a number, a choice or a cell."""

    ask: Annotated[str, Field(max_length=TEXT_LETTERS)]
    answer: str
    unit: Annotated[str, Field(max_length=TITLE_LETTERS)] = ""
    within: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    span: Annotated[tuple[float, float] | None, BeforeValidator(_ends)] = None
    choices: Texts = ()
    click: Annotated[
        tuple[Tensor, int] | None, _shaped((str, int), 'a row of cells as ["S", row]')
    ] = None
    hint: Annotated[str, Field(max_length=TEXT_LETTERS)] = ""
    cover: Texts = ()

    @model_validator(mode="after")
    def _one_kind(self) -> PredictTable:
        if not self.ask.strip():
            raise self.wrong_key("ask", "a question")
        kinds = (self.within is not None, bool(self.choices), self.click is not None)
        if sum(kinds) != 1:
            raise self.wrong_key("answer", "one of within, choices and click beside it")
        if self.within is None and (self.unit or self.span):
            raise self.wrong_key("answer", "within beside unit and span")
        different = len(set(self.choices)) == len(self.choices) and all(self.choices)
        if self.choices and not (different and 2 <= len(self.choices) <= MOST_CHOICES):
            raise self.wrong_key("choices", f"2 to {MOST_CHOICES} different texts")
        return self


class StepTable(Table):
    """The keys of a step; a key that is left out stays as in the previous step."""

    scenario: str | None = None
    clear: Texts = ()
    change: dict[str, Any] = Field(default_factory=dict)
    at: Place | None = None
    play: Annotated[tuple[Place, Place], BeforeValidator(_two)] | None = None
    row: Number | None = None
    layout: str | None = None
    panel: str | None = None
    choose: ChooseTable = ChooseTable()
    pace: Annotated[float, Field(ge=0.1, le=20)] = 1.0
    camera: Annotated[CameraTable, BeforeValidator(_camera)] | None = None
    point: Annotated[tuple[PointTable, ...], BeforeValidator(as_tuple)] = ()
    question: str = ""
    answer: str = ""
    predict: PredictTable | None = None
    notes: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> StepTable:
        if self.at and self.play:
            raise wrong("either at or play", "play")
        if bool(self.question) != bool(self.answer):
            said, missing = ("question", "answer") if self.question else ("answer", "question")
            raise self.wrong_key(said, f"{missing} beside it")
        if self.predict and self.question:
            raise wrong("either question or predict", "predict", self.predict.ask)
        return self


_Counted = Annotated[int, Field(ge=0, lt=2**63)]
_Name = Annotated[str, Field(max_length=TITLE_LETTERS)]


class LinkTable(Table):
    """The keys of a link."""

    scenario: dict[str, Any] = Field(default_factory=dict)
    visit: _Counted = 0
    op: _Counted = 0
    row: _Counted = 0
    layout: _Name = ""
    panel: _Name = ""
    choose: ChooseTable = ChooseTable()
