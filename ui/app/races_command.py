"""`races`: what the kernels of a scenario do that a GPU would not forgive, seen on the CPU."""

from __future__ import annotations

import argparse

from kernels.devices.host.device import HostDevice
from kernels.devices.races import MOST_PAIRS, told_once, watched
from kernels.errors import KernelError
from simulator.base.errors import refuse, safe_text
from simulator.problem.scenario import load_scenario
from simulator.problem.workload import Workload, read_inputs
from simulator.run.trace import resolve_from
from ui.look.units import count_text, plural


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("scenario", help="scenario file (.toml)")


def run(options: argparse.Namespace, device: HostDevice | None = None) -> int:
    """Watch a scenario's CUDA kernels on the CPU: races, accesses outside of arrays.

    device: one that watches; none: with the kernels as they are.
    Raises InputError: the scenario cannot be used, or this machine cannot watch.
    """
    w = resolve_from(options.scenario, load_scenario(options.scenario))
    _check(w)
    inputs = read_inputs(w)
    try:
        device = device or HostDevice(watch=True)
        found, seen = 0, 0
        for build in watched(w, inputs, device):
            faults = told_once(device.faults[seen:])
            seen = len(device.faults)
            found += len(faults)
            print(f"{w.algorithm}, {build}: {_sum(len(faults))}", flush=True)
            for fault in faults:
                print(f"  {fault}", flush=True)
    except KernelError as error:
        expected = (
            f"a machine that can watch kernels: {safe_text(str(error).partition(chr(10))[0])}"
        )
        raise refuse("races", "", "", expected) from error
    return 1 if found else 0


def _check(w: Workload) -> None:
    """Refuse what cannot be watched."""
    pairs = w.heads * w.seqlen_q * w.seqlen_k
    if pairs > MOST_PAIRS:
        expected = (
            f"at most {count_text(MOST_PAIRS)} pairs of a query and a key in all heads: fewer "
            "heads or a shorter sequence"
        )
        raise refuse("races", "pairs", count_text(pairs), expected)
    if w.faults.on:
        raise refuse("races", "faults", "on", "none: the CUDA kernels have none")


def _sum(faults: int) -> str:
    return (
        plural(faults, "fault") if faults else "no race, nothing outside of an array, all written"
    )
