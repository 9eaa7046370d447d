"""The middle of the board: scores on chip or in HBM, splits, a state, gradients.

The algorithm and the launch decide which of them it is. `middle_of` returns a `Middle`; its methods
give the places of things and the words about them.
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

    name: str  # ``S`` or ``P``: the numbers it shows
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
    """Words about the board: words of every board, and words that a plain board leaves out."""

    text: str
    memory: str = ""  # where the numbers lie

    def said(self, *, plain: bool) -> str:
        """Return the words of a board; empty if a plain one has none."""
        return self.text if plain else self.text + self.memory


class Middle:
    """Scores of one tile at a time, which never leave the chip; base of the other middles."""

    note = Phrase("", "S never leaves the chip")
    """The note at the end of the line above the board."""
    joins = False
    """Whether a visit joins the results of splits, and so has no tile of its own."""
    state: Literal["chunk", "token"] | None = None
    """Step of the state that stands in the place of S; None if scores stand there."""
    sums_over = "d"
    """The axis that the products of a tile sum over."""
    keeps_divided = False
    """Whether P lies divided in HBM, even if P of the current tile is not divided."""
    relative_to = "m"
    """The number that exponentials of used tiles are relative to."""
    has_maximum = True
    """Whether numbers of a row are relative to a maximum of scores that the visit has."""
    each_box = False
    """Whether each box is at work by itself; else m, l, LSE and O go together."""
    weights, product = "exp(S − m)", "q{} · k{}"
    """Terms of a sum over keys, and the product of a row and a key."""

    # --- where ------------------------------------------------------------------------------

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return the areas of the tiles worked on: few rectangles, as programs run in order."""
        return _worked_on("P", True, program, visit)

    def whole(self, program: TileProgram) -> Area:
        """Return the whole matrix once a head is done."""
        return Area("P", not program.algorithm.passes_pairs, *_all_pairs(program))

    def drawn_as(self, visit: Visit) -> str:
        """Return whose colours the current tile of a small board has, ``S`` or ``P``."""
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
        """Return the numbers of the current rows, or keys, in a box, and these rows or keys."""
        return row_numbers(now).get(name), now.visit.rows

    # --- numbers ----------------------------------------------------------------------------

    def current(self, now: Snapshot) -> tuple[str, F32] | None:
        """Return the current tile's name and numbers: P once there are exponentials, earlier S."""
        return now.newest_pairs

    def divided(self, now: Snapshot) -> bool:
        """Return whether P of the current tile has been divided by its row's sum."""
        return False

    def value_range(self, now: Snapshot, name: str) -> tuple[float, float]:
        """Return the range of the map of ``S`` or ``P``, the same for all tiles of a head.

        A large problem knows its current tile alone. The map of exponentials ends at 1. Where they
        are divided by their sum, the map ends at the largest weight.
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
        """Return the ranges of the maps of pairs; on a plain board weights go up to 1."""
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
        """Return the parts of the line above the board without its note: head and places."""
        split = f"split {now.visit.split} of {now.program.workload.splits}"
        return _head(now), _row_block(now), *[split] * (now.launch.splits > 1), self.keys(now)

    def noted(self, now: Snapshot) -> Phrase:
        """Return the note at the end of the header."""
        return self.note if now.launch.splits == 1 else Phrase("")

    def keys(self, now: Snapshot) -> str:
        """Return which keys the visit works on."""
        if now.launch.whole_rows:
            return "all keys"
        return f"column block j = {now.visit.j} of {now.program.workload.grid.Tc}"

    def caption(self, now: Snapshot) -> Phrase:
        """Return the state of the current tile in words."""
        where = _where(now)
        if now.scores is None:
            return Phrase(f"{where} not computed yet")
        # Weights of a row sum to 1 only after the division by its sum; here only O is divided.
        weights = f"P = exp(S − m) of {where}"
        if now.made("O"):
            return Phrase(f"{weights} added to O, then dropped")
        return Phrase(f"S of {where}" if now.weights is None else weights, " in registers")

    def notes(self, now: Snapshot) -> list[Phrase]:
        """Return phrases that explain the rest of the matrix."""
        w, out = now.program.workload, []
        if now.partials is not None:
            out.append(Phrase("", "below the keys of a split: LSE and O that it leaves in HBM"))
        out += self.past(now)
        visited = int(w.grid.visited_columns.sums[-1])
        if now.program.algorithm.skips and visited < w.grid.Tr * w.grid.Tc:
            out.append(Phrase("hatched tiles are skipped"))
        return out

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return words for the number at each key of a row, longest first; empty for a score."""
        return ()

    def past(self, now: Snapshot) -> list[Phrase]:
        """Return phrases on how earlier tiles are drawn."""
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
    """O and LSE that the splits of a row block have left in HBM, while they are joined."""

    note = Phrase("no key is read any more")
    joins = True
    relative_to = "largest S"  # joined splits have no common m

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        return (Area("P", True, *_all_pairs(program)),)

    def at_work(self, now: Snapshot) -> frozenset[str]:
        return frozenset("O")

    def keys(self, now: Snapshot) -> str:
        """Return that the visit joins all splits."""
        return f"all {now.program.workload.splits} splits"

    def caption(self, now: Snapshot) -> Phrase:
        """Return whether the splits have been joined."""
        if now.made("O"):
            return Phrase(
                f"O of row block {now.visit.i} is the sum of all splits by their weights w"
            )
        return Phrase(f"splits of row block {now.visit.i} are joined")

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return words for the LSE of each split instead."""
        splits = now.program.workload.splits
        return (f"LSE of {'each of ' * (splits > 1)}{plural(splits, 'split')}",)


class StoredScores(Middle):
    """Scores and weights that go to HBM and back: S, then whole rows of P, then O."""

    note = Phrase("", "S and P are written to HBM")
    keeps_divided = True

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        rows, keys = _all_pairs(program)
        if visit.launch == 0:
            return _worked_on("S", False, program, visit)
        if visit.launch == 2:
            return (Area("P", False, rows, keys),)
        above, below = range(visit.rows.start), range(visit.rows.stop, rows.stop)
        return Area("P", False, above, keys), Area("S", False, below, keys)

    def drawn_as(self, visit: Visit) -> str:
        return "P" if visit.launch else "S"

    def at_work(self, now: Snapshot) -> frozenset[str]:
        return frozenset(("QK", "ml", "VO")[now.visit.launch])

    def finished(self, now: Snapshot, name: str) -> tuple[range, ...]:
        """Return the rows made by earlier launches, or by earlier visits of this one."""
        above, below = _other_rows(now)
        if name == "O":
            return (above,) if now.visit.launch == 2 else ()
        return ((), (above,), (above, below))[now.visit.launch]

    def current(self, now: Snapshot) -> tuple[str, F32] | None:
        """Return the current tile's name and numbers: P lies in HBM before it is loaded."""
        return now.newest_pairs or (("P", now.tile.p) if now.visit.launch == 2 else None)

    def divided(self, now: Snapshot) -> bool:
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
        """Return phrases on numbers in HBM."""
        launches = (
            "finished tiles of S lie in HBM",
            "rows above hold P, rows below S, all in HBM",
            "P lies in HBM",
        )
        hidden = [Phrase("hidden pairs are worked on all the same")]
        lies = Phrase("", launches[now.visit.launch])
        return [lies, *hidden * now.program.workload.mask.hides]


