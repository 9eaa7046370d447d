"""Numbers in a lesson's text: ``{{ requested("naive") | bytes }}``, computed, never typed.

An expression may use the four operations, powers, and the names and functions of
`simulator.lesson.numbers` and of each study's ``captions``, and nothing else of Python.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping

from simulator.base.errors import InputError, reason, refuse
from simulator.base.limits import PLACEHOLDERS
from simulator.lesson import model_numbers, study_numbers  # noqa: F401 - functions join
from simulator.lesson.numbers import QUANTITIES
from simulator.study.captions import FUNCTIONS, Numbers, Value
from simulator.study.declared import load

load("captions")

Formats = Mapping[str, Callable[[float, int], str]]
"""Functions that write a number, by the format's name: given the number and its digits."""

FORMATS = ("bytes", "decimal", "count", "number", "percent", "time", "times", "text")
"""Ways to write a number; ``ui.look.lesson_text`` has the functions."""
DIGITS = {"number": 3, "percent": 0, "times": 1}
"""Formats that take a number of digits, and how many digits each has by default."""

_PLAIN = {"": "", "count": "", "number": "", "percent": "%", "times": "×"}
"""Formats of a typed answer, and the unit that each format gives."""
_FORMAT = re.compile(r"([a-z]+)(?:\s+(\d))?")
_LONGEST = 200
_MOST_DIGITS = 60  # digits of a whole number: the matmul FLOPs of the largest scenario have some 25
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip


def placeholders(text: str) -> Iterator[tuple[str, int]]:
    """Yield the content of each ``{{ }}`` of a text, and the character at which it begins."""
    # A regular expression would search for the end again from every pair of braces.
    end = 0
    while (start := text.find("{{", end)) >= 0 and (stop := text.find("}}", start + 2)) >= 0:
        yield text[start + 2 : stop], start
        end = stop + 2


def replaced(text: str, by: Callable[[str], str]) -> str:
    """Return a text in which each ``{{ }}`` is replaced, given its content."""
    parts, end = [], 0
    for content, start in placeholders(text):
        parts += [text[end:start], by(content)]
        end = start + len(content) + 4
    return "".join([*parts, text[end:]])


def first_mistake(text: str) -> tuple[str, InputError] | None:
    """Return the first ``{{ }}`` in a text that can never be a number, and why; compute nothing."""
    for count, (content, _) in enumerate(placeholders(text)):
        try:
            if count == PLACEHOLDERS:
                expected = f"a text with at most {PLACEHOLDERS} numbers in it"
                raise refuse("", f"{{{{{content}}}}}", "", expected)
            check(content)
        except InputError as error:
            return content, error
    return None


def check(content: str) -> None:
    """Refuse the content of a ``{{ }}`` that can never be a number, without computing anything."""
    tree, _, _ = _parsed(content)
    _check(tree.body, content)


def fill(text: str, numbers: Numbers, formats: Formats) -> str:
    """Return a text with its numbers filled in."""
    return replaced(text, lambda content: _written(content, numbers, formats))


def computed(content: str, numbers: Numbers) -> Value:
    """Return the value of the expression in a ``{{ }}``, whatever its format."""
    return _computed(content, numbers)[0]


def _computed(content: str, numbers: Numbers) -> tuple[Value, str, int | None]:
    """Return the value of an expression, its format ("" if there is none) and the digits."""
    tree, form, digits = _parsed(content)
    _check(tree.body, content)
    try:
        return _value(tree.body, numbers), form, digits
    except InputError as wrong:
        what = "; ".join(map(str, wrong.mistakes))
        raise refuse("", f"{{{{{content}}}}}", "", f"what can be computed here: {what}") from None
    except Exception as wrong:  # whatever a run cannot answer is told in the lesson's words
        expected = f"what can be computed: {reason(wrong)}"
        raise refuse("", f"{{{{{content}}}}}", "", expected) from None


def _written(content: str, numbers: Numbers, formats: Formats) -> str:
    result, form, digits = _computed(content, numbers)
    if isinstance(result, str):
        if form in ("", "text"):
            return result
        raise refuse("", f"{{{{{content}}}}}", result, f"a number, to be written as {form}")
    form = form or ("count" if isinstance(result, int) else "number")
    whole = math.isfinite(result) and result == int(result)
    if form == "text" or (form in ("count", "bytes", "decimal") and not whole):
        kind = "a text" if form == "text" else "a whole number"
        raise refuse("", f"{{{{{content}}}}}", result, f"{kind}, to be written as {form}")
    result = int(result) if whole and form not in DIGITS else result
    return formats[form](result, DIGITS.get(form, 0) if digits is None else digits)


