"""`masks`: what published sparse patterns would cost a run and change in it; writes one of them."""

from __future__ import annotations

import argparse
import json
import pickle
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from simulator.base.errors import InputError, refuse
from simulator.base.files import check_target
from simulator.problem.masked_file import masked_scenario, needs_file, write_masked
from simulator.problem.scenario import Scenario, load_scenario, save_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.run.trace import resolve_from
from simulator.study.sparse.compressed import compressed
from simulator.study.sparse.mask_function import function_pattern
from simulator.study.sparse.patterns import (
    Knobs,
    Pattern,
    Priced,
    blocks_of,
    part_priced,
    patterns,
    priced,
    usual_knobs,
)
from ui.look.run_words import sequence_lines
from ui.look.units import bytes_text, count_text, in_columns, time_text
from ui.safety.streams import progress
from ui.session import shards


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options, all but ``--json``."""
    parser.add_argument("scenario", help="scenario file (.toml)")
    parser.add_argument("--block", type=int, metavar="N", help="rows and keys of a block")
    parser.add_argument("--k", type=int, metavar="K", help="blocks of keys that a row sees, about")
    parser.add_argument(
        "--function", type=Path, metavar="FILE.py",
        help="also a mask from its function mask(head, i, j), which is run",
    )  # fmt: skip
    parser.add_argument("--write", metavar="NAME", help="write this one, with -o")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT.toml",
        help="the scenario to write; blocks go into OUT.safetensors beside it",
    )  # fmt: skip
    shards.add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Count what published sparse patterns would cost a run; write one of them.

    Raises InputError: the scenario, the function or a number cannot be used.
    """
    if (options.write is None) != (options.output is None):
        raise refuse("masks", "--write", options.write or "", "--write NAME with -o OUT.toml")
    w = resolve_from(options.scenario, load_scenario(options.scenario))
    if options.output is not None:
        beside = options.output.with_suffix(".safetensors")
        read = [Path(options.scenario), *([w.file.path] if w.file else [])]
        check_target("masks", options.output, (".toml",), read, beside)
    inputs, usual = read_inputs(w), usual_knobs(w)
    block = usual.block if options.block is None else options.block
    if block < 1 or blocks_of(w, block) > 4096:
        expected = "at least 1, and large enough for at most 4096 blocks"
        raise refuse("masks", "--block", block, expected)
    most = blocks_of(w, block)
    k = options.k if options.k is not None else min(most, max(2, round(most / 4)))
    if not 1 <= k <= most:
        raise refuse("masks", "--k", k, f"from 1 to the {most} blocks of keys")
    knobs, function = Knobs(block, k), options.function and options.function.absolute()
    found = _patterns(w, inputs, knobs, function)
    if options.write is not None:
        named = {each.name: each for each in found}
        if options.write not in named:
            raise refuse("masks", "--write", options.write, f"one of {', '.join(named)}")
        mask = named[options.write].mask
        writes = needs_file(w, mask)
        if writes:
            if beside.exists():
                expected = f"another name: the input goes into {beside}, which is there already"
                raise refuse("masks", "-o", str(options.output), expected)
            write_masked(w, mask, beside)
        try:
            save_scenario(masked_scenario(w, mask, beside), options.output)
        except InputError:
            if writes:
                beside.unlink(missing_ok=True)
            raise
        return 0
    rows = _priced(options, (w.scenario, knobs, function), (w, inputs, found))
    rows = (*rows, *compressed(w, inputs, knobs))
    if options.json:
        print(json.dumps({"block": block, "k": k, "masks": [told(each) for each in rows]}))
    else:
        print("\n".join([*_report(rows), *sequence_lines(w)]))
    return 0


_Read = tuple[Workload, Inputs, tuple[Pattern, ...]]


def _patterns(
    w: Workload, inputs: Inputs, knobs: Knobs, function: Path | None
) -> tuple[Pattern, ...]:
    threadpool_limits(1, user_api="blas")  # numbers do not depend on how many cores there are
    found = patterns(w, inputs, knobs)
    return found if function is None else (*found, function_pattern(w, function))


def _priced(
    options: argparse.Namespace, asked: tuple[Scenario, Knobs, Path | None], read: _Read
) -> tuple[Priced, ...]:
    """Return prices and errors; other processes read the input again rather than get it."""
    with shards.asked_for(options) as places:
        if places is None:
            return priced(*read, progress("masks"))
        part = partial(_part, pickle.dumps(asked))
        return priced(
            *read, progress("masks"), done=lambda _, parts: shards.mapped(places, part, parts)
        )


def _part(asked: bytes, part: int | range) -> Any:
    """Return a part of the prices, in a process that has read what is asked."""
    return part_priced(*_read(asked), part)


@lru_cache(maxsize=1)
def _read(asked: bytes) -> _Read:
    scenario, knobs, function = pickle.loads(asked)
    w = resolve(scenario)
    inputs = read_inputs(w)
    return w, inputs, _patterns(w, inputs, knobs, function)


def told(each: Priced) -> dict[str, Any]:
    """Return the figures of a pattern as JSON has them."""
    f = each.figures
    return {"name": each.pattern.name, "pairs": each.pairs, "tiles": each.visited,
            "bytes": f.bytes, "flops": f.flops, "seconds": each.seconds,
            "error": each.error}  # fmt: skip


def share_text(share: float | None) -> str:
    """Return a share as people read it; a dash for one that was too long to compute."""
    return "–" if share is None else f"{share:.1%}"


def _report(rows: tuple[Priced, ...]) -> list[str]:
    head = ("mask", "pairs", "tiles", "bytes", "FLOPs", "time", "error of O")
    table = [head, *(
        (
            each.pattern.name, share_text(each.pairs), count_text(each.visited),
            bytes_text(each.figures.bytes), count_text(each.figures.flops),
            (""  if each.modelled else ">= ") + time_text(each.seconds),
            share_text(each.error),
        )
        for each in rows
    )]  # fmt: skip
    return in_columns(table)
