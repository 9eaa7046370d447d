"""What stands in the middle of the board: scores on chip or in HBM, splits, a state, gradients.

Which of them it is follows from the algorithm and the launch. `middle_of` is asked for it once;
where things lie and what is said about them is then a method of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from simulator.base.dtypes import F32
from simulator.program.algorithms import TENSORS
from simulator.program.tile_program import TileProgram, Visit
from simulator.run.cell_values import row_numbers
from simulator.run.final_weights import done_rows
from simulator.run.linear_state import forms_tile
from simulator.run.snapshot import Snapshot
from simulator.run.trace import DETAIL_TILES
from ui.look.heat import KEPT, finite_range
from ui.look.names import head_words
from ui.look.units import number_text, plural


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the score matrix whose tiles were worked on before the current one."""

    name: str  # ``S`` or ``P``: what it shows
    dropped: bool  # whether its numbers are gone from the machine; else they lie in HBM
    rows: range  # rows, cols: query rows and keys; skipped tiles among them stay as they are
    cols: range


class LegendRow(NamedTuple):
    """A line of the legend: a name, the colour maps, and the numbers at their ends."""

    name: str
    maps: tuple[str, ...]
    low: str
    high: str


class Phrase(NamedTuple):
    """Words about the board: what a plain one says, and what it leaves out of that."""

    text: str
    memory: str = ""  # where the numbers lie

    def said(self, *, plain: bool) -> str:
        """Return the words of a board; empty if a plain one has none."""
        return self.text if plain else self.text + self.memory


