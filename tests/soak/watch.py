"""What is looked at while a window is used: memory, objects, blocks, and whatever goes wrong."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from sys import _current_frames  # Python documents it for tools like this one
from typing import ClassVar, TypeVar

import psutil
from PySide6.QtCore import QObject, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from ui.safety.heap import give_back

T = TypeVar("T")
MIB = 2**20
LONG_MS = 150
"""Of a block: one that is told with what ran in it."""
_LOOK_S, _MOST_LOOKS, _TOLD = 0.01, 1000, 30
_SOURCES = Path(__file__).resolve().parents[2]
HARMLESS = (
    "This plugin does not support",
    "QStandardPaths: XDG_RUNTIME_DIR not set",
    "Mouse event at",
)
"""What the offscreen platform says of itself, and Qt's tests of a place beside a window."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What there is after so many actions, with nothing open and garbage collected."""

    actions: int  # actions done
    seconds: float  # since the beginning
    # rss, held: MiB of memory, after what is free was given back to the system, and before
    rss: float
    held: float
    objects: int  # objects that Python's collector knows
    # qobjects, widgets: in all windows, shown or not, and all widgets
    qobjects: int
    widgets: int


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch in which the window took no input: a key or a move of the mouse with all that is
    due at once, an action without them, or all that is due after it.

    It is judged by what its thread computed: what passes is as much the machine's other work.
    """

    # cpu, wall: milliseconds that its thread computed, and that passed
    cpu: float
    wall: float
    what: str  # the action
    at: int  # which action it was
    # the functions of the program that ran for most of it, if it was long, with their shares
    where: tuple[str, ...] = ()


def sample(actions: int, seconds: float) -> Sample:
    """Collect, give memory back, and count.

    Panels of closed docks are in no window that is shown, but count, too.
    """
    for _ in range(3):
        gc.collect()
    held = psutil.Process().memory_info().rss / MIB
    give_back()
    roots = [each for each in QApplication.topLevelWidgets() if each.parent() is None]
    return Sample(
        actions=actions,
        seconds=seconds,
        rss=psutil.Process().memory_info().rss / MIB,
        held=held,
        objects=len(gc.get_objects()),
        qobjects=sum(map(objects_of, roots)),
        widgets=len(QApplication.allWidgets()),
    )


def objects_of(root: QObject) -> int:
    """Count an object and all in it, without making an object in Python for each: it would stay."""
    told: list[str] = []
    before = qInstallMessageHandler(lambda kind, context, text: told.append(text))
    root.dumpObjectTree()
    qInstallMessageHandler(before)
    return len(told)


class Failures:
    """Takes every error and every warning of Qt's, with the action that was going on."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.during = ""
        self._before = sys.excepthook, threading.excepthook, sys.unraisablehook
        sys.excepthook = lambda kind, error, trace: self._take(error)
        threading.excepthook = lambda args: self._take(args.exc_value)
        sys.unraisablehook = lambda args: self._take(args.exc_value)
        self._messages = qInstallMessageHandler(self._take_message)

    def close(self) -> None:
        """Leave errors to those who had them before."""
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._before
        qInstallMessageHandler(self._messages)

    def add(self, text: str) -> None:
        """Note something that must not be."""
        if text not in self.told:
            print(f"FAILURE during {self.during}\n{text}", flush=True)
        self.told[text] += 1

    def keep(self, act: Callable[[], T]) -> T | None:
        """Do something and return what it says; what it raises is noted, as the window would."""
        try:
            return act()
        except Exception as error:
            self._take(error)
            return None

    def _take(self, error: BaseException | None) -> None:
        if error is not None:
            self.add("".join(traceback.format_exception(error)).rstrip())

    def _take_message(self, kind: QtMsgType, context: object, text: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not text.startswith(HARMLESS):
            self.add(f"Qt: {text}")


class Witness:
    """Looks every few milliseconds at what a thread does, from another thread.

    Used as a context manager in the thread that it looks at.
    """

    looking: ClassVar[Witness | None] = None

    def __enter__(self) -> Witness:
        self.seen: deque[tuple[float, tuple[str, ...]]] = deque(maxlen=_MOST_LOOKS)
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        Witness.looking = self
        return self

    def __exit__(self, *_: object) -> None:
        Witness.looking = None
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            frame = _current_frames().get(self._watched)
            names = []
            while frame is not None:
                path = Path(frame.f_code.co_filename)
                if path.is_relative_to(_SOURCES) and "site-packages" not in path.parts:
                    names.append(f"{path.relative_to(_SOURCES)}:{frame.f_code.co_name}")
                frame = frame.f_back
            self.seen.append((time.perf_counter(), tuple(names)))

    @classmethod
    def since(cls, start: float) -> tuple[str, ...]:
        """Return what has been seen to run since `start`, a time of `perf_counter`."""
        if cls.looking is None:
            return ()
        seen = [names for at, names in list(cls.looking.seen) if at >= start]
        took = Counter(name for names in seen for name in dict.fromkeys(names))
        return tuple(
            f"{100 * count / len(seen):3.0f} % {name}" for name, count in took.most_common(_TOLD)
        )


class Stopwatch:
    """Measures the longest stretch in which the window took no input: `lap` ends one.

    cpu, wall: milliseconds that its thread computed, and that passed.
    where: what ran, if it was longer than `LONG_MS` and a `Witness` looked.
    """

    _running: ClassVar[list[Stopwatch]] = []

    def __enter__(self) -> Stopwatch:
        self.cpu = self.wall = 0.0
        self.where: tuple[str, ...] = ()
        self.begin()
        self._running.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.remove(self)
        self.end()

    @classmethod
    def lap(cls) -> None:
        """Say that the window would take input here: between two keys or moves of the mouse."""
        for each in cls._running:
            each.end()
            each.begin()

    def begin(self) -> None:
        """Begin to count."""
        self._since = time.thread_time(), time.perf_counter()

    def end(self) -> None:
        """Note what has been counted since."""
        cpu, wall = self._since
        stretch = 1000 * (time.thread_time() - cpu), 1000 * (time.perf_counter() - wall)
        if stretch[0] > max(self.cpu, LONG_MS):
            self.where = Witness.since(wall)
        self.cpu, self.wall = max((self.cpu, self.wall), stretch)


def load() -> str:
    """Return how busy the machine is, in words."""
    return " ".join(f"{part:.1f}" for part in os.getloadavg())
