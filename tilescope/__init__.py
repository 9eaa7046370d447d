"""Tilescope in Python: attention as a tile program, with every number recorded.

>>> import tilescope
>>> trace = tilescope.simulate("demo.toml")
>>> trace.snapshot(visit=5).m
>>> tilescope.show(trace, visit=5)

A name is imported when it is first used, so that the command starts as fast as without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.base.errors import InputError
    from simulator.problem.scenario import Scenario, save_scenario
    from simulator.program.playback import Cursor
    from simulator.run.snapshot import Snapshot
    from simulator.run.trace import Trace
    from tilescope.notebook import Picture, show
    from tilescope.runs import load_scenario, simulate

__all__ = [
    "Cursor",
    "InputError",
    "Picture",
    "Scenario",
    "Snapshot",
    "Trace",
    "load_scenario",
    "save_scenario",
    "show",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in ("Picture", "show"):
        return getattr(import_module(f"{__name__}.notebook"), name)
    if name in __all__:
        return getattr(import_module(f"{__name__}.runs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
