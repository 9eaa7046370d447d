"""The dock of ring attention: devices, their steps, the links between them."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QSlider, QWidget

from simulator.lesson.tables import ChooseTable
from simulator.problem.hardware import links
from simulator.problem.scenario import MAX_DEVICES, Layout
from simulator.program.playback import SECONDS_PER_MOVE
from simulator.run.trace import Trace
from simulator.study.ring.dealing import DEVICES, LAYOUTS
from simulator.study.ring.timeline import ring_timeline
from ui.look.units import plural
from ui.panels.base import StatePicture
from ui.panels.picture_panel import PicturePanel
from ui.panels.ring.model import SHOWS, RingFound, RingState, Shows, ring_found, summary
from ui.panels.ring.painter import MIN_SIZE, paint_ring, ring_layout
from ui.safety.overrides import guarded
from ui.session.panel_clock import PanelClock
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Choice, Option, one_of

_TIPS = (
    "Device n holds part n of the sequence (Liu et al. 2023).",
    "Device n holds parts n and 2g − 1 − n of 2g (zhuzilin/ring-flash-attention).",
    "Device n holds every g-th token from n on (Brandon et al. 2023).",
)
_USUAL_LINK = "NVLink-4"
_SLIDER = 22
"""Height of the slider, pixels."""
CHOICES = (
    Choice("shows", (
        Option("time", "Time", "Time", "When each device works and sends: a model."),
        Option("numbers", "Numbers", "Numbers",
               "m, ℓ and O of a device's rows after each step, as they are computed."),
    )),
    Choice("layout", tuple(
        Option(name, name, name, tip) for name, tip in zip(LAYOUTS, _TIPS, strict=True)
    ), listed=True),
    Choice("devices", tuple(
        Option(str(n), plural(n, "device"), "", "The same problem on so many devices.")
        for n in range(2, MAX_DEVICES + 1)
    ), listed=True),
    Choice("link", tuple(
        Option(each.name, f"{each.title}: {each.gbps:g} GB/s", "",
               f"One direction, as published: {each.of} (assets/links.toml).")
        for each in links().values()
    ), listed=True),
    Choice("sending", (
        Option("overlapped", "during the work", "", "A block travels while it is worked on."),
        Option("after", "after the work", "", "A block travels when the work on it is done."),
    ), listed=True),
)  # fmt: skip


@guarded
class RingPicture(StatePicture[RingState]):
    """The picture; a click on a lane marks its device, arrows mark steps and devices."""

    marked = Signal(int, int)
    """Step and device."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Devices of a ring", paint_ring)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.state is None:
            return
        lay = ring_layout(self.state, self.style_now, QRectF(self.rect()))
        device = lay.device_at(event.position())
        if device is not None and self.state.shows == "time":
            self.marked.emit(self.state.step, device)

    def event(self, event: QEvent) -> bool:
        """Keep its keys from the run while it has the keyboard focus."""
        asks = event.type() is QEvent.Type.ShortcutOverride
        if asks and isinstance(event, QKeyEvent) and self._after(event) is not None:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        after = self._after(event)
        if after is None:
            super().keyPressEvent(event)
        else:
            self.marked.emit(*after)

    def _after(self, event: QKeyEvent) -> tuple[int, int] | None:
        """Return the step and device after a key; None if it is not one of these."""
        moves = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
                 Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}  # fmt: skip
        turn = moves.get(Qt.Key(event.key()))
        if turn is None or self.state is None:
            return None
        return self.state.step + turn[0], self.state.device + turn[1]


