"""The current tile as arrays, and a script that recomputes it with the ops' own text."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from simulator.base.dtypes import UNIT
from simulator.base.errors import refuse
from simulator.base.files import write_atomically
from simulator.base.matmul import matmul
from simulator.code import numpy_lines
from simulator.problem.scenario import scenario_toml
from simulator.problem.tiling import TileKind
from simulator.program.algorithms import algorithm_of
from simulator.program.gate_ops import ApplyGate
from simulator.program.op import Op
from simulator.program.ops import Normalise, RoundScores, RoundWeights
from simulator.run.snapshot import Snapshot

_HEAD = '''"""Recomputes one tile in float64 and holds the recorded numbers against it.

{title}
{place}
{source}
The statements are those of the ops that Tilescope runs itself.
Numbers recorded by the engine "{engine}"; needs NumPy only:  python {script}
"""

from pathlib import Path

import numpy as np

matmul, number = np.matmul, np.float64
t = np.load(Path(__file__).with_name("{arrays}"))
mask = t["mask"]  # True where the row sees the key
bias = t["bias"]  # what a score loses, or gains, with distance
found = {{
{given}
}}
chip = {{name: t[array].astype(number) for name, array in found.items()}}

# A float32 score is off by at most about (d + 2) u times the sum of its products' magnitudes,
# largest_qk at most. In an exponent that is a relative error; a sum over n keys adds n u.
u = 2.0**-24
terms = 2 * (t["q"].shape[1] + 2) * float(t["scale"]) * t["largest_qk"]
changes = 4 * (float(t["softcap"]) + np.abs(bias).max())
error = 2 * (terms + changes + t["keys"] + 16) * u
largest = float(t["largest_v"])


def check(name, exact, tolerance):
    """Hold that the recorded array is within `tolerance` of the exact one."""
    ours = t[name].astype(number)
    same = ours == exact  # infinities
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(ours - exact))
    worst = off.max()
    assert (off <= tolerance).all(), f"{{name}}: off by {{worst}}, allowed {{np.max(tolerance)}}"
    print(f"{{name:12}} off by {{worst:.1e}}, allowed {{np.max(tolerance):.1e}}")
'''

_KEYS = {
    "Q": "q", "K": "k", "V": "v", "S": "s", "P": "p", "O": "o_prev", "m": "m_prev", "l": "l_prev",
    "sink": "sink", "gate": "gate", "O_partial": "o_partial", "LSE_partial": "lse_partial",
}  # fmt: skip
"""The arrays of the tensors that a visit finds."""
_CHECKED = {"S": "s", "P": "p", "O": "o"}  # the arrays of recorded tensors, if their names differ
_TOLERANCE = {
    "l": 'error * (1 + chip["l"])',
    "l_tile": 'error * (1 + chip["l_tile"])',
    "p_out": "2 * error",
    "o_out": "2 * error * largest",
    "o": "2 * error * largest",
    "o, summed": 'error * (1 + chip["l"][:, None]) * largest',
}


def tile_arrays(snapshot: Snapshot) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of the current visit, before and after it.

    Returns: ``q`` (r, d), ``k`` (c, d), ``v`` (c, dv), ``s`` and ``p`` (r, c), ``m_prev m l_prev l
        alpha beta m_tile l_tile`` (r,), ``o_prev o`` (r, dv), float32; ``mask`` (r, c) bool;
        ``bias`` (r, c) float64, the loss of scores with distance, (1, 1) for none; ``softcap``, 0
        for none; ``indices``, int64: head, KV head, i, j, first row, first key; ``scale``, ``keys``
        (how many there are), ``largest_qk`` (largest sum of ``|q| |k|`` of the rows),
        ``largest_v``, ``engine`` and ``scenario`` (TOML). Where the visit divides by l or
        gates O: ``o_out`` (r, dv) or ``p_out`` (r, c); where it loads sink logits, ``sink`` (n,),
        and where it loads a gate, ``gate`` (r, dv). A visit that joins
        splits has ``o_partial`` (splits, r, dv), ``lse_partial`` and ``w`` (splits, r) in place of
        ``k``, ``v``, ``s`` and ``p``.
    """
    w, visit, t = snapshot.program.workload, snapshot.visit, snapshot.tile
    rows, cols = (slice(part.start, part.stop) for part in (visit.rows, visit.cols))
    kv_head = w.kv_head_of[visit.head]
    places = [visit.head, kv_head, visit.i, visit.j, visit.rows.start, visit.cols.start]
    partials, used, bias = snapshot.partials, {}, w.bias(visit.head)
    if partials is not None and snapshot.launch.combines:
        used = {"o_partial": partials.o, "lse_partial": partials.lse, "w": t.last("w")}
    else:
        used = {"k": snapshot.k[cols], "v": snapshot.v[cols], "s": t.s, "p": t.p}
    arrays: dict[str, Any] = {
        "q": snapshot.q[rows], **used, "mask": t.seen,
        "m_prev": t.m_prev, "m": t.m, "l_prev": t.l_prev, "l": t.l, "alpha": t.alpha,
        "beta": t.beta, "m_tile": t.m_tile, "l_tile": t.l_tile, "o_prev": t.o_prev, "o": t.o,
        "indices": np.array(places), "scale": np.float64(w.logit_scale),
        "bias": np.zeros((1, 1)) if bias is None else bias.of(visit.rows, visit.cols),
        "softcap": np.float64(w.scoring.softcap),
        "keys": np.int64(w.seqlen_k), "largest_qk": matmul(np.abs(snapshot.q[rows]),
                                                          np.abs(snapshot.k).T).max(),
        "largest_v": np.abs(snapshot.v).max(),
        "engine": np.str_(snapshot.engine), "scenario": np.str_(scenario_toml(w.scenario)),
    }  # fmt: skip
    logits = t.last("sink")
    if logits is not None:
        arrays["sink"] = logits
    gate = t.last("gate")
    if gate is not None:
        arrays["gate"] = gate
    if gate is not None or (algorithm_of(w).normalises_last and visit.last):
        arrays["o_out"] = t.last("O")
    if snapshot.in_softmax_launch:
        arrays["p_out"] = t.last("P")
    return {name: np.asarray(value) for name, value in arrays.items()}


