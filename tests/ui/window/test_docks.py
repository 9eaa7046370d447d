"""Panels are made when they are first seen, and are then as if they had always been there."""

import gc
import re
import weakref

import pytest
from PySide6.QtGui import QCursor, QPalette
from PySide6.QtWidgets import QComboBox, QLineEdit

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.problem.scenario import Scenario, with_values
from simulator.program.playback import Cursor
from simulator.run.snapshot import Cell, Snapshot
from tests.helpers.changes import choose_algorithm
from tests.helpers.programs import run
from ui.app.start import make_window
from ui.look.draw import text_width
from ui.look.layouts import layout_named
from ui.panels.values.panel import COLUMNS, value_row
from ui.window.panel_specs import PANELS


def test_a_dock_that_floats_from_behind_a_tab_is_in_sight_and_up_to_date(open_window, qapp):
    window = open_window("causal", (1280, 720))
    window.desk.take("algorithm")
    window.docks["values"].raise_()
    panel, dock = window.docks.panel("values"), window.docks["values"]
    panel.pin(Cell("S", 0, 0))
    window.docks["formula"].raise_()
    qapp.processEvents()
    dock.setFloating(True)
    qapp.processEvents()
    assert window.geometry().contains(dock.geometry())
    state = panel.table.item(0, len(COLUMNS) - 1).text
    told = []
    for move in (window.session.first, window.session.last):
        move()
        window.session.settle()
        assert state() == value_row(window.session.view.snapshot, Cell("S", 0, 0))[-1]
        told.append(state())
    assert told[0] != told[1]


def test_the_menu_brings_a_panel_to_the_front_and_only_from_there_closes_it(open_window, qtbot):
    """The menu has a tick for what is in front: choosing what has none shows it."""
    window = open_window("causal", (1280, 720))
    window.desk.take("memory")
    docks = window.docks
    for name, shown in (
        ("roofline", True),
        ("schedule", True),
        ("roofline", True),
        ("roofline", False),
        ("schedule", False),  # it was in front again
    ):
        docks.actions[name].trigger()
        qtbot.wait(0)
        seen = {spec.name for spec, dock in docks if not dock.visibleRegion().isEmpty()}
        ticked = {spec.name for spec, _ in docks if docks.actions[spec.name].isChecked()}
        assert ticked == seen, name
        assert (name in seen) == (not docks[name].isHidden()) == shown, name


@pytest.mark.long
def test_a_window_makes_the_panels_that_are_seen_and_no_others(window):
    open_now = {spec.name for spec, dock in window.docks if not dock.isHidden()}
    assert open_now <= window.docks.made < {spec.name for spec in PANELS}
    assert not {"code", "sweep", "roofline", "cache"} & window.docks.made


LATE = ("scenario", "formula", "exactness", "heads", "sweep")


@pytest.mark.long
def test_panels_made_late_show_what_those_made_early_show(open_window, settings, qapp):
    """Even after a change of theme, text scale and scenario."""
    QCursor.setPos(-50, -50)  # a test before may have left it where a field now comes
    early = open_window()
    for name in LATE:
        early.docks[name].show()
    early.docks.panel(LATE[0]).query.setText("All")
    late = open_window()
    assert not late.docks.made & set(LATE) - {"scenario"}
    settings.theme, settings.text_scale = "light", 1.25
    pictures, forms = [], []
    for window in (early, late):
        window.apply_style()
        choose_algorithm(window, "flash1")
        window.session.settle()
        for name in LATE:
            window.docks[name].show()
            window.docks[name].setFloating(True)
            window.docks[name].resize(700, 500)
        window.session.settle()
        for _ in range(4):  # scroll bars take their place some rounds after the last work
            qapp.processEvents()
        pictures.append([window.docks.panel(name).grab().toImage() for name in LATE[1:]])
        form = window.docks.panel(LATE[0])
        form.query.setText("All")  # makes the fields that nobody has asked for
        qapp.processEvents()
        # Of a long title in a form, the part in sight depends on where the focus has been.
        editors = {
            name: field.findChildren(QLineEdit)
            for name, field in form.fields.items()
            if field.isVisible()
        }
        forms.append({
            name: [(e.text(), e.font(), e.palette(), e.size()) for e in each]
            for name, each in editors.items()
        })  # fmt: skip
    for name, one, other in zip(LATE[1:], *pictures, strict=True):
        assert one == other, name
    assert len(forms[0]) > 20
    assert forms[0] == forms[1]


def test_a_panel_behind_a_tab_is_made_with_its_layout(window):
    window.desk.take("algorithm")
    assert {"code", "formula", "values"} <= window.docks.made


