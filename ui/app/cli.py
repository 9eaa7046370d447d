"""The command line: a window, or one of the commands that need no display.

Imports are inside the commands, so that a command does not import what it does not use.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import fill
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from simulator.base.errors import InputError, refuse, safe_text
from simulator.base.version import version
from ui.safety.signals import interrupt, interrupted, take_signals
from ui.safety.streams import fit_encoding, lack, progress, send_off, tell_unwritten

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from simulator.base.dtypes import F32
    from simulator.problem.workload import Workload
    from simulator.program.tile_program import TileProgram

INTERRUPTED = 130
"""Exit status after Ctrl+C."""
PATIENCE_S = 1.0
"""Seconds that the end of the program waits for the engine of a closed window."""
ENGINES = ("auto", "numpy", "cupy", "host")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"invalid int value: '(.*)'", r'"\1": expected a whole number', message)
        print(f"{self.prog}: {safe_text(message)}; try {self.prog} --help", file=sys.stderr)
        sys.exit(2)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        print(message, end="", file=file)  # the library's own says nothing of a full disk


def main(arguments: Sequence[str]) -> int:
    """Run a command.

    Returns: 0 fine, 1 the answer is no, 2 wrong input, 130 interrupted.
    """
    if list(arguments) == ["--shards"]:  # a process for `ui.session.shards`
        from ui.session.shards import answer_all

        return answer_all()
    fit_encoding()
    try:
        code = _obey(list(arguments))
    except SystemExit:  # --help, --version and wrong usage
        if not send_off():
            raise SystemExit(2) from None
        raise
    return code if send_off() else 2


def _obey(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    # Words that do not name a command are for the window: `ui demo.toml`.
    named = bool(arguments) and arguments[0] in COMMANDS
    take_signals(interrupt)  # leaves nothing half-written
    parser = _command_parser(arguments[0]) if named else _window_parser()
    command = _command(arguments[0]) if named else _window
    try:
        options = parser.parse_args(arguments[1:] if named else arguments)
        return _with_engine(command, options) if named else command(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if interrupted():  # a library may have made another error of it
            return INTERRUPTED
        return _tell(error)


def _tell(error: Exception) -> int:
    """Say in one line what went wrong and return the exit status; raise what is a mistake of ours.

    Raises Exception: the error, if it says nothing about input or the system.
    """
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
        return 0
    if isinstance(error, InputError):
        print(error.advice, file=sys.stderr)
    elif isinstance(error, OSError):
        tell_unwritten(error)
    elif words := lack(error):
        print(words, file=sys.stderr)
    else:
        raise error
    return 2


def _with_engine(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Carry out a command; if the GPU that `auto` chose fails during it, repeat it with NumPy."""
    try:
        return command(options)
    except Exception as error:
        from kernels.errors import comes_from_device

        if "engine" not in options or not comes_from_device(error):
            raise
        if options.engine != "auto":
            expected = f"one that runs to the end: {error}"
            raise refuse("--engine", "engine", options.engine, expected) from error
        print(f"the GPU failed ({safe_text(str(error))}): NumPy computes", file=sys.stderr)
        options.engine = "numpy"
        return command(options)


def leave(code: int) -> NoReturn:
    """End the program, with what other threads are at work on after a short while.

    An encoder after an interrupt, or an engine whose window is closed, may take for ever. An
    ordinary end of the interpreter would abort in the middle of it, or wait.
    """
    if code == INTERRUPTED or not _rested(time.monotonic() + PATIENCE_S):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.flush()
        os._exit(code)
    sys.exit(code)


def _rested(deadline: float) -> bool:
    """Return whether all threads that a window has started end before a time."""
    threads = [thread for thread in threading.enumerate() if thread.name == "engine"]
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    return not any(thread.is_alive() for thread in threads)


