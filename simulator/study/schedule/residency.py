"""How many thread blocks of a kernel are on a multiprocessor at once, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.problem.hardware import KIB, Gpu

WARP = 32
REGISTER_BYTES = 4
_REGISTERS_AT_ONCE = 256
"""Registers that a warp gets at a time."""
_SHARED, _REGISTERS = "shared memory", "registers"


@dataclass(frozen=True, slots=True)
class BlockNeeds:
    """The resources that one thread block of a kernel takes."""

    kernel: str  # its name
    threads: int  # of a block
    shared: int  # shared memory, bytes
    registers: int  # of a thread
    # whether the registers come from a compiled kernel; otherwise its source states them
    compiled: bool = False

    @property
    def block_registers(self) -> int:
        """Registers of a block."""
        warp = -(-self.registers * WARP // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        return warp * -(-self.threads // WARP)


@dataclass(frozen=True, slots=True)
class Residency:
    """How many thread blocks of a kernel fit on a multiprocessor."""

    blocks: int  # how many; 0 if not even one can start
    limits: tuple[tuple[str, int], ...]  # how many each resource would allow, the scarcest first
    # shared memory that a block of the kernel takes, bytes: its tiles, and fixed arrays beside them
    shared: int = 0
    # registers, compiled: as in `BlockNeeds`
    registers: int = 0
    compiled: bool = False

    @property
    def limit(self) -> str:
        """The resource that is used up first."""
        return self.limits[0][0]

    @property
    def is_shared(self) -> bool:
        """Whether the limit is shared memory."""
        return self.limit == _SHARED

    @property
    def is_registers(self) -> bool:
        """Whether the limit is registers."""
        return self.limit == _REGISTERS


def residency(needs: BlockNeeds, gpu: Gpu) -> Residency:
    """Return how many blocks fit on a multiprocessor of a GPU.

    For a GPU that is not of NVIDIA's only shared memory is known.

    References
    ----------
    NVIDIA, CUDA C++ Programming Guide, "Multiprocessor level".
    """
    if needs.shared > gpu.smem_bytes:
        return _scarcest({_SHARED: 0}, needs)
    own = gpu.multiprocessor
    if own is None:
        return _scarcest({_SHARED: gpu.smem_bytes // max(needs.shared, 1)}, needs)
    assert gpu.register_bytes is not None
    shared = needs.shared + own.reserved_kib * KIB
    return _scarcest(
        {
            _SHARED: own.shared_kib * KIB // max(shared, 1),
            _REGISTERS: gpu.register_bytes // REGISTER_BYTES // needs.block_registers,
            "threads": own.threads // needs.threads,
            "most thread blocks": own.blocks,
        },
        needs,
    )


def _scarcest(allowed: dict[str, int], needs: BlockNeeds) -> Residency:
    limits = tuple(sorted(allowed.items(), key=lambda pair: pair[1]))
    return Residency(limits[0][1], limits, needs.shared, needs.registers, needs.compiled)
