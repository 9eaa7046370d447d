"""The options of an export, for the command and for the dialog, checked."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from simulator.base.errors import InputError, refuse
from simulator.program.playback import Granularity
from ui.export.formats import WITH_SOUND, Format, format_of
from ui.look.layouts import LAYOUT_NAMES
from ui.safety.program import TYPED

SIZES = ((320, 240), (7680, 4320))  # smallest and largest picture
THEME_NAMES = ("dark", "light", "contrast")
RACE = "race"  # the scene of whole runs: without visits, and with its own length of film
SCENE_NAMES = ("scene", "board", RACE, *LAYOUT_NAMES)
"""Pictures of a run, and layouts of the window."""
STEPPED = ("scene", "board")  # scenes that a reader can step through
NUMBER = re.compile(r"%(?:0[1-9])?d")  # the place of the number in a pattern of file names


Part = tuple[int | None, int | None]  # start and stop, either None for its end of the run or lesson


@dataclass(frozen=True, slots=True)
class ExportOption:
    """An option as the command line has it, and its field in the dialog."""

    told: str  # help on the command line
    label: str = ""  # of its row in the dialog; "": no row of its own
    tip: str = ""  # of its field in the dialog
    metavar: str | None = None
    read: Callable[[str], Any] = str  # from a word of the command line
    choices: tuple[str, ...] | None = None


def _said(told: str, **more: Any) -> dict[str, ExportOption]:
    return {"option": ExportOption(told, **more)}


def _part_of(text: str) -> Part:
    start, colon, stop = text.partition(":")
    if any(part and not part.isdecimal() for part in (start, stop)) or not (start or colon):
        raise ArgumentTypeError(f'"{text}": expected A:B, A: , :B or one number')
    first = int(start) if start else None
    if not colon:
        return first, int(start) + 1
    return first, int(stop) if stop else None


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of an export, in the order in which a command names them."""

    # file, or for single frames a folder (``frames/``) or a pattern (``frame-%04d.png``)
    target: str
    # fmt: off
    size: tuple[int, int] = field(
        default=(1920, 1080), metadata=_said("in pixels", metavar="1920x1080", label="Si&ze")
    )
    theme: str = field(default="dark", metadata=_said(
        "by default dark; of a handout, a PDF of a lesson, light", choices=THEME_NAMES,
        label="&Theme",
    ))
    scene: str = field(default="scene", metadata=_said(
        "board, memory and softmax (scene), the board alone, the race of the whole runs, or a "
        "layout of the window", choices=SCENE_NAMES, label="&Scene",
        tip="Pictures made for export, or the window, its layout as new.",
    ))
    visits: Part | None = field(default=None, metadata=_said(
        "visits A up to, not with, B, counted from 0; a still shows the last of them. "
        "Without this a film shows the whole run, a still the middle of it", metavar="A:B",
        read=_part_of, label="&Range",
        tip="Visits are the tiles in the order in which they are worked on.",
    ))
    steps: Part | None = field(default=None, metadata=_said(
        "the same of a lesson's steps; a picture shows the first, a PDF has a page for each",
        metavar="A:B", read=_part_of,
    ))
    fps: int = field(default=30, metadata=_said(
        "frames a second", metavar="30", read=int, label="Frames a secon&d"
    ))
    pace: float | None = field(default=None, metadata=_said(
        "for each op or tile, or step of a lesson", metavar="SECONDS", read=float,
        label="Pa&ce", tip="How long each step is seen; long runs are thinned to fit.",
    ))
    length: float | None = field(default=None, metadata=_said(
        "in all; by default 0.7 s an op or tile, and a minute in all at most; a "
        "race takes 8 s, a lesson as long as it takes to read it", metavar="SECONDS", read=float,
    ))
    by: Granularity | None = field(default=None, metadata=_said(
        "what one step is; by default an op while there are few",
        choices=(str(Granularity.OP), str(Granularity.TILE)), label="Ste&p",
        tip="What happens from one state to the next: an op, or a whole tile.",
    ))
    op: int | None = field(default=None, metadata=_said(
        "op of a still's visit, from 0", metavar="N", read=int
    ))
    row: int | None = field(default=None, metadata=_said(
        "query row to explain, from 0", metavar="N", read=int
    ))
    transparent: bool = field(default=False, metadata=_said(
        "without a ground", label="Transparent ground",
        tip="Leaves out the ground, for a slide of any colour.",
    ))
    answers: str | None = field(default=None, metadata=_said(
        "of a handout: to questions beside each step, on a last page (end, unless asked "
        "otherwise) or nowhere", choices=("beside", "end", "none"), label="&Handout",
        tip="Questions stand beside their step; their answers can be on a page of their own.",
    ))
    notes: bool = field(default=False, metadata=_said(
        "of a handout: the speaker's notes below each step", label="Notes",
        tip="Sets the speaker's notes of each step below it.",
    ))
    per_page: int = field(default=1, metadata=_said(
        "of a handout: 1 or 2 steps on a page", metavar="2", read=int,
        tip="With two, or with notes, pages are A4.",
    ))
    sound: bool = field(default=False, metadata=_said(
        "a soft tick where a tile lands, with a pitch for each tensor; in .mp4 and .webm",
        label="Sound", tip="A soft tick where a tile lands, with a pitch for each tensor.",
    ))
    # fmt: on
    lesson: bool = False  # whether a lesson is exported, and no run
    token: str = ""  # for `simulator.base.files.part_of`

    @classmethod
    def asked(cls, words: Namespace, *, lesson: bool) -> ExportOptions:
        """Return the options of a command line."""
        found = {name: getattr(words, name) for name in OPTIONS}
        found["size"] = picture_size(words.size)
        found["theme"] = words.theme or usual_theme(format_of(words.output), lesson=lesson)
        found["by"] = Granularity(words.by) if words.by else None
        return cls(words.output, **found, lesson=lesson, token=words.token)

    @property
    def format(self) -> Format:
        """The format that the target names."""
        return format_of(self.target)

    @property
    def path(self) -> Path:
        """The file, or the pattern of the files."""
        if self._made:
            return Path(self.target) / "frame-%05d.png"
        return Path(self.target)

    @property
    def _made(self) -> bool:
        """Whether the target is a folder of frames, which is made if it is missing."""
        return self.target.endswith(("/", "\\")) and self.format.ending == "frames"

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
        """Refuse options that cannot be used."""
        kind = self.format
        self._check_kind()
        for name in ("pace", "length", "by"):
            value = getattr(self, name)
            if value is not None and not (kind.film or (kind.steps and name == "by")):
                raise _wrong(f"--{name}", value, f"a format that moves, {kind.ending} is a still")
        if self.op is not None and (kind.film or kind.steps):
            raise _wrong("--op", self.op, f"a still, {kind.ending} moves")
        if kind.steps and self.scene not in STEPPED:
            raise _wrong("--scene", self.scene, f"{' or '.join(STEPPED)} in {kind.ending}")
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
        self._check_handout()
        self._check_target()

    @property
    def handout(self) -> bool:
        """Whether the export is a lesson on paper."""
        return self.lesson and self.format.paper

    def _check_handout(self) -> None:
        if not 1 <= self.per_page <= 2:
            raise _wrong("--per-page", self.per_page, "1 or 2")
        if not self.handout:
            for name in ("answers", "notes", "per_page"):
                value = getattr(self, name)
                if value != getattr(_USUAL, name):
                    shown = "" if value is True else value
                    raise _wrong(_dashed(name), shown, "a handout: a lesson as .pdf")

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
        """Refuse options that choose a moment of a run, and with `pace` the seconds of a step."""
        for name in ("visits", "by", "op", "row", *(["pace"] if pace else [])):
            value = getattr(self, name)
            if value is not None:
                shown = _range_text(value) if isinstance(value, tuple) else value
                raise _wrong(f"--{name}", shown, reason)

    def _check_target(self) -> None:
        path, folder = self.path, self.path.parent
        made = self._made
        folder = folder.parent if made else folder
        if not folder.is_dir():
            raise _wrong("-o", self.target, f"a folder {folder} that exists")
        if self.format.folder:
            if path.exists() and not (path / "index.html").is_file():
                raise _wrong("-o", self.target, "a new folder, or one of slides made before")
        elif not made and path.is_dir():
            raise _wrong("-o", self.target, f"a file, or {self.target}/ for single frames")
        numbers = path.name.count("%"), len(NUMBER.findall(path.name))
        if self.format.ending == "frames" and numbers != (1, 1):
            raise _wrong("-o", self.target, "a pattern with one number, such as frame-%04d.png")

    def range_of(self, total: int) -> range:
        """Return the visits that are shown, of a run of `total`."""
        if self.visits is None:
            whole = self.format.film or self.format.steps
            return range(total) if whole else range(total // 2, total // 2 + 1)
        return _part("--visits", self.visits, total)

    def steps_of(self, total: int) -> range:
        """Return the steps that are shown, of a lesson with `total` good ones."""
        chosen = _part("--steps", self.steps or (None, None), total)
        if self.format.film or self.format.paper or self.format.steps:
            return chosen
        only = chosen.start if self.steps is None else chosen[-1]
        return range(only, only + 1)

    def command(self, named: str) -> str:
        """Return the command that makes the same file of a scenario or lesson."""
        words = [*TYPED, *self.words(named)]
        return "".join(c if c.isprintable() else " " for c in shlex.join(words))

    def words(self, named: str) -> list[str]:
        """Return the words of `command` after the program's name."""
        words = ["export", named, "-o", self.target]
        skipped = {*(["scene"] if self.lesson else []), *([] if self.format.film else ["fps"])}
        skipped |= {"per_page"} if self.per_page == 1 else set()
        for name in OPTIONS:
            value = getattr(self, name)
            if value is None or value is False or name in skipped:
                continue
            words.append(_dashed(name))
            if name == "size":
                words.append("{}x{}".format(*value))
            elif value is not True:
                words.append(_range_text(value) if isinstance(value, tuple) else str(value))
        return words


OPTIONS: dict[str, ExportOption] = {
    each.name: each.metadata["option"]
    for each in fields(ExportOptions)
    if "option" in each.metadata
}
"""Options by name; on a command line two dashes come before the name, one between its words."""


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def add_options(parser: ArgumentParser) -> None:
    """Let a command line take every option; defaults are as in `ExportOptions`."""
    given = {"size": "1920x1080", "theme": None}  # read and chosen later
    for name, option in OPTIONS.items():
        default = given.get(name, getattr(_USUAL, name))
        if default is False:
            parser.add_argument(_dashed(name), action="store_true", help=option.told)
        else:
            parser.add_argument(
                _dashed(name), type=option.read, choices=option.choices, metavar=option.metavar,
                default=default, help=option.told,
            )  # fmt: skip


_USUAL = ExportOptions("")


def usual_theme(kind: Format, *, lesson: bool, usual: str = "dark") -> str:
    """Return the theme if none is asked for: `usual`, but a handout is for paper."""
    return "light" if lesson and kind.paper else usual


def picture_size(text: str) -> tuple[int, int]:
    """Return width and height from text such as ``1920x1080``."""
    width, _, height = text.replace("×", "x").replace(" ", "").partition("x")
    if not (width.isdecimal() and height.isdecimal()) or max(len(width), len(height)) > 5:
        raise _wrong("--size", text, "WIDTHxHEIGHT, such as 1920x1080")
    return int(width), int(height)


def _part(option: str, wanted: Part, total: int) -> range:
    start, stop = wanted[0] or 0, total if wanted[1] is None else wanted[1]
    if not 0 <= start < stop <= total:
        raise _wrong(option, f"{start}:{stop}", f"A:B with 0 <= A < B <= {total}")
    return range(start, stop)


def _range_text(part: Part) -> str:
    return ":".join("" if end is None else str(end) for end in part)


def _wrong(option: str, value: object, expected: str) -> InputError:
    return refuse("export", option, value, expected)
