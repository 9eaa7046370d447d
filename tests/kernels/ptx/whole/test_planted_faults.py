"""Mistakes planted in the kernels' text, and who shows each: `-rP` prints the table.

Host: the checks of the tests of kernels. PTX: the same ones, on what NVRTC makes of the text. The
detector: races, bounds and copies of one run. Of what only a GPU reads, the host knows nothing.
"""

from collections.abc import Callable
from itertools import product

import pytest

from kernels.build.sources import whole_source
from kernels.cuda.tensor_core import TensorCoreRun
from kernels.devices.barriers import WithoutBarrier
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import ThreadSchedule
from kernels.devices.races import launch_all
from kernels.errors import KernelError
from simulator.problem.workload import Inputs, Workload
from tests.kernels import test_faults, test_tensor_core
from tests.kernels.helpers import ChangedDevice
from tests.kernels.ptx.device import PtxDevice, needs_ptx
from tests.kernels.test_faults import Fault, workload_for
from tests.kernels.test_tensor_core import FAULTY, growing, workload, wrong
from tests.kernels.watch.watched import needs_watch

pytestmark = [needs_ptx, needs_watch]

TENSOR = "flash2_mma"
BOTH = ("host", "ptx")
ALL = (*BOTH, "detector")

OF_ALGORITHMS = {
    ("flash2", "tiles are read before they are whole"): ("barrier", ALL),
    ("flash1", "tiles are overwritten while they are read"): ("barrier", ALL),
    ("naive", "a maximum is read before it is there"): ("barrier", ALL),
    ("flash2", "causal without the diagonal"): ("mask", BOTH),
    ("flash2", "window one too wide"): ("mask", BOTH),
    ("naive", "hidden tiles are left as they are"): ("mask", BOTH),
    ("flash2", "O is not rescaled"): ("alpha", BOTH),
    ("flash1", "beta is forgotten"): ("alpha", BOTH),
    ("split-kv", "O is not rescaled within a split"): ("alpha", BOTH),
    ("flash2", "half a warp is summed"): ("sum", BOTH),
    ("split-kv", "the last split is not joined"): ("sum", BOTH),
    ("flash2", "every head reads the first K and V"): ("index", BOTH),
    ("flash2", "shared memory is overrun"): ("index", ALL),
    ("split-kv", "heads share their partials"): ("index", ALL),
}
"""Faults of tests/kernels/test_faults.py: of what, and who shows each."""

MORE = (
    ("barrier", ALL, Fault("flash2-backward", "P and dS are read before they are whole",
                           "__syncthreads();  // every warp needs P and dS of all rows", "")),
    ("barrier", ALL, Fault("gla", "features are read before they are there",
                           "__syncwarp();  // the features are there", "")),
    ("mask", BOTH, Fault("flash2-backward", "a partial tile is taken for a full one",
                         "if (tile.kind() == PARTIAL)", "if (false)")),
    ("mask", BOTH, Fault("linear", "a token does not see itself",
                         "if (n > own_row(r))", "if (n >= own_row(r))")),
    ("alpha", BOTH, Fault("gla", "the state does not decay",
                          "own.state[f * TOTALS + value] *= own.gate[f];", ";")),
    ("sum", BOTH, Fault("naive-backward", "D is the sum of a lane",
                        "const float D = warp_sum(sum);", "const float D = sum;")),
    ("sum", BOTH, Fault("linear-recurrent", "l is the sum of a lane", "l = warp_sum(l);", "")),
    ("index", ALL, Fault("deltanet", "each query head has keys of its own",
                         "K_hbm + key * HEAD_DIM", "K_hbm + row * HEAD_DIM")),
    ("index", BOTH, Fault("paged", "pages are taken in their order",
                          "table_hbm[(first_key + at) / page_size];",
                          "(first_key + at) / page_size;")),
    ("copy", BOTH, Fault("mla", "one number of a row is copied all over it",
                         "tile_hbm[(Index)row * width + column]", "tile_hbm[(Index)row * width]")),
    ("copy", BOTH, Fault("linear-recurrent", "Q is copied in the place of K",
                         "own.K, 1, HEAD_DIM, K_hbm", "own.K, 1, HEAD_DIM, Q_hbm")),
    ("copy", BOTH, Fault("flash2-backward", "dV is stored three times as large",
                         "dV, 1.0f, keys, visit, WRITE_dV", "dV, 3.0f, keys, visit, WRITE_dV")),
)  # fmt: skip
"""Of what, who shows it, and the fault."""

OF_TENSOR_CORES = {
    "no wait for K and V": ("copy", ALL),
    "O is not rescaled": ("alpha", BOTH),
    "causal without the diagonal": ("mask", BOTH),
    "columns of P change places": ("index", BOTH),
    "V is read as if it were not swizzled": ("index", BOTH),
}
"""Faults of tests/kernels/test_tensor_core.py."""

