"""Painters that fail: the window stays, the failure is told once, and no picture is half right."""

import sys

import pytest
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

import ui.panels.memory.panel
from simulator.base.errors import InputError
from tests.helpers.programs import run
from tests.ui.export.helpers import DEMO, names
from ui.export.picture import WidgetPicture
from ui.look.draw import text_width
from ui.safety.faults import raising
from ui.safety.painting import WORDS, painting

BREAK = """
import {module} as module

def broken(*arguments, **more):
    raise ZeroDivisionError("one bad number")

module.{painter} = broken
"""

LOOKED_AT = """
if once("layout"):
    w.docks.open("{shown}") if "{shown}" == "roofline" else w.desk.take("{shown}")
    say("shown")
elif box("crash") and once("told"):
    button("crash", "Continue").click()
    for n in range(20):
        w.repaint()
        w.grab()
        for panel in w.findChildren(QWidget):
            panel.update()
        app.processEvents()
        w.resize(w.width() + n % 2, w.height())
    say("painted")
    QTimer.singleShot(50, w.close)
"""


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("module", "painter", "shown"),
    [
        ("ui.panels.memory.panel", "paint_view", "memory"),
        ("ui.plots.widget", "paint_ground", "roofline"),  # of an item in a graphics scene
        ("ui.plots.widget", "paint_over", "roofline"),
        ("ui.panels.code.paper_view", "paint_paper", "algorithm"),
        ("ui.panels.transport.bar", "paint_scrubber", "steps"),
        ("ui.board.panel", "paint_board", "steps"),
    ],
)
def test_the_window_outlives_a_painter_that_fails(tmp_path, module, painter, shown):
    setup = BREAK.format(module=module, painter=painter)
    setup += "\nfrom PySide6.QtWidgets import QWidget\n"
    done = run(tmp_path, LOOKED_AT.format(shown=shown), str(DEMO), setup=setup)
    assert (done.returncode, done.stdout) == (0, "shown\npainted\n"), done.stderr
    assert not done.stderr
    text = (tmp_path / "tilescope.log").read_text(encoding="utf-8")
    assert text.count("ZeroDivisionError: one bad number") == 1
    assert module.replace(".", "/") + ".py" in text.replace("\\", "/")
    assert "active painter" not in text


