"""Runs a check, ``bits`` or ``counters``, on small scenarios in each variant of each kernel."""

import sys

from kernels.checks.numbers import counted, same_bits
from kernels.checks.outcome import Setting
from kernels.checks.variants import small, variants
from kernels.cuda.specs import KERNELS
from kernels.devices.cupy import CupyDevice
from simulator.problem.scenario import parse_scenario

CHECKS = {"bits": same_bits, "counters": counted}

if __name__ == "__main__":
    check = CHECKS[sys.argv[1]]
    with variants() as more:
        tables = {**{name: small(name) for name in KERNELS}, **more}
        chosen = {name: parse_scenario(table) for name, table in tables.items()}
        found = check(Setting(CupyDevice(), quick=True), chosen)
    print(found.summary, *found.faults, sep="\n")
    sys.exit(bool(found.faults))
