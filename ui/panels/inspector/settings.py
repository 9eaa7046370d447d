"""How the attention inspector's settings are related to the scenario's."""

from __future__ import annotations

from dataclasses import replace

from simulator.problem.workload import Workload
from simulator.run.trace import Trace
from simulator.study.attention_map import MapSettings, settings_of


def same_scores(one: Trace, other: Trace) -> bool:
    """Return whether two traces have the same scores, whatever their temperature and mask."""
    a, b = one.workload, other.workload
    same = one.inputs.q is other.inputs.q and one.inputs.k is other.inputs.k
    alike = replace(a.scoring, temperature=1.0) == replace(b.scoring, temperature=1.0)
    return same and alike and a.biases == b.biases and a.heads == b.heads


def same_but_causal(one: MapSettings, other: MapSettings) -> bool:
    """Return whether two settings are the same except for `causal`."""
    return replace(one, causal=other.causal) == other


def bound_by_file(w: Workload, settings: MapSettings) -> str:
    """Return why the scenario cannot have all of these settings; empty if it can."""
    if w.file is None or w.file.said.causal is None or w.file.said.causal == settings.causal:
        return ""
    word = "causal" if w.file.said.causal else "not causal"
    return f"{w.file.path.name} says that its attention is {word}, and a scenario cannot differ"


def changes_of(w: Workload, settings: MapSettings) -> dict[str, dict[str, object]]:
    """Return which settings differ from the scenario's, by table and key."""
    said = settings_of(w)
    out: dict[str, dict[str, object]] = {}
    if settings.temperature != said.temperature:
        out["attention"] = {"temperature": settings.temperature}
    mask: dict[str, object] = {
        key: getattr(settings, key)
        for key in ("causal", "window", "sinks")
        if getattr(settings, key) != getattr(said, key)
        and not (key == "causal" and bound_by_file(w, settings))
    }
    if mask:
        out["mask"] = mask
    return out
