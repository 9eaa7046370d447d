"""The line with which wrong input is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.base.errors import InputError


def refused(act: Callable[..., object], *given: Any, **said: Any) -> str:
    """Return the one line with which a call refuses what it is given."""
    with pytest.raises(InputError) as error:
        act(*given, **said)
    told = str(error.value)
    assert "\n" not in told
    return told
