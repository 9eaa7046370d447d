"""The panel of any study: what it asks for, what it shows, and what a user does."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.base.choices import Choice, Option
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.run.trace import Trace
from ui.kit.boxes import Box, Row
from ui.panels.study import Act, Chosen, Slider, Study, Words
from ui.panels.study_panel import StudyPanel
from ui.plots.model import Axis, Curve, PlotModel
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View


def options(*values: str) -> tuple[Option, ...]:
    return tuple(Option(value, value, value, f"Shows {value}.") for value in values)


@dataclass(frozen=True, eq=False)
class Rows:
    """Of a run the rows times a factor; a part is marked."""

    product: int
    unit: str
    part: int = 0
    visit: int = 0


class Product(Study[int, Rows]):
    """A study of two parts: one choice is computed for, one is only shown."""

    name, title, doing, pictured = "product", "Product", "multiplying", "Two parts"
    choices = (
        Choice("factor", options("1", "2", "3"), first="2"),
        Choice("unit", options("rows", "lines", "time"), lesson="ring"),
        Choice("of", options("run", "all")),
    )
    slider = Slider("part", "Part", "Which part.")

    def __init__(self) -> None:
        self.computed: list[int] = []
        self.shown: list[int] = []
        self.go_on = Event()
        self.go_on.set()

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset({"of"}) if chosen["unit"] == "lines" else frozenset()

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return int(chosen["factor"])

    def compute(self, trace: Trace, needs: Any, report: Report) -> int:
        self.go_on.wait(10)
        report(0.5)
        self.computed.append(needs)
        return trace.workload.seqlen_q * int(needs)

    def state(self, found: int, chosen: Chosen, before: Rows | None, changed: str) -> Rows:
        self.shown.append(found)
        return Rows(found, chosen["unit"], 0 if before is None else before.part)

    def follow(self, state: Rows, view: View) -> Rows:
        return replace(state, visit=view.snapshot.cursor.visit)

    def key(self, state: Rows, key: Qt.Key, *, ctrl: bool) -> Rows | None:
        return replace(state, part=1 + ctrl) if key is Qt.Key.Key_Right else None

    def press(self, state: Rows, at: Hashable) -> Rows | None:
        return replace(state, part=at) if isinstance(at, int) else None

    def move(self, state: Rows, x: float, y: float) -> Rows:
        return replace(state, part=round(x))

    def proposes(self, state: Rows, at: Hashable) -> tuple[Scenario, str] | None:
        more = parse_scenario({"attention": {"seqlen_q": 12, "head_dim": 4}})
        return (more, "more rows") if at == "more" else None

    def takes(self, before: Rows, after: Rows) -> Chosen:
        return {"unit": ""} if after.part == 2 else {}

    def mark(self, state: Rows) -> tuple[int, int]:
        return state.part, 2

    def marked(self, state: Rows, value: int) -> Rows:
        return replace(state, part=value)

    def picture(self, state: Rows) -> Box:
        return Row((Box(grow=1), Box(id=1, name="right", tip="the right part", grow=1)), gap=0)

    def plot(self, state: Rows) -> PlotModel | None:
        picks: tuple[object, ...] = (1, "more")
        ys = 1.0, float(state.product)
        curve = Curve("rows", "rows", "Q", (1.0, 2.0), ys, picks=picks)
        plotted = PlotModel("A plot", Axis("x", str), Axis("y", str), (curve,),
                            summary=f"{state.product} are plotted.")  # fmt: skip
        return plotted if state.unit == "time" else None

    def words(self, state: Rows) -> Words:
        return Words(f"{state.product} {state.unit}", "told", ("A sentence.",))


@pytest.fixture
def session(qapp: object) -> Iterator[Session]:
    session = Session("numpy")
    session.motion = False
    run = {"attention": {"seqlen_q": 8, "head_dim": 4}, "tiling": {"rows": 4, "cols": 4}}
    session.propose(parse_scenario(run), "a run")
    session.settle()
    yield session
    session.close()


@pytest.fixture
def study() -> Product:
    return Product()


@pytest.fixture
def panel(session: Session, study: Product, qtbot: Any) -> StudyPanel[int, Rows]:
    panel = StudyPanel(session, study)
    qtbot.addWidget(panel)
    panel.resize(640, 540)
    panel.show()
    panel.show_view(session.view)
    session.settle()
    return panel


def test_only_what_is_needed_is_computed_again(panel, study, session):
    assert (panel.state.product, study.computed) == (16, [2])
    panel.bar.choose("unit", "lines")
    panel.show_view(session.view)
    session.settle()
    assert (panel.state.product, panel.state.unit, study.computed) == (16, "lines", [2])
    panel.bar.choose("factor", "3")
    session.settle()
    assert (panel.state.product, panel.state.unit, study.computed) == (24, "lines", [2, 3])


def test_going_back_and_forth_computes_nothing_but_another_run_does(panel, study, session):
    for factor in ("3", "2", "3"):
        panel.bar.choose("factor", factor)
        session.settle()
        assert panel.state.product == 8 * int(factor)
    assert study.computed == [2, 3]
    session.propose(parse_scenario({"attention": {"seqlen_q": 6, "head_dim": 4}}), "fewer rows")
    session.settle()
    panel.show_view(session.view)
    session.settle()
    assert (panel.state.product, study.computed) == (18, [2, 3, 3])


def test_of_several_results_only_the_latest_is_shown(panel, study, session):
    study.go_on.clear()
    panel.bar.choose("factor", "3")
    panel.bar.choose("factor", "1")
    assert panel.state.product == 16  # the old picture stays until there is a new one
    study.go_on.set()
    session.settle()
    assert (panel.state.product, study.shown) == (8, [16, 8])


def test_a_run_that_is_forgotten_gets_no_picture(panel, study, session):
    study.go_on.clear()
    panel.bar.choose("factor", "3")
    panel.forget()
    study.go_on.set()
    session.settle()
    assert (panel.state, panel.picture.scene) == (None, None)


def test_the_picture_follows_the_cursor(panel, study, session):
    session.last()
    session.settle()
    panel.show_view(session.view)
    assert (panel.state.visit, study.computed) == (len(session.trace) - 1, [2])


def test_a_picture_that_is_about_to_be_replaced_stays_at_its_place(panel, study, session):
    session.last()
    session.settle()
    study.go_on.clear()
    panel.bar.choose("factor", "3")
    panel.show_view(session.view)
    panel.bar.choose("unit", "lines")
    assert (panel.state.product, panel.state.visit, panel.state.unit) == (16, 0, "rows")
    study.go_on.set()
    session.settle()
    now = panel.state
    assert (now.product, now.visit, now.unit) == (24, len(session.trace) - 1, "lines")


def test_keys_pointer_and_slider_change_the_state(panel):
    place = panel.picture.scene.where("right").center().toPoint()
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=place)
    assert (panel.state.part, panel.slider.value()) == (1, 1)
    panel.slider.setValue(0)
    assert panel.state.part == 0
    QTest.keyClick(panel.picture, Qt.Key.Key_Right)
    assert panel.state.part == 1
    panel.bar.choose("unit", "lines")
    QTest.keyClick(panel.picture, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert panel.state.part == 2
    assert not any(panel.bar.buttons["unit", value].isChecked() for value in ("rows", "lines"))
    panel.bar.choose("unit", "rows")
    assert panel.bar.buttons["unit", "rows"].isChecked()


def test_choices_without_a_sense_are_hidden(panel):
    assert panel.bar.buttons["of", "all"].isVisible()
    panel.bar.choose("unit", "lines")
    assert not panel.bar.buttons["of", "all"].isVisible()
    panel.bar.choose("unit", "rows")
    assert panel.bar.buttons["of", "all"].isVisible()


def test_a_lesson_chooses_and_marks_even_before_anything_is_computed(panel, study, session):
    panel.forget()
    panel.take_choices(ChooseTable(ring="time", step=2))
    panel.show_view(session.view)
    session.settle()
    assert (panel.state.unit, panel.state.part) == ("time", 2)
    panel.take_choices(ChooseTable())
    assert (panel.state.unit, panel.state.part) == ("rows", 0)


def test_what_cannot_be_chosen_is_refused(panel):
    with pytest.raises(ValueError, match="'4' is none of what can be chosen"):
        panel.choose("factor", "4")


def test_words_stand_around_the_picture_and_are_read_aloud(panel):
    assert panel.accessibleDescription() == "16 rows. told. A sentence."
    assert panel.picture.accessibleName() == "Two parts"


def test_a_plot_stands_in_the_place_of_the_picture(panel):
    place = panel.picture.geometry()
    assert panel.plot.isHidden()
    panel.bar.choose("unit", "time")
    assert (panel.plot.isVisible(), panel.picture.isVisible()) == (True, False)
    assert (panel.plot.geometry(), panel.plot.model.name) == (place, "A plot")
    assert panel.accessibleDescription() == "16 are plotted."
    panel.plot.zoom(2)
    assert panel.bar.fit_button.isVisible()
    panel.bar.fit_button.click()
    assert not panel.plot.is_zoomed
    panel.bar.choose("unit", "rows")
    assert (panel.plot.isVisible(), panel.picture.isVisible()) == (False, True)
    assert not panel.bar.fit_button.isVisible()


def test_points_are_picked_and_marks_moved(panel, session):
    panel.bar.choose("unit", "time")
    panel.plot.picked.emit(1)
    assert panel.state.part == 1
    panel.plot.moved.emit(2.2, 0.0)
    assert panel.state.part == 2
    panel.plot.picked.emit("more")
    session.settle()
    assert session.trace.workload.seqlen_q == 12


def test_a_picture_stands_above_its_plot(session, study, qtbot):
    study.plotted = 0.4
    panel = StudyPanel(session, study)
    qtbot.addWidget(panel)
    panel.resize(640, 540)
    panel.show()
    panel.show_view(session.view)
    session.settle()
    whole = panel.picture.geometry()
    panel.bar.choose("unit", "time")
    above, below = panel.picture.geometry(), panel.plot.geometry()
    assert panel.picture.isVisible()
    assert above.united(below) == whole
    assert below.top() == above.bottom() + 1
    assert below.height() == pytest.approx(0.4 * whole.height(), abs=1)
    assert panel.accessibleDescription() == "16 time. told. A sentence. 16 are plotted."


class Growing(Product):
    """A study that shows its product while it grows."""

    acts = (Act("again", "Again", "Multiply again.", anew=True),)

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[int]:
        for part in (1, 2, 3):
            yield part
            self.go_on.wait(10)
        yield self.compute(trace, needs, report)


def test_results_on_the_way_are_shown(session, qtbot):
    study = Growing()
    study.go_on.clear()
    panel = StudyPanel(session, study)
    qtbot.addWidget(panel)
    panel.show()
    panel.show_view(session.view)
    study.go_on.set()
    session.settle()
    assert (study.shown[0], study.shown[-1]) == (1, 16)
    panel.buttons["again"].click()
    session.settle()
    assert study.computed == [2, 2]