class Middle:
    """Scores of a tile at a time, which never leave the chip; what others stand in the place of."""

    note = Phrase("", "S never leaves the chip")
    """The end of the line above the board."""
    joins = False
    """Whether a visit joins what splits have left, and so has no tile of its own."""
    state: Literal["chunk", "token"] | None = None
    """What the state that stands in the place of S goes on by; None if scores stand there."""
    sums_over = "d"
    """What the products of a tile are sums over."""
    keeps_divided = False
    """Whether P lies in HBM as it was divided, whatever the current tile has."""
    relative_to = "m"
    """What exponentials of used tiles are relative to."""
    has_maximum = True
    """Whether numbers of a row are relative to a maximum of scores that the visit has."""
    each_box = False
    """Whether each box has numbers of its own at work; else m, l, LSE and O go together."""
    weights, product = "exp(S − m)", "q{} · k{}"
    """What a sum over keys is of, and the product of a row and a key."""

    # --- where ------------------------------------------------------------------------------

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return where tiles were worked on: programs run in order, so it is a few rectangles."""
        return _worked_on("P", True, program, visit)

    def whole(self, program: TileProgram) -> Area:
        """Return the whole matrix once a head is done."""
        return Area("P", not program.algorithm.passes_pairs, *_all_pairs(program))

    def drawn_as(self, visit: Visit) -> str:
        """Return what the current tile of a small board is coloured as, ``S`` or ``P``."""
        return "P"

    def at_work(self, now: Snapshot) -> frozenset[str]:
        """Return the tensors whose blocks the current visit works on."""
        return frozenset({"O", *(spec.name for spec in now.program.algorithm.inputs)})

    def finished(self, now: Snapshot, name: str) -> tuple[range, ...]:
        """Return the rows outside the current row block that hold m, l or O already."""
        above, below = _other_rows(now)
        if now.launch.by_rows:
            return (above,) if now.launch.writes_output else ()
        # flash1 wrote its blank m, l and O for all rows at the start.
        return above, below

    def held(self, now: Snapshot, name: str) -> tuple[F32 | None, range]:
        """Return what the current rows, or keys, have in a box now, and which they are."""
        return row_numbers(now).get(name), now.visit.rows

    # --- numbers ----------------------------------------------------------------------------

    def current(self, now: Snapshot) -> tuple[str, F32] | None:
        """Return what the current tile holds: P once there are exponentials, before that S."""
        return now.newest_pairs

    def divided(self, now: Snapshot) -> bool:
        """Return whether P of the current tile has been divided by its row's sum."""
        return False

    def value_range(self, now: Snapshot, name: str) -> tuple[float, float]:
        """Return what the map of ``S`` or ``P`` spans, the same for all tiles of a head.

        A large problem knows its current tile alone. Exponentials end at 1. Where they are divided
        by their sum, the map ends at the largest.
        """
        head, tile = now.head, now.tile
        if TENSORS[name].at:  # a gradient: of both signs
            found = tile.last(name) if head is None else head.pairs[name]
            limit = 1.0 if found is None else KEPT.get(found, "size", lambda: _largest(found))
            return -limit, limit
        if name == "S":
            scores = tile.s if head is None else head.s
            return KEPT.get(scores, "range", lambda: finite_range(scores))
        final = now.so_far
        if final is not None and now.completes:
            return 0.0, top_of(final)
        weights = tile.p if head is None else head.p
        if self.divided(now):
            return 0.0, top_of(weights)
        if now.wrong is None:
            return 0.0, 1.0
        largest = KEPT.get(weights, "range", lambda: finite_range(weights))[1]
        return 0.0, max(1.0, largest)  # exponentials may pass 1

    def legend(self, now: Snapshot, *, plain: bool = False) -> list[LegendRow]:
        """Return what the maps of pairs span; weights of a plain board up to 1."""
        if now.head is None and not forms_tile(now):
            return []
        low, high = self.value_range(now, "S")
        top = self.value_range(now, "P")[1]
        top = max(top, 1.0) if plain else top
        rows = [
            LegendRow("scores S", ("S",), _short_number(low), _short_number(high)),
            LegendRow("weights P", ("P",), "0", _largest_weight(now, top)),
        ]
        found = now.newest_pairs
        if found is not None and TENSORS[found[0]].at:
            name, ends = found[0], self.value_range(now, found[0])
            rows.append(LegendRow(name, (name,), *map(_short_number, ends)))
        return rows

    # --- words ------------------------------------------------------------------------------

    def header(self, now: Snapshot) -> tuple[str, ...]:
        """Return the parts of the line above the board but its note: the head, and the places."""
        split = f"split {now.visit.split} of {now.program.workload.splits}"
        return _head(now), _row_block(now), *[split] * (now.launch.splits > 1), self.keys(now)

    def noted(self, now: Snapshot) -> Phrase:
        """Return the note at the end of that line."""
        return self.note if now.launch.splits == 1 else Phrase("")

    def keys(self, now: Snapshot) -> str:
        """Return which keys the visit works on."""
        if now.launch.whole_rows:
            return "all keys"
        return f"column block j = {now.visit.j} of {now.program.workload.grid.Tc}"

    def caption(self, now: Snapshot) -> Phrase:
        """Return what has become of the current tile."""
        where = _where(now)
        if now.scores is None:
            return Phrase(f"{where} not computed yet")
        # Weights of a row sum to 1 only after the division by its sum, which O alone goes through.
        weights = f"P = exp(S − m) of {where}"
        if now.made("O"):
            return Phrase(f"{weights} added to O, then dropped")
        return Phrase(f"S of {where}" if now.weights is None else weights, " in registers")

    def notes(self, now: Snapshot) -> list[Phrase]:
        """Return what explains the rest of the matrix."""
        w, out = now.program.workload, []
        if now.partials is not None:
            out.append(Phrase("", "below the keys of a split: LSE and O that it leaves in HBM"))
        out += self.past(now)
        visited = int(w.grid.visited_columns.sums[-1])
        if now.program.algorithm.skips and visited < w.grid.Tr * w.grid.Tc:
            out.append(Phrase("hatched tiles are skipped"))
        return out

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return what there is of each key of one row, longest first; nothing for its scores."""
        return ()

    def past(self, now: Snapshot) -> list[Phrase]:
        """Return how the tiles before the current one are drawn."""
        before = now.cursor.visit - 1
        if before < 0 or now.program.visit(before).head != now.visit.head:
            return []
        if now.so_far is not None:
            which = "all tiles" if now.normalised else "tiles before"
            return [Phrase(f"{which}: P / ℓ, with m and ℓ of their rows as they are now")]
        shade = "dim" if now.head is not None else "shaded"
        counted = now.head is not None and now.head.weights is not None
        tail = f": exp(S − {self.relative_to}) of now" if counted else ""
        done = counted and bool(done_rows(now))
        weights = [Phrase("finished rows: weights P / ℓ")] * done
        return [*weights, Phrase(f"{shade} tiles were used and dropped{tail}")]


class JoinedSplits(Middle):
    """What the splits of a row block have left in HBM, as they are joined."""

    note = Phrase("no key is read any more")
    joins = True
    relative_to = "largest S"  # joined splits have no common m

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return the whole matrix: all splits are done."""
        return (Area("P", True, *_all_pairs(program)),)

    def at_work(self, now: Snapshot) -> frozenset[str]:
        """Return O alone."""
        return frozenset("O")

    def keys(self, now: Snapshot) -> str:
        """Return that the visit is of all splits."""
        return f"all {now.program.workload.splits} splits"

    def caption(self, now: Snapshot) -> Phrase:
        """Return whether the splits have been joined."""
        if now.made("O"):
            return Phrase(
                f"O of row block {now.visit.i} is the sum of all splits by their weights w"
            )
        return Phrase(f"splits of row block {now.visit.i} are joined")

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return that there is a number of each split instead."""
        splits = now.program.workload.splits
        return (f"LSE of {'each of ' * (splits > 1)}{plural(splits, 'split')}",)


class StoredScores(Middle):
    """Scores and weights that go to HBM and back: S, then whole rows of P, then O."""

    note = Phrase("", "S and P are written to HBM")
    keeps_divided = True

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return where S lies in HBM, and where P does."""
        rows, keys = _all_pairs(program)
        if visit.launch == 0:
            return _worked_on("S", False, program, visit)
        if visit.launch == 2:
            return (Area("P", False, rows, keys),)
        above, below = range(visit.rows.start), range(visit.rows.stop, rows.stop)
        return Area("P", False, above, keys), Area("S", False, below, keys)

    def drawn_as(self, visit: Visit) -> str:
        """Return S while it is made."""
        return "P" if visit.launch else "S"

    def at_work(self, now: Snapshot) -> frozenset[str]:
        """Return what the launch reads and makes."""
        return frozenset(("QK", "ml", "VO")[now.visit.launch])

    def finished(self, now: Snapshot, name: str) -> tuple[range, ...]:
        """Return the rows that launches before this one, or visits of it, have made."""
        above, below = _other_rows(now)
        if name == "O":
            return (above,) if now.visit.launch == 2 else ()
        return ((), (above,), (above, below))[now.visit.launch]

    def current(self, now: Snapshot) -> tuple[str, F32] | None:
        """Return what the current tile holds: P lies in HBM before it is loaded."""
        return now.newest_pairs or (("P", now.tile.p) if now.visit.launch == 2 else None)

    def divided(self, now: Snapshot) -> bool:
        """Return whether P is there as it lies in HBM."""
        return now.visit.launch == 2 or now.normalised

    def caption(self, now: Snapshot) -> Phrase:
        """Return where S or P of the current tile, or of its rows, is."""
        where = _where(now)
        if now.in_softmax_launch:
            shown = "S" if now.weights is None else "P"
            memory = " written to HBM" if now.stored("P") else " on chip"
        elif now.visit.launch == 2:
            if now.made("O"):
                return Phrase(f"P of {where} added to O")
            shown = "P"
            memory = " still in HBM" if now.weights is None else " read from HBM"
        elif now.scores is None:
            return Phrase(f"{where} not computed yet")
        else:
            shown, memory = "S", " written to HBM" if now.stored("S") else " in registers"
        return Phrase(f"{shown} of {where}", memory)

    def notes(self, now: Snapshot) -> list[Phrase]:
        """Return what lies in HBM."""
        launches = (
            "finished tiles of S lie in HBM",
            "rows above hold P, rows below S, all in HBM",
            "P lies in HBM",
        )
        hidden = [Phrase("hidden pairs are worked on all the same")]
        lies = Phrase("", launches[now.visit.launch])
        return [lies, *hidden * now.program.workload.mask.hides]


