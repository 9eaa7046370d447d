"""What an export costs, measured: `make bench`. Ratios in one run and peaks of memory can fail."""

import pytest

from tests.bench.test_simulator import skip_if_busy
from ui.export.bench import measure_exports


def test_exports(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(measure_exports())
    with capsys.disabled():
        print("", *rows, sep="\n")
    for row in rows:
        if "memory" in row.name or row.unit == "MB":
            assert row.met, str(row)
    skip_if_busy()
    ratio = next(row for row in rows if row.unit == "x")
    assert ratio.met, str(ratio)
