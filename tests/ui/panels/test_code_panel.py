"""The code panel: the lines of every op framed and in sight, clicks and keys that run to a line."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage, QPainter
from PySide6.QtWidgets import QToolTip

from kernels.build.sources import FOLDER, op_lines, source
from simulator.code import numpy_lines
from simulator.code.code_lines import Tab
from simulator.code.paper import PAPERS, cited_lines
from simulator.lesson.places import Pointer
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Cursor, last_cursor
from simulator.run.breakpoints import AtLine, AtTurn
from tests.helpers.changes import choose_algorithm
from tests.helpers.painted import colours, pixels
from ui.look.highlight import spans
from ui.look.theme import DARK, THEMES, Style
from ui.panels.code.page import paint_paper, paper_layout
from ui.panels.code.panel import code_lines


def opened(open_window, qapp, name="causal", size=(1280, 720), tab=Tab.PAPER):
    window = open_window(name, size)
    window.desk.take("algorithm")
    qapp.processEvents()
    panel = window.docks.panel("code")
    panel.show_tab(tab)
    window.session.settle()
    qapp.processEvents()
    return window, panel


def go(window, visit, op):
    window.session.go(Cursor(visit, op))
    window.session.settle()
    return window.session.view.snapshot


def row_centre(panel, line) -> QPoint:
    """Return the middle of a line of the paper, on its page."""
    box = panel.paper.page.laid.rows[line].box
    return QPoint(round(box.width() * 0.6), round(box.center().y()))


def code_point(view, number) -> QPoint:
    """Return a point in a line of code that is in sight."""
    box = dict(view.blocks_in_sight())[number]
    return QPoint(30, round(box.center().y()))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_lines_of_every_op_are_framed_and_in_sight(open_window, qapp, algorithm):
    window, panel = opened(open_window, qapp, algorithm)
    program = window.session.trace.program
    for visit in (len(program) // 2, len(program) - 1):
        for n, op in enumerate(program.ops(visit)):
            go(window, visit, n)
            assert panel.paper.page.current == cited_lines(algorithm, op.cites)
            assert panel.numpy.current == numpy_lines.lines_run(op)
            assert panel.cuda.current == op_lines(algorithm, op)
            for tab in (Tab.NUMPY, Tab.CUDA):
                panel.show_tab(tab)
                qapp.processEvents()
                view = panel.views[tab]
                boxes = dict(view.blocks_in_sight())
                first = boxes[view.current[0]]
                assert first.top() >= -1
                assert first.bottom() <= view.viewport().height() + 1
            panel.show_tab(Tab.PAPER)
            qapp.processEvents()
            top = panel.paper.verticalScrollBar().value()
            box = panel.paper.page.laid.rows[panel.paper.page.current[0]].box
            assert box.top() >= top - 1
            assert box.bottom() <= top + panel.paper.viewport().height() + 1


@pytest.mark.long
def test_texts_are_those_of_the_files(open_window, qapp):
    _, panel = opened(open_window, qapp, "flash1")
    panel.recording.click()
    assert panel.cuda.toPlainText() == source("flash1").rstrip("\n")
    texts = panel.code.texts(Tab.NUMPY)
    assert list(panel.numpy.numbers) == [line.number for line in texts]
    assert panel.numpy.toPlainText().split("\n") == [line.text for line in texts]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["flash2", "split-kv", "paged"])
def test_the_kernel_is_read_without_recording_until_it_is_asked_for(open_window, qapp, algorithm):
    window, panel = opened(open_window, qapp, algorithm, (1920, 1080), Tab.CUDA)
    names = [op.name for op in window.session.trace.program.ops(0)]
    go(window, 0, names.index("row max"))
    texts = []
    for _ in range(2):
        texts.append(panel.cuda.toPlainText())
        (number,) = panel.cuda.current
        box = dict(panel.cuda.blocks_in_sight())[number]
        block = panel.cuda.cursorForPosition(box.center().toPoint()).block()
        assert "[row max]" in block.text()
        place = panel.code.condition(Tab.CUDA, number).words
        file, _, line = place.partition(":")
        assert (FOLDER / file).read_text("utf-8").split("\n")[int(line) - 1] == block.text()
        assert panel.cuda.accessibleDescription() == f"runs now: line {line}"
        panel.recording.click()
        qapp.processEvents()
    read, recorded = texts
    for word in ("visit.", "READ_K", "_PARAMETERS"):
        assert word in recorded
        assert word not in read
    assert "const int* __restrict__ run_offsets," in read


@pytest.mark.long
def test_the_button_is_there_where_a_kernel_is_and_not_in_a_talk(open_window, qapp):
    _, panel = opened(open_window, qapp, "flash2", tab=Tab.NUMPY)
    assert not panel.recording.isVisible()
    panel.show_tab(Tab.CUDA)
    assert panel.recording.isVisible()
    panel.set_stage(True)
    assert not panel.recording.isVisible()


def test_a_barrier_that_a_lesson_takes_away_is_struck_through(open_window, qapp):
    window, panel = opened(open_window, qapp, "flash2", (1280, 720), Tab.NUMPY)
    session, said = window.session, "the tiles are whole"

    def show(*points):
        session.show_place(session.scenario, Cursor(1, 1), 0, points)
        session.settle()
        qapp.processEvents()

    show(Pointer(barrier=said))
    view = panel.cuda
    assert view.isVisible()
    (number,) = view.struck
    assert f"__syncthreads();  // {said}" in source("flash2").split("\n")[number - 1]
    for recording in (False, True):
        assert panel.recording.isChecked() == recording
        box = dict(view.blocks_in_sight())[number]
        assert 0 <= box.top() < box.bottom() <= view.viewport().height()
        (selection,) = view.extraSelections()
        assert selection.format.fontStrikeOut()
        assert selection.cursor.selectedText().strip() == f"__syncthreads();  // {said}"
        assert f"taken away: line {number}" in view.accessibleDescription()
        panel.recording.click()
        qapp.processEvents()
    panel.show_tab(Tab.NUMPY)
    session.go(Cursor(1, 2))  # the speaker looks elsewhere: the tab stays
    session.settle()
    assert not view.isVisible()
    show()
    assert view.struck == ()
    assert view.extraSelections() == []


def test_a_name_in_a_kernel_has_a_tip(open_window, qapp):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080), Tab.CUDA)
    names = [op.name for op in window.session.trace.program.ops(0)]
    go(window, 0, names.index("row max"))
    view = panel.cuda
    (number,) = view.current
    tips = {}
    loop = view.document().findBlockByNumber(view.numbers.index(number) - 2)
    for text in ("ROWS", "for"):
        cursor = view.textCursor()
        cursor.setPosition(loop.position() + loop.text().index(text) + 1)
        at = view.cursorRect(cursor).center()
        event = QHelpEvent(QEvent.Type.ToolTip, at, view.viewport().mapToGlobal(at))
        qapp.sendEvent(view.viewport(), event)
        tips[text] = QToolTip.text()
    assert tips["ROWS"].startswith("ROWS: query rows that a warp owns.")
    assert tips["for"].startswith("Click a line")


@pytest.mark.long
def test_a_text_that_is_seen_before_the_first_view_is_empty(open_window, qapp):
    window = open_window("flash2")
    window.desk.take("algorithm")
    panel = window.docks.panel("code")
    panel.show_tab(Tab.NUMPY)  # before its view is there, which is made beside the window
    assert panel.numpy.blocks_in_sight() == []
    panel.grab()
    qapp.processEvents()
    window.session.settle()
    assert panel.numpy.blocks_in_sight()


@pytest.mark.long
def test_it_scrolls_only_when_needed(open_window, qapp):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080), Tab.CUDA)
    names = [op.name for op in window.session.trace.program.ops(1)]
    go(window, 1, names.index("row max"))
    before = panel.cuda.verticalScrollBar().value()
    go(window, 1, names.index("exponentials"))
    assert panel.cuda.verticalScrollBar().value() == before
    panel.cuda.verticalScrollBar().setValue(0)
    go(window, 1, names.index("row sum"))
    assert panel.cuda.verticalScrollBar().value() > 0


def test_a_click_on_a_line_of_the_paper_runs_to_it(open_window, qapp, qtbot):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080))
    ten = next(n for n, line in enumerate(PAPERS["flash2"].lines) if line.label == "10")
    qtbot.mouseClick(panel.paper.page, Qt.MouseButton.LeftButton, pos=row_centre(panel, ten))
    window.session.settle()
    assert window.session.view.snapshot.op.name == "rescale"
    assert window.session.view.snapshot.visit.index == 0
    qtbot.mouseClick(panel.paper.page, Qt.MouseButton.LeftButton, pos=row_centre(panel, ten))
    window.session.settle()
    assert window.session.view.snapshot.visit.index == 1


@pytest.mark.long
@pytest.mark.parametrize("tab", [Tab.NUMPY, Tab.CUDA])
def test_a_click_on_a_line_of_code_runs_to_it(open_window, qapp, qtbot, tab):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080), tab)
    view = panel.views[tab]
    go(window, 0, 4)
    start = window.session.cursor
    number = view.current[0]
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=code_point(view, number))
    window.session.settle()
    cursor = window.session.view.snapshot.cursor
    assert cursor > start
    assert number in view.current
    assert cursor.visit == 1


def test_keys_run_to_a_line_and_set_a_breakpoint(open_window, qapp, qtbot):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080))
    page = panel.paper.page
    panel.paper.setFocus()
    page.setFocus()
    first = page.focus
    for _ in range(4):
        qtbot.keyClick(page, Qt.Key.Key_Down)
    assert page.focus == first + 4
    qtbot.keyClick(page, Qt.Key.Key_Up)
    qtbot.keyClick(page, Qt.Key.Key_F9)
    assert panel.paper.page.marked
    condition = panel.code.condition(Tab.PAPER, first + 3)
    assert window.session.runs.breakpoints == (condition,)
    qtbot.keyClick(page, Qt.Key.Key_Return)
    window.session.settle()
    assert window.session.cursor > Cursor(0, 0)
    panel.show_tab(Tab.CUDA)
    panel.cuda.setFocus()
    before = window.session.cursor
    qtbot.keyClick(panel.cuda, Qt.Key.Key_Return)  # at the top of the file: slides down
    window.session.settle()
    assert window.session.cursor > before
    qtbot.keyClick(panel.cuda, Qt.Key.Key_F9)
    assert len(window.session.runs.breakpoints) == 2


@pytest.mark.long
def test_step_keys_work_while_the_code_has_the_focus(open_window, qapp, qtbot):
    window, panel = opened(open_window, qapp, "flash2", tab=Tab.CUDA)
    window.activateWindow()
    panel.cuda.setFocus()
    qtbot.keyClick(panel.cuda, Qt.Key.Key_Right)
    window.session.settle()
    assert window.session.cursor == Cursor(0, 1)
    qtbot.keyClick(panel.cuda, Qt.Key.Key_End)
    window.session.settle()
    assert window.session.cursor == last_cursor(window.session.trace.program)


def test_a_click_in_the_margin_sets_a_breakpoint_and_takes_it_away(open_window, qapp, qtbot):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080), Tab.CUDA)
    view = panel.cuda
    number = view.current[0]
    spot = QPoint(8, code_point(view, number).y())
    qtbot.mouseClick(view.margin, Qt.MouseButton.LeftButton, pos=spot)
    (condition,) = window.session.runs.breakpoints
    assert isinstance(condition, AtLine)
    assert (condition.tab, condition.line) == ("cuda", number)
    assert view.marked == {number}
    qtbot.mouseClick(view.margin, Qt.MouseButton.LeftButton, pos=spot)
    assert window.session.runs.breakpoints == ()
    assert view.marked == frozenset()
    panel.show_tab(Tab.PAPER)
    six = next(n for n, line in enumerate(PAPERS["flash2"].lines) if line.label == "6")
    spot = QPoint(6, round(panel.paper.page.laid.rows[six].box.center().y()))
    qtbot.mouseClick(panel.paper.page, Qt.MouseButton.LeftButton, pos=spot)
    assert window.session.runs.breakpoints == (AtTurn(outer=False),)
    eleven = next(n for n, line in enumerate(PAPERS["flash2"].lines) if line.label == "11")
    assert panel.paper.page.marked == {six, eleven}  # head and end of one loop


@pytest.mark.long
def test_a_line_that_never_runs_says_so_and_the_cursor_stays(open_window, qapp, qtbot):
    window, panel = opened(open_window, qapp, "flash1", (1920, 1080))
    panel.paper.verticalScrollBar().setValue(0)
    before = window.session.cursor
    qtbot.mouseClick(panel.paper.page, Qt.MouseButton.LeftButton, pos=row_centre(panel, 0))
    window.session.settle()
    assert window.session.cursor == before
    assert window.messages.isVisible()
    assert "before the first step" in window.messages.text()
    qtbot.mouseClick(panel.paper.page, Qt.MouseButton.LeftButton, pos=row_centre(panel, 4))
    window.session.settle()
    assert not window.messages.isVisible()
    assert window.session.cursor != before


@pytest.mark.long
def test_all_lines_that_are_pointed_at_are_in_sight(open_window, qapp):
    _, panel = opened(open_window, qapp)
    area, page = panel.paper, panel.paper.page
    area.setFixedHeight(round(page.laid.rows[5].box.bottom() - page.laid.rows[2].box.top()) + 4)
    qapp.processEvents()
    for lines in ((2, 5), (9,), (2, 5)):
        area.show_points(lines)
        top, high = area.verticalScrollBar().value(), area.viewport().height()
        for line in lines:
            box = page.laid.rows[line].box
            assert box.top() >= top, (lines, line)
            assert box.bottom() <= top + high, (lines, line)


@pytest.mark.long
def test_lines_pointed_at_in_one_algorithm_are_not_looked_for_in_another(open_window, qapp):
    window, panel = opened(open_window, qapp, "flash1")
    page, last = panel.paper.page, len(PAPERS["flash1"].lines) - 1
    panel.paper.show_points((last,))
    assert page.pointed == (last,)
    assert last >= len(PAPERS["naive"].lines)
    choose_algorithm(window, "naive")
    window.session.settle()
    assert page.paper is PAPERS["naive"]
    assert page.pointed == ()
    assert page.current == cited_lines("naive", window.session.view.snapshot.op.cites)


@pytest.mark.long
def test_breakpoints_of_one_algorithm_are_not_marked_in_another(open_window, qapp, qtbot):
    window, panel = opened(open_window, qapp, "flash2", (1920, 1080), Tab.CUDA)
    spot = QPoint(8, code_point(panel.cuda, panel.cuda.current[0]).y())
    qtbot.mouseClick(panel.cuda.margin, Qt.MouseButton.LeftButton, pos=spot)
    assert panel.cuda.marked
    choose_algorithm(window, "flash1")
    window.session.settle()
    assert panel.cuda.marked == frozenset()
    assert len(window.session.runs.breakpoints) == 1
    assert "// FlashAttention-1, " in panel.cuda.toPlainText()
    choose_algorithm(window, "flash2")
    window.session.settle()
    assert panel.cuda.marked


# --- the page of the paper --------------------------------------------------------------------


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize(("width", "scale"), [(320, 1.0), (320, 2.0), (560, 1.5), (1200, 1.0)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_line_of_the_paper_overlaps_or_leaves_the_page(qapp, algorithm, width, scale):
    style = Style(DARK, scale)
    laid = paper_layout(PAPERS[algorithm], style, width)
    assert laid.style.scale >= min(scale, 11 / 13)
    for above, below in zip(laid.rows, laid.rows[1:], strict=False):
        assert above.box.bottom() <= below.box.top() + 1e-6
    picture = QImage(width + 400, round(laid.height) + 20, QImage.Format.Format_RGB32)
    picture.fill(Qt.GlobalColor.black)
    painter = QPainter(picture)
    paint_paper(painter, PAPERS[algorithm], laid)
    painter.end()
    lit = pixels(picture).any(axis=0)
    assert lit[:width].any()
    assert not lit[width + 1 :].any()


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_current_line_has_a_frame_and_an_arrow(qapp, theme):
    style, paper = Style(theme), PAPERS["flash2"]
    laid = paper_layout(paper, style, 560)

    def painted(**marks) -> QImage:
        picture = QImage(560, round(laid.height) + 1, QImage.Format.Format_RGB32)
        picture.fill(theme.panel)
        painter = QPainter(picture)
        paint_paper(painter, paper, laid, **marks)
        painter.end()
        return picture

    plain, framed, marked = painted(), painted(current=(5,)), painted(marked=(5,))
    box = laid.rows[5].box
    margin = QRect(0, round(box.top()), round(laid.margin) - 1, round(box.height()))
    assert QColor(theme.current).rgb() in colours(framed.copy(margin))
    assert QColor(theme.current).rgb() not in colours(plain.copy(margin))
    edge = QPointF(box.width() / 2, box.top() + 1).toPoint()
    assert framed.pixelColor(edge).name().upper() == theme.current.upper()
    assert plain.pixelColor(edge) != framed.pixelColor(edge)
    dot = QPointF(9, laid.rows[5].baseline - 4).toPoint()
    assert marked.pixelColor(dot).name().upper() == theme.bad.upper()
    other = laid.rows[8].box.toRect()
    assert plain.copy(other) == framed.copy(other)


# --- colours ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_parts_that_stand_out_lie_in_their_line(algorithm):
    code = code_lines(algorithm)
    for tab, language in ((Tab.NUMPY, "python"), (Tab.CUDA, "cuda")):
        lines = [line.text for line in code.texts(tab)]
        found = spans(language, "\n".join(lines))
        assert len(found) >= len(lines)
        kinds = set()
        for text, parts in zip(lines, found, strict=False):
            for part in parts:
                assert 0 <= part.start < part.start + part.length <= len(text)
                kinds.add((part.kind, text[part.start : part.start + part.length]))
        assert ("keyword", "for") in kinds
        names = {kind for kind, _ in kinds} - {"comment", "keyword"}
        assert {"Q", "S", "m"} & names
        if tab is Tab.CUDA:
            formed = {("S", "S_shared"), ("S", "S_hbm"), ("P", "P_shared")}
            forms = ALGORITHMS[algorithm].forms
            assert forms == bool(formed & kinds)


# --- places -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("size", "scale"), [((1280, 720), 1.0), ((1280, 720), 2.0),
                                             ((1920, 1080), 1.5)], ids=str)  # fmt: skip
def test_controls_do_not_overlap_and_leave_room_for_code(open_window, qapp, size, scale):
    window, panel = opened(open_window, qapp, "flash2", size)
    window.settings.text_scale = scale
    window.change_text(0)
    qapp.processEvents()
    for choice in range(panel.bar.until.count()):
        panel.bar.until.setCurrentIndex(choice)
        qapp.processEvents()
        bar = panel.bar
        controls = [bar.until, *bar.fields.values(), bar.op, bar.run_button, bar.stop_button]
        boxes = [c.geometry() for c in [*controls, bar.list_button, bar.status] if c.isVisible()]
        for n, one in enumerate(boxes):
            assert bar.rect().contains(one)
            assert not any(one.intersects(other) for other in boxes[n + 1 :])
        assert panel.paper.height() >= 2 * panel.paper.page.style_now.px(13)
        for button in (bar.run_button, bar.stop_button, bar.list_button):
            assert button.sizeHint().width() <= button.width() + 8


def test_everything_to_act_on_has_a_name_and_words(open_window, qapp):
    _, panel = opened(open_window, qapp, "flash2")
    bar = panel.bar
    controls = [bar.until, bar.op, *bar.fields.values(), bar.run_button, bar.stop_button]
    texts = [panel.numpy, panel.cuda, panel.paper.page, panel.tabs]
    for control in [*controls, bar.list_button, *texts]:
        assert control.accessibleName()
    for control in (bar.until, *bar.fields.values(), bar.run_button, bar.stop_button):
        assert control.toolTip()
    assert "line" in panel.cuda.accessibleDescription()
    assert "line" in panel.paper.page.accessibleDescription()


@pytest.mark.long
def test_no_line_of_the_paper_is_cut(open_window, qapp):
    _, panel = opened(open_window, qapp, "flash2", (1280, 720))
    page, bar = panel.paper.page, panel.paper.verticalScrollBar()
    assert bar.maximum() > 20
    boxes = [row.box for row in page.laid.rows]
    for place in range(0, bar.maximum(), 7):
        bar.setValue(place)
        seen = panel.paper.viewport().grab().toImage()
        room = QRectF(0, place, 1, panel.paper.viewport().height())
        for box in boxes:
            shown = box.intersected(QRectF(0, room.top(), page.width(), room.height()))
            whole = shown.height() == box.height()
            middle = shown.translated(0, -place).adjusted(0, 1, 0, -1).toRect()
            if shown.height() < 4:
                continue
            strip = seen.copy(middle)
            colours = {strip.pixel(x, y) for x in range(0, strip.width(), 2)
                       for y in range(strip.height())}  # fmt: skip
            assert (len(colours) > 1) == whole
