"""Makes a file of frames: one thread paints, another encodes, the caller waits.

One image is painted again and again, and a few frames copied from it wait between the threads, so
memory does not grow with the length. Widgets are painted by the caller, in the widgets' thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from PySide6.QtGui import QImage

from ui.export.frames import FrameSource, new_image, paint_frame
from ui.safety.faults import Errand
from ui.session.tasks import Report

T = TypeVar("T")

SEGMENT = 120  # frames of a segment, which is encoded on its own
WAITING = 3  # most frames that wait to be encoded
_LOOK = 0.03  # seconds between two checks whether the film is still wanted
_PATIENCE = 0.1  # seconds that an encoder is given to stop


class FrameWriter(Protocol):
    """Writes frames into a file that is open."""

    def prepare(self, image: QImage) -> Any:
        """Return a copy of an image for `add`, because the image is painted again afterwards.

        `prepare` is called in the painting thread, all other methods in the encoding thread.
        """

    def sample(self, frame: Any) -> None:
        """See a frame from anywhere in the film, before the first one is added."""

    def add(self, frame: Any) -> None:
        """Write the next frame; None: the same as the previous one."""

    def close(self) -> None:
        """Write the end."""


class _Stopped(Exception):  # noqa: N818 - it is no error
    """The film is no longer wanted."""


class Film:
    """A film being made."""

    def __init__(self, source: FrameSource, writer: FrameWriter, samples: int = 0) -> None:
        self._source, self._writer = source, writer
        count = len(source)
        self._samples = [(2 * n + 1) * count // (2 * samples) for n in range(min(samples, count))]
        self._ready: queue.Queue[Any] = queue.Queue(WAITING)
        self._stopped = threading.Event()
        self._over = threading.Event()
        self._look: Callable[[], None] = _nothing
        self._written = 0

    def make(self, report: Report) -> None:
        """Make the whole film; an error in `report` or an interrupt ends the work."""
        here = self._source.in_gui
        parts: dict[str, Callable[[], None]] = {"encode": self._encode}
        if not here:
            parts["paint"] = self._paint
        threads = {
            name: Errand(name, partial(_until_stopped, part), failed=self._over.set)
            for name, part in parts.items()
        }
        for thread in threads.values():
            thread.start()
        try:
            if here:
                self._look = partial(self._look_up, report)
                with suppress(_Stopped):
                    self._paint()
            while not self._over.wait(_LOOK):
                report(self._share)
        finally:
            self._stopped.set()
            if not here:
                threads["paint"].join()
            # The caller does not wait for an encoder at a large frame: its file is not kept.
            threads["encode"].join(_PATIENCE)
        for thread in threads.values():
            thread.check()
        report(1.0)

    @property
    def _share(self) -> float:
        return self._written / len(self._source)

    def _look_up(self, report: Report) -> None:
        """Report the progress, and stop if the encoder has failed."""
        if self._over.is_set():
            raise _Stopped
        report(self._share)

    def _paint(self) -> None:
        image = new_image(self._source)
        for k in self._samples:
            self._look()
            self._put(self._painted(k, image))
        last: Hashable = None
        for k in range(len(self._source)):
            self._look()
            key = (self._source.key(k),)
            self._put(None if key == last else self._painted(k, image))
            last = key

    def _painted(self, k: int, image: QImage) -> Any:
        self._source.make_ready(k, self._look)
        self._look()
        return self._writer.prepare(paint_frame(self._source, k, image))

    def _encode(self) -> None:
        for _ in self._samples:
            self._writer.sample(self._take())
        for _ in range(len(self._source)):
            self._writer.add(self._take())
            self._written += 1
        self._writer.close()
        self._over.set()

    def _put(self, frame: Any) -> None:
        self._wait(lambda timeout: self._ready.put(frame, timeout=timeout), self._look)

    def _take(self) -> Any:
        return self._wait(self._ready.get, _nothing)

    def _wait(self, act: Callable[..., T], look: Callable[[], None]) -> T:
        while not self._stopped.is_set():
            try:
                return act(timeout=_LOOK)
            except (queue.Empty, queue.Full):
                look()
        raise _Stopped


def _until_stopped(part: Callable[[], None]) -> None:
    with suppress(_Stopped):
        part()


def _nothing() -> None:
    """Check nothing: the waiting thread checks everything."""