class Gradients(Middle):
    """Gradients of scores and weights, which a backward pass makes of the forward pass's."""

    has_maximum, each_box = False, True

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return where P was computed again, or all of it where a forward pass has left it."""
        if program.algorithm.passes_pairs:
            return (Area("P", False, *_all_pairs(program)),)
        if visit.launch == program.forming:
            return _worked_on("P", True, program, visit)
        return (Area("P", True, *_all_pairs(program)),) * (visit.launch > program.forming)

    def at_work(self, now: Snapshot) -> frozenset[str]:
        """Return all that the launch reads and writes."""
        return _moved(now)

    def finished(self, now: Snapshot, name: str) -> tuple[range, ...]:
        """Return the rows, or keys, of other blocks of which a result has been begun."""
        w, visit, launches = now.program.workload, now.visit, now.program.launches
        by_key = "key" in TENSORS[name].axes
        own, count = (visit.cols, w.seqlen_k) if by_key else (visit.rows, w.seqlen_q)
        before, after = range(own.start), range(own.stop, count)
        forms = {*_forms(now, name)}
        numbers = ({*each.writes, *each.makes} for each in launches)
        first = next((n for n, each in enumerate(numbers) if forms & each), -1)
        if visit.launch > first:
            here = ({*op.makes, *(move.tensor for move in op.moves)} for op in now.ops)
            return (before, after) if any(forms & each for each in here) else (range(count),)
        return (before,) if visit.launch == first else ()

    def held(self, now: Snapshot, name: str) -> tuple[F32 | None, range]:
        """Return the newest number that is, or becomes, what the box is of."""
        own = now.visit.cols if "key" in TENSORS[name].axes else now.visit.rows
        numbers = (now.state.get(form) for form in _forms(now, name))
        found = next((each for each in numbers if each is not None and len(each) == len(own)), None)
        return None if found is None else found.reshape(len(own), -1), own

    def noted(self, now: Snapshot) -> Phrase:
        """Return where numbers of pairs go."""
        through = Phrase("", "P, dP and dS go through HBM")
        return through if now.program.algorithm.passes_pairs else self.note

    def caption(self, now: Snapshot) -> Phrase:
        """Return what the last op has made that has words of its own."""
        again = now.visit_computes_again
        does = "S and P are computed again" if again else f"loads for {now.launch.name}"
        return Phrase(f"{_where(now)}: {_last_said(now) or does}")

    def past(self, now: Snapshot) -> list[Phrase]:
        if now.program.algorithm.passes_pairs:
            return [Phrase("other tiles: P", ", as it lies in HBM")]
        return super().past(now)


class GradientsOfRows(Gradients):
    """Numbers of rows that a launch makes of gradients without any key."""

    note = Phrase("no key is read")

    def header(self, now: Snapshot) -> tuple[str, ...]:
        """Return the head, the rows, and what they are read for."""
        return _head(now), _row_block(now), now.launch.name

    def noted(self, now: Snapshot) -> Phrase:
        """Return that no key is read."""
        return self.note

    def caption(self, now: Snapshot) -> Phrase:
        return Phrase(f"row block {now.visit.i}: {_last_said(now) or now.launch.name}")


class RunningState(Middle):
    """A state of the keys so far, of which no tile is formed but of a chunk with itself."""

    note = Phrase("", "S is never formed: the state stays on chip")
    sums_over = "features"
    state: Literal["chunk", "token"] | None = "chunk"
    has_maximum = False
    weights, product = "weights", "φ(q{}) · φ(k{})"

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return the chunks with themselves, as many as are drawn one by one."""
        w, grid = program.workload, program.workload.grid
        formed = w.chunked and grid.Tr * grid.Tc <= DETAIL_TILES
        blocks = range(visit.i if formed else 0)
        return tuple(Area("P", True, grid.row_range(i), grid.col_range(i)) for i in blocks)

    def at_work(self, now: Snapshot) -> frozenset[str]:
        """Return all that the launch reads and writes."""
        return _moved(now)

    def value_range(self, now: Snapshot, name: str) -> tuple[float, float]:
        """Return what the map of similarities spans: they are positive, and 1 is no bound."""
        found = now.tile.last(name) if now.head is None else now.head.pairs[name]
        return 0.0, 1.0 if found is None else top_of(found)

    def legend(self, now: Snapshot, *, plain: bool = False) -> list[LegendRow]:
        """Return what the map of similarities spans, if any are formed."""
        if not now.program.workload.chunked:
            return []
        top = self.value_range(now, "P")[1]
        return [LegendRow("φ(q)·φ(k)", ("P",), "0", _short_number(top))]

    def header(self, now: Snapshot) -> tuple[str, ...]:
        """Return the head, and the chunk or block."""
        chunk = f"chunk i = {now.visit.i} of {now.program.workload.grid.Tr}"
        return _head(now), chunk if now.launch.carries else _row_block(now)

    def noted(self, now: Snapshot) -> Phrase:
        """Return what is not formed, or not read."""
        return self.note if now.launch.carries else JoinedSplits.note

    def caption(self, now: Snapshot) -> Phrase:
        """Return what has become of the keys, or of the rows."""
        i = now.visit.i
        if now.normalised:
            return Phrase(f"O of row block {i} is divided by ℓ")
        if now.made("state"):
            return Phrase(f"keys of chunk {i} added to the state")
        if now.made("O"):
            added = "the state and the keys of the chunk" if now.launch.carries else "read"
            return Phrase(f"O: {added}")
        if now.has_output:
            return Phrase("O: read from the state of the keys before")
        return Phrase(f"row block {i} not computed yet")

    def notes(self, now: Snapshot) -> list[Phrase]:
        """Return how the weights relate to those of a softmax."""
        phi = now.program.workload.feature_map
        if phi and phi.projects:
            return [Phrase("random features: on average the weights of a softmax")]
        return [Phrase("another function than a softmax, not an approximation of it")]

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return what the similarities are."""
        return "φ(q)·φ(k) of this row: no softmax", "φ(q)·φ(k)"


class StateOfKeys(RunningState):
    """A state to which all keys are added before a query is read."""

    def header(self, now: Snapshot) -> tuple[str, ...]:
        """Return the KV head and the keys."""
        kv_head = now.program.workload.kv_head_of[now.visit.head]
        return f"KV head {kv_head}", f"keys of {self.keys(now)}"

    def noted(self, now: Snapshot) -> Phrase:
        """Return that no query is read."""
        return Phrase("no query is read yet")

    def caption(self, now: Snapshot) -> Phrase:
        """Return what has become of the keys."""
        added = "added" if now.made("state") else "not added yet"
        return Phrase(f"keys of column block {now.visit.j} {added}")


class TokenState(RunningState):
    """A state that goes on token by token: no tile is formed at all."""

    state = "token"

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return no area."""
        return ()

    def legend(self, now: Snapshot, *, plain: bool = False) -> list[LegendRow]:
        """Return no row: there is no map of pairs."""
        return []

    def header(self, now: Snapshot) -> tuple[str, ...]:
        """Return the head and the token."""
        return _head(now), f"token {now.visit.i} of {now.program.workload.grid.Tr}"

    def caption(self, now: Snapshot) -> Phrase:
        """Return what the token has done."""
        token = f"token {now.visit.i}"
        if now.has_output:
            return Phrase(f"O of {token} read from the state")
        done = "added to the state" if now.made("state") else "not added yet"
        return Phrase(f"{token} {done}")

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return what the weights are: a gate makes them less with every token."""
        if now.gate is None:
            return super().of_row(now)
        return "how much each value counts in this row by now", "how much each value counts"


_SCORES, _STORED, _SPLITS = Middle(), StoredScores(), JoinedSplits()
_GRADIENTS, _GRADIENTS_OF_ROWS = Gradients(), GradientsOfRows()
_STATE, _STATE_OF_KEYS, _TOKENS = RunningState(), StateOfKeys(), TokenState()


def middle_of(program: TileProgram, visit: Visit) -> Middle:
    """Return what stands in the middle of the board at a visit."""
    algorithm, launch = program.algorithm, program.launches[visit.launch]
    if not algorithm.softmax:
        state = _STATE_OF_KEYS if launch.of_keys else _STATE
        return state if algorithm.forms else _TOKENS
    if algorithm.backward:
        return _GRADIENTS if launch.forms else _GRADIENTS_OF_ROWS
    if launch.combines:
        return _SPLITS
    return _STORED if algorithm.stores_scores else _SCORES


def middle_at(now: Snapshot) -> Middle:
    """Return what stands in the middle of the board at a cursor."""
    return middle_of(now.program, now.visit)


def top_of(values: F32) -> float:
    """Return the largest finite number; 1 if there is none but 0."""
    return KEPT.get(values, "range", lambda: finite_range(values))[1] or 1.0


def _worked_on(name: str, dropped: bool, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
    """Return the tiles before a visit, in the order of its launch."""
    rows, keys = _all_pairs(program)
    above, left = range(visit.rows.start), range(visit.cols.start)
    if program.launches[visit.launch].by_rows:
        return Area(name, dropped, above, keys), Area(name, dropped, visit.rows, left)
    return Area(name, dropped, rows, left), Area(name, dropped, above, visit.cols)


def _all_pairs(program: TileProgram) -> tuple[range, range]:
    return range(program.workload.seqlen_q), range(program.workload.seqlen_k)


def _other_rows(now: Snapshot) -> tuple[range, range]:
    rows = now.visit.rows
    return range(rows.start), range(rows.stop, now.program.workload.seqlen_q)


def _forms(now: Snapshot, name: str) -> tuple[str, ...]:
    """Return a tensor's name, and those of what becomes it."""
    specs = now.program.algorithm.tensors
    return (name, *(spec.name for spec in specs if spec.at == name))


