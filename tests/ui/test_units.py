"""Numbers in words."""

import pytest

from ui.units import plural


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 tiles"), (1, "1 tile"), (2, "2 tiles"), (1234, "1\u2009234 tiles")]
)
def test_one_is_no_plural(count, text):
    assert plural(count, "tile") == text