def the_expression(text: str) -> str | None:
    """Return the content of a text that is one ``{{ }}`` and nothing else, or None."""
    found = list(placeholders(text.strip()))
    alone = len(found) == 1 and len(found[0][0]) + 4 == len(text.strip())
    return found[0][0] if alone else None


def number_asked(text: str) -> str:
    """Return the unit of an answer, by its format: "%", "×" or none."""
    content = the_expression(text)
    if content is None:
        raise refuse("", "answer", text, "one {{ expression | format }} and nothing else")
    _, form, _ = _parsed(content)
    if form not in _PLAIN:
        raise refuse("", "answer", text, f"a format: one of {', '.join(filter(None, _PLAIN))}")
    return _PLAIN[form]


def computed_number(text: str, numbers: Numbers) -> tuple[float, int]:
    """Return the number of an answer, as it is written, and its digits after the point."""
    content = the_expression(text) or ""
    result, form, digits = _computed(content, numbers)
    if isinstance(result, str) or not math.isfinite(result):
        raise refuse("", "answer", result, "a finite number")
    if digits is None:
        broken = "" if isinstance(result, int) else "number"
        digits = DIGITS.get(form or broken, 0)
    return (100.0 * result if form == "percent" else float(result)), digits


def _parsed(content: str) -> tuple[ast.Expression, str, int | None]:
    """Return the expression, its format ("" if there is none) and the digits."""
    text, bar, form = content.partition("|")
    key = f"{{{{{content}}}}}"
    said = _FORMAT.fullmatch(form.strip())
    if bar and (said is None or said[1] not in FORMATS or (said[2] and said[1] not in DIGITS)):
        raise refuse("", key, form.strip(), f"a format: one of {', '.join(FORMATS)}")
    if len(text) > _LONGEST:
        raise refuse("", "{{ }}", "", f"an expression of at most {_LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refuse("", key, "", "an expression") from None
    digits = int(said[2]) if said and said[2] else None
    return tree, said[1] if said else "", digits


def _check(node: ast.expr, content: str) -> None:
    key = f"{{{{{content}}}}}"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
        if isinstance(node.value, int | float) and _too_large(node.value):
            raise refuse("", key, "", f"numbers of at most {_MOST_DIGITS} digits")
        return
    if isinstance(node, ast.Name):
        if node.id not in QUANTITIES:
            raise refuse("", key, node.id, f"one of {', '.join(QUANTITIES)}")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, content)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, content)
        _check(node.right, content)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = FUNCTIONS.get(node.func.id)
        if function is None:
            raise refuse("", key, node.func.id, f"one of {', '.join(sorted(FUNCTIONS))}")
        try:
            inspect.signature(function).bind(None, *node.args)
        except TypeError as wrong:
            raise refuse("", key, node.func.id, f"its arguments: {wrong}") from None
        for argument in node.args:
            _check(argument, content)
    else:
        raise refuse("", key, "", "numbers, texts, + - * / **, names and functions of a lesson")


def _value(node: ast.expr, numbers: Numbers) -> Value:
    """Return the result of a checked expression."""
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float | str)
        return node.value
    if isinstance(node, ast.Name):
        return QUANTITIES[node.id](numbers.workload)
    if isinstance(node, ast.UnaryOp):
        return -_number(node.operand, numbers)
    if isinstance(node, ast.BinOp):
        a, b = _number(node.left, numbers), _number(node.right, numbers)
        if isinstance(node.op, ast.Pow) and (abs(a) > 10**6 or abs(b) > 64):
            raise ValueError("a power of numbers this large")
        result = _OPERATORS[type(node.op)](a, b)
        if isinstance(result, complex):
            raise ValueError("a broken power of a negative number is not a real one")
        if _too_large(result) and math.isfinite(a) and math.isfinite(b):
            raise ValueError(f"a number of more than {_MOST_DIGITS} digits")
        return result
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    arguments = [_value(argument, numbers) for argument in node.args]
    return FUNCTIONS[node.func.id](numbers, *arguments)


def _too_large(number: float) -> bool:
    """Return whether a number is not usable: infinite, or whole and longer than any count."""
    return abs(number) >= 10**_MOST_DIGITS if isinstance(number, int) else not math.isfinite(number)


def _number(node: ast.expr, numbers: Numbers) -> int | float:
    found = _value(node, numbers)
    if isinstance(found, str):
        raise TypeError(f'"{found}" is a text')
    return found