def _moved(now: Snapshot) -> frozenset[str]:
    return frozenset({*now.launch.reads, *now.launch.writes})


def _head(now: Snapshot) -> str:
    w = now.program.workload
    head = head_words(w, now.visit.head)
    if w.kv_heads < len(w.picked):
        head += f" (KV head {w.kv_head_of[now.visit.head]})"
    return head


def _row_block(now: Snapshot) -> str:
    return f"row block i = {now.visit.i} of {now.program.workload.grid.Tr}"


def _last_said(now: Snapshot) -> str:
    """Return the words of the last op that has words of its own; empty before any."""
    says = [op.says for op in now.past if op.says and not op.before_tiles]
    return says[-1] if says else ""


def _where(now: Snapshot) -> str:
    return now.launch.where(now.visit.i, now.visit.j)


def _largest(values: F32) -> float:
    """Return the largest magnitude; 1 if there is no number."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0


def _largest_weight(now: Snapshot, top: float) -> str:
    """Return where the map of P ends: those above 1 look alike where a kept m lets them pass it."""
    if top == 1 and now.program.workload.threshold is not None:
        return "≥ 1"
    return f"{top:.2g}" if top <= 1 else number_text(top, 1)


def _short_number(value: float) -> str:
    return number_text(value, 0 if abs(value) >= 100 else 1)
