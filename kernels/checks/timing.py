"""Times from CUDA events, and how they become rates."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from simulator.problem.masks import window_text
from simulator.problem.workload import Workload

INTERVAL = 5.0
"""Milliseconds that one measurement should last: in shorter ones the host's launches would
count."""
WARM = 200.0
"""Milliseconds of work before the first measurement, so that the clocks of the GPU have gone up."""
LONG = 500.0  # milliseconds from which a launch is measured fewer times
MOST = 200  # launches of one measurement: only a limited number can wait for a GPU


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one launch takes."""

    median: float  # median, least, most: milliseconds, over the measurements
    least: float
    most: float
    launches: int  # how many launches one measurement covers
    measurements: int  # number of measurements

    def as_json(self) -> dict[str, float]:
        """Return the timing in a form that JSON allows."""
        return {
            "ms": self.median,
            "ms_least": self.least,
            "ms_most": self.most,
            "launches": self.launches,
            "measurements": self.measurements,
        }


class GpuEvent(Protocol):
    """A moment in the work of a GPU, `cupy.cuda.Event`."""

    def record(self) -> object:
        """Set the event to the moment at which everything launched so far is done."""

    def synchronize(self) -> object:
        """Wait until the GPU has reached the event."""


class GpuClock(Protocol):
    """The clock of a GPU, `cupy.cuda`."""

    def Event(self) -> GpuEvent:
        """Return a moment that is not set yet."""

    def get_elapsed_time(self, start: Any, stop: Any, /) -> float:
        """Return the milliseconds between two moments."""


def timed(
    launch: Callable[[int], object], *, quick: bool = False, clock: GpuClock | None = None
) -> Timing:
    """Measure how long a launch takes on the GPU.

    launch: takes a number that goes up with each call, so that each can use another set of inputs.
    """
    on = clock or _cuda()
    count = 0

    def measure(launches: int, measurements: int) -> list[float]:
        nonlocal count
        marks = [(on.Event(), on.Event()) for _ in range(measurements)]
        for start, stop in marks:
            start.record()
            for _ in range(launches):
                launch(count)
                count += 1
            stop.record()
        marks[-1][1].synchronize()
        return [float(on.get_elapsed_time(*pair)) / launches for pair in marks]

    measure(1, 1)  # loads and compiles
    spent, launches = 0.0, 1
    while spent < WARM:  # the first of these times the host as well, so the last decides
        one = measure(launches, 1)[0]
        spent += one * launches
        launches = max(1, min(MOST, ceil(INTERVAL / max(one, 1e-3))))
    times = measure(launches, 3 if quick or one > LONG else 15)
    return summary(times, launches)


def _cuda() -> GpuClock:
    from cupy import cuda

    clock: GpuClock = cuda
    return clock


def summary(times: Sequence[float], launches: int) -> Timing:
    """Return the median of some measurements, in milliseconds for each launch."""
    return Timing(statistics.median(times), min(times), max(times), launches, len(times))


def visible_pairs(w: Workload) -> int:
    """Return the visible pairs of one head; ValueError if the workload has a window."""
    if w.mask.window:
        raise ValueError(f"window {window_text(w.mask.window)}: only causal or no mask is timed")
    return w.mask.pairs


def needed_flops(w: Workload) -> int:
    """Return the FLOPs that no exact algorithm can leave out: two products over visible pairs.

    The number is the same for every kernel that is compared, even for one that computes hidden
    pairs.
    """
    return 2 * w.heads * visible_pairs(w) * (w.head_dim + w.value_dim)


def tera_per_second(amount: float, milliseconds: float) -> float:
    """Return 10**12 of something per second."""
    return amount / milliseconds / 1e9


def matrix_rate(dtype: str, *, quick: bool) -> dict[str, Any]:
    """Measure the rate of a large matrix product with PyTorch, the most that kernels can reach.

    Returns: size, times and ``tflops``.
    """
    import torch

    n, sets = (4096 if quick else 8192), 3
    made = [
        torch.randn(2, n, n, device="cuda", dtype=torch.float32).to(getattr(torch, dtype))
        for _ in range(sets)
    ]
    out = torch.empty(n, n, device="cuda", dtype=getattr(torch, dtype))
    with torch.no_grad():
        timing = timed(
            lambda count: torch.matmul(made[count % sets][0], made[count % sets][1], out=out),
            quick=quick,
        )
    return {"n": n, **timing.as_json(), "tflops": tera_per_second(2.0 * n**3, timing.median)}
