"""Makes an export: frames and options become a file that is written whole or not at all."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from PySide6.QtGui import QImage

from simulator.base.errors import InputError, Mistake, refuse, unusable
from simulator.base.files import clear_stale, part_of, write_atomically
from simulator.lesson.link import ViewLink
from simulator.lesson.steps import Lesson
from simulator.program.playback import Cursor, end_of_visit, first_cursor
from simulator.run.trace import Trace
from ui.export.film import SEGMENT, Film, FrameWriter
from ui.export.formats import WITH_SOUND
from ui.export.frames import Excerpt, FrameSource, RunFrames, new_image, paint_frame, shown_row
from ui.export.options import NUMBER, RACE, ExportOptions
from ui.export.race_frames import RaceFrames, race_times
from ui.export.sound import Sound, landings_of_lesson, landings_of_run
from ui.export.stepping import PageSource, RunPages
from ui.export.timeline import Still, Timeline, make_timeline, rescales_of
from ui.export.writers.metadata import Note, note_of
from ui.export.writers.pixels import Changes, Patch, pixels_of
from ui.export.writers.png import ApngWriter, Pixels, write_png
from ui.export.writers.vector import pdf_bytes, svg_bytes
from ui.look.layouts import LAYOUT_NAMES
from ui.look.theme import THEMES
from ui.session.tasks import Report

if TYPE_CHECKING:
    from ui.export.slides import FilmedPages
    from ui.export.unseen_window import WindowFactory  # imports the panels
    from ui.export.writers.video import VideoWriter

GIF_SAMPLES = 6  # frames from whose colours the palette is made


class PartMaker(Protocol):
    """Makes the parts of an export elsewhere."""

    def frames(self, parts: Sequence[range], look: Callable[[], None]) -> Iterator[list[Any]]:
        """Yield the frames of each part in order: `CodedFrame` of a film, PNG files otherwise."""

    def whole(self, note: Note, look: Callable[[], None]) -> bytes:
        """Return the file of an export that has no parts."""


@dataclass(frozen=True, slots=True)
class Export:
    """An export that is ready to start."""

    options: ExportOptions  # the options of the command or dialog
    source: FrameSource | PageSource  # the pictures
    note: Note  # origin of the file, written into it
    words: str  # length and kind of the file, for users
    sound: Sound | None = None  # sound of a film

    def make(self, report: Report, parts: PartMaker | None = None) -> None:
        """Make the export.

        report: called with the share done; an error in it ends the work, and the target stays as
            it was.
        """
        try:
            self._write(report, parts)
        except Exception:
            self.source.close()
            raise
        # An interrupt ends the program, so no thread is waited for.
        self.source.close()

    @property
    def frames(self) -> FrameSource:
        """The source of a film or of single frames."""
        return cast(FrameSource, self.source)

    def _write(self, report: Report, parts: PartMaker | None) -> None:
        """Write the frames or the steps of the source, in the format of the options."""
        options, note = self.options, self.note
        ending, theme = options.format.ending, options.theme
        data: bytes | None = None
        if options.format.codec:
            check_codec(options.format.codec, options.target)
        if self.sound is not None:
            check_codec(options.format.sound, options.target)
        try:
            if parts is not None and ending not in (*WITH_SOUND, "frames"):
                data = parts.whole(note, lambda: report(0.0))
            elif ending == ".html":
                from ui.export.writers.html import html_bytes

                data = html_bytes(cast(PageSource, self.source), note, report, theme)
            elif ending == ".pptx":
                from ui.export.writers.pptx import pptx_bytes

                pages = cast("FilmedPages", self.source)
                data = pptx_bytes(pages, note, report, theme, options.target)
            elif options.format.folder:
                from ui.export.writers.reveal import write_reveal

                pages = cast("FilmedPages", self.source)
                _write_folder(options, partial(write_reveal, pages, note, report, theme))
            elif ending == "frames":
                _write_sequence(self, report, parts)
            elif ending in _DRAWN:
                data = _DRAWN[ending](self.frames, note, report)
            else:
                film = partial(_film, self, report, parts)
                write_atomically(options.path, film, options.token)
            if data is not None:
                whole = data
                report(1.0)
                write_atomically(options.path, lambda out: out.write(whole), options.token)
        except _no_film_errors() as error:
            raise unusable(options.target, "a file that can be written", error) from None


def prepare(
    trace: Trace,
    options: ExportOptions,
    scenario: str,
    version: str,
    new_window: WindowFactory | None = None,
) -> Export:
    """Return the export of a run; nobody else may use its trace until the export is made."""
    options.check()
    source: FrameSource
    view = partial(_view, trace, options)
    folder, command = options.path.parent, options.command(scenario)
    if options.scene == RACE:
        program, film = trace.program, options.format.film
        times = race_times(program, film=film, fps=options.fps, length=options.length)
        source = RaceFrames(
            program, times, THEMES[options.theme], options.size, transparent=options.transparent
        )
        note = note_of(view(first_cursor()), folder, version, command)
        return Export(options, source, note, times.words)
    visits = options.range_of(len(trace))
    if options.row is not None and not 0 <= options.row < trace.workload.seqlen_q:
        raise refuse("export", "--row", options.row, f"0 to {trace.workload.seqlen_q - 1}")
    if options.format.steps:
        pages = RunPages(
            trace, visits, options.scene, _steps_size(options), by=options.by, row=options.row,
            slides=options.format.slides,
        )  # fmt: skip
        begin = end_of_visit(trace.program, visits[0])
        note = note_of(view(begin), folder, version, command)
        return Export(options, pages, note, pages.words)
    moments: Timeline | Still
    sound = None
    if options.format.film:
        moments = make_timeline(
            trace.program, visits, fps=options.fps, by=options.by,
            pace=options.pace, length=options.length, rescales=rescales_of(trace, visits),
        )  # fmt: skip
        words = moments.words
        sound = Sound(landings_of_run(moments)) if options.sound else None
    else:
        last = end_of_visit(trace.program, visits[-1])
        op = last.op if options.op is None else options.op
        if not 0 <= op <= last.op:
            raise refuse("export", "--op", op, f"0 to {last.op}")
        moments = Still(Cursor(last.visit, op))
        words = f"visit {last.visit}, op {op}"
    if options.scene in LAYOUT_NAMES:
        from ui.export.layout_frames import LayoutFrames  # imports the whole window

        assert new_window is not None
        source = LayoutFrames(
            trace, moments, options.scene, options.theme, options.size, new_window, row=options.row
        )
    else:
        source = RunFrames(
            trace, moments, options.scene, THEMES[options.theme], options.size,
            transparent=options.transparent, row=options.row,
        )  # fmt: skip
    note = note_of(view(moments.moment(0).cursor), folder, version, command)
    return Export(options, source, note, words, sound)


def _view(trace: Trace, options: ExportOptions, begin: Cursor) -> ViewLink:
    """Return the view with which an export of a run begins."""
    row = shown_row(trace.program.visit(begin.visit).rows, options.row)
    layout = options.scene if options.scene in LAYOUT_NAMES else ""
    return ViewLink(trace.workload.scenario, begin, row, layout)


def prepare_lesson(
    lesson: Lesson,
    options: ExportOptions,
    named: str,
    version: str,
    new_window: WindowFactory,
    engine: str = "auto",
) -> Export:
    """Return the export of a lesson; a step is computed when its frames are needed."""
    from ui.export.handout import Handout
    from ui.export.lesson_frames import LessonFrames
    from ui.export.storyboard import handout, handout_words, make_storyboard

    options.check()
    if not lesson.steps:
        wrong = lesson.mistakes[0].mistake if lesson.mistakes else Mistake("", "", "a step")
        raise InputError(lesson.source, [wrong])
    steps = options.steps_of(len(lesson.steps))
    at = lesson.steps[steps.start]
    view = ViewLink(at.scenario, at.cursor, at.row, at.layout, at.panel, at.choices)
    note = note_of(view, options.path.parent, version, options.command(named))
    note = replace(note, title=lesson.title)
    if options.format.steps:
        from ui.export.lesson_pages import LessonPages

        leaves = LessonPages(lesson, steps, _steps_size(options), new_window, engine)
        return Export(options, leaves, note, leaves.words)
    sound = None
    if options.format.film:
        board = make_storyboard(
            lesson, steps, fps=options.fps, pace=options.pace, length=options.length
        )
        words = board.words
        sound = Sound(landings_of_lesson(lesson, board)) if options.sound else None
    else:
        pages = options.format.paper
        board = handout(
            lesson, steps, revealed=not pages or options.answers == "beside",
            questions=pages and options.per_page == 1,
        )  # fmt: skip
        words = handout_words(lesson, steps, options) if pages else f"step {steps.start}"
    frames = LessonFrames(
        lesson, board, options.theme, options.size, new_window, engine,
        headed=options.format.paper,
    )  # fmt: skip
    source = Handout(lesson, frames, options) if options.format.paper else frames
    return Export(options, source, note, words, sound)


def _steps_size(options: ExportOptions) -> tuple[int, int]:
    """Return the size of pictures of steps; pictures of slides are not larger than a screen."""
    width, height = options.size
    if not options.format.slides:
        return width, height
    share = min(1.0, 1920 / width, 1080 / height)
    return round(width * share), round(height * share)


def check_codec(codec: str, target: str) -> None:
    """Refuse a target if its encoder is not available."""
    wanted = f"PyAV with the encoder {codec}: pip install av; .apng, .png, .svg and .pdf need none"
    try:
        import av
    except ImportError:
        raise refuse("export", "-o", target, wanted) from None
    if codec not in av.codecs_available:
        raise refuse("export", "-o", target, wanted)


def _no_film_errors() -> tuple[type[Exception], ...]:
    """Return the errors that PyAV raises, if it is installed."""
    try:
        import av
    except ImportError:
        return ()
    return (av.FFmpegError,)


def parts_of(options: ExportOptions) -> tuple[Path, ...]:
    """Return the paths that are being written during an export with a token."""
    path, token = options.path, options.token
    if options.format.ending == "frames":
        return part_of(path.parent, token), part_of(path.parent / (path.name % 0), token)
    return (part_of(path, token),)


def _png(source: FrameSource, note: Note, report: Report) -> bytes:
    out = io.BytesIO()
    source.make_ready(0, lambda: report(0.0))
    image = paint_frame(source, 0, new_image(source))
    write_png(out, pixels_of(image), alpha=source.transparent, note=note.text)
    return out.getvalue()


_DRAWN: dict[str, Callable[[FrameSource, Note, Report], bytes]] = {
    ".png": _png,
    ".svg": svg_bytes,
    ".pdf": pdf_bytes,
}
"""Formats that are made in memory."""


def made_elsewhere(source: FrameSource, parts: PartMaker, report: Report) -> Iterator[list[Any]]:
    """Yield the frames of a source from `parts`, segment by segment."""
    count = len(source)
    told = [0.0]
    spans = [range(k, min(k + SEGMENT, count)) for k in range(0, count, SEGMENT)]
    for span, frames in zip(spans, parts.frames(spans, lambda: report(told[0])), strict=True):
        yield frames
        told[0] = span.stop / count


def part_frames(export: Export, frames: range) -> list[Any]:
    """Return some frames as `PartMaker.frames` does."""
    options, source = export.options, Excerpt(export.frames, frames)
    if options.format.ending == "frames":
        pictures = _PngFrames(source.transparent, export.note)
        Film(source, pictures).make(lambda share: None)
        return pictures.files
    from ui.export.writers.video import SegmentWriter

    writer = SegmentWriter(options.format.ending, source.size, options.fps)
    Film(source, writer).make(lambda share: None)
    return writer.frames


# --- films -----------------------------------------------------------------------------------


def _film(export: Export, report: Report, parts: PartMaker | None, out: IO[bytes]) -> None:
    writer = _writer(export, out)
    if parts is None:
        samples = GIF_SAMPLES if export.options.format.ending == ".gif" else 0
        Film(export.frames, writer, samples).make(report)
        return
    film = cast("VideoWriter", writer)
    for frames in made_elsewhere(export.frames, parts, report):
        film.add_segment(frames)
    film.close()
    report(1.0)


def _writer(export: Export, out: IO[bytes]) -> FrameWriter:
    ending, fps, note = export.options.format.ending, export.options.fps, export.note
    size, alpha = export.frames.size, export.frames.transparent
    if ending == ".apng":
        count = len(export.frames)
        return _ChangesWriter(ApngWriter(out, size, count, fps, alpha, note.text), alpha)
    if ending == ".webp":
        from ui.export.writers.webp import WebpWriter

        return _ChangesWriter(WebpWriter(out, size, fps, alpha, note.xmp), alpha)
    from ui.export.writers.video import GifWriter, VideoWriter

    if ending == ".gif":
        return GifWriter(out, size, fps, note.text)
    return VideoWriter(out, ending, size, fps, note.text, export.sound)


class _PatchWriter(Protocol):
    def add(self, patch: Patch) -> None: ...

    def close(self) -> None: ...


class _ChangesWriter:
    """Passes on the differences between frames."""

    def __init__(self, inner: _PatchWriter, alpha: bool) -> None:
        self._inner = inner
        self._changes = Changes(opaque=not alpha)
        self._last: Patch | None = None

    def prepare(self, image: QImage) -> Patch:
        """Return the difference from the previous image."""
        return self._changes.patch(pixels_of(image))

    def sample(self, frame: Patch) -> None:
        """Do nothing: no sample is needed."""

    def add(self, frame: Patch | None) -> None:
        """Write the next frame; None: the same as the previous one."""
        if frame is None:  # a pixel of the last frame, drawn again
            assert self._last is not None
            frame = Patch(self._last.x, self._last.y, self._last.pixels[:1, :1].copy())
        self._last = frame
        self._inner.add(frame)

    def close(self) -> None:
        """Write the end."""
        self._inner.close()


# --- single frames ---------------------------------------------------------------------------


class _PngFrames:
    """Makes a PNG file of each frame."""

    def __init__(self, alpha: bool, note: Note) -> None:
        self._alpha, self._note = alpha, note
        self._last = b""
        self.files: list[bytes] = []

    def prepare(self, image: QImage) -> Pixels:
        """Return the image's pixels."""
        return pixels_of(image).copy()

    def sample(self, frame: Pixels) -> None:
        """Do nothing: no sample is needed."""

    def add(self, frame: Pixels | None) -> None:
        """Make the next file; None: the same as the previous one."""
        if frame is not None:
            out = io.BytesIO()
            write_png(out, frame, alpha=self._alpha, note=self._note.text)
            self._last = out.getvalue()
        self.take(self._last)

    def take(self, file: bytes) -> None:
        """Keep a file."""
        self.files.append(file)

    def close(self) -> None:
        """Do nothing: nothing is left to write."""


