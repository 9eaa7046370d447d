"""Mistakes planted in the kernels' text: which the host build shows, and which their PTX shows.

The text of most lines is the same for both. Of what only a GPU reads, the host build knows nothing.
"""

from collections.abc import Callable
from itertools import product

import pytest

from kernels.build.sources import whole_source
from kernels.cuda.tensor_core import TensorCoreRun
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import Schedule
from kernels.errors import KernelError
from tests.kernels import test_faults, test_tensor_core
from tests.kernels.helpers import ChangedDevice
from tests.kernels.ptx.device import PtxDevice, needs_ptx
from tests.kernels.test_faults import Fault
from tests.kernels.test_tensor_core import FAULTY, growing, workload, wrong

pytestmark = needs_ptx

TENSOR = "flash2_mma"
BOTH = ("host", "ptx")

OF_ALGORITHMS = {
    # Barriers.
    ("flash2", "tiles are read before they are whole"): BOTH,
    ("flash1", "tiles are overwritten while they are read"): BOTH,
    ("naive", "a maximum is read before it is there"): BOTH,
    # Masks.
    ("flash2", "causal without the diagonal"): BOTH,
    ("flash2", "window one too wide"): BOTH,
    ("naive", "hidden tiles are left as they are"): BOTH,
    # Alpha.
    ("flash2", "O is not rescaled"): BOTH,
    ("flash1", "beta is forgotten"): BOTH,
    ("split-kv", "O is not rescaled within a split"): BOTH,
    # Sums.
    ("flash2", "half a warp is summed"): BOTH,
    ("split-kv", "the last split is not joined"): BOTH,
    # Indices.
    ("flash2", "every head reads the first K and V"): BOTH,
    ("flash2", "shared memory is overrun"): BOTH,
    ("split-kv", "heads share their partials"): BOTH,
}
"""Faults of tests/kernels/test_faults.py, and who shows each."""

OF_TENSOR_CORES = {
    "no wait for K and V": BOTH,
    "columns of P change places": BOTH,
    "V is read as if it were not swizzled": BOTH,
}
"""Faults of tests/kernels/test_tensor_core.py."""

ON_ONE_SIDE = (
    ("V is not transposed on a GPU", "m8n8.x4.trans.shared", "m8n8.x4.shared", ("ptx",)),
    ("a GPU copies half a chunk", '"r"(wanted ? 16 : 0)', '"r"(wanted ? 8 : 0)', ("ptx",)),
    ("a GPU does not wait for the last copies", '"n"(PENDING)', '"n"(PENDING + 1)', ("ptx",)),
    ("a GPU packs the halves the other way", '"f"(high), "f"(low)', '"f"(low), "f"(high)',
     ("ptx",)),
    ("a GPU takes A in another order", '"r"(a[1]), "r"(a[2])', '"r"(a[2]), "r"(a[1])', ("ptx",)),
    ("V is not transposed on the CPU", "host::ldmatrix<true>", "host::ldmatrix<false>", ("host",)),
)  # fmt: skip
"""What it is, its text, the mistake, and who shows it."""

DEVICES: dict[str, Callable[[Callable[[str], str], Schedule], HostDevice]] = {
    "host": ChangedDevice,
    "ptx": lambda change, schedule: PtxDevice("compute_90", schedule, change=change),
}


def planted(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} is not in the kernel any more"
    return text.replace(old, new)


@pytest.mark.parametrize(("named", "by"), OF_ALGORITHMS.items(), ids=str)
def test_of_an_algorithm(
    named: tuple[str, str], by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = next(f for f in test_faults.FAULTS if (f.algorithm, f.what) == named)
    assert tuple(side for side in DEVICES if shown(fault, side, monkeypatch)) == by


def shown(fault: Fault, side: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the checks find on one side."""
    text = planted(whole_source(fault.algorithm), fault.old, fault.new)
    made = DEVICES[side]
    return test_faults.findings(fault.algorithm, monkeypatch, text, fault.mask, fault.nk, made)


@pytest.mark.parametrize(
    ("what", "old", "new", "by"),
    [
        *((f.what, f.old, f.new, OF_TENSOR_CORES[f.what])
          for f in test_tensor_core.FAULTS if f.what in OF_TENSOR_CORES),
        *ON_ONE_SIDE,
    ],
)  # fmt: skip
def test_of_tensor_cores(what: str, old: str, new: str, by: tuple[str, ...]) -> None:
    text = planted(whole_source(TENSOR), old, new)
    assert tuple(side for side in DEVICES if shown_by_tensor_cores(text, side)) == by, what


def test_the_tensor_core_kernel_has_none() -> None:
    assert [s for s in DEVICES if shown_by_tensor_cores(whole_source(TENSOR), s)] == []


def shown_by_tensor_cores(text: str, side: str) -> list[str]:
    """Return what is wrong with O and LSE in any schedule."""
    w, inputs = workload(**FAULTY)
    for numbers, schedule in product((growing(inputs, w), inputs), test_tensor_core.SCHEDULES):
        device = DEVICES[side](lambda _: text, schedule)
        try:
            run = TensorCoreRun(w, numbers, device)
            run.launch()
        except KernelError as error:
            return [str(error)]
        left = (device.download(x) for x in (run.tensors.o, run.tensors.lse))
        if found := wrong(w, numbers, *left):
            return found
    return []


def test_there_are_twenty_and_more() -> None:
    assert len(OF_ALGORITHMS) + len(OF_TENSOR_CORES) + len(ON_ONE_SIDE) >= 20
    known = {f.what for f in test_tensor_core.FAULTS}
    assert set(OF_TENSOR_CORES) <= known
