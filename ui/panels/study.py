"""A panel as a declaration: choices, numbers, picture and words; `StudyPanel` does the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from PySide6.QtCore import QSizeF, Qt

from simulator.base.choices import Choice, Option
from simulator.problem.scenario import Scenario
from simulator.run.trace import Trace
from ui.kit.boxes import Box
from ui.plots.model import PlotModel
from ui.session.tasks import Report
from ui.session.view import View

Found = TypeVar("Found")
State = TypeVar("State")
Chosen = Mapping[str, str]
"""The value of each choice by its name."""


class Words(NamedTuple):
    """Words above a picture, right below it, and further below, the most important first."""

    title: str
    told: str = ""
    sentences: tuple[str, ...] = ()


class Slider(NamedTuple):
    """A slider: its object name, its name for screen readers, its tip, and the key of lessons."""

    name: str
    title: str
    tip: str
    lesson: str = "step"
    first: int = 0  # the value to begin with


class Act(NamedTuple):
    """A button: its name, its title, and a tip on what it does."""

    name: str
    title: str
    tip: str
    anew: bool = False  # whether all is computed again; else `act` says what the button does


class Study(Generic[Found, State]):
    """A panel's view of a run: a slow, pure `compute`, quick states, and boxes and words.

    In the place of boxes and words, or below them, there may be a plot. A state is frozen data,
    compared by identity. A user's action returns another state.
    """

    name: str  # of the dock
    title: str  # of the dock, for screen readers
    doing: str  # the words on show while the study computes
    pictured: str = ""  # the name of a picture of boxes, for screen readers; a plot has its own
    choices: tuple[Choice, ...] = ()
    slider: Slider | None = None
    acts: tuple[Act, ...] = ()
    seconds = 0.0  # how long the way to a state is shown at speed 1; 0: never
    room = QSizeF(430, 260)  # with less room at scale 1 letters are smaller
    smallest = 0.0  # least scale of letters: with less room, words are left out
    share = 0.6  # of the height that the picture has at least, before words are left out
    plotted = 1.0  # share of the height that a plot has; with less the picture stands above it

    def said(self, trace: Trace) -> Chosen:
        """Return the choices that a run makes itself."""
        return {}

    def lesson(self, said: Chosen) -> Chosen:
        """Return all choices where a lesson has said some: the others are as usual."""
        return {each.name: said.get(each.name, each.usual) for each in self.choices if each.lesson}

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        """Return the names of choices, acts, or of the slider, that make no sense for a run."""
        return frozenset()

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        """Return the key of the result, quickly: when the key changes, all is computed again."""
        raise NotImplementedError

    def compute(self, trace: Trace, needs: Any, report: Report) -> Found:
        """Compute in the background."""
        raise NotImplementedError

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[Found]:
        """Yield partial results while computing, which are shown, and the whole result at last."""
        yield self.compute(trace, needs, report)

    def forget(self) -> None:
        """Forget data kept for other runs, before all is computed anew."""

    def options(self, found: Found) -> Mapping[str, tuple[Option, ...]]:
        """Return the options of choices that depend on the result."""
        return {}

    def state(self, found: Found, chosen: Chosen, before: State | None, changed: str) -> State:
        """Return the state for a result, or after a choice with the name `changed`."""
        raise NotImplementedError

    def follow(self, state: State, view: View) -> State:
        """Return the state at another place of the run."""
        return state

    def seen(self, state: State, *, controls: bool) -> State:
        """Return the state as it is shown with controls, or without them, as in a film."""
        return state

    # --- what a user does; None: nothing ------------------------------------------------------

    def key(self, state: State, key: Qt.Key, *, ctrl: bool) -> State | None:
        """Return the state after a key."""
        return None

    def press(self, state: State, at: Hashable) -> State | None:
        """Return the state after a press on a box with this id, or a click on a point's pick."""
        return None

    def move(self, state: State, x: float, y: float) -> State | None:
        """Return the state after a mark of the plot is dragged to a place."""
        return None

    def proposes(self, state: State, at: Hashable) -> tuple[Scenario, str] | None:
        """Return the run that a click on a point's pick asks for, and its name."""
        return None

    def drag(self, state: State, one: Hashable, onto: Hashable) -> State | None:
        """Return the state after the box `one` is dragged onto the box `onto`."""
        return None

    def act(self, state: State, name: str) -> State | None:
        """Return the state after a press on a button; None: it cannot be pressed."""
        return None

    def hover(self, state: State, at: Hashable) -> State | None:
        """Return the state while the pointer is there; None: on nothing."""
        return None

    def hand(self, at: Hashable) -> bool:
        """Return whether the pointer is a hand on a box with this id."""
        return False

    def takes(self, before: State, after: State) -> Chosen:
        """Return the choices that a user's action has made, or that no longer hold after it."""
        return {}

    def explains(self, before: State, after: State) -> tuple[int, int] | None:
        """Return the picked head and its row that are to be explained after a user's action."""
        return None

    def leads(self, before: State, after: State) -> tuple[Scenario, str] | None:
        """Return the run that a user's action asks for, and its name."""
        return None

    def mark(self, state: State) -> tuple[int, int]:
        """Return where the slider is, and its largest value."""
        return 0, 0

    def marked(self, state: State, value: int) -> State:
        """Return the state with the slider at a value."""
        return state

    def moves(self, before: State, after: State) -> bool:
        """Return whether the way from a state to another one is shown."""
        return False

    def on_the_way(self, state: State, share: float) -> State:
        """Return the state with a share of the way to it done, 0 to 1."""
        return state

    # --- what is seen ---------------------------------------------------------------------

    def plot(self, state: State) -> PlotModel | None:
        """Return the plot in the place of picture and words, or below them; None: none."""
        return None

    def picture(self, state: State) -> Box | None:
        """Return the picture as boxes; None: words say why there is none."""
        return None

    def words(self, state: State) -> Words:
        """Return the words around the picture."""
        return Words("")

    def described(self, state: State) -> tuple[str, ...]:
        """Return the sentences that are read aloud."""
        title, told, sentences = self.words(state)
        return title, told, *sentences
