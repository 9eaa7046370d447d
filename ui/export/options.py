"""What to export: the options of the command and of the dialog, checked."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from simulator.base.errors import InputError, refuse
from simulator.program.playback import Granularity
from ui.export.formats import WITH_SOUND, Format, format_of
from ui.look.layouts import LAYOUT_NAMES

SIZES = ((320, 240), (7680, 4320))
"""Smallest and largest picture."""
THEME_NAMES = ("dark", "light", "contrast")
RACE = "race"
"""The scene of whole runs: it has no visits, and its film has a length of its own."""
SCENE_NAMES = ("scene", "board", RACE, *LAYOUT_NAMES)
"""Pictures of a run, and layouts of the window."""
NUMBER = re.compile(r"%(?:0[1-9])?d")
"""The part of a pattern of file names where the number is."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to export, and how."""

    # file, or for single frames a folder (``frames/``) or a pattern (``frame-%04d.png``)
    target: str
    size: tuple[int, int] = (1920, 1080)  # width and height in pixels
    fps: int = 30  # frames a second
    # start and stop, either None for its end of the run; None for what suits the format
    visits: tuple[int | None, int | None] | None = None
    theme: str = "dark"  # theme, scene: names of a theme and of a scene
    scene: str = "scene"
    by: Granularity | None = None  # what one step is, op or tile
    pace: float | None = None  # pace, length: seconds for each step, or in all
    length: float | None = None
    transparent: bool = False  # whether there is no background
    sound: bool = False  # whether a tick is heard where a tile lands
    # for a still: the op of its visit that is done last; None for the visit's last
    op: int | None = None
    row: int | None = None  # the row that is explained; None for the middle of the row block
    steps: tuple[int | None, int | None] | None = None  # of a lesson: start and stop, as `visits`
    lesson: bool = False  # whether it is a lesson that is exported, and no run
    token: str = ""  # for `simulator.base.files.part_of`

    @property
    def format(self) -> Format:
        """The format that the target names."""
        return format_of(self.target)

    @property
    def path(self) -> Path:
        """The file, or the pattern of the files."""
        if self.target.endswith(("/", "\\")):
            return Path(self.target) / "frame-%05d.png"
        return Path(self.target)

    @property
    def there(self) -> list[Path]:
        """The existing files that would be replaced, sorted."""
        path = self.path
        if self.format.ending != "frames":
            return [path] if path.exists() else []
        if not path.parent.is_dir():
            return []
        before, _, after = NUMBER.sub("\n", path.name).partition("\n")
        frame = re.compile(rf"{re.escape(before)}\d+{re.escape(after)}")
        return sorted(found for found in path.parent.iterdir() if frame.fullmatch(found.name))

    def check(self) -> None:
        """Refuse options that cannot be used.

        Raises
        ------
        InputError
            Names the option, its value and what was expected.
        """
        kind = self.format
        self._check_kind()
        for option, value in (("--pace", self.pace), ("--length", self.length), ("--by", self.by)):
            if value is not None and not kind.film:
                raise _wrong(option, value, f"a format that moves, {kind.ending} is a still")
        if self.op is not None and kind.film:
            raise _wrong("--op", self.op, f"a still, {kind.ending} moves")
        for option, seconds in (("--pace", self.pace), ("--length", self.length)):
            if seconds is not None and not 0.001 <= seconds <= 86_400:
                raise _wrong(option, seconds, "0.001 to 86400 seconds")
        if self.pace is not None and self.length is not None:
            raise _wrong("--length", self.length, "either --pace or --length, not both")
        if not 1 <= self.fps <= kind.most_fps:
            raise _wrong("--fps", self.fps, f"1 to {kind.most_fps} in {kind.ending}")
        if self.transparent and not kind.transparent:
            raise _wrong("--transparent", "", f"a format that can, {kind.ending} cannot")
        if self.transparent and (self.lesson or self.scene in LAYOUT_NAMES):
            raise _wrong("--transparent", "", "the scene or the board: a window has a ground")
        if self.sound and not kind.sound:
            wanted = f"a format with sound ({', '.join(WITH_SOUND)}), {kind.ending} has none"
            raise _wrong("--sound", "", wanted)
        (low, high), (width, height) = SIZES, self.size
        if not (low[0] <= width <= high[0] and low[1] <= height <= high[1]):
            raise _wrong("--size", f"{width}x{height}", "320x240 to 7680x4320")
        if kind.even and (width % 2 or height % 2):
            near = f"{width + width % 2}x{height + height % 2}"
            wanted = f"even numbers in {kind.ending}, such as {near}"
            raise _wrong("--size", f"{width}x{height}", wanted)
        self._check_target()

    def _check_kind(self) -> None:
        if not self.lesson:
            if self.steps is not None:
                raise _wrong("--steps", _range_text(self.steps), "a lesson; a run has --visits")
            if self.scene == RACE:
                reason = "nothing: a race shows the whole runs, and a film of it has --length"
                self._check_none(reason, pace=True)
                if self.sound:
                    raise _wrong("--sound", "", "a film in which tiles are seen, a race shows none")
            return
        reason = "nothing: a lesson says it in its steps"
        if self.scene != "scene":
            raise _wrong("--scene", self.scene, reason)
        self._check_none(reason)

    def _check_none(self, reason: str, *, pace: bool = False) -> None:
        """Refuse what chooses a moment of a run, and if `pace` says so the seconds of a step."""
        mine = (
            ("--visits", None if self.visits is None else _range_text(self.visits)),
            ("--by", self.by), ("--op", self.op), ("--row", self.row),
            ("--pace", self.pace if pace else None),
        )  # fmt: skip
        for option, value in mine:
            if value is not None:
                raise _wrong(option, value, reason)

    def _check_target(self) -> None:
        path, folder = self.path, self.path.parent
        made = self.target.endswith(("/", "\\"))  # the last folder is made if it is missing
        folder = folder.parent if made else folder
        if not folder.is_dir():
            raise _wrong("-o", self.target, f"a folder {folder} that exists")
        if not made and path.is_dir():
            raise _wrong("-o", self.target, f"a file, or {self.target}/ for single frames")
        numbers = path.name.count("%"), len(NUMBER.findall(path.name))
        if self.format.ending == "frames" and numbers != (1, 1):
            raise _wrong("-o", self.target, "a pattern with one number, such as frame-%04d.png")

    def range_of(self, total: int) -> range:
        """Return the visits that are shown, of a run of `total`.

        Raises
        ------
        InputError
            There are no such visits.
        """
        if self.visits is None:
            return range(total) if self.format.film else range(total // 2, total // 2 + 1)
        return _part("--visits", self.visits, total)

    def steps_of(self, total: int) -> range:
        """Return the steps that are shown, of a lesson with `total` good ones.

        Raises
        ------
        InputError
            There are no such steps.
        """
        chosen = _part("--steps", self.steps or (None, None), total)
        if self.format.film or self.format.pages:
            return chosen
        only = chosen.start if self.steps is None else chosen[-1]
        return range(only, only + 1)

    def command(self, named: str) -> str:
        """Return the command that makes the same file of a scenario or lesson."""
        words = ["python", "-m", "ui", *self.words(named)]
        return "".join(c if c.isprintable() else " " for c in shlex.join(words))

    def words(self, named: str) -> list[str]:
        """Return the words after the program's name in that command."""
        width, height = self.size
        words = ["export", named, "-o", self.target]
        words += ["--size", f"{width}x{height}", "--theme", self.theme]
        if not self.lesson:
            words += ["--scene", self.scene]
        for option, part in (("--visits", self.visits), ("--steps", self.steps)):
            if part is not None:
                words += [option, _range_text(part)]
        if self.format.film:
            words += ["--fps", str(self.fps)]
        for option, value in (
            ("--pace", self.pace), ("--length", self.length), ("--by", self.by),
            ("--op", self.op), ("--row", self.row),
        ):  # fmt: skip
            if value is not None:
                words += [option, str(value)]
        for option, on in (("--transparent", self.transparent), ("--sound", self.sound)):
            if on:
                words.append(option)
        return words


def usual_theme(kind: Format, *, lesson: bool, usual: str = "dark") -> str:
    """Return the theme if none is asked for: `usual`, but a handout is for paper."""
    return "light" if lesson and kind.pages else usual


def picture_size(text: str) -> tuple[int, int]:
    """Return width and height from text such as ``1920x1080``.

    Raises
    ------
    InputError
        It is something else.
    """
    width, _, height = text.replace("×", "x").replace(" ", "").partition("x")
    if not (width.isdecimal() and height.isdecimal()) or max(len(width), len(height)) > 5:
        raise _wrong("--size", text, "WIDTHxHEIGHT, such as 1920x1080")
    return int(width), int(height)


def _part(option: str, wanted: tuple[int | None, int | None], total: int) -> range:
    start, stop = wanted[0] or 0, total if wanted[1] is None else wanted[1]
    if not 0 <= start < stop <= total:
        raise _wrong(option, f"{start}:{stop}", f"A:B with 0 <= A < B <= {total}")
    return range(start, stop)


def _range_text(part: tuple[int | None, int | None]) -> str:
    return ":".join("" if end is None else str(end) for end in part)


def _wrong(option: str, value: object, expected: str) -> InputError:
    return refuse("export", option, value, expected)
