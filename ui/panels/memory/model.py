"""The figures of the memory picture, from the ops and the counters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from simulator.problem.paging import TABLE
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, BASELINE, baseline_of, tile_program
from simulator.run.motion import Motion
from simulator.run.snapshot import Snapshot
from simulator.study.compare import AtScale
from ui.look.names import chip_name, move_name, tensor_names
from ui.look.page_words import page_phrase
from ui.look.units import bytes_text, count_text, factor_text

_KIB = 1024


# The place of each tile on the chip, so that no tile moves when another one comes.
_SLOTS = {
    "Q": 0, "K": 1, "C": 1, "V": 2, "S": 0, "P": 0, "O": 1, "m": 2, "l": 2, "state": 2,
    "dO": 0, "dP": 0, "dS": 0, "LSE": 1, "D": 1, "dQ_acc": 1, "dQ": 1, "dK": 2, "dV": 2,
}  # fmt: skip


_ALONE = frozenset({"Q", "state"})
"""Tensors with a place of their own in shared memory where there is a state."""


def slot_of(name: str) -> int:
    """Return which place on the chip a tile has."""
    return _SLOTS.get(name, 0)


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The contents of a picture of the memory."""

    snapshot: Snapshot  # the state
    # bytes that the baseline requests in its whole run (`baseline_total`), if they are shown
    baseline_bytes: int | None = None
    motion: Motion | None = None  # the op that leads to the state, while it is being done
    share: float = 1.0  # how much of the op has been done, 0 to 1

    @property
    def moving(self) -> bool:
        """Whether an op is under way."""
        return self.motion is not None and 0 < self.share < 1

    @property
    def carried(self) -> Motion | None:
        """The op that is under way, if it moves tiles."""
        return self.motion if self.motion and self.moving and self.motion.flights else None

    @property
    def now(self) -> Snapshot:
        """The state at the share."""
        return self.snapshot if self.motion is None else self.motion.at(self.share)


@dataclass(frozen=True, slots=True)
class TensorTraffic:
    """Requested bytes of one tensor, so far and in the whole run."""

    tensor: str
    read: int
    written: int
    total: int
    places: PagePlaces | None = None  # of the block table: the places of pages in it


@dataclass(frozen=True, slots=True)
class TileLane:
    """A tile that the current op moves."""

    tensor: str
    name: str
    bytes: int
    loads: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """Name, bytes and direction, longest first."""
        words = f"{self.name}  {bytes_text(self.bytes)}"
        return (f"{words} →" if self.loads else f"← {words}", self.name)


@dataclass(frozen=True, slots=True)
class Chip:
    """A tile on chip; `fresh` if the current op put it there."""

    tensor: str
    names: tuple[str, ...]
    bytes: int
    slot: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class PagePlaces:
    """The places of pages of K and V in HBM."""

    count: int  # how many pages there is room for
    free: frozenset[int]  # places where no page of this sequence lies
    others: frozenset[int]  # the places in `free` that other sequences have
    lit: tuple[int, ...]  # places of the current tile, in the order of its pages
    words: str  # the same in words


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """The figures in the picture of the memory."""

    tensors: tuple[TensorTraffic, ...]  # every tensor of the program
    lanes: tuple[TileLane, ...]  # tiles that the current op moves
    shared: tuple[Chip, ...]  # shared, registers: tiles on chip, by their place
    registers: tuple[Chip, ...]
    # shared_bytes, register_bytes, limit: bytes of these tiles, and the most bytes that the
    # shared memory of one block may take on the GPU
    shared_bytes: int
    register_bytes: int
    limit: int
    read: int  # read, written: requested bytes so far
    written: int
    run: int  # requested bytes of the whole run
    tbps: float  # HBM bandwidth, 10**12 bytes/s

    @property
    def over(self) -> bool:
        """Whether the tiles need more shared memory than the GPU has."""
        return self.shared_bytes > self.limit

    @property
    def words(self) -> str:
        """The figures for screen readers."""
        moves = ", ".join(lane.labels[0] for lane in self.lanes) or "no tile moves"
        places = (f"; {t.places.words}" for t in self.tensors if t.places and t.places.words)
        return (
            f"requested bytes: read {bytes_text(self.read)}, written {bytes_text(self.written)}; "
            f"{self.occupancy}{', over the limit' if self.over else ''}; {moves}" + "".join(places)
        )

    @property
    def occupancy(self) -> str:
        """How much of the chip's memory is used."""
        return self.occupancies[0]

    @property
    def occupancies(self) -> tuple[str, ...]:
        """Title of the chip, from long to short."""
        figures = f"{self.shared_bytes / _KIB:.1f} of {self.limit // _KIB} KiB"
        return f"SRAM  {figures}", figures