def _window_parser() -> argparse.ArgumentParser:
    commands = f"Commands: {', '.join(COMMANDS)}; each has its own --help."
    parser = _Parser(
        prog="tilescope",
        description="See attention computed tile by tile.",
        epilog=fill(commands, 78, break_on_hyphens=False),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", nargs="?", help="scenario file (.toml) to open, or a link")
    parser.add_argument("--lesson", metavar="NAME", help="lesson to open: a shipped one or a .md")
    _add_engine(parser)
    parser.add_argument("--present", action="store_true", help="full screen, for a lecture")
    parser.add_argument(
        "--log", nargs="?", const="", metavar="FILE",
        help="keep a log of what is done, in FILE or where it then says",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=version())
    return parser


def _command_parser(name: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"tilescope {name}", description=(_command(name).__doc__ or "").partition("\n")[0]
    )
    if name in ("run", "export"):
        also = ", or a lesson: a .md or its name" if name == "export" else ""
        parser.add_argument("scenario", help=f"scenario file (.toml){also}")
    if name == "verify":
        parser.add_argument("scenario", nargs="?", help="scenario file; the demos without one")
    if name in ("run", "export", "verify"):
        _add_engine(parser)
    if name == "run":
        parser.add_argument(
            "-o", "--output", metavar="OUT.EXT",
            help="write the arrays (.npz, .json) or the traffic after each visit (.csv)",
        )  # fmt: skip
        parser.add_argument(
            "--rows", metavar="A:B", type=_rows,
            help="count everything, compute rows A to B - 1 only: for runs larger than the memory",
        )  # fmt: skip
        parser.add_argument(
            "--heads", metavar="H,H", type=_heads, help="count everything, compute these heads only"
        )
    if module := _module(name):
        module.add_options(parser)
    if name in ("run", "kv-cache", "masks", "sweep"):
        parser.add_argument("--json", action="store_true", help="print one JSON object only")
    if name == "export":
        from ui.export.command import add_options as add_export_options

        add_export_options(parser)
    return parser


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="what computes")


def _window(options: argparse.Namespace) -> int:
    """Open the window."""
    from simulator.lesson.course import find_lesson
    from simulator.lesson.link import is_link, read_link
    from ui.safety.imports import import_qt

    import_qt()
    from ui.app.start import open_window

    if options.scenario and is_link(options.scenario):
        read_link(options.scenario)  # what is wrong with it is said without a window
    lesson = find_lesson(options.lesson) if options.lesson else None
    return open_window(options.scenario, lesson, options.engine, options.present, options.log)


def _rows(text: str) -> range:
    start, colon, stop = text.partition(":")
    if not (colon and start.isdecimal() and stop.isdecimal()):
        raise argparse.ArgumentTypeError(f"{safe_text(text)}: expected A:B, two whole numbers")
    return range(int(start), int(stop))


def _heads(text: str) -> tuple[int, ...]:
    numbers = text.split(",")
    if not all(each.isdecimal() for each in numbers):
        raise argparse.ArgumentTypeError(f"{safe_text(text)}: expected numbers such as 0,3,5")
    return tuple(map(int, dict.fromkeys(numbers)))


def _run(options: argparse.Namespace) -> int:
    """Run a scenario to its end and print what it computed and moved."""
    from simulator.run.results import write_results

    output = None if options.output is None else Path(options.output)
    part = options.rows is not None or options.heads is not None
    program, summary, arrays = (_part_done if part else _done)(options, output)
    if output:
        write_results(output, program, summary, arrays)
    if options.json:
        print(json.dumps(summary))
        return 0
    for name, value in _summary_rows(program.workload, program.algorithm.title, summary):
        print(f"{name:14} {value}")
    if output:
        written = f"{output}, {output.with_name('summary.json')}"
        print(f"{'written':14} {safe_text(written)}")
    return 0


