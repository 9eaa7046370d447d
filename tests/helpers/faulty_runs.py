"""Runs with faults, small ones."""

from typing import Any

from simulator.engines.op_engine import OpEngine
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.program.faults import FAULTS
from simulator.run.trace import Trace
from tests.helpers.runs import scenario

EVERY = tuple(fault.name for fault in FAULTS)
OF_GRADIENTS = ("forget_dots", "weights_of_maximum", "unscaled_queries", "one_head_of_group")
"""Those of a backward pass: see test_gradient_faults."""
OF_TRACKERS = (
    "lse_base_2", "early_mask", "finite_mask", "repeated_sink", "forget_tile_sum", "wide_window",
)  # fmt: skip
"""Those that public trackers report: see test_public_faults."""
NAMES = tuple(
    name
    for name in EVERY
    if name
    not in ("stale_frame", "fp8_saturation", "unconverted_sink", *OF_GRADIENTS, *OF_TRACKERS)
)
"""Those that need neither a rescale threshold nor a sink; of the others see test_threshold."""


def faulty(chosen: Scenario, *names: str) -> Trace:
    w = resolve(with_values(chosen, {"faults": dict.fromkeys(names, True)}))
    inputs = read_inputs(w)
    return Trace(tile_program(w), OpEngine(w, inputs), inputs)


def causal(algorithm: str, **more: Any) -> Scenario:
    """Return a small run in which maxima rise, tiles are cut and rows see nothing in some."""
    shape = {"nq": 24, "d": 8, "heads": 2, "kv_heads": 1, "rows": 8, "cols": 6}
    return scenario(algorithm, **{**shape, "mask": {"causal": True}, **more})