def memory_model(snapshot: Snapshot) -> MemoryModel:
    """Return the figures of the picture at a snapshot."""
    program, op, now = snapshot.program, snapshot.op, snapshot.counters
    w, totals = program.workload, program.totals
    tensors = tuple(
        TensorTraffic(
            t,
            now.read[t],
            now.write[t],
            totals.read[t] + totals.write[t],
            _places(snapshot) if t == TABLE else None,
        )
        for t in program.tensors
    )
    lanes = tuple(
        TileLane(move.tensor, move_name(move, w), move.bytes, op.loads) for move in op.moves
    )
    places: dict[str, list[Chip]] = {"shared": [], "registers": []}
    taken = {"shared": 0, "registers": 0}
    fresh = {tile.name for tile in op.allocates}
    for tile in snapshot.on_chip:
        name = chip_name(tile, snapshot.visit, w, whole_rows=snapshot.in_softmax_launch)
        names = (name, *tensor_names(program.algorithm.called(tile.name)))
        chip = Chip(tile.name, names, tile.bytes, slot_of(tile.name), tile.name in fresh)
        places[tile.place].append(chip)
        taken[tile.place] += tile.bytes
    shared, registers = _on_chip(snapshot, places["shared"], places["registers"])
    return MemoryModel(
        tensors=tensors,
        lanes=lanes,
        shared=shared,
        registers=registers,
        shared_bytes=taken["shared"],
        register_bytes=taken["registers"],
        limit=w.gpu.smem_bytes,
        read=now.read_bytes,
        written=now.write_bytes,
        run=totals.bytes,
        tbps=w.gpu.tbps,
    )


def _places(snapshot: Snapshot) -> PagePlaces | None:
    table = snapshot.program.workload.pages
    if table is None:
        return None
    free = frozenset(range(table.places)) - frozenset(table.used.tolist())
    lit, words = snapshot.tile_places, page_phrase(snapshot)
    return PagePlaces(table.places, free, table.others, lit, words)


def _on_chip(
    snapshot: Snapshot, shared: Sequence[Chip], registers: Sequence[Chip]
) -> tuple[tuple[Chip, ...], tuple[Chip, ...]]:
    """Return the chips in shared memory and in registers, with one chip in each place."""
    algorithm = snapshot.program.algorithm
    if algorithm.backward:
        return _by_slot(shared), _by_slot(registers)
    new = {chip.tensor for chip in registers if chip.tensor not in _SLOTS}
    own = (
        _joined(registers, {"m", "l"}, "m ℓ")
        if algorithm.softmax
        else _joined(registers, new, *_names(registers, new))
    )
    partials = _joined(own, snapshot.split_tensors, "O LSE part", "O LSE", "O …")
    return _shared(shared, softmax=algorithm.softmax), partials


def _by_slot(chips: Sequence[Chip]) -> tuple[Chip, ...]:
    """Return the chips, with the chips of one place joined into one."""
    for slot in {chip.slot for chip in chips}:
        own = {chip.tensor for chip in chips if chip.slot == slot}
        if len(own) > 1:
            chips = _joined(chips, own, *_names(chips, own))
    return tuple(chips)


def _shared(chips: Sequence[Chip], *, softmax: bool) -> tuple[Chip, ...]:
    """Return the chips in shared memory; without softmax Q with φ, the state, the rest as one."""
    if softmax:
        return tuple(chips)
    rows = _joined(chips, {"Q", "phi_Q"}, *_names(chips, {"Q", "phi_Q"}))
    rest = {chip.tensor for chip in rows if chip.tensor not in _ALONE}
    return _joined(rows, rest, *_names(chips, rest))


def _names(chips: Sequence[Chip], tensors: Collection[str]) -> tuple[str, ...]:
    """Return the names of some chips together, longest first; the last ones name some and dots."""
    own = [chip for chip in chips if chip.tensor in tensors]
    ways = [[chip.names[n] for chip in own] for n in (0, -1)]
    some = [[*ways[1][:count], "…"] for count in range(len(own) - 1, 0, -1)]
    return tuple(" ".join(way) for way in (*ways, *some))


def requested(model: MemoryModel) -> str:
    """Return in words the bytes requested so far."""
    return f"requested: read {bytes_text(model.read)}  ·  written {bytes_text(model.written)}"


def _joined(chips: Sequence[Chip], tensors: Collection[str], *names: str) -> tuple[Chip, ...]:
    """Return the chips with some joined into one: they come and go together."""
    rest = [chip for chip in chips if chip.tensor not in tensors]
    own = [chip for chip in chips if chip.tensor in tensors]
    if own:
        size, fresh = sum(chip.bytes for chip in own), any(chip.fresh for chip in own)
        rest.append(replace(own[0], names=names, bytes=size, fresh=fresh))
    return tuple(rest)


def baseline_total(workload: Workload) -> int:
    """Return the requested bytes of the baseline's whole run on the same workload."""
    baseline = baseline_of(workload.algorithm).name
    return tile_program(workload.as_algorithm(baseline)).totals.bytes


def comparison(
    run: int, baseline: int | None, scale: AtScale | None = None, name: str = ""
) -> tuple[str, ...]:
    """Return in words the whole run's bytes and the baseline's, longest first.

    run, baseline: requested bytes of the run and of the baseline's; None: not known.
    scale: a long run in comparison, where this run is short.
    """
    ours = f"whole run {bytes_text(run)}"
    if baseline is None or baseline == run:
        return (ours,)
    other = (baseline_of(name) if name in ALGORITHMS else BASELINE).label
    factor, theirs = factor_text(baseline / run), f"{other} {bytes_text(baseline)}"
    times = f"{factor} as much"
    both = f"{ours}  ·  {theirs}, {times}"
    if scale is None:
        return both, f"{other} {times}"
    tiles = f"{count_text(scale.rows)} × {count_text(scale.cols)} tiles"
    there = f"at N = {count_text(scale.keys)} in {tiles} {factor_text(scale.times(name))}"
    brief = f"run {bytes_text(run)}  ·  {theirs}, {factor}"
    long = (f"{words}; {there}" for words in (both, brief, f"{other} {times}"))
    return *long, both, f"{other} {times}"
