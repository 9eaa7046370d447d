"""The numbers of a run that a lesson's text may ask for, and the scenario's numbers by name.

The simulator computes all of them, at the scenario and the cursor of a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace

from simulator.base.errors import refuse
from simulator.engines.reference import reference_rows
from simulator.problem.filling import MAX_BLOCKS
from simulator.problem.masks import counted_back
from simulator.problem.workload import Workload
from simulator.program.algorithms import tile_program
from simulator.program.traffic import compulsory_bytes, floor_bytes
from simulator.run.cell_values import cell_value
from simulator.run.trace import tile_counts
from simulator.study.captions import Numbers, Value, cell_of, gpu_named, known, named, program_of
from simulator.study.sweep import figures_of, unmasked
from simulator.timing.duration import rough_duration

# --- the scenario -----------------------------------------------------------------------------

QUANTITIES: dict[str, Callable[[Workload], int | float]] = {
    "heads": lambda w: len(w.picked),
    "kv_heads": lambda w: w.kv_heads,
    "Nq": lambda w: w.queries,
    "Nk": lambda w: w.seqlen_k,
    "d": lambda w: w.head_dim,
    "dv": lambda w: w.value_dim,
    "Br": lambda w: w.rows,
    "Bc": lambda w: w.cols,
    "Tr": lambda w: w.grid.Tr,
    "Tc": lambda w: w.grid.Tc,
    "splits": lambda w: w.splits,
    "split_keys": lambda w: w.split_blocks * w.cols,
    "batch": lambda w: len(w.scenario.batch.running) or 1,
    "window": lambda w: counted_back(w.mask.window),
    "sinks": lambda w: w.mask.sinks,
    "dilation": lambda w: w.mask.dilation,
    "documents": lambda w: len(w.mask.documents),
    "scale": lambda w: w.scale,
    "temperature": lambda w: w.temperature,
    "threshold": lambda w: w.threshold or 0.0,
    "softcap": lambda w: w.softcap,
    "features": lambda w: w.sizes["feature"],
    "element_bytes": lambda w: w.width,
}
"""Numbers of the step's scenario, by their names as docs/files.md spells them."""


@known
def sqrt(_: Numbers, x: float) -> float:
    """Square root."""
    return math.sqrt(x)


@known
def exp(_: Numbers, x: float) -> float:
    """Exponential function."""
    return math.exp(x)


@known
def log2(_: Numbers, x: float) -> float:
    """Logarithm to base 2."""
    return math.log2(x)


@known
def softmax(_: Numbers, *scores: float) -> float:
    """Weight of the first of some scores."""
    top = max(scores)
    return math.exp(scores[0] - top) / sum(math.exp(score - top) for score in scores)


@known
def compared(_: Numbers, a: float, b: float, less: str, same: str, more: str) -> str:
    """Whether a is `less` than b, the `same` but for rounding, or `more`: one of three texts."""
    if math.isclose(a, b, rel_tol=1e-9):
        return same
    return less if a < b else more


# --- counts of the run ------------------------------------------------------------------------


@known
def requested(n: Numbers, algorithm: str = "") -> int:
    """Requested HBM bytes of the whole run, read and written."""
    return n.figures(algorithm).bytes


@known
def requested_unmasked(n: Numbers, algorithm: str = "") -> int:
    """Requested HBM bytes of the whole run, were every pair visible."""
    return unmasked(n.as_if(algorithm)).bytes


@known
def requested_so_far(n: Numbers) -> int:
    """Requested HBM bytes up to the cursor."""
    program, at = program_of(n.scenario), n.cursor
    return program.counters(at.visit).after(program.ops(at.visit)[: at.op + 1]).bytes


@known
def requested_of(n: Numbers, tensor: str, algorithm: str = "") -> int:
    """Requested HBM bytes of one tensor, read and written."""
    program = tile_program(n.as_if(algorithm))
    if tensor not in program.tensors:
        raise refuse("", "tensor", tensor, f"one of {', '.join(program.tensors)}")
    return program.totals.read[tensor] + program.totals.write[tensor]


@known
def compulsory(n: Numbers, algorithm: str = "") -> int:
    """Distinct bytes that each launch touches, once."""
    return compulsory_bytes(n.as_if(algorithm))


@known
def floor(n: Numbers) -> int:
    """Bytes of Q, K, V and O, once each."""
    return floor_bytes(n.workload)