def _done(
    options: argparse.Namespace, output: Path | None
) -> tuple[TileProgram, dict[str, Any], dict[str, F32]]:
    """Carry out a whole run, or that of all sequences of a batch."""
    from kernels.devices.registry import make_engine
    from simulator.problem.scenario import load_scenario
    from simulator.run.batch_run import blind_of, check_one, run_all, traces_of
    from simulator.run.results import check_output, holds_arrays

    engine = partial(make_engine, options.engine)
    scenario = load_scenario(options.scenario)
    traces, blind = traces_of(scenario, engine, str(options.scenario)), blind_of(scenario)
    program = traces[0].program
    if output:
        check_one(traces, output, blind)
        check_output(output, program.workload)
    if len(traces) > 1 or blind:
        return program, run_all(traces, progress("run"), blind), {}
    keep = output is not None and holds_arrays(output)
    return program, *traces[0].run(keep_arrays=keep, progress=progress("run"))


def _part_done(
    options: argparse.Namespace, output: Path | None
) -> tuple[TileProgram, dict[str, Any], dict[str, F32]]:
    """Compute some rows of some heads, and count the whole run."""
    from kernels.devices.registry import make_engine
    from simulator.problem.scenario import load_scenario
    from simulator.run.part_run import run_part, whole_of
    from simulator.run.results import check_output

    scenario, source = load_scenario(options.scenario), str(options.scenario)
    program, rows, heads = whole_of(scenario, options.rows, options.heads, source)
    if output:
        check_output(output, program.workload, part=True)
    return program, *run_part(
        scenario, rows, heads, partial(make_engine, options.engine), program, source,
        progress("draw"), progress("run"),
    )  # fmt: skip