def tile_script(snapshot: Snapshot, arrays: str, script: str) -> str:
    """Return a script that recomputes the current visit in float64 and compares."""
    w, visit = snapshot.program.workload, snapshot.visit
    launch, algorithm = snapshot.program.launches[visit.launch], snapshot.program.algorithm
    body, done = [], []
    for op, later in _computed(snapshot):
        done.append(op)
        lines = numpy_lines.statements_of(op)
        body.append(f"\n# {op.name}: {op.cites}\n" + "\n".join(lines.text))
        body += _widened(op)
        body += _checks(snapshot, op, lines.made, later)
    several = len(snapshot.program.launches) > 1
    which = f", launch {visit.launch + 1} ({launch.name})" if several else ""
    where = f"tile ({visit.i}, {visit.j})"
    if launch.whole_rows:
        where = f"row block {visit.i}"
    cited = list(dict.fromkeys(op.cites for op in snapshot.ops if _computes(op)))
    head = _HEAD.format(
        title=f"{algorithm.title}{which}, head {w.head_name(visit.head)}, {where}:",
        place=f"query rows {visit.rows.start} to {visit.rows.stop - 1}, "
        f"keys {visit.cols.start} to {visit.cols.stop - 1}.",
        source="\n".join(f"{line}." for line in cited),
        engine=snapshot.engine,
        script=script,
        arrays=arrays,
        given="\n".join(f'    "{name}": "{array}",' for name, array in _given(done).items()),
    )
    helpers = {name: None for op in done for name in numpy_lines.helpers_of(op)}
    return (
        head
        + "".join(f"\n\n{numpy_lines.plain(name)}\n" for name in helpers)
        + "\n"
        + ("\n".join(body) + "\n")
    )


def _computed(snapshot: Snapshot) -> list[tuple[Op, bool]]:
    """Return the ops that compute, and whether the visit itself does them.

    If the visit loads tensors that an earlier launch has made, the ops that made them come first;
    the statistics of whole rows are given.
    """
    w, visit, algorithm = snapshot.program.workload, snapshot.visit, snapshot.program.algorithm
    if snapshot.launch.combines:  # the visit loads O and LSE of each split, which are given
        return [(op, True) for op in snapshot.ops if _computes(op)]
    before = [
        (op, False)
        for launch in range(visit.launch)
        for op in algorithm.ops(w, replace(visit, launch=launch, kind=TileKind.PARTIAL))
        if _computes(op) and not {"m", "l"} & set(op.recorded)
    ]
    return before + [(op, True) for op in snapshot.ops if _computes(op)]