class _SequenceWriter(_PngFrames):
    """Writes each frame into its own file."""

    def __init__(self, folder: Path, pattern: str, alpha: bool, note: Note) -> None:
        super().__init__(alpha, note)
        self._folder, self._pattern = folder, pattern
        self._count = 0

    def take(self, file: bytes) -> None:
        """Write the next file."""
        (self._folder / (self._pattern % self._count)).write_bytes(file)
        self._count += 1


def _write_sequence(export: Export, report: Report, parts: PartMaker | None) -> None:
    """Write the frames into a second folder, then move each to its place."""
    options, source = export.options, export.frames
    path, count = options.path, len(source)
    folder, pattern = path.parent, path.name
    names = [pattern % k for k in range(count)]
    _refuse_strangers(options, set(names))
    try:
        made = not folder.exists()
        anchor = folder if made else folder / names[0]
        clear_stale(anchor)
        beside = part_of(anchor, options.token)
        try:
            beside.mkdir()
            writer = _SequenceWriter(beside, pattern, source.transparent, export.note)
            if parts is None:
                Film(source, writer).make(report)
            else:
                for files in made_elsewhere(source, parts, report):
                    for file in files:
                        writer.take(file)
                report(1.0)
            if made:
                beside.rename(folder)
            else:
                for name in names:
                    (beside / name).replace(folder / name)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise unusable(options.target, "frames that can be written", error) from None


def _write_folder(options: ExportOptions, make: Callable[[Path], None]) -> None:
    """Make a folder under another name, then move it to its place.

    Raises InputError: the folder cannot be written; an earlier folder is unchanged.
    """
    path = options.path
    clear_stale(path)
    beside = part_of(path, options.token)
    try:
        beside.mkdir()
        make(beside)
        if path.exists():
            old = part_of(path)
            path.rename(old)
            beside.rename(path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(path)
    except OSError as error:
        raise unusable(options.target, "a folder that can be written", error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _refuse_strangers(options: ExportOptions, names: set[str]) -> None:
    """Refuse a folder in which frames of a longer export would remain among the new ones."""
    path = options.path
    if not path.parent.is_dir():
        return
    start, stop = NUMBER.split(path.name, maxsplit=1)[0], NUMBER.split(path.name, maxsplit=1)[-1]
    for file in path.parent.iterdir():
        middle = file.name.removeprefix(start).removesuffix(stop)
        numbered = file.name == start + middle + stop and middle.isdecimal()
        if numbered and file.name not in names:
            raise refuse(
                "export", "-o", options.target,
                f"a folder without {file.name}: frames of a longer film would be left in it",
            )  # fmt: skip
