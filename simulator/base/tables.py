"""TOML tables that users write: reading them, and saying in one line what is wrong."""

from __future__ import annotations

import os
import tomllib
from types import NoneType
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from simulator.base.errors import InputError, Mistake, shortened, shown, unusable
from simulator.base.limits import MISTAKES, TOML_BYTES, check_toml, read_utf8

_EXPECTED = {
    "missing": "a value, but the key is missing",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "string_too_long": "at most {max_length} characters",
    "literal_error": "{expected}",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "tuple_type": "a list",
}


def as_tuple(value: object) -> object:
    """Accept a TOML list for the frozen tuple."""
    return tuple(value) if isinstance(value, list) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]


class Table(BaseModel):
    """A TOML table: immutable, no conversions between types, no unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    def wrong_key(self, name: str, expected: str) -> PydanticCustomError:
        """Return the error of a validator that finds one of the keys wrong."""
        value = getattr(self, name)
        return wrong(expected, name, list(value) if isinstance(value, tuple) else value)


def wrong(expected: str, name: str = "", value: object = None) -> PydanticCustomError:
    """Return the error of a validator; `name` and `value` are a key of the checked table."""
    of_key = {"key": name, "value": value} if name else {}
    return PydanticCustomError("wrong", "{expected}", {"expected": expected, **of_key})


def key(default: Any, title: str, says: str, **more: Any) -> Any:
    """Return a key of a table with the name and meaning that a form and the docs show.

    more: `section`, the form's section if not the table's; `sources`, the inputs that have the key.
    """
    return Field(default, title=title, description=says, json_schema_extra=more)


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises InputError: the file is missing, too long, is not UTF-8 or is not TOML.
    """
    text = read_utf8(path, TOML_BYTES, "TOML", "TOML")
    try:
        return parse_toml(text)
    except (ValueError, RecursionError) as error:  # also whole numbers of thousands of digits
        raise unusable(path, "TOML", error) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text.

    Raises ValueError, RecursionError: the text is not TOML, or nests too deep.
    """
    check_toml(text)
    return tomllib.loads(text)


def input_error(source: str, error: ValidationError, root: type[BaseModel]) -> InputError:
    """Return the mistakes that pydantic found in the tables of `root`, in the project's words."""
    errors = error.errors(include_url=False)
    found = [_mistake(e, root) for e in errors[:MISTAKES]]
    # A value of several possible types fails once for each of them, but it is one mistake.
    mistakes = list({m.key: m for m in reversed(found)}.values())[::-1]
    return InputError(source, mistakes, len(errors[MISTAKES:]))


def _mistake(error: ErrorDetails, root: type[BaseModel]) -> Mistake:
    context = dict(error.get("ctx", {}))
    kind = error["type"]
    parts = [shortened(str(part)) for part in error["loc"]]
    value = error["input"]
    if "key" in context:
        parts, value = [*parts, str(context["key"])], context["value"]
    if kind == "extra_forbidden":
        return Mistake(".".join(parts), shown(value), f"one of {_known_keys(root, parts[:-1])}")
    if parts[:2] == ["input", "head"]:
        expected = error["msg"] if "key" in context else 'head numbers or "all"'
        value = list(value) if isinstance(value, tuple) else value
        return Mistake("input.head", shown(value), expected)
    if kind == "missing":
        value = None  # pydantic gives the whole table
    expected = _EXPECTED[kind].format(**context) if kind in _EXPECTED else error["msg"]
    return Mistake(".".join(parts), shown(value), expected.replace("'", '"'))


def _known_keys(root: type[BaseModel], tables: list[str]) -> str:
    model = root
    for name in tables:
        if not name.isdigit():  # a place in a list of tables
            model = _table_in(model.model_fields[name].annotation)
    return ", ".join(model.model_fields)


def _table_in(annotation: Any) -> type[BaseModel]:
    """Return the table in a type such as ``Table``, ``Table | None`` or ``tuple[Table, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(_table_in(part) for part in get_args(annotation) if part not in (None, NoneType))
