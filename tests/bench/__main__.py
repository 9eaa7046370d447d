"""Prints all measurements, as ``make bench`` does; ends with 1 where one misses its goal."""

import argparse
import sys
from itertools import chain

from tests.bench.drawing import measure_ui
from tests.bench.films import measure_exports
from tests.bench.numbers import measure_all, tell

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one list of objects only")
    rows = chain(measure_all(), measure_ui(), measure_exports())
    sys.exit(0 if tell(rows, as_json=parser.parse_args().json) else 1)
