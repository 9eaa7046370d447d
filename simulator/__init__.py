"""Tilescope's simulator: attention as a tile program, with every number recorded.

>>> from simulator import load_scenario, simulate
>>> trace = simulate(load_scenario("demo.toml"), engine="numpy")
>>> trace.snapshot(visit=5).m
"""

from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, load_scenario, save_scenario
from simulator.program.playback import Cursor
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace, simulate

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