def test_a_late_run_bar_knows_the_run(open_window):
    window = open_window("causal")
    bar = window.docks.panel("code").bar
    grid = window.session.trace.workload.grid
    assert bar.fields["i"].maximum() == grid.Tr - 1
    assert bar.op.count() > 3


@pytest.mark.long
def test_the_first_picture_waits_for_nothing_that_it_does_not_need(tmp_path):
    """Each takes longer than all painting: typesetting, masked arrays, plots, video, lexers."""
    done = run(
        tmp_path,
        """
        if once("started"):
            slow = ("ziamath", "numpy.ma", "pyqtgraph", "av", "scipy", "cupy", "IPython",
                    "pygments.lexers.python")
            say(*[name for name in slow if name in at_first])
            say(len(at_first) > 300)
            w.close()
        """,
        str(SCENARIOS / "causal.toml"),
        setup="""
        at_first = set()
        from ui.board.panel import BoardPanel
        paint = BoardPanel.paintEvent
        def paint_and_note(self, event):
            paint(self, event)
            if self._snapshot is not None and not at_first:
                at_first.update(sys.modules)
        BoardPanel.paintEvent = paint_and_note
        seen = look
        def look():
            if at_first:
                seen()
        """,
    )
    assert done.stdout.splitlines() == ["", "True"], done.stderr


@pytest.mark.long
def test_no_thread_beside_the_window_imports_modules_of_qt(tmp_path):
    """PySide makes classes then, and may crash while Qt looks one up in the window's thread."""
    done = run(
        tmp_path,
        """
        if w.cover is not None:
            if w.cover.ready:
                w.cover.leave()
        elif w.session.settled:
            new = next((each.name for each in PANELS if once(each.name)), None)
            if new:
                w.docks.open(new)
            elif once("end"):
                say(len(done) - 1, *sorted(beside))
                w.close()
        """,
        setup="""
        from ui.window.panel_specs import PANELS
        beside = set()
        def hear(event, arguments):
            if event == "import" and threading.current_thread() is not threading.main_thread():
                if arguments[0].startswith(("PySide6", "pyqtgraph", "ui.")):
                    beside.add(arguments[0])
        sys.addaudithook(hear)
        """,
    )
    assert done.stdout.split() == [str(len(PANELS))], done.stderr


def test_a_lesson_named_at_the_start_is_opened(qapp, settings):
    window = make_window(LESSONS / "05-online-softmax.md", settings=settings)
    window.session.settle()
    assert window.lessons.player.lesson.title == "Online softmax"
    window.close()