class Gradients(Middle):
    """Gradients of the forward pass's scores and weights, made by a backward pass."""

    has_maximum, each_box = False, True

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return where P was computed again; the whole matrix if a forward pass has left P."""
        if program.algorithm.passes_pairs:
            return (Area("P", False, *_all_pairs(program)),)
        if visit.launch == program.forming:
            return _worked_on("P", True, program, visit)
        return (Area("P", True, *_all_pairs(program)),) * (visit.launch > program.forming)

    def at_work(self, now: Snapshot) -> frozenset[str]:
        return _moved(now)

    def finished(self, now: Snapshot, name: str) -> tuple[range, ...]:
        """Return the rows, or keys, of other blocks whose result has been begun."""
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
        """Return the numbers of the box's tensor, or of one that becomes it, and their range."""
        own = now.visit.cols if "key" in TENSORS[name].axes else now.visit.rows
        numbers = (now.state.get(form) for form in _forms(now, name))
        found = next((each for each in numbers if each is not None and len(each) == len(own)), None)
        return None if found is None else found.reshape(len(own), -1), own

    def noted(self, now: Snapshot) -> Phrase:
        """Return where numbers of pairs go."""
        through = Phrase("", "P, dP and dS go through HBM")
        return through if now.program.algorithm.passes_pairs else self.note

    def caption(self, now: Snapshot) -> Phrase:
        """Return the words of the last op that has its own words."""
        again = now.visit_computes_again
        does = "S and P are computed again" if again else f"loads for {now.launch.name}"
        return Phrase(f"{_where(now)}: {_last_said(now) or does}")

    def past(self, now: Snapshot) -> list[Phrase]:
        if now.program.algorithm.passes_pairs:
            return [Phrase("other tiles: P", ", as it lies in HBM")]
        return super().past(now)


class GradientsOfRows(Gradients):
    """Numbers of rows that a launch makes from gradients without reading a key."""

    note = Phrase("no key is read")

    def header(self, now: Snapshot) -> tuple[str, ...]:
        """Return the head, the rows, and the launch that reads them."""
        return _head(now), _row_block(now), now.launch.name

    def noted(self, now: Snapshot) -> Phrase:
        return self.note

    def caption(self, now: Snapshot) -> Phrase:
        return Phrase(f"row block {now.visit.i}: {_last_said(now) or now.launch.name}")


