"""The current tile as arrays, and a short script that recomputes it with NumPy alone."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.base.files import write_atomically
from simulator.base.matmul import matmul
from simulator.problem.scenario import scenario_toml
from simulator.program.algorithms import algorithm_of
from simulator.run.snapshot import Snapshot

_HEAD = '''"""Recomputes one tile in float64 and holds the recorded numbers against it.

{title}
{place}
{source}
Numbers recorded by the engine "{engine}"; needs NumPy only:  python {script}
"""

from pathlib import Path

import numpy as np

t = np.load(Path(__file__).with_name("{arrays}"))
{names} = (
    t[name].astype(np.float64)
    for name in {quoted}
)
{mask}

def check(name, exact, tolerance):
    """Hold that the recorded array is within `tolerance` of the exact one."""
    ours = t[name].astype(np.float64)
    same = ours == exact  # infinities
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(ours - exact))
    worst = off.max()
    assert (off <= tolerance).all(), f"{{name}}: off by {{worst}}, allowed {{np.max(tolerance)}}"
    print(f"{{name:12}} off by {{worst:.1e}}, allowed {{np.max(tolerance):.1e}}")

'''

_MASK = 'mask = t["mask"]  # True where the row sees the key\nscale = float(t["scale"])\n'

_SHIFT = '''
def shift(high, low):
    """exp(high - low), 0 where nothing has been seen."""
    return np.where(np.isneginf(high), 0.0, np.exp(high - np.where(np.isneginf(low), 0.0, low)))


def over(a, b):
    """a / b, 0 where nothing has been seen."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)

