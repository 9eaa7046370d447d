"""GPU presets, links between devices, and the least time that some work takes on a GPU."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from simulator.base.assets import ASSETS

KIB = 1024
GB = 10**9
LAUNCH_SECONDS = 4e-6
"""Seconds of a launch beside the work of its kernel (docs/time-model.md, "A launch")."""


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """The resources that the thread blocks on one multiprocessor share."""

    shared_kib: int  # shared memory, KiB
    # threads, blocks: the most at a time
    threads: int
    blocks: int
    reserved_kib: int = 1  # shared memory that the system takes for each thread block, KiB


MULTIPROCESSORS: dict[float, Multiprocessor] = {
    7.0: Multiprocessor(96, 2048, 32, reserved_kib=0),
    7.5: Multiprocessor(64, 1024, 16, reserved_kib=0),
    8.0: Multiprocessor(164, 2048, 32),
    8.9: Multiprocessor(100, 1536, 24),
    9.0: Multiprocessor(228, 2048, 32),
    10.0: Multiprocessor(228, 2048, 32),
    12.0: Multiprocessor(100, 1536, 24),
}
"""The multiprocessors by compute capability.

References
----------
NVIDIA, CUDA C++ Programming Guide, table "Technical specifications per compute capability", and the
section "Shared memory" of each architecture: from 8.0 on 1 KiB is reserved for each thread block.
"""


@dataclass(frozen=True, slots=True)
class GpuRates:
    """The rates that runs reach on a GPU, for the time model (docs/time-model.md)."""

    l2_mib: int  # size of L2, MiB
    l2_tbps: float  # reads that hit L2, 10**12 bytes/s
    boost_mhz: int  # clock
    exp_per_clock: int  # exponentials of a multiprocessor in a clock
    fp32_per_clock: int  # float32 operations of a multiprocessor in a clock
    sustained: float  # share of the matrix rate that a large product reaches
    mma_sync: float  # share of the matrix rate with mma.sync: some GPUs have a newer instruction
    hbm_share: float  # share of the HBM bandwidth that a stream reaches
    sources: str

    @property
    def l2_bytes(self) -> int:
        """Size of L2 in bytes."""
        return self.l2_mib * KIB**2

    @property
    def clock(self) -> float:
        """Clocks a second."""
        return self.boost_mhz * 1e6


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU, as far as the simulator needs to know it (`assets/gpus.toml` names the sources)."""

    name: str  # preset name, such as ``H100-SXM``
    tflops: float  # dense fp16/bf16 matrix rate with fp32 sums, 10**12 FLOP/s
    tbps: float  # HBM bandwidth, 10**12 bytes/s
    sms: int  # streaming multiprocessors
    smem_kib: int  # shared memory that one thread block may take, KiB
    memory_gb: int  # device memory as the data sheet says it, 10**9 bytes
    capability: float  # compute capability, such as 8.9; 0 where there is none
    source: str  # where the figures come from
    rates: GpuRates  # the rates that a run reaches

    @property
    def words(self) -> str:
        """The GPU's name and figures, as a list shows them."""
        return f"{self.name} · {self.sms} SMs · {self.smem_kib} KiB a block · {self.tbps:g} TB/s"

    @property
    def smem_bytes(self) -> int:
        """Shared memory that one thread block may take, in bytes."""
        return self.smem_kib * KIB

    @property
    def register_bytes(self) -> int | None:
        """Registers of one multiprocessor in bytes; None for a GPU that is not NVIDIA's.

        References: NVIDIA, CUDA C++ Programming Guide, table "Technical specifications per compute
        capability": 64 Ki registers of 32 bits per multiprocessor, from 5.0 to 12.x.
        """
        return 64 * KIB * 4 if self.capability else None

    @property
    def multiprocessor(self) -> Multiprocessor | None:
        """The limits of one multiprocessor; None for a GPU that is not NVIDIA's."""
        return MULTIPROCESSORS.get(self.capability)

    @property
    def memory_bytes(self) -> int:
        """Device memory in bytes."""
        return self.memory_gb * GB


@cache
def gpus() -> dict[str, Gpu]:
    """Return the shipped presets by name, in the order of the file."""
    table = tomllib.loads((ASSETS / "gpus.toml").read_text(encoding="utf-8"))
    return {
        name: Gpu(name=name, rates=GpuRates(**row.pop("rates")), **row)
        for name, row in table.items()
    }


@dataclass(frozen=True, slots=True)
class Link:
    """A link between devices (`assets/links.toml` names the sources)."""

    name: str  # such as ``NVLink-4``
    gbps: float  # bandwidth of one direction as published, 10**9 bytes/s
    of: str  # which devices or ports have it
    source: str  # where the figure comes from

    def seconds(self, size: int) -> float:
        """Return how many seconds `size` bytes take, without a delay at their start."""
        return size / (self.gbps * GB)

    @property
    def title(self) -> str:
        """The link's name without the hyphens that files need: ``NVLink 4``."""
        return self.name.replace("-", " ")


@cache
def links() -> dict[str, Link]:
    """Return the shipped links by name, in the order of the file."""
    table = tomllib.loads((ASSETS / "links.toml").read_text(encoding="utf-8"))
    return {name: Link(name=name, **row) for name, row in table.items()}


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Roofline time of some work: the longer of moving the bytes and computing the sums."""

    memory: float  # seconds that the requested bytes take at the HBM bandwidth
    # Seconds that the matmul FLOPs take at the dense matrix rate. None for float32, for which the
    # presets have no rate.
    compute: float | None

    @property
    def seconds(self) -> float:
        """The longer of `memory` and `compute`."""
        return max(self.memory, self.compute or 0.0)

    @property
    def bound(self) -> str:
        """The name of the longer time, ``memory`` or ``compute``."""
        return "memory" if self.memory >= (self.compute or 0.0) else "compute"


def time_estimate(gpu: Gpu, bytes_moved: int, flops: int, dtype: str) -> TimeEstimate:
    """Return the roofline time of `bytes_moved` and `flops` on `gpu`.

    Launch latency, caches and imperfect overlap are not modelled. So this is the time that the data
    sheet allows, not the time that one would measure (docs/time-model.md).

    References: Williams, Waterman, Patterson 2009, "Roofline", section 3.
    """
    compute = None if dtype == "float32" else flops / (gpu.tflops * 1e12)
    return TimeEstimate(memory=bytes_moved / (gpu.tbps * 1e12), compute=compute)