@pytest.mark.long
def test_a_dock_may_be_dragged_while_the_layout_changes(tmp_path):
    """Qt goes back to how docks stood before a drag, whatever has become of them."""
    done = run(
        tmp_path,
        """
        if once("started"):
            w.resize(1280, 720)
            for layout in ("algorithm", "memory", "steps") * 4:
                seen = [d for _, d in w.docks if not d.visibleRegion().isEmpty()]
                dock = seen[len(done) % len(seen)]
                at = dock.titleBarWidget().mapTo(w, QPoint(40, 8))
                QTest.mousePress(w.windowHandle(), LEFT, NO_KEYS, at)
                for n in range(1, 4):
                    QTest.mouseMove(w.windowHandle(), at + QPoint(-60, 50) * n)
                say(dock.isFloating())
                w.desk.take(layout)
                w.desk.reset()
                app.processEvents()
                QTest.mouseRelease(w.windowHandle(), LEFT, NO_KEYS, at)
                app.processEvents()
                say(any(d.isFloating() for _, d in w.docks))
                done.add(len(done))
            w.close()
        """,
        str(SCENARIOS / "causal.toml"),
        setup="""
        from PySide6.QtCore import QPoint, Qt
        from PySide6.QtTest import QTest
        LEFT, NO_KEYS = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "False"] * 12


@pytest.mark.long
def test_the_title_of_a_dock_holds_the_choices_of_its_panel(open_window, qapp):
    window = open_window("causal", (1280, 720))
    window.desk.take("memory")
    qapp.processEvents()
    title, memory = window.docks["memory"].titleBarWidget(), window.docks.panel("memory")
    assert memory.title_bar.window() is window
    before = title.height()
    for scale in (1.0, 1.5, 2.0):
        window.settings.text_scale = scale
        window.apply_style()
        qapp.processEvents()
        bar = memory.title_bar
        assert title.rect().contains(bar.geometry())
        right = 0
        for button in bar.shown():
            assert bar.rect().contains(button.geometry())
            assert button.x() >= right
            right = button.geometry().right()
        assert bar.geometry().right() < title.float_button.x()
    assert title.height() > before
    sweep = window.docks["sweep"].titleBarWidget()
    assert sweep.float_button.parent() is sweep
    bar.buttons["memory", "tilted"].click()
    assert memory.shown == "tilted"


def test_a_dock_that_opens_before_the_first_view_of_a_run_shows_nothing_of_the_run_before(
    window, session, qapp
):
    dock = window.docks["exactness"]
    dock.show()
    dock.setFloating(True)
    long = {"seqlen_q": 8192, "head_dim": 8}
    before = session.trace
    session.propose(with_values(Scenario(), {"attention": long}), "long")
    while session.trace is before:
        qapp.processEvents()
    last = len(session.trace) - 1
    session.go(Cursor(last, 0))
    while session.view.snapshot.visit.index != last:
        qapp.processEvents()
        session.tasks.cancel()  # so that errors of many rows are missing in this view
    failed = []
    session.tasks.failed.connect(failed.append)

    def hide_and_show():
        dock.hide()
        dock.show()

    session.trace_changed.connect(hide_and_show)
    session.open(SCENARIOS / "flash2.toml")
    session.settle()
    assert not failed


def test_an_opened_list_has_its_frame_after_a_change_of_theme(window, qapp):
    window.docks.open("scenario")
    boxes = window.docks.panel("scenario").findChildren(QComboBox)
    window.next_theme()
    box = next(box for box in boxes if box.isVisible())
    box.showPopup()
    qapp.processEvents()
    popup, frame = box.view().window(), QPalette.ColorRole.Window
    assert popup.isVisible()
    assert (
        popup.palette().color(frame) == box.palette().color(frame) != window.palette().color(frame)
    )
    box.hidePopup()


def test_panels_of_closed_docks_are_not_styled_again_until_they_are_seen(window, qapp):
    docks = window.docks
    docks.open("formula")
    window.session.settle()
    panel = docks.panel("formula")
    before = panel.grab().toImage()
    docks["formula"].hide()
    window.next_theme()
    qapp.processEvents()
    assert not window.isAncestorOf(panel)
    for _ in range(2):
        window.next_theme()
    docks.open("formula")
    window.session.settle()
    assert docks["formula"].isAncestorOf(panel)
    assert panel.isVisible()
    assert panel.grab(before.rect()).toImage() == before


@pytest.mark.long
def test_closed_panels_forget_a_run_that_is_no_longer_shown(open_window, qapp):
    """With its inputs a large one would keep some hundred megabytes."""
    window = open_window("grouped-heads", (1920, 1080))
    session, desk = window.session, window.desk
    for spec in PANELS:
        window.docks.open(spec.name)
        session.settle()
    desk.reset()
    session.settle()
    trace, program = weakref.ref(session.trace), session.trace.program
    session.open(SCENARIOS / "causal.toml")
    session.settle()
    qapp.processEvents()
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, Snapshot)]
    assert trace() is None
    assert program not in [each.program for each in kept]
    assert len(window.docks.made) == len(PANELS)


@pytest.mark.long
def test_a_panel_that_opens_beside_others_says_what_it_is_for(open_window, qapp):
    """With the paper behind it where that fits, else without, else its name: never nothing."""
    window, purposes = open_window("causal", (1920, 1080)), 0
    for name in ("merge", "pages", "generation", "ring", "cache", "formula", "exactness", "values"):
        window.desk.take("steps")
        window.desk.reset()
        window.docks.open(name)
        window.docks[name].raise_()
        qapp.processEvents()
        title, whole = window.docks[name].titleBarWidget(), window.docks[name].toolTip()
        font = title.style_now.text_font(12)
        assert text_width(font, title.words) < title.float_button.x() - title.style_now.px(10), name
        if title.words == window.docks[name].windowTitle():
            continue
        assert whole.startswith(title.words[:-1])
        purposes += 1
        rest = whole[len(title.words) - 1 :]
        assert rest == "." or re.fullmatch(r" \(.* 20\d\d.*\)\.", rest)
    assert purposes


@pytest.mark.long
def test_in_a_small_window_each_tab_says_what_its_panel_is_for(open_window, qapp):
    window = open_window("inspector", (1280, 720))
    window.desk.take("inspector")
    for name in layout_named("inspector").docks:
        window.docks[name].raise_()
        qapp.processEvents()
        title = window.docks[name].titleBarWidget()
        font = title.style_now.text_font(12)
        assert text_width(font, title.words) < title.float_button.x() - title.style_now.px(10), name