@known
def flops(n: Numbers, algorithm: str = "") -> int:
    """Matmul FLOPs of the whole run."""
    return n.figures(algorithm).flops


@known
def run_seconds(n: Numbers, algorithm: str = "") -> float:
    """Seconds of the whole run by model; refused where there is none."""
    found = rough_duration(tile_program(n.as_if(algorithm)))
    if found.model is None:
        raise refuse("", "attention.algorithm", algorithm or n.workload.algorithm, found.why)
    return found.seconds


@known
def memory_seconds(n: Numbers, algorithm: str = "") -> float:
    """Seconds that the requested bytes take at the GPU's bandwidth."""
    return n.figures(algorithm).time.memory


@known
def compute_seconds(n: Numbers, algorithm: str = "") -> float:
    """Seconds that the FLOPs take at the GPU's matrix rate; not for float32."""
    seconds = n.figures(algorithm).time.compute
    if seconds is None:
        raise refuse(
            "", "attention.dtype", n.workload.dtype, "float16 or bfloat16: no rate for others"
        )
    return seconds


@known
def visits(n: Numbers, algorithm: str = "") -> int:
    """Visits of the whole run."""
    return len(tile_program(n.as_if(algorithm)))


@known
def launches(n: Numbers, algorithm: str = "") -> int:
    """Kernel launches of the run."""
    return len(tile_program(n.as_if(algorithm)).launches)


@known
def tiles(n: Numbers, kind: str) -> int:
    """Tiles of all heads: `total`, `visited`, `skipped`, `full` or `partial`."""
    return named("tiles", kind, tile_counts(program_of(n.scenario)))


@known
def shared(n: Numbers, algorithm: str = "") -> int:
    """Most bytes of shared memory that the tiles take at once."""
    return tile_program(n.as_if(algorithm)).peak_shared_bytes


@known
def requested_with(n: Numbers, rows: float, cols: float) -> int:
    """Requested HBM bytes of the whole run, were its tiles of `rows` by `cols`."""
    return figures_of(_with_tiles(n, rows, cols)).bytes


@known
def shared_with(n: Numbers, rows: float, cols: float) -> int:
    """Most bytes of shared memory that tiles of `rows` by `cols` would take at once."""
    return tile_program(_with_tiles(n, rows, cols)).peak_shared_bytes


