"""What checks on a GPU may have found: for reports without one."""

from kernels.checks.outcome import Outcome, ReportTable

LINES = [
    {"algorithm": a, "N": n, "ms": n / 1000 * f, "bytes": n * n * f}
    for a, f in (("naive", 4), ("flash2", 1))
    for n in (512, 1024, 2048)
]
DEVICE = Outcome("device", "passed", "A GPU", figures={"facts": {"GPU": "A GPU", "driver": "580"}})
OUTCOMES = [
    DEVICE,
    Outcome("conformance", "passed", "9 cases", seconds=2.5),
    Outcome("counters", "failed", "19 workloads", ("flash2: read K: 3 bytes,\n expected 4",)),
    Outcome("memcheck", "not run", "compute-sanitizer is not installed | see the toolkit"),
    Outcome("naive and flash2", "passed", "8 heads", tables=(ReportTable("Times", ("N", "ms"),
            (("512", "1.0"),)),), figures={"lines": LINES}),
]  # fmt: skip