'''

_SCORES = """
# S = scale * Q K^T; -inf where the mask hides the pair
s = scale * q @ k.T
masked = np.where(mask, s, -np.inf)
"""

_TOLERANCE = """
# A float32 score is off by at most about (d + 2) u times the sum of its products' magnitudes,
# largest_qk at most. In an exponent that is a relative error; a sum over n keys adds n u.
u = 2.0**-24
error = 2 * (2 * (q.shape[1] + 2) * scale * t["largest_qk"] + t["keys"] + 16) * u
"""

_FLASH2 = (
    _SHIFT
    + _SCORES
    + """
# m = max(m, rowmax S), P = exp(S - m), l = alpha l + rowsum P, O = alpha O + P V
m = np.maximum(m_prev, masked.max(axis=1))
alpha = shift(m_prev, m)
p = shift(masked, m[:, None])
l = alpha * l_prev + p.sum(axis=1)
o = alpha[:, None] * o_prev + p @ v
"""
    + _TOLERANCE
    + """largest = float(t["largest_v"])

check("s", s, error)
check("m", m, error)
check("alpha", alpha, error)
check("p", p, error)
check("l", l, error * (1 + l))
check("o", o, error * (1 + l[:, None]) * largest)
"""
)

_NORMALISED = """
# the last tile of the row block: O / l
check("o_out", over(o, l[:, None]), 2 * error * largest)
"""

_FLASH1 = (
    _SHIFT
    + _SCORES
    + """
# of this tile alone: m~ = rowmax S, P~ = exp(S - m~), l~ = rowsum P~
m_tile = masked.max(axis=1)
p = shift(masked, m_tile[:, None])
l_tile = p.sum(axis=1)
# joined with what was there: O stays normalised
m = np.maximum(m_prev, m_tile)
alpha, beta = shift(m_prev, m), shift(m_tile, m)
l = alpha * l_prev + beta * l_tile
o = over(alpha * l_prev, l)[:, None] * o_prev + over(beta, l)[:, None] * (p @ v)
"""
    + _TOLERANCE
    + """largest = float(t["largest_v"])

check("s", s, error)
check("m_tile", m_tile, error)
check("p", p, error)
check("l_tile", l_tile, error * (1 + l_tile))
check("m", m, error)
check("alpha", alpha, error)
check("beta", beta, error)
check("l", l, error * (1 + l))
check("o", o, 2 * error * largest)
"""
)

_NAIVE_SCORES = (
    _SCORES
    + _TOLERANCE
    + """
check("s", s, error)
"""
)

_NAIVE_SOFTMAX = (
    _SHIFT
    + _SCORES
    + """
# m = rowmax S, P = exp(S - m), l = rowsum P; then P / l
m = masked.max(axis=1)
p = shift(masked, m[:, None])
l = p.sum(axis=1)
"""
    + _TOLERANCE
    + """
check("s", s, error)
check("m", m, error)
check("p", p, error)
check("l", l, error * (1 + l))
check("p_out", over(p, l[:, None]), 2 * error)
"""
)

_NAIVE_OUTPUT = (
    _SHIFT
    + _SCORES
    + """
# P = exp(S - m) / l, with m and l of the whole row; O = O + P V
p = over(shift(masked, m[:, None]), l[:, None])
o = o_prev + p @ v
"""
    + _TOLERANCE
    + """largest = float(t["largest_v"])

check("p", p, 2 * error)
check("o", o, 2 * error * largest)
"""
)

_INPUTS = {
    "online": ("q", "k", "v", "m_prev", "l_prev", "o_prev"),
    "scores": ("q", "k"),
    "output": ("q", "k", "v", "m", "l", "o_prev"),
}


def tile_arrays(snapshot: Snapshot) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of the current visit, before and after it.

    Returns
    -------
    dict
        ``q`` (r, d), ``k`` (c, d), ``v`` (c, dv), ``s`` and ``p`` (r, c), ``m_prev m l_prev l
        alpha beta m_tile l_tile`` (r,), ``o_prev o`` (r, dv), float32; ``mask`` (r, c) bool;
        ``indices``, int64: head, KV head, i, j, first row, first key; ``scale``, ``keys`` (how many
        there are), ``largest_qk`` (largest sum of ``|q| |k|`` of the rows), ``largest_v``,
        ``engine`` and ``scenario`` (TOML). Where the visit divides by l: ``o_out`` (r, dv) or
        ``p_out`` (r, c).
    """
    w, visit, t = snapshot.program.workload, snapshot.visit, snapshot.tile
    rows, cols = (slice(part.start, part.stop) for part in (visit.rows, visit.cols))
    kv_head = w.kv_head_of[visit.head]
    places = [visit.head, kv_head, visit.i, visit.j, visit.rows.start, visit.cols.start]
    arrays: dict[str, Any] = {
        "q": snapshot.q[rows], "k": snapshot.k[cols], "v": snapshot.v[cols],
        "s": t.s, "p": t.p, "mask": t.seen,
        "m_prev": t.m_prev, "m": t.m, "l_prev": t.l_prev, "l": t.l, "alpha": t.alpha,
        "beta": t.beta, "m_tile": t.m_tile, "l_tile": t.l_tile, "o_prev": t.o_prev, "o": t.o,
        "indices": np.array(places), "scale": np.float64(w.logit_scale),
        "keys": np.int64(w.seqlen_k), "largest_qk": matmul(np.abs(snapshot.q[rows]),
                                                          np.abs(snapshot.k).T).max(),
        "largest_v": np.abs(snapshot.v).max(),
        "engine": np.str_(snapshot.engine), "scenario": np.str_(scenario_toml(w.scenario)),
    }  # fmt: skip
    if algorithm_of(w).normalises_last and visit.last:
        arrays["o_out"] = _over(t.o, t.l)
    if snapshot.in_softmax_launch:
        arrays["p_out"] = _over(t.p, t.l)
    return {name: np.asarray(value) for name, value in arrays.items()}


def _over(values: F32, total: F32) -> F32:
    out = np.zeros_like(values)
    return np.divide(values, total[:, None], out=out, where=total[:, None] > 0)


def tile_script(snapshot: Snapshot, arrays: str, script: str) -> str:
    """Return a script that recomputes the current visit in float64 and compares.

    Parameters
    ----------
    snapshot : Snapshot
        The state; the visit is taken as a whole, wherever the cursor stands in it.
    arrays, script : str
        Names of the two files, which lie side by side.
    """
    w, visit = snapshot.program.workload, snapshot.visit
    launch = snapshot.program.launches[visit.launch]
    algorithm = snapshot.program.algorithm
    last = algorithm.normalises_last
    if algorithm.stores_scores:
        body = (_NAIVE_SCORES, _NAIVE_SOFTMAX, _NAIVE_OUTPUT)[visit.launch]
        names = _INPUTS["output" if visit.launch == 2 else "scores"]
    else:
        body, names = (_FLASH2 if last else _FLASH1), _INPUTS["online"]
        if last and visit.last:
            body += _NORMALISED
    which = f", launch {visit.launch + 1} ({launch.name})" if algorithm.stores_scores else ""
    cited = list(dict.fromkeys(op.cites for op in snapshot.ops if not op.moves))
    head = _HEAD.format(
        title=f"{algorithm.title}{which}, head {w.picked[visit.head]}, "
        f"tile ({visit.i}, {visit.j}):",
        place=f"query rows {visit.rows.start} to {visit.rows.stop - 1}, "
        f"keys {visit.cols.start} to {visit.cols.stop - 1}.",
        source="\n".join(f"{line}." for line in cited),
        engine=snapshot.engine,
        script=script,
        arrays=arrays,
        names=", ".join(names),
        quoted=repr(names).replace("'", '"'),
        mask=_MASK,
    )
    return head + body


def save_tile(snapshot: Snapshot, path: Path) -> tuple[Path, Path]:
    """Write the current tile's arrays and, beside them, the script that recomputes it.

    Parameters
    ----------
    snapshot : Snapshot
        The state.
    path : Path
        The ``.npz``; the script has the same name and ends in ``.py``.

    Returns
    -------
    tuple of Path
        Arrays and script.

    Raises
    ------
    InputError
        `path` does not end in .npz, a file cannot be written (what was there is as it was), or a
        fault is on: the script recomputes the update as it should be.
    """
    if snapshot.program.workload.faults.on:
        raise refuse("values", "faults", "on", "a scenario without faults for the script to agree")
    if path.suffix != ".npz":
        raise refuse("values", "file", str(path), "a file that ends in .npz")
    script = path.with_suffix(".py")
    data = BytesIO()
    np.savez(data, allow_pickle=False, **tile_arrays(snapshot))
    text = tile_script(snapshot, path.name, script.name)
    write_atomically(path, lambda out: out.write(data.getvalue()))
    write_atomically(script, lambda out: out.write(text.encode("utf-8")))
    return path, script