def _with_tiles(n: Numbers, rows: float, cols: float) -> Workload:
    """Return the workload with other tiles, refused like the tiles of a scenario."""
    w = replace(n.workload, rows=max(1, int(rows)), cols=max(1, int(cols)))
    for key, size, length in (("rows", w.rows, w.seqlen_q), ("cols", w.cols, w.seqlen_k)):
        if -(-length // size) > MAX_BLOCKS:
            raise refuse("", key, size, f"tiles that cut {length} into at most {MAX_BLOCKS} blocks")
    return w


# --- hardware ---------------------------------------------------------------------------------


@known
def shared_limit(n: Numbers, name: str = "") -> int:
    """Bytes of shared memory that one block may take on a GPU; the scenario's if none is said."""
    return gpu_named(n, name).smem_bytes


@known
def sms(n: Numbers, name: str = "") -> int:
    """Streaming multiprocessors of a GPU."""
    return gpu_named(n, name).sms


@known
def flops_per_byte(n: Numbers, name: str = "") -> float:
    """FLOPs that a GPU can do in the time of one HBM byte."""
    gpu = gpu_named(n, name)
    return gpu.tflops / gpu.tbps


# --- values of the run ------------------------------------------------------------------------


@known
def value(n: Numbers, tensor: str, row: int, col: int = 0) -> float:
    """A cell of Q, K, V, S, m, l or O at the cursor, as the engine has it."""
    found = cell_value(n.snapshot, cell_of(n.workload, tensor, row, col)).value
    if found is None:
        raise refuse("", f"{tensor}[{row}, {col}]", "", "a cell that holds a number here")
    return found


@known
def alpha(n: Numbers, row: int) -> float:
    """exp(m before - m): what the current tile multiplies l and O of a row by."""
    return float(n.snapshot.tile.alpha[_in_block(n, row)])


@known
def old_maximum(n: Numbers, row: int) -> float:
    """Running maximum of a row before the current tile."""
    return float(n.snapshot.tile.m_prev[_in_block(n, row)])


@known
def lse_of_split(n: Numbers, split: int, row: int) -> float:
    """LSE that a split has left of a row of the current block, by the time of the cursor."""
    return _of_split(n, "lse", split, row)


@known
def weight_of_split(n: Numbers, split: int, row: int) -> float:
    """By how much O of a split counts in a row: exp(LSE - m), where splits are joined."""
    return _of_split(n, "weights", split, row)


def _of_split(n: Numbers, name: str, split: int, row: int) -> float:
    partials, r = n.snapshot.partials, _in_block(n, row)
    stored = partials.stored if partials is not None else ()
    if not 0 <= split < len(stored):
        raise refuse("", "split", split, f"one of {len(stored)} splits")
    found = getattr(partials, name)
    if found is None or not stored[split]:
        raise refuse("", "split", split, "a split that has left this number by now")
    return float(found[split, r])


@known
def error(n: Numbers, row: int) -> float:
    """Largest difference of a row of O, at the end of the run, from float64."""
    w = n.workload
    cell_of(w, "O", row, 0)
    if w.heads * w.seqlen_q * w.seqlen_k > n.most_scores:
        expected = f"a run of at most {n.most_scores} scores in all heads"
        raise refuse("", "error", f"{w.heads} x {w.seqlen_q} x {w.seqlen_k}", expected)
    exact, _ = reference_rows(n.workload, n.trace.inputs, n.head, range(row, row + 1))
    return float(abs(n.trace.output[n.single(row)] - exact).max())


def _in_block(n: Numbers, row: int) -> int:
    rows = program_of(n.scenario).visit(n.cursor.visit).rows
    if row not in rows:
        raise refuse("", "row", row, f"a row of the current block, {rows[0]} to {rows[-1]}")
    return row - rows.start


# --- weights of the head ----------------------------------------------------------------------


@known
def weight(n: Numbers, row: int, key: int) -> float:
    """Softmax weight of a key for a row, in the end."""
    cell_of(n.workload, "S", row, key)
    head, own = n.single(row)
    return float(n.maps.of(head)[own, key])


@known
def weight_sum(n: Numbers, row: int) -> float:
    """Sum of all weights of a row."""
    cell_of(n.workload, "m", row, 0)
    head, own = n.single(row)
    return float(n.maps.of(head)[own].sum(dtype=float))


@known
def strongest(n: Numbers, row: int) -> int:
    """Key with the largest weight for a row."""
    cell_of(n.workload, "m", row, 0)
    found = n.maps.row(*n.single(row)).strongest
    if not len(found):
        raise refuse("", "row", row, "a row that sees a key")
    return int(found[0])


@known
def entropy(n: Numbers, row: int) -> float:
    """Entropy of a row's weights, in bits."""
    cell_of(n.workload, "m", row, 0)
    return n.maps.row(*n.single(row)).entropy


@known
def visible(n: Numbers, row: int) -> int:
    """Keys that the mask leaves a row."""
    cell_of(n.workload, "m", row, 0)
    mask = n.workload.mask.of_head(n.head)
    return int(mask.visible(range(row, row + 1), range(n.workload.seqlen_k)).sum())


@known
def mean_weight(n: Numbers, key: int) -> float:
    """Weight of a key, the mean over all rows of the head."""
    cell_of(n.workload, "K", key, 0)
    means = [n.maps.of(head)[:, key].mean(dtype=float) for head in n.maps.heads]
    return float(sum(means) / len(means))


@known
def token(n: Numbers, key: int) -> str:
    """Text of a key's token, of a capture or a file that has some."""
    tokens = n.workload.tokens
    if not 0 <= key < len(tokens):
        raise refuse("", "token", key, f"a key with a token, of {len(tokens)}")
    return tokens[key].strip() or tokens[key]


@known
def query_token(n: Numbers, row: int) -> str:
    """Text of a query's token, which may be of another text than the keys'."""
    count = n.workload.queries
    token = n.workload.query_token(row) if 0 <= row < count else ""
    if not token:
        raise refuse("", "query_token", row, f"a query with a token, of {count}")
    return token


# --- its kernel --------------------------------------------------------------------------------


@known
def race_without(n: Numbers, barrier: str, part: str) -> Value:
    """Part of the race that is seen if the run's kernel lacks the barrier with a comment.

    The parts are `kernel`, `barrier`, its line `at`, `tensor`, the lines where a thread `writes`
    and one `reads`, the threads `writer` and `reader`, and whether it was `seen` on this machine
    now, as in the window where kernels can be watched, or is what assets/barriers.toml has.
    """
    parts: dict[str, Value] = asdict(n.watch(n.workload, barrier))
    return named("part", part, parts)