ON_ONE_SIDE = (
    ("V is not transposed on a GPU", "m8n8.x4.trans.shared", "m8n8.x4.shared", "index", ("ptx",)),
    ("a GPU copies half a chunk", '"r"(wanted ? 16 : 0)', '"r"(wanted ? 8 : 0)', "copy", ("ptx",)),
    ("a GPU does not wait for the last copies", '"n"(PENDING)', '"n"(PENDING + 1)', "copy",
     ("ptx",)),
    ("a GPU packs the halves the other way", '"f"(high), "f"(low)', '"f"(low), "f"(high)', "index",
     ("ptx",)),
    ("a GPU takes A in another order", '"r"(a[1]), "r"(a[2])', '"r"(a[2]), "r"(a[1])', "index",
     ("ptx",)),
    ("V is not transposed on the CPU", "host::ldmatrix<true>", "host::ldmatrix<false>", "index",
     ("host",)),
)  # fmt: skip
"""What it is, its text, the mistake, of what it is one, and who shows it."""

DEVICES: dict[str, Callable[[Callable[[str], str], ThreadSchedule], HostDevice]] = {
    "host": ChangedDevice,
    "ptx": lambda change, schedule: PtxDevice("compute_90", schedule, change=change),
}


def planted(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} is not in the kernel any more"
    return text.replace(old, new)


def check_told(
    kind: str, kernel: str, what: str, by: tuple[str, ...], shown: Callable[[str], list[str]]
) -> None:
    """Print a row of the table, and compare who shows a fault with who is expected to."""
    found = tuple(side for side in ALL if shown(side))
    print(f"{kind:8}{kernel:18}{what:48}{', '.join(found)}")
    assert found == by


OF_EVERY = [
    *((kind, by, next(f for f in test_faults.FAULTS if (f.algorithm, f.what) == named))
      for named, (kind, by) in OF_ALGORITHMS.items()),
    *MORE,
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "by", "fault"), OF_EVERY, ids=[f"{f.algorithm}: {f.what}" for _, _, f in OF_EVERY]
)
def test_of_an_algorithm(
    kind: str, by: tuple[str, ...], fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = whole_source(fault.algorithm)
    text = planted(own, fault.old, fault.new)

    def shown(side: str) -> list[str]:
        if side == "detector":
            case = workload_for(fault.algorithm, fault.mask, fault.nk)
            return told_by_the_detector(own, text, *case, "fast", "trace")
        made = DEVICES[side]
        return test_faults.findings(fault.algorithm, monkeypatch, text, fault.mask, fault.nk, made)

    check_told(kind, fault.algorithm, fault.what, by, shown)


def told_by_the_detector(
    own: str, text: str, w: Workload, inputs: Inputs, *builds: str
) -> list[str]:
    """Return what is told of one run of each build."""
    device = WithoutBarrier(own, text)
    try:
        for build in builds:
            launch_all(w, inputs, device, build)
    except KernelError as error:
        return [str(error)]
    return [str(fault) for fault in device.faults]


OF_THE_KERNEL = [
    *((f.what, f.old, f.new, *OF_TENSOR_CORES[f.what])
      for f in test_tensor_core.FAULTS if f.what in OF_TENSOR_CORES),
    *ON_ONE_SIDE,
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "old", "new", "kind", "by"), OF_THE_KERNEL, ids=[each[0] for each in OF_THE_KERNEL]
)
def test_of_tensor_cores(what: str, old: str, new: str, kind: str, by: tuple[str, ...]) -> None:
    text = planted(whole_source(TENSOR), old, new)
    check_told(kind, TENSOR, what, by, lambda side: shown_by_tensor_cores(text, side))


def test_the_tensor_core_kernel_has_none() -> None:
    assert [side for side in ALL if shown_by_tensor_cores(whole_source(TENSOR), side)] == []


def shown_by_tensor_cores(text: str, side: str) -> list[str]:
    """Return what is wrong with O and LSE in any schedule, or what the detector tells."""
    w, inputs = workload(**FAULTY)
    if side == "detector":
        return told_by_the_detector(whole_source(TENSOR), text, w, inputs, "tensor cores")
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


def test_there_are_three_and_more_of_each_kind() -> None:
    kinds = [kind for kind, _, _ in OF_EVERY] + [kind for *_, kind, _ in OF_THE_KERNEL]
    for kind in ("index", "barrier", "mask", "alpha", "sum", "copy"):
        assert kinds.count(kind) >= 3
    assert set(OF_TENSOR_CORES) <= {f.what for f in test_tensor_core.FAULTS}
