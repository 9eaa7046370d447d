"""What panels that paint themselves keep to at all sizes, in all themes, at the desk, on stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QPainter, QRegion
from PySide6.QtWidgets import QAbstractButton, QComboBox, QSlider, QWidget

from simulator.base.assets import SCENARIOS
from simulator.program.playback import Cursor
from tests.helpers.approved import check
from tests.helpers.drawn_words import Drawn, drawn_words, faults
from tests.helpers.random_pages import overlapping
from tests.ui.panels.test_studies import SIZES, STAGES
from ui.look.theme import DARK, THEMES, Style, stage_label, stage_scale
from ui.panels.study_panel import StudyPanel
from ui.session.session import Session
from ui.window.panel_specs import PANELS

PICTURES: dict[str, Callable[[Any], QWidget]] = {
    "heads": lambda panel: panel.picture,
    "memory": lambda panel: panel,
    "softmax": lambda panel: panel,
    "formula": lambda panel: panel,
    "traffic": lambda panel: panel,
    "exactness": lambda panel: panel.strips,
    "inspector": lambda panel: panel.canvas,
    "cache": lambda panel: panel.card.picture,
}
"""Of each such panel the part that is painted."""
OF_WIDGETS = {"scenario", "code", "values"}
"""Panels whose words stand in widgets, each with tests of its own."""
WAYS = {"memory": ("memory", "plain", "scale", "tilted"), "heads": ("of", "scenario", "model")}
"""What can be chosen, first as usual."""
SHORTENED = {"formula": "]", "softmax": "]", "memory": "…", "inspector": "…"}
"""What may end with an ellipsis: lists of numbers, names in slots, tokens and lines of a map."""
DEMOS = "causal", "naive", "flash1", "split-kv", "flash2-backward", "linear", "grouped-heads"
STILL = {"heads", "cache"}
"""Panels that look the same at every place of a run."""
LEAST = 10
"""The size of the smallest letters in a small dock."""
APPROVED = Path(__file__).parent / "approved"


@pytest.fixture
def session(qapp: object) -> Iterator[Session]:
    session = Session("numpy")
    session.motion = False
    yield session
    session.close()


@pytest.fixture
def panel(request: pytest.FixtureRequest, session: Session) -> Iterator[Any]:
    panel = spec_of(request.param).make(session)
    panel.show()
    yield panel
    panel.close()
    panel.deleteLater()


def spec_of(name: str) -> Any:
    return next(spec for spec in PANELS if spec.name == name)


def states(session: Session, panel: Any, name: str) -> Iterator[str]:
    """Show the begin, the middle and the end of every demo, in every way."""
    need = spec_of(name).need
    for demo in DEMOS:
        session.open(SCENARIOS / f"{demo}.toml")
        session.settle()
        assert session.trace is not None
        last = len(session.trace) - 1
        for cursor in (Cursor(0, 0), Cursor(last // 2, 1), Cursor(last, 1))[name in STILL and 2 :]:
            session.go(cursor)
            session.settle()
            view = session.view
            panel.show_view(view, need.make(session.trace, view.snapshot, view.report))
            session.settle()
            choice, *values = WAYS.get(name, ("", ""))
            for value in values:
                if choice:
                    (panel.title_bar or panel.bar).choose(choice, value)
                yield f"{demo}, visit {cursor.visit}, op {cursor.op} {value}".rstrip()
            if choice:
                (panel.title_bar or panel.bar).choose(choice, values[0])


def words_of(widget: QWidget) -> list[Drawn]:
    """Return what is painted in a widget itself."""

    def paint(painter: QPainter) -> None:
        widget.render(painter, QPoint(), QRegion(), QWidget.RenderFlag(0))

    return drawn_words(paint, QRectF(widget.rect()))


def test_every_panel_has_such_a_test(session):
    made = {spec.name: spec.make(session) for spec in PANELS}
    others = {name for name, each in made.items() if not isinstance(each, StudyPanel)}
    assert others == {*PICTURES} | OF_WIDGETS


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("panel", "name"), [(name, name) for name in PICTURES],
                         indirect=["panel"], ids=PICTURES)  # fmt: skip
def test_words_are_whole_and_apart_and_large_enough_and_said(panel, name, session):
    turns = cycle([(theme, staged) for theme in THEMES.values() for staged in (False, True)])
    told: list[str] = []
    seen: set[str] = set()
    picture = PICTURES[name](panel)
    for state in states(session, panel, name):
        for size in SIZES:
            panel.resize(*size)
            theme, staged = next(turns)
            style = Style(theme)
            if staged and size in STAGES:
                style = Style(theme, stage_scale(*STAGES[size]), stage_label(*STAGES[size]))
            panel.set_style(style)
            drawn, rect = words_of(picture), QRectF(picture.rect())
            wrong = [each for each in faults(drawn, rect) if not shortened(each, name)]
            if (name, size, staged) == ("cache", SIZES[0], True):
                wrong = []  # on stage it is a whole screen
            assert drawn, (state, size)
            assert not wrong, (state, size, theme.name, style.scale, wrong)
            assert min(each.size for each in drawn) >= LEAST, (state, size, style.scale)
        assert not overlapping(panel), state
        panel.resize(960, 810)
        panel.set_style(Style(DARK))
        texts = [each.text.strip() for each in words_of(picture)]
        said = [panel.accessibleDescription(), picture.accessibleDescription()]
        assert any(said), state
        lines = [*dict.fromkeys(rounded(each) for each in (*said, *texts) if each)]
        told += [f"# {state}", *(each for each in lines if each not in seen), ""]
        seen |= {*lines}
    check("\n".join(told), APPROVED / f"{name}.txt")


def rounded(text: str) -> str:
    """Return a text without errors of rounding, which another machine has otherwise."""
    return re.sub(r"\d[\d\u2009.]*", "#", text) if "ulp" in text or "e−" in text else text


def shortened(fault: str, name: str) -> bool:
    return fault.endswith("is cut") and SHORTENED.get(name, "no such end") in fault


@pytest.mark.parametrize(("panel", "name"), [(name, name) for name in PICTURES],
                         indirect=["panel"], ids=PICTURES)  # fmt: skip
def test_controls_have_names(panel, name, session):
    next(states(session, panel, name))
    for kind in (QAbstractButton, QComboBox, QSlider):
        for control in panel.findChildren(kind):
            if control.isVisible():
                assert control.accessibleName(), control