@guarded
class RingPanel(PicturePanel):
    """The run dealt out to a ring of devices: each device and step, links, and the same O.

    Blocks are seen on their way to a step that follows the one shown, as long as a load takes on
    the board: in films, which have no clock, and without motion, the step is there at once.

    Parameters
    ----------
    session : Session
        Whose run it shows.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("ring_panel", "Ring", CHOICES, MIN_SIZE)
        self._session = session
        self.shows: Shows = "time"
        self.layout_name: Layout = LAYOUTS[0]
        self.devices = DEVICES
        self.link = _USUAL_LINK
        self.overlapped = True
        self._said: tuple[int, Layout] | None = None
        self._asked: tuple[Trace, int, int, Layout] | None = None
        self.picture = RingPicture(self)
        self.picture.marked.connect(self.mark)
        self.slider = QSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("ring step")
        self.slider.setAccessibleName("Step of the ring")
        self.slider.setToolTip("Which step is marked.")
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(self._slide)
        self.clock = PanelClock(session, self, SECONDS_PER_MOVE)
        self.clock.moved.connect(self._moved)
        self._show_chosen()

    @property
    def state(self) -> RingState | None:
        """What is shown."""
        return self.picture.state

    def forget(self) -> None:
        self.clock.finish()
        self._asked = self.picture.state = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run or head has other numbers, and may say how it is dealt out."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        said = trace.workload.scenario.tiling
        tiling = said.devices or DEVICES, said.layout or LAYOUTS[0]
        if tiling != self._said:
            self._said = tiling
            self.devices, self.layout_name = tiling
            self._show_chosen()
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        self._ask(trace, head)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        self.clock.finish()
        if name == "shows":
            self.shows = one_of(SHOWS, value)
        elif name == "layout":
            self.layout_name = one_of(LAYOUTS, value)
        elif name == "devices":
            self.devices = int(value)
        elif name == "link":
            self.link = value
        else:
            self.overlapped = value == "overlapped"
        if name in ("layout", "devices"):
            if self._asked is not None:
                self._ask(*self._asked[:2])
        elif self.state is not None:
            self._draw(self._state(self.state.found, self.state))

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("shows", choices.ring or "time")
        self.bar.choose("link", choices.link or _USUAL_LINK)
        if choices.step is not None:
            self.slider.setValue(choices.step)

    def mark(self, step: int, device: int) -> None:
        """Mark a step and a device; another step ends what is under way."""
        if self.state is None:
            return
        before = self.state.step
        self._draw(self.state.at(step, device))
        if self.state.step == before + 1 and self.shows == "time" and self._controls:
            self.clock.start()
        elif self.state.step != before:
            self.clock.finish()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.clock.finish()

    def show_controls(self, on: bool) -> None:
        self.slider.setVisible(on)
        super().show_controls(on)

    def arrange(self) -> None:
        """Give the slider a line below the choices."""
        super().arrange()
        if self.slider.isHidden():
            return
        place = self.picture.geometry()
        self.slider.setGeometry(place.x(), place.y(), place.width(), _SLIDER)
        self.picture.setGeometry(place.adjusted(0, _SLIDER, 0, 0))

    def _show_chosen(self) -> None:
        sending = "overlapped" if self.overlapped else "after"
        for name, value in (("shows", self.shows), ("layout", self.layout_name),
                            ("devices", str(self.devices)), ("link", self.link),
                            ("sending", sending)):  # fmt: skip
            self.bar.show_chosen(name, value)

    def _slide(self, step: int) -> None:
        if self.state is not None:
            self.mark(step, self.state.device)

    def _ask(self, trace: Trace, head: int) -> None:
        asked = trace, head, self.devices, self.layout_name
        if asked == self._asked:
            return
        self._asked = asked

        def job(report: Report) -> RingFound:
            _, _, devices, layout = asked
            return ring_found(*trace.single_heads, head, devices, layout, report)

        def done(found: RingFound) -> None:
            if self._asked == asked:
                self.clock.finish()
                self._draw(self._state(found, self.state))

        self._session.tasks.start("ring", "a ring of devices", job, done)

    def _state(self, found: RingFound, before: RingState | None) -> RingState:
        work, link = found.work, links()[self.link]
        times = None if work is None else ring_timeline(work, link, self.overlapped)
        state = RingState(found, times, self.shows)
        if before is not None:
            device = before.device
        else:  # under a causal mask nothing is ever merged on the first
            device = 0 if work is None else int(work.flops.sum(axis=1).argmax())
        return state.at(self.slider.value(), device)

    def _moved(self) -> None:
        if self.state is not None:
            state = replace(self.state, share=self.clock.share)
            if self.clock.running:
                self.picture.state = state
                self.picture.update()
            else:
                self._draw(state)

    def _draw(self, state: RingState) -> None:
        work = state.found.work
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, 0 if work is None else work.ring.devices - 1)
        self.slider.setValue(state.step)
        self.slider.blockSignals(blocked)
        self.picture.state = state
        self.describe(summary(state))
