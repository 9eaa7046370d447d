"""What is drawn, measured: `make bench`. Times are told; they say as much about the machine."""

import numpy as np
import pytest

from ui.app.bench import measure_ui


def test_painting_stepping_starting(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(measure_ui())
    with capsys.disabled():
        print("", *rows, sep="\n")
    assert all(np.isfinite(row.figure) for row in rows)
