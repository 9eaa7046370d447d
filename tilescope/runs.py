"""Scenarios and their runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kernels.devices.registry import make_engine
from simulator.base.errors import InputError
from simulator.problem import scenario as scenarios
from simulator.problem.scenario import Scenario, save_scenario
from simulator.program.playback import Cursor
from simulator.run import shown, trace
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from tilescope.notebook import html_of, remember

__all__ = [
    "Cursor",
    "InputError",
    "Scenario",
    "Snapshot",
    "Trace",
    "load_scenario",
    "save_scenario",
    "simulate",
]

shown.html = html_of


def load_scenario(path: str | Path) -> Scenario:
    """Return the scenario of a file.

    Parameters
    ----------
    path : str or Path
        A scenario file (``.toml``); the paths in it are relative to its folder.

    Returns
    -------
    Scenario
        Frozen; ``with_values`` of its module makes another one of it.

    Raises
    ------
    InputError
        The file cannot be read or used; the message names file, key and value.
    """
    return scenarios.load_scenario(path)


def simulate(scenario: Scenario | str | Path, engine: str = "numpy") -> Trace:
    """Return the run of a scenario. Nothing is computed until it is asked for.

    Parameters
    ----------
    scenario : Scenario or str or Path
        What is run, or its file.
    engine : str
        What computes: ``numpy``, ``host`` (the CUDA kernels on the CPU), ``cupy`` (on a GPU) or
        ``auto`` (the GPU if there is one, otherwise NumPy).

    Returns
    -------
    Trace
        ``len(trace)`` visits; ``trace.snapshot(visit, op)``; ``trace.output`` (heads, Nq, dv) and
        ``trace.lse`` (heads, Nq) in float32; ``trace.summary()``.

    Raises
    ------
    InputError
        The scenario, its input or the engine cannot be used.
    """
    return remember(trace.simulate(scenario, partial(make_engine, engine)))