class RunningState(Middle):
    """A state of the keys so far; the only tiles formed are chunks with themselves."""

    note = Phrase("", "S is never formed: the state stays on chip")
    sums_over = "features"
    state: Literal["chunk", "token"] | None = "chunk"
    has_maximum = False
    weights, product = "weights", "φ(q{}) · φ(k{})"

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        """Return earlier chunks with themselves, if few enough to be drawn one by one."""
        w, grid = program.workload, program.workload.grid
        formed = w.chunked and grid.Tr * grid.Tc <= DETAIL_TILES
        blocks = range(visit.i if formed else 0)
        return tuple(Area("P", True, grid.row_range(i), grid.col_range(i)) for i in blocks)

    def at_work(self, now: Snapshot) -> frozenset[str]:
        return _moved(now)

    def value_range(self, now: Snapshot, name: str) -> tuple[float, float]:
        """Return the range of the map of similarities: they are positive and may exceed 1."""
        found = now.tile.last(name) if now.head is None else now.head.pairs[name]
        return 0.0, 1.0 if found is None else top_of(found)

    def legend(self, now: Snapshot, *, plain: bool = False) -> list[LegendRow]:
        """Return the range of the map of similarities, if any are formed."""
        if not now.program.workload.chunked:
            return []
        top = self.value_range(now, "P")[1]
        return [LegendRow("φ(q)·φ(k)", ("P",), "0", _short_number(top))]

    def header(self, now: Snapshot) -> tuple[str, ...]:
        chunk = f"chunk i = {now.visit.i} of {now.program.workload.grid.Tr}"
        return _head(now), chunk if now.launch.carries else _row_block(now)

    def noted(self, now: Snapshot) -> Phrase:
        """Return the note: S is not formed, or no key is read."""
        return self.note if now.launch.carries else JoinedSplits.note

    def caption(self, now: Snapshot) -> Phrase:
        """Return the state of the keys, or of the rows, in words."""
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
        """Return how the weights relate to softmax weights."""
        phi = now.program.workload.feature_map
        if phi and phi.projects:
            return [Phrase("random features: on average the weights of a softmax")]
        return [Phrase("another function than a softmax, not an approximation of it")]

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        return "φ(q)·φ(k) of this row: no softmax", "φ(q)·φ(k)"


class StateOfKeys(RunningState):
    """A state to which all keys are added before a query is read."""

    def header(self, now: Snapshot) -> tuple[str, ...]:
        kv_head = now.program.workload.kv_head_of[now.visit.head]
        return f"KV head {kv_head}", f"keys of {self.keys(now)}"

    def noted(self, now: Snapshot) -> Phrase:
        return Phrase("no query is read yet")

    def caption(self, now: Snapshot) -> Phrase:
        """Return whether the keys have been added."""
        added = "added" if now.made("state") else "not added yet"
        return Phrase(f"keys of column block {now.visit.j} {added}")


class TokenState(RunningState):
    """A state that goes on token by token: no tile is formed at all."""

    state = "token"

    def areas(self, program: TileProgram, visit: Visit) -> tuple[Area, ...]:
        return ()

    def legend(self, now: Snapshot, *, plain: bool = False) -> list[LegendRow]:
        return []

    def header(self, now: Snapshot) -> tuple[str, ...]:
        return _head(now), f"token {now.visit.i} of {now.program.workload.grid.Tr}"

    def caption(self, now: Snapshot) -> Phrase:
        """Return the state of the token in words."""
        token = f"token {now.visit.i}"
        if now.has_output:
            return Phrase(f"O of {token} read from the state")
        done = "added to the state" if now.made("state") else "not added yet"
        return Phrase(f"{token} {done}")

    def of_row(self, now: Snapshot) -> tuple[str, ...]:
        """Return words for the weights: a gate makes them smaller with every token."""
        if now.gate is None:
            return super().of_row(now)
        return "how much each value counts in this row by now", "how much each value counts"


_SCORES, _STORED, _SPLITS = Middle(), StoredScores(), JoinedSplits()
_GRADIENTS, _GRADIENTS_OF_ROWS = Gradients(), GradientsOfRows()
_STATE, _STATE_OF_KEYS, _TOKENS = RunningState(), StateOfKeys(), TokenState()


def middle_of(program: TileProgram, visit: Visit) -> Middle:
    """Return the middle of the board at a visit."""
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
    """Return the middle of the board at a cursor."""
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
    """Return a tensor's name, and the names of the tensors that become it."""
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
    """Return where the map of P ends: weights above 1, which a kept m allows, all look alike."""
    if top == 1 and now.program.workload.threshold is not None:
        return "≥ 1"
    return f"{top:.2g}" if top <= 1 else number_text(top, 1)


def _short_number(value: float) -> str:
    return number_text(value, 0 if abs(value) >= 100 else 1)
