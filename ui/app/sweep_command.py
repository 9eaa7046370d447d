"""`sweep`: what all algorithms would need at other sizes of a scenario, as a table."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any, get_args

from simulator.problem.scenario import load_scenario
from simulator.run.trace import resolve_from
from simulator.study.sweep import Axis, Sweep, axis_values, sweep
from ui.look.run_words import sequence_lines
from ui.look.units import bytes_text, count_text, in_columns, time_text
from ui.safety.streams import progress
from ui.session import shards


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options, all but ``--json``."""
    parser.add_argument("scenario", help="scenario file (.toml)")
    parser.add_argument(
        "--over", choices=get_args(Axis), default="N",
        help="keys, rows or keys of a tile, head dimension (N)",
    )  # fmt: skip
    shards.add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Count what all algorithms would need at other sizes of a scenario.

    Raises InputError: the scenario or where parts are done cannot be used.
    """
    w = resolve_from(options.scenario, load_scenario(options.scenario))
    over = options.over
    with shards.asked_for(options) as places:
        done = map if places is None else partial(shards.mapped, places)
        values = axis_values(w, over)
        found = sweep(w, over, values, progress("sweep"), timed=True, done=done)
    if options.json:
        print(json.dumps({"over": over, "here": found.here, "rows": told(found)}))
        return 0
    head = (over, "algorithm", "bytes", "held in HBM", "FLOPs", "shared memory", "time")
    table = in_columns([head, *map(_line, told(found))], names=2)
    print("\n".join([*table, *sequence_lines(w)]))
    if found.why:
        print(f"no times: {found.why}")
    return 0


def told(found: Sweep) -> list[dict[str, Any]]:
    """Return the figures as JSON has them, value by value; times without a model are null."""
    return [
        {"value": value, "algorithm": name, "bytes": row[n].bytes, "held": row[n].held,
         "flops": row[n].flops, "shared": row[n].shared,
         "seconds": found.durations[name][n].seconds if found.durations else None}
        for n, value in enumerate(found.values)
        for name, row in found.figures.items()
    ]  # fmt: skip


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    seconds = row["seconds"]
    return (
        count_text(row["value"]), row["algorithm"], bytes_text(row["bytes"]),
        bytes_text(row["held"]), count_text(row["flops"]), bytes_text(row["shared"]),
        "–" if seconds is None else time_text(seconds),
    )  # fmt: skip