@pytest.mark.long
@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf", ".apng", ".mp4", "/"])
def test_an_export_with_a_painter_that_fails_is_one_line_and_no_file(tmp_path, ending):
    target = f"{tmp_path}/out{ending}"
    still = ending in (".png", ".svg", ".pdf")
    more = ("--visits", "0:1") if still else ("--length", "0.5", "--fps", "10")
    done = run(
        tmp_path, "pass", "export", str(DEMO), "-o", target, "--scene", "memory",
        "--size", "480x320", *more,
        setup=BREAK.format(module="ui.panels.memory.panel", painter="paint_view"),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    told = 'picture: Traffic = "ZeroDivisionError: one bad number": expected a panel that'
    assert done.stderr.splitlines()[-1].startswith(told)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert names(tmp_path) == []


def fail(*arguments, **more):
    raise ZeroDivisionError("one bad number")


class Painted(QWidget):
    """Calls something to paint it."""

    def __init__(self, paint, parent=None, **more):
        super().__init__(parent)
        self._paint = paint
        self._more = more
        self.painted = 0

    def paintEvent(self, event):
        self.painted += 1
        with painting(self, **self._more) as painter:
            painter.fillRect(self.rect(), "red")
            self._paint(painter)


def test_siblings_are_painted_and_the_failed_one_is_covered(qtbot, hooked):
    def deep(painter):
        painter.save()
        painter.setClipRect(0, 0, 1, 1)
        painter.translate(500, 500)
        painter.setOpacity(0.1)
        fail()

    whole = QWidget()
    column = QVBoxLayout(whole)
    parts = [Painted(deep), Painted(lambda painter: None), Painted(deep, covers=False)]
    for part in parts:
        column.addWidget(part)
    qtbot.addWidget(whole)
    whole.resize(300, 300)
    whole.show()
    qtbot.waitUntil(lambda: all(part.painted for part in parts))
    for _ in range(5):
        picture = whole.grab().toImage()
    seen = [
        {picture.pixelColor(part.geometry().left() + x, part.geometry().center().y()).name()
         for x in range(part.width())}
        for part in parts
    ]  # fmt: skip
    assert "#ff0000" not in seen[0]
    assert len(seen[0]) > 1  # words on a ground
    assert seen[1] == {"#ff0000"}
    assert seen[2] == {"#ff0000"}
    assert len(hooked) == 1
    assert all(part.painted > 5 for part in parts)


def test_words_that_do_not_fit_are_left_out(qtbot, hooked):
    part = Painted(fail)
    qtbot.addWidget(part)
    looks = {}
    for name, (width, height) in {
        "long": (text_width(part.font(), WORDS[0]) + 12, 40),
        "short": (text_width(part.font(), WORDS[1]) + 12, 40),
        "narrow": (20, 40),
        "low": (300, 6),
    }.items():
        part.resize(round(width), height)
        picture = part.grab().toImage()
        looks[name] = {
            picture.pixel(x, y) for x in range(picture.width()) for y in range(picture.height())
        }
    assert len(looks["long"]) > 1
    assert len(looks["short"]) > 1
    assert len(looks["narrow"]) == len(looks["low"]) == 1


def test_other_failures_of_a_painter_are_told_too(qtbot, hooked):
    kinds = [KeyError, KeyError, OSError]

    def fail_so(painter):
        raise kinds[0]("x")

    part = Painted(fail_so)
    qtbot.addWidget(part)
    while kinds:
        part.grab()
        kinds.pop(0)
    assert [type(error) for error in hooked] == [KeyError, OSError]


def test_an_interrupt_is_told_every_time(qtbot, hooked):
    def interrupt(painter):
        raise KeyboardInterrupt

    part = Painted(interrupt)
    qtbot.addWidget(part)
    for _ in range(3):
        part.grab()
    assert [type(error) for error in hooked] == [KeyboardInterrupt] * 3
    with pytest.raises(KeyboardInterrupt), raising():
        part.grab()


def test_a_hook_that_fails_does_no_harm(qtbot, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", fail)
    part = Painted(lambda painter: fail())
    qtbot.addWidget(part)
    assert not part.grab().isNull()


def test_a_viewport_and_its_text(qtbot, hooked):
    class Text(QPlainTextEdit):
        def paintEvent(self, event):
            with painting(self.viewport(), covers=False):
                fail()
            super().paintEvent(event)

    text = Text("words")
    qtbot.addWidget(text)
    before = QPlainTextEdit("words")
    qtbot.addWidget(before)
    for widget in (text, before):
        widget.resize(200, 100)
    assert text.grab().toImage() == before.grab().toImage()
    assert len(hooked) == 1


def test_a_failure_that_was_told_still_ends_a_picture(qtbot, hooked):
    part = Painted(fail)
    part.setObjectName("part")
    qtbot.addWidget(part)
    part.grab()
    part.grab()
    assert len(hooked) == 1
    for _ in range(2):
        with pytest.raises(InputError, match=r"part = .*one bad number") as told, raising():
            part.grab()
        assert "in fail" in told.value.__notes__[0]
    assert len(hooked) == 1
    with raising():
        pass


def test_a_panel_that_cannot_be_drawn_is_not_exported(open_window, monkeypatch, tmp_path):
    window = open_window("causal")
    window.desk.take("memory")
    window.session.settle()
    monkeypatch.setattr(ui.panels.memory.panel, "paint_view", fail)
    panel = window.docks.panel("memory")
    for act in (
        lambda: WidgetPicture(panel).save(tmp_path / "a.png"),
        lambda: WidgetPicture(panel).save(tmp_path / "a.svg"),
        lambda: WidgetPicture(panel).copy(lambda make, done: done(make())),
    ):
        with pytest.raises(InputError, match="Traffic"):
            act()
    assert not list(tmp_path.glob("a.*"))
    window.files.copy_panel("memory")
    assert "Traffic" in window.messages.text()
    monkeypatch.undo()
    WidgetPicture(panel).save(tmp_path / "a.png")


def test_qt_ends_a_painter_that_is_left(qapp):
    from PySide6.QtGui import QImage

    image = QImage(4, 4, QImage.Format.Format_RGB32)
    with pytest.raises(ZeroDivisionError), QPainter(image) as painter:
        fail()
    assert not painter.isActive()
