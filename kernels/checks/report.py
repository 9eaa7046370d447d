"""The report of all checks: Markdown for people, JSON for programs, a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kernels.checks.outcome import STATUSES, Outcome, ReportTable
from kernels.checks.picture import Chart, svg

WORDS = 500  # characters of a fault that are shown; report.json has all of them


def facts_of(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the facts about the machine that the check of the device found."""
    for outcome in outcomes:
        if outcome.name == "device":
            return dict(outcome.figures.get("facts", {}))
    return {}


def counts(outcomes: Sequence[Outcome]) -> str:
    """Return in words how many checks passed, failed, were not run and, if any, missed a goal."""
    numbers = {s: sum(o.status == s for o in outcomes) for s in STATUSES}
    return ", ".join(f"{n} {s}" for s, n in numbers.items() if n or s != "goal missed")


def line(outcome: Outcome) -> str:
    """Return the line that is printed for an outcome."""
    head = f"{outcome.status:11} {outcome.name:22} {outcome.summary}"
    told = (*outcome.faults[:10], *outcome.misses)
    return f"{head} ({outcome.seconds:.0f} s)" + "".join(f"\n{'':12}{one_line(x)}" for x in told)


def one_line(text: str) -> str:
    """Return a text in one line that is not too long."""
    words = " ".join(text.split())
    return words if len(words) <= WORDS else words[: WORDS - 1] + "…"


def markdown(outcomes: Sequence[Outcome], *, quick: bool) -> str:
    """Return the report as Markdown."""
    facts = facts_of(outcomes)
    parts = [
        "# What the kernels do on a GPU",
        f"Written by `python -m kernels.check{' --quick' * quick}`. Checks: {counts(outcomes)}.",
        table(ReportTable("", ("", ""), tuple(facts.items()))),
        "## Checks",
        table(
            ReportTable(
                "",
                ("check", "", "what"),
                tuple((o.name, o.status, one_line(o.summary)) for o in outcomes),
            )
        ),
    ]
    for outcome in outcomes:
        for title, told in (("what is wrong", outcome.faults), ("too slow", outcome.misses)):
            if told:
                lines = "\n".join(f"- {one_line(each)}" for each in told)
                parts += [f"### {outcome.name}: {title}", lines]
        for shown in outcome.tables:
            parts += [f"### {shown.title}", table(shown)]
        if outcome.name == "naive and flash2" and outcome.figures.get("lines"):
            parts.append("![Time and memory of naive and flash2](curves.svg)")
    return "\n\n".join(parts) + "\n"


def table(shown: ReportTable) -> str:
    """Return a table as Markdown."""
    rows = [shown.header, tuple("---" for _ in shown.header), *shown.rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in row)} |" for row in rows)


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def as_json(outcomes: Sequence[Outcome], *, quick: bool) -> str:
    """Return the report as JSON."""
    whole: dict[str, Any] = {
        "machine": facts_of(outcomes),
        "quick": quick,
        "checks": [outcome.as_json() for outcome in outcomes],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def picture(outcomes: Sequence[Outcome]) -> str | None:
    """Return the curves of naive and flash2 as SVG; None: they were not measured."""
    found = [o for o in outcomes if o.name == "naive and flash2" and o.figures.get("lines")]
    if not found:
        return None
    lines = found[0].figures["lines"]

    def curves(key: str, unit: float) -> dict[str, list[tuple[float, float]]]:
        return {
            name: [(n["N"], n[key] / unit) for n in lines if n["algorithm"] == name and key in n]
            for name in dict.fromkeys(n["algorithm"] for n in lines)
        }

    charts = [Chart("Time, ms", curves("ms", 1)), Chart("Memory, MiB", curves("bytes", 2**20))]
    return svg(charts, f"{facts_of(outcomes).get('GPU', '')}: {found[0].summary}")
