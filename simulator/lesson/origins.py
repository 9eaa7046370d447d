"""Where the numbers in a lesson's text come from: cells of the run, or a setting."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from simulator.base.errors import InputError
from simulator.lesson.expressions import Formats, computed, fill, placeholders
from simulator.lesson.places import NumberPlace, Origin, Pointer
from simulator.run.snapshot import Cell
from simulator.study.captions import Numbers

SETTINGS = ("Br", "Bc", "Nq", "Nk", "d", "temperature")
"""Numbers of the scenario that can be changed where they are read."""
_POINTS: dict[str, Callable[..., Pointer]] = {
    "value": lambda tensor, row, col=0: Pointer(cell=Cell(tensor, row, col)),
    "weight": lambda row, key: Pointer(cell=Cell("S", row, key)),
    "alpha": lambda row: Pointer(cell=Cell("m", row, 0)),
    "old_maximum": lambda row: Pointer(cell=Cell("m", row, 0)),
    "weight_sum": lambda row: Pointer(row=row),
    "strongest": lambda row: Pointer(row=row),
    "entropy": lambda row: Pointer(row=row),
    "visible": lambda row: Pointer(row=row),
    "error": lambda row: Pointer(row=row),
}
"""The place on the board that a function's number comes from, given its arguments."""


def fill_placed(
    text: str, numbers: Numbers, formats: Formats, part: str
) -> tuple[str, tuple[NumberPlace, ...]]:
    """Return a text with its numbers, and the places in it of numbers with an origin."""
    out, end, places = "", 0, []
    for content, start in placeholders(text):
        out += text[end:start]
        written = fill(f"{{{{{content}}}}}", numbers, formats)
        origin = origin_of(content, numbers)
        if origin is not None:
            places.append(NumberPlace(part, len(out), written, origin))
        out += written
        end = start + len(content) + 4
    return out + text[end:], tuple(places)


def origin_of(content: str, numbers: Numbers) -> Origin | None:
    """Return where the number of a computable ``{{ }}`` comes from; None if from nowhere."""
    tree = ast.parse(content.partition("|")[0].strip(), mode="eval").body
    if isinstance(tree, ast.Name) and tree.id in SETTINGS:
        return Origin((), tree.id)
    points = tuple(dict.fromkeys(_points(tree, numbers)))
    return Origin(points) if points else None


def _points(tree: ast.expr, numbers: Numbers) -> Iterator[Pointer]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            point = _POINTS.get(node.func.id)
            if point is not None:
                try:
                    given = [computed(ast.unparse(each), numbers) for each in node.args]
                except InputError:  # in a part of the expression that is not computed
                    continue
                yield point(*given)
