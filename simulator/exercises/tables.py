"""The TOML of exercises: the keys of the files in `assets/exercises`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from simulator.base.tables import Table, Texts, as_tuple
from simulator.lesson.tables import Place

Kind = Literal["number", "cell", "choice", "tile", "fault", "op"]
KINDS: dict[Kind, str] = {
    "number": "a number",
    "cell": "a cell, as row, column",
    "choice": "one of some choices",
    "tile": "a tile, as rows x columns",
    "fault": "the fault that was planted",
    "op": "a function in NumPy",
}
"""The form of an answer, by the kind of the exercise."""


Sizes = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(as_tuple)]


class MistakeTable(Table):
    """An answer that many give, and its mistake in words."""

    answer: Texts | str
    says: str


class ChoiceTable(Table):
    """One of the choices: the right one has the largest, or the least, value."""

    text: str
    value: str
    says: str = ""


class ExerciseTable(Table):
    """An exercise whose draws have been put in."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", description="its name in answers")]
    kind: Annotated[Kind, Field(description="what one answers, below")]
    ask: Annotated[str, Field(description="the question, with `{{ }}` as in captions")]
    scenario: Annotated[str, Field(description="a demo by name; its run is asked about")] = "flash2"
    change: Annotated[
        dict[str, Any],
        Field(default_factory=dict, description="what to change in it, as in a scenario file"),
    ]
    at: Annotated[
        Place | None,
        Field(description="the place in the run, as in a lesson; the first op without it"),
    ] = None
    draw: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            description="what the seed decides: a list, or `{ from, to, step }`, by its name",
        ),
    ]
    let: Annotated[
        dict[str, str],
        Field(default_factory=dict, description="further names for expressions of what was drawn"),
    ]
    seen: Annotated[
        dict[str, str],
        Field(default_factory=dict, description="names for numbers of the run at `seen_at`"),
    ]
    seen_at: Annotated[Place | None, Field(description="another place in the run")] = None
    answer: Annotated[
        Texts | str, Field(description="the right answer as an expression; of a cell two")
    ] = ""
    unit: Annotated[str, Field(description="what a number is counted in")] = ""
    within: Annotated[
        float, Field(ge=0, description="how far a number may be off and still be right")
    ] = 0.0
    wrong: Annotated[
        tuple[MistakeTable, ...],
        BeforeValidator(as_tuple),
        Field(description="answers that many give: `{ answer, says }`"),
    ] = ()
    choices: Annotated[
        tuple[ChoiceTable, ...],
        BeforeValidator(as_tuple),
        Field(description="`{ text, value, says }` each: what is chosen, and why it is wrong"),
    ] = ()
    best: Annotated[
        Literal["largest", "least"], Field(description="which value makes a choice right")
    ] = "largest"
    rows: Annotated[Sizes, Field(description="tile rows that may be chosen")] = ()
    cols: Annotated[Sizes, Field(description="tile columns that may be chosen")] = ()
    limit: Annotated[
        str, Field(description="bytes of shared memory that a tile may take, an expression")
    ] = ""
    faults: Annotated[
        Texts, Field(description="keys of `[faults]`, of which the seed plants one")
    ] = ()
    op: Annotated[str, Field(description="which op of the run one writes")] = ""
    why: Annotated[str, Field(description="said after a right answer")] = ""


class ExercisesTable(Table):
    """A file of exercises, before anything is drawn."""

    exercise: Annotated[tuple[dict[str, Any], ...], BeforeValidator(as_tuple)]
