"""Durations of runs in words: by the model, or the least time by the data sheet."""

from __future__ import annotations

from simulator.timing.duration import Duration
from ui.look.units import time_text

MODEL = "Times are of a model with L2, softmax and thread blocks (docs/time-model.md)."
LEAST = "“≥”: no model, only the least time that the data sheet allows."


def duration_text(duration: Duration, seconds: float | None = None) -> str:
    """Return the time of a run, or of its part: ``≈ 6.1 µs``; without a model ``≥ 6.1 µs``."""
    sign = "≥" if duration.model is None else "≈"
    return f"{sign} {time_text(duration.seconds if seconds is None else seconds)}"


def limit_text(duration: Duration) -> str:
    """Return what bounds a run: ``products``; ``not modelled`` without a model."""
    return "not modelled" if duration.model is None else duration.model.bound_by
