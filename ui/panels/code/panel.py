"""The dock that shows the line that runs now: of the paper, of the NumPy op, of the CUDA kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QTabBar, QVBoxLayout

from kernels.build.sources import op_lines
from kernels.cuda.glossary import explained
from kernels.cuda.text import kernel_lines, shown_lines
from simulator.code.code_lines import CodeLines, Tab
from simulator.code.paper import PAPERS
from simulator.problem.workload import Variant, Workload
from simulator.program.algorithms import USUAL
from simulator.program.op import Op
from simulator.run.breakpoints import AtLine, Condition
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.board.point_marks import pointed_lines
from ui.look.draw import text_width
from ui.look.highlight import spans
from ui.look.theme import DARK, Style
from ui.panels.base import AlphaLight, Panel
from ui.panels.code.page import typeset_paper
from ui.panels.code.paper_view import PaperView
from ui.panels.code.run_bar import RunBar
from ui.panels.code.view import CodeView
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

_TITLES = {
    Tab.PAPER: ("Paper", "The algorithm as its paper numbers it, in our words."),
    Tab.NUMPY: (
        "NumPy",
        "What each op does to the arrays on chip: the statements that simulator/program runs.",
    ),
    Tab.CUDA: (
        "CUDA",
        "The kernel (kernels/cuda) as the fast build of this run compiles it, with the file's line "
        "numbers. The tip of a name says what it is, and what FlashAttention calls it.",
    ),
}

_LANGUAGES = {Tab.NUMPY: "python", Tab.CUDA: "cuda"}

LEAST_SCALE = 0.95
"""Text scale of the controls in the lowest panel: 11 pixels."""
RECORDING = (
    "The file as it stands: with what the trace build records, and with macros in the place of "
    "parameters."
)
ROOMY = 170
"""Height of a panel from which its controls are as large as in other panels, at scale 1."""


_OF_ALPHA = ("row max", "combine", "row sum", "rescale")
"""Ops that make α, or multiply by it."""


def code_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> None:
    """Typeset the paper and colour the code while the view is made, not when they are painted."""
    w = trace.workload
    typeset_paper(PAPERS[w.algorithm])
    numpy = code_lines(w.algorithm, w.variant).texts(Tab.NUMPY)
    for tab, lines in ((Tab.NUMPY, numpy), (Tab.CUDA, shown_lines(w, recording=False))):
        spans(_LANGUAGES[tab], "\n".join(line.text for line in lines))


@lru_cache(maxsize=4)
def code_lines(algorithm: str, variant: frozenset[Variant] = frozenset()) -> CodeLines:
    """Return the lines of an algorithm, with the lines of the CUDA kernel that ships."""
    return CodeLines(algorithm, kernel_lines(algorithm), partial(op_lines, algorithm), variant)


class CodePanel(Panel[None]):
    """Three texts with the current line framed; a click on another line runs to it."""

    ground = False

    def __init__(self, session: Session) -> None:
        super().__init__("code_panel", "Code")
        self._session = session
        self._on_stage = False
        self._workload: Workload | None = None
        self.light = AlphaLight()
        self._of_alpha: tuple[Op, ...] = ()
        self.code = code_lines(USUAL.name)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName("Which code")
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.paper = PaperView()
        self.numpy = CodeView("NumPy op", _LANGUAGES[Tab.NUMPY])
        self.cuda = CodeView("CUDA kernel", _LANGUAGES[Tab.CUDA], explained)
        self.views: dict[Tab, PaperView | CodeView] = {
            Tab.PAPER: self.paper, Tab.NUMPY: self.numpy, Tab.CUDA: self.cuda,
        }  # fmt: skip
        self._stack, runs = QStackedWidget(), session.runs
        for tab, view in self.views.items():
            title, tip = _TITLES[tab]
            self.tabs.addTab(title)
            self.tabs.setTabToolTip(self.tabs.count() - 1, tip)
            self._stack.addWidget(view)
            view.line_chosen.connect(partial(self._do, tab, lambda at: runs.run_until([at])))
            view.mark_toggled.connect(partial(self._do, tab, runs.toggle))
        self.tabs.currentChanged.connect(self._turn)
        self.recording = Button(self)
        self.recording.setText("Recording")
        self.recording.setAccessibleName("Recording")
        self.recording.setToolTip(RECORDING)
        self.recording.setCheckable(True)
        self.recording.hide()
        self.recording.toggled.connect(lambda _: self._show_kernel())
        self.bar = RunBar(session)
        session.runs.changed.connect(self._mark)
        top = with_parts(QHBoxLayout(), self.tabs, 1, self.recording)
        top.setContentsMargins(0, 0, 4, 0)
        with_parts(QVBoxLayout(self), top, (self._stack, 1), self.bar, margin=0, gap=0)
        self.setAutoFillBackground(True)
        self.set_style(Style(DARK))

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        set_sheet(self.recording, bar_sheet(style))
        for view in self.views.values():
            view.set_style(style)

    def set_stage(self, on: bool) -> None:
        self.bar.setVisible(not on)
        self._on_stage = on
        self._fit_recording()

    def _fit_recording(self) -> None:
        """Show the button beside the kernel, but not on the stage, where nobody presses it."""
        kernel = self.tabs.currentIndex() == list(self.views).index(Tab.CUDA)
        self.recording.setVisible(kernel and not self._on_stage)

    def arrange(self) -> None:
        """Make the controls smaller where the panel is low: the code needs the room."""
        style = self.style_now
        scale = min(style.scale, max(LEAST_SCALE, self.height() / ROOMY))
        font = replace(style, scale=scale).text_font(12)
        self.tabs.setFont(font)
        self.recording.setFont(font)
        wide = text_width(font, self.recording.text())
        self.recording.setFixedSize(
            round(wide + style.px(16)), round(style.px(20 * scale / style.scale))
        )
        if self.bar.style_now != replace(style, scale=scale):
            self.bar.set_style(replace(style, scale=scale))

    def show_view(self, view: View, model: None = None) -> None:
        w, op = view.snapshot.program.workload, view.snapshot.op
        wanted = code_lines(w.algorithm, w.variant)
        if self.code is not wanted or not self.cuda.toPlainText():
            self.code = wanted
            self.paper.show_paper(self.code.paper)
            self.numpy.show_text(self.code.texts(Tab.NUMPY))
            self._mark()
        self._workload = w
        self._show_kernel()
        for tab, each in self.views.items():
            each.show_current(self.code.lines(tab, op))
        lines = pointed_lines(view.points)
        if lines and lines != self.paper.page.pointed:
            self.show_tab(Tab.PAPER)
        self.paper.show_points(lines)
        struck = self._barriers({point.barrier for point in view.points} - {""})
        if struck and struck != self.cuda.struck:
            self.show_tab(Tab.CUDA)
        self.cuda.show_struck(struck)

        self.light.take(view)
        self._of_alpha = tuple(op for op in view.snapshot.ops if op.name in _OF_ALPHA)
        self._light_alpha()

    def show_share(self, share: float) -> None:
        if self.light.changes(share):
            self._light_alpha()

    def _light_alpha(self) -> None:
        """Light α in the lines of the ops that make it and multiply by it, or nowhere."""
        on = self.light.on
        self.paper.show_lit(on)
        for tab, view in ((Tab.NUMPY, self.numpy), (Tab.CUDA, self.cuda)):
            ops = self._of_alpha if on else ()
            view.show_lit({n for op in ops for n in self.code.lines(tab, op)})

    def _barriers(self, comments: set[str]) -> tuple[int, ...]:
        """Return the lines of the kernel that comments stand beside."""
        if not comments:
            return ()
        lines = kernel_lines(self.code.algorithm)
        return tuple(n.number for n in lines if n.text.partition("// ")[2] in comments)

    def _show_kernel(self) -> None:
        """Show the kernel's text; if the text is new, scroll to the lines that run now."""
        if self._workload is None:
            return
        lines = shown_lines(self._workload, recording=self.recording.isChecked())
        current, struck = self.cuda.current, self.cuda.struck
        self.cuda.show_text(lines)
        self.cuda.show_struck(struck)
        self.cuda.show_current(current)

    def show_tab(self, tab: Tab) -> None:
        """Turn to one of the texts."""
        self.tabs.setCurrentIndex(list(self.views).index(tab))

    def _turn(self, place: int) -> None:
        self._stack.setCurrentIndex(place)
        self._fit_recording()
        list(self.views.values())[place].follow()

    # --- runs and breakpoints ---------------------------------------------------------------

    def _do(self, tab: Tab, act: Callable[[Condition], None], line: int) -> None:
        """Run to a line or toggle its breakpoint; say why if it never runs."""
        condition = self.code.condition(tab, line)
        if condition is None:
            self._session.runs.say(self.code.why_never(tab, line))
        else:
            act(condition)

    def _mark(self) -> None:
        """Show the breakpoints that stand at lines."""
        found = self._session.runs.breakpoints
        paper = range(len(self.code.paper.lines))
        lines = [n for n in paper if self.code.condition(Tab.PAPER, n) in found]
        self.paper.show_marks(lines)
        own = [at for at in found if isinstance(at, AtLine) and at.algorithm == self.code.algorithm]
        for tab, view in ((Tab.NUMPY, self.numpy), (Tab.CUDA, self.cuda)):
            view.show_marks([at.line for at in own if at.tab == tab])
