"""Overrides that fail: Qt goes on, the window stays, and the failure is told once."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, QSize, Qt
from PySide6.QtGui import QUndoCommand, QUndoStack
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget
from shiboken6 import delete

import ui
from simulator.base.errors import InputError
from tests.helpers.programs import run
from ui.safety.faults import raising
from ui.safety.overrides import guarded, overrides


def classes() -> Iterator[type]:
    """Yield every class of ours that has a class of Qt among its bases."""
    for found in pkgutil.walk_packages(ui.__path__, "ui."):
        if found.name == "ui.__main__":
            continue
        module = importlib.import_module(found.name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == found.name:
                yield kind


def test_every_override_is_guarded() -> None:
    found = [(kind, name) for kind in classes() for name in vars(kind) if overrides(kind, name)]
    assert len(found) > 100
    bare = [
        f"{kind.__module__}.{kind.__name__}.{name}"
        for kind, name in found
        if not hasattr(vars(kind)[name], "__wrapped__")
    ]
    assert not bare, "not decorated with @guarded"


@pytest.fixture
def owned(qapp):
    """Return a list of widgets to delete at once: one whose `event` fails ignores deleteLater."""
    out = []
    yield out
    for widget in out:
        delete(widget)


def failing(*names: str) -> type[QWidget]:
    """Return a widget of which some overrides fail."""

    def fail(self, *arguments):
        raise ZeroDivisionError("one bad number")

    return guarded(type("Failing", (QWidget,), dict.fromkeys(names, fail)))


@pytest.mark.parametrize(
    "name",
    [
        "event", "eventFilter", "sizeHint", "minimumSizeHint", "heightForWidth", "resizeEvent",
        "mousePressEvent", "mouseMoveEvent", "keyPressEvent", "showEvent", "focusInEvent",
        "focusNextPrevChild", "changeEvent", "leaveEvent", "paintEvent",
    ],
)  # fmt: skip
def test_a_widget_among_others_that_work(hooked, owned, name):
    window = QWidget()
    owned.append(window)
    row = QHBoxLayout(window)
    sizes = []

    @guarded
    class Works(QWidget):
        def resizeEvent(self, event):
            super().resizeEvent(event)
            sizes.append(self.rect())

        def minimumSizeHint(self):
            return QSize(20, 20).expandedTo(super().minimumSizeHint())

    kind = failing(name)
    for n in range(3):
        failed, works = kind(), Works()
        failed.setMouseTracking(True)
        failed.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        works.installEventFilter(failed)
        row.addWidget(failed, n)
        row.addWidget(works, n)
    window.resize(400, 200)
    window.show()
    for n in range(4):
        for widget in window.findChildren(QWidget):
            QTest.mouseMove(widget, QPoint(2, 2))
            QTest.mouseClick(
                widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(3, 3)
            )
            QTest.keyClick(widget, Qt.Key.Key_A)
            QTest.keyClick(widget, Qt.Key.Key_Tab)
            QApplication.postEvent(widget, QEvent(QEvent.Type.Leave))
            widget.updateGeometry()
            widget.heightForWidth(100)
        window.resize(400 + n, 200 + n)
        window.setFont(QApplication.font())
        window.grab()
        QApplication.processEvents()
    assert sizes
    assert hooked
    assert all(isinstance(error, ZeroDivisionError) for error in hooked)
    assert all("override" not in str(error) for error in hooked), "as it was raised"


def test_qt_is_answered_as_if_nothing_had_been_asked(hooked, owned):
    kind = failing("sizeHint", "heightForWidth", "event", "eventFilter", "resizeEvent")
    widget = kind()
    owned.append(widget)
    assert widget.sizeHint() == QSize()
    assert widget.heightForWidth(10) == -1
    assert widget.event(QEvent(QEvent.Type.User)) is False
    assert widget.eventFilter(widget, QEvent(QEvent.Type.User)) is False
    assert widget.resizeEvent(None) is None
    assert len(hooked) == 1, "the same line, told once"


def test_a_step_of_undo_that_fails_leaves_the_stack_as_it_is(hooked):
    @guarded
    class Step(QUndoCommand):
        def undo(self):
            raise ZeroDivisionError("one bad number")

    stack = QUndoStack()
    stack.push(Step())
    stack.undo()
    assert not stack.canUndo()
    assert len(hooked) == 1


def test_a_picture_in_which_an_override_fails_is_refused(hooked, owned):
    widget = failing("resizeEvent")()
    owned.append(widget)
    widget.show()
    hooked.clear()
    said = 'picture: Failing = "ZeroDivisionError: one bad number"'
    with pytest.raises(InputError, match=said), raising():
        widget.resize(123, 45)
    assert not hooked


BREAK = """
import ui.{module} as module
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

def broken(*arguments, **more):
    raise ZeroDivisionError("one bad number")

def break_it():
    {what} = broken
"""

USED = """
def use(w, n):
    w.desk.take(("steps", "cache", "memory")[n % 3])
    w.resize(w.width() + 7 * (-1) ** n, w.height())
    for widget in (w.board, w.transport.scrubber, w.docks.panel("heads")):
        QTest.mouseMove(widget, QPoint(w.board.width() // 2 + n, 80 + n))
    QTest.keyClick(w.windowHandle(), Qt.Key.Key_Right)
    app.processEvents()
    w.grab()

if once("present"):
    w.actions_by_name["present"].setChecked(True)
    break_it()
elif box("crash") and once("told"):
    button("crash", "Continue").click()
    for n in range(6):
        use(w, n)
    say("used")
    QTimer.singleShot(50, w.close)
elif "told" not in done:
    use(w, 0)
"""


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("module", "what", "name"),
    [
        ("window.dock_title", "module.round", "sizeHint"),
        ("board.panel", "module.locate", "mouseMoveEvent"),
        ("panels.transport.bar", "module.TransportBar.arrange", "resizeEvent"),
        ("talk.presenter", "module.Presenter._key", "eventFilter"),
    ],
)
def test_the_window_outlives_an_override_that_fails(tmp_path, module, what, name):
    done = run(tmp_path, USED, setup=BREAK.format(module=module, what=what))
    assert (done.returncode, done.stdout) == (0, "used\n"), done.stderr
    text = (tmp_path / "tilescope.log").read_text(encoding="utf-8")
    assert "ZeroDivisionError: one bad number" in text
    assert f"in {name}" in text
    assert "Error calling Python override" not in text
