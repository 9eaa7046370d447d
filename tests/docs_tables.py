"""The tables of docs that follow from code and assets: ``make docs-tables`` writes them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from simulator.base.glossary import glossary
from simulator.base.references import references
from simulator.lesson import expressions, front, numbers, tables
from simulator.study.captions import FUNCTIONS, Function

DOCS = Path(__file__).resolve().parent.parent / "docs"
_OTHERS = {
    "model": ("KV cache and Head sharing", "a name in assets/models.toml"),
    "tokens": ("KV cache and Head sharing", "1 to 1 048 576"),
    "card": ("KV cache", ""),
    "policy": ("KV cache, `less`", ""),
    "budget": ("KV cache, `less`", "tokens that are kept"),
    "memory": ("Traffic", ""),
    "summed": ("Generation", ""),
    "step": ("Generation, KV cache, Pages, Ring", "a number"),
    "global_layers": ("Token order", "a number"),
    "mask": ("Masks", "a name there"),
    "jacobian": ("Inspector", ""),
    "blend": ("Inspector", ""),
    "off": ("Jobs of heads", "`[layer, head]`, or `[]`"),
}
"""Panels of keys that no study declares, and what one writes where it is no short list."""


def front_rows() -> Iterator[str]:
    """Yield the rows of front matter."""
    yield "| key | meaning |"
    yield "| --- | --- |"
    fields = front.FrontTable.model_fields
    parts = (f"`{number}` {title}" for number, title in enumerate(front.PARTS, start=1))
    written = {
        "part": ", ".join(parts),
        "minutes": f"`1` to `{front.MOST_MINUTES}`",
        "level": _written(get_args(front.Level)),
        "paths": _written(get_args(front.PathName)),
    }
    for key, field in fields.items():
        yield f"| `{key}` | {': '.join(filter(None, (field.description, written.get(key))))} |"


def choices() -> Iterator[str]:
    """Yield the rows of what a lesson chooses in panels."""
    yield "| panel | key | what one writes |"
    yield "| --- | --- | --- |"
    rows = [
        (panel, choice.lesson, _written(choice.lesson_values))
        for panel, declared in sorted(tables.CHOICES.items())
        for choice in declared
        if choice.lesson and not choice.open
    ]
    declared = {key for _, key, _ in rows}
    for key, field in tables.ChooseTable.model_fields.items():
        if key not in declared:
            panel, said = _OTHERS[key]
            kinds = [each for each in get_args(field.annotation) if each is not type(None)]
            values = (True,) if kinds == [bool] else get_args(kinds[0])
            rows.append((panel, key, said or _written(values)))
    yield from (f"| {panel} | `{key}` | {written} |" for panel, key, written in sorted(rows))


def _written(values: tuple[object, ...]) -> str:
    """Return values as TOML has them."""
    toml = (f'"{each}"' if isinstance(each, str) else str(each).lower() for each in values)
    return ", ".join(f"`{each}`" for each in toml)


def functions() -> Iterator[str]:
    """Yield the rows of functions, those of a module together."""
    yield "| function | result |"
    yield "| --- | --- |"
    module = ""
    for name, function in sorted(FUNCTIONS.items(), key=_place):
        if function.__module__ != module:
            module = function.__module__
            about = re.split(",? that ", sys.modules[module].__doc__ or "")[0]
            about = re.sub("^(The n|N)umbers of ", "", about)
            yield f"| **{about[0].upper()}{about[1:]}** | |"
        parameters = [
            re.sub(r": [^=,]+?( = |$)", r"\1", str(each)).replace("'", '"').replace(" = ", "=")
            for each in list(inspect.signature(function).parameters.values())[1:]
        ]
        said = " ".join((inspect.getdoc(function) or "").split()).replace("``", "`")
        yield f"| `{name}({', '.join(parameters)})` | {said} |"


def _place(item: tuple[str, Function]) -> tuple[bool, str]:
    """Return where a function stands: those of the run come first."""
    module = item[1].__module__
    return module != numbers.__name__, module


def formats() -> Iterator[str]:
    """Yield the formats of numbers."""
    digits = (f"`{name} {count or 1}`" for name, count in expressions.DIGITS.items())
    yield f"Formats: {', '.join(f'`{name}`' for name in expressions.FORMATS)};"
    yield f"{', '.join(digits)} say how many digits. Without a format, whole numbers are counts."


def words() -> Iterator[str]:
    """Yield the rows of the glossary."""
    yield "| word | what it is | also |"
    yield "| --- | --- | --- |"
    yield from (f"| {word.name} | {word.says} | {', '.join(word.also)} |" for word in glossary())


def papers() -> Iterator[str]:
    """Yield the rows of the bibliography."""
    yield "| cited as | paper |"
    yield "| --- | --- |"
    for paper in references():
        cited = " or ".join((paper.name, *paper.also))
        yield f"| {cited} | {paper.line} <{paper.link}> |"


PAGES = {
    "writing-lessons.md": {
        "front": front_rows,
        "choices": choices,
        "functions": functions,
        "formats": formats,
    },
    "glossary.md": {"words": words},
    "bibliography.md": {"papers": papers},
}
"""The parts of each page of docs that are made."""


def renewed(name: str) -> str:
    """Return a page with every part between its two comments made again."""
    page = (DOCS / name).read_text(encoding="utf-8")
    for part, make in PAGES[name].items():
        first, last = f"<!-- {part} -->\n", f"<!-- end of {part} -->"
        before, begun, rest = page.partition(first)
        _, ended, after = rest.partition(last)
        assert begun, part
        assert ended, part
        page = before + begun + "\n" + "\n".join(make()) + "\n\n" + last + after
    return page


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(renewed(name), encoding="utf-8")