def _computes(op: Op) -> bool:
    """Return whether an op computes numbers of the tile."""
    return not (op.moves or op.before_tiles)


def _given(ops: list[Op]) -> dict[str, str]:
    """Return the arrays that the ops read before any op makes them."""
    needed: dict[str, str] = {}
    made: set[str] = set()
    for op in ops:
        lines = numpy_lines.statements_of(op)
        needed |= {name: _KEYS[name] for name in lines.read if name not in made}
        made |= set(lines.made)
    return needed


def _widened(op: Op) -> list[str]:
    """Return the line that allows for ties: float32 may round to the other side than float64."""
    if not isinstance(op, RoundWeights):
        return []
    most = ' * np.abs(chip["S"][np.isfinite(chip["S"])]).max(initial=1.0)'
    size = most if isinstance(op, RoundScores) else ""
    return [
        f"error = error + {UNIT[op.dtype]!r}{size}  # where float32 is on the other side of a tie"
    ]


def _checks(snapshot: Snapshot, op: Op, made: tuple[str, ...], own: bool) -> list[str]:
    """Return the lines that compare an op's results with the recorded numbers."""
    found = [_CHECKED.get(name, name) for name in op.recorded if name in made]
    if not own:
        found = [name for name in found if name == "s"]
    rounds = any(type(each) is RoundWeights for each in snapshot.ops)
    if isinstance(op, Normalise):
        found = [f"{op.tensor.lower()}_out" if own else op.tensor.lower()]
    gates = any(isinstance(each, ApplyGate) for each in snapshot.ops)
    if gates and isinstance(op, Normalise | ApplyGate):  # O is recorded as it is in the end
        found = ["o_out"] if isinstance(op, ApplyGate) else found if op.tensor == "P" else []
    if rounds and own:  # P is recorded as it is in the end
        found = [name for name in found if name not in ("p", "p_out")]
        if type(op) is RoundWeights:
            found = ["p_out" if snapshot.in_softmax_launch else "p"]
    out = []
    for name in found:
        of = {array: tensor for tensor, array in _CHECKED.items()}.get(
            name[0] if "_out" in name else name, name
        )
        if isinstance(op, ApplyGate):
            tolerance = f'{_TOLERANCE[name]} * np.abs(chip["gate"]).max(initial=1.0)'
            out.append(f'check("{name}", chip["{of}"], {tolerance})')
            continue
        summed = name == "o" and snapshot.program.algorithm.normalises_last
        tolerance = _TOLERANCE.get(f"{name}, summed" if summed else name, "error")
        if name == "p" and not own:
            tolerance = "2 * error"
        out.append(f'check("{name}", chip["{of}"], {tolerance})')
    return out


def save_tile(snapshot: Snapshot, path: Path) -> tuple[Path, Path]:
    """Write the current tile's arrays and, in the same folder, the script that recomputes it.

    path: the ``.npz``; the script has the same name and ends in ``.py``.
    Raises InputError: `path` does not end in .npz, a file cannot be written (an old file stays as
        it was), the run has no softmax or is a backward pass, or a fault is on: the script
        recomputes the update as it should be.
    """
    if snapshot.program.workload.faults.on:
        raise refuse("values", "faults", "on", "a scenario without faults for the script to agree")
    algorithm = algorithm_of(snapshot.program.workload)
    if not algorithm.softmax:
        expected = "a run with a softmax, whose tiles the script recomputes"
        raise refuse("values", "algorithm", algorithm.in_a_sentence, expected)
    if algorithm.backward:
        expected = "a forward pass, whose tiles the script recomputes"
        raise refuse("values", "algorithm", algorithm.in_a_sentence, expected)
    if path.suffix != ".npz":
        raise refuse("values", "file", str(path), "a file that ends in .npz")
    script = path.with_suffix(".py")
    data = BytesIO()
    np.savez(data, allow_pickle=False, **tile_arrays(snapshot))
    text = tile_script(snapshot, path.name, script.name)
    write_atomically(path, lambda out: out.write(data.getvalue()))
    write_atomically(script, lambda out: out.write(text.encode("utf-8")))
    return path, script
