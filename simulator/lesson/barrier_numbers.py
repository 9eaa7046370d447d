"""What a lesson may say of a kernel without one of its barriers."""

from __future__ import annotations

from dataclasses import asdict

from simulator.base.errors import refuse
from simulator.lesson.numbers import Numbers, Value, known


@known
def race_without(n: Numbers, barrier: str, part: str) -> Value:
    """Of the run's kernel without a barrier: a part of the race that is seen."""
    parts: dict[str, Value] = asdict(n.watch(n.workload, barrier))
    if part not in parts:
        raise refuse("", "part", part, f"one of {', '.join(parts)}")
    return parts[part]
