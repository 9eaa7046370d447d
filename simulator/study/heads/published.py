"""Published scores of models that share keys and values in other ways, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import Field

from simulator.base.assets import ASSETS
from simulator.base.tables import Table, read_toml

PUBLISHED = ASSETS / "quality.toml"


class _QualityRow(Table):
    score: Annotated[float, Field(gt=0, le=100)]
    of: str
    source: str
    seconds: Annotated[float, Field(gt=0)] | None = None
    cached: Annotated[float, Field(gt=0)] | None = None


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """The score of a model."""

    score: float  # in points of 100
    of: str  # what was measured
    source: str  # paper and table
    seconds: float | None = None  # for a sample
    cached: float | None = None  # thousands of numbers that a token leaves in the cache


@cache
def published_scores() -> Mapping[str, PublishedScore]:
    """Return the published scores by model and way to share."""
    rows = {name: _QualityRow.model_validate(row) for name, row in read_toml(PUBLISHED).items()}
    return {name: PublishedScore(**row.model_dump()) for name, row in rows.items()}