def _summary_rows(w: Workload, title: str, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a run has computed and moved, as lines of a name and a text."""
    from simulator.problem.filling import done_after_words
    from ui.look.units import bytes_text, count_text, plural, time_text

    tiles, hbm = summary["tiles"], summary["hbm"]
    rows = [
        ("algorithm", f"{title} ({summary['engine']} engine)"),
        ("visits", count_text(summary["visits"])),
        ("tiles", ", ".join(f"{count_text(n)} {what}" for what, n in tiles.items())),
        ("requested", f"{bytes_text(hbm['read_bytes'])} read, "
                      f"{bytes_text(hbm['write_bytes'])} written"),
        ("minimum", bytes_text(hbm["compulsory_bytes"])),
        ("shared memory", f"{bytes_text(summary['sram']['peak_bytes'])} of "
                          f"{bytes_text(summary['sram']['budget_bytes'])}"),
        ("matmul FLOPs", count_text(summary["matmul_flops"])),
        ("error", f"{_error_text(summary['max_abs_error'])} against float64, "
                  f"{plural(summary['checked_rows'], 'row')} checked"),
        ("time", f"{summary['seconds']:.3f} s"),
    ]  # fmt: skip
    if model := summary["model"]:
        rows.append((
            "model",
            f"{time_text(model['seconds'])} on {model['gpu']} as {model['kernel']}, bound by "
            f"{model['bound_by']}, {bytes_text(model['dram_bytes'])} of DRAM",
        ))  # fmt: skip
    else:
        rows.append(("model", summary["why"]))
    if splits := summary.get("splits"):
        of_keys = f" of {plural(summary['split_keys'], 'key')}" if splits > 1 else ""
        rows.insert(1, ("splits", f"{splits}{of_keys}"))
    if lengths := summary.get("sequences"):
        rows.insert(1, ("sequences", f"{len(lengths)}, of {', '.join(map(str, lengths))} keys"))
    if queries := summary.get("queries"):
        rows.insert(2, ("queries", ", ".join(map(str, queries))))
    if layer := summary.get("layer"):
        products = count_text(layer["matmul_flops"]["total"])
        wrong = _error_text(layer["max_abs_error"])
        rows.append(("layer", f"{products} FLOPs of projections, error of Y {wrong}"))
    file = w.file
    rows += [("input", safe_text(note)) for note in (file.notes if file else ())]
    if keys := w.what_if:
        random_ = "" if file else ": random numbers of this shape, not those of the file"
        rows.insert(0, ("what if", f"{', '.join(keys)} other than in the file{random_}"))
    if w.gated:
        rows.append(("output", "O is multiplied by the gate of the file before it is stored"))
    if words := done_after_words(file):
        rows.append(("output", safe_text(words)))
    if part := summary.get("rows"):
        first, last, heads = part[0], part[1] - 1, summary["heads"]
        some = f"rows {first} to {last}" if last > first else f"row {first}"
        of = f"head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))}"
        rows.insert(1, ("computed", f"{some} of {of}"))
    return rows


def _error_text(error: float | None) -> str:
    return "not a number or infinite" if error is None else f"{error:.1e}"


def _export(options: argparse.Namespace) -> int:
    """Write a picture or a film of a run or of a lesson."""
    from ui.safety.imports import import_qt

    import_qt()
    from ui.app.export_shards import parts_on
    from ui.app.windows import new_window
    from ui.export.command import run

    return run(options, version(), new_window, parts_on)


def _verify(options: argparse.Namespace) -> int:
    """Hold the engine against float64, op by op."""
    from kernels.devices.registry import make_engine
    from simulator.base.assets import SCENARIOS
    from simulator.problem.scenario import load_scenario
    from simulator.run.batch_run import traces_of
    from simulator.run.cosimulation import verify

    demos = sorted(SCENARIOS.glob("*.toml"))
    differs = False
    for path in [Path(options.scenario)] if options.scenario else demos:
        engine = partial(make_engine, options.engine)
        traces = traces_of(load_scenario(path), engine, str(path))
        for trace in traces:
            number = trace.workload.scenario.batch.shown
            name = safe_text(path.stem) + f", sequence {number}" * (len(traces) > 1)
            report = verify(trace, progress(name))
            print(f"{name}: {report}")
            for note in trace.workload.file.notes if trace.workload.file else ():
                print(f"{name}: {safe_text(note)}")
            differs |= report.difference is not None
    return 1 if differs else 0


def _lessons(options: argparse.Namespace) -> int:
    """List the lessons, part by part, each with its minutes and what one knows already."""
    from simulator.lesson.course import parts

    for part in parts():
        if part.lessons:
            name = f"{part.numeral}  {part.title}".strip()
            print(f"{safe_text(name):46}{part.minutes:3} min")
        for number, lesson in enumerate(part.lessons, start=1):
            stem = lesson.path.stem.lstrip("0123456789-")
            level = "" if lesson.level == "lecturers" else lesson.level
            print(f"{number:4}  {stem:40}{lesson.minutes:3} min  {level}".rstrip())
    return 0


def _doctor(options: argparse.Namespace) -> int:
    """Tell what this machine offers, and what to do about what is missing."""
    from ui.app.doctor import examine

    for finding in examine():
        print(finding)
    return 0


def _self_test(options: argparse.Namespace) -> int:
    """Try every part of this copy of Tilescope on this machine."""
    from ui.app.self_test import run

    return run()


_OWN: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "export": _export,
    "verify": _verify,
    "lessons": _lessons,
    "doctor": _doctor,
    "self-test": _self_test,
}
COMMANDS = (
    "run", "export", "verify", "kv-cache", "capture", "masks", "sweep", "races", "lessons",
    "exercises", "doctor", "self-test",
)  # fmt: skip


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """Return what carries a command out; the first line of its docstring is what --help says."""
    module = _module(name)
    found: Callable[[argparse.Namespace], int] = module.run if module else _OWN[name]
    return found


def _module(name: str) -> ModuleType | None:
    """Return the module that has the `add_options` and the `run` of a command."""
    if name in _OWN:
        return None
    return import_module(f".{name.replace('-', '_')}_command", __package__)
