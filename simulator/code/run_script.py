"""A script that computes O of a whole run in plain NumPy and checks the shown rows."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from simulator.base.dtypes import F32, UNIT
from simulator.base.errors import refuse
from simulator.base.tolerance import STEP
from simulator.problem.elements import F8
from simulator.problem.filling import done_after_words
from simulator.problem.input_files import GATE, InputFile, is_npz, scale_name, stored_tensors
from simulator.problem.latent import LATENT
from simulator.problem.layer import BIASES, WEIGHTS
from simulator.problem.masks import FAR
from simulator.problem.sentence import read_sentence
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of
from simulator.run.trace import Trace

CHECKED = 4  # most rows whose numbers are written into the script
AT_ONCE = 2**28  # most scores of a run for which the script computes all rows unasked

_HEAD = '''"""Computes O of a run in plain NumPy, in float64, and checks it.

{title}
The rows that are checked were computed by {algorithm} on the engine "{engine}" of Tilescope.
Needs NumPy only{twin}.
Attention as Vaswani et al. 2017, equation 1, has it: softmax(Q Kᵀ scale) V{changes}.
{after}"""

{imports}
import numpy as np

H, NQ, NK, D, DV = {sizes}  # query heads, rows, keys, head and value dimension
KV = {kv}  # the KV head of each query head
SCALE = {scale!r}  # of q·k, the temperature included
SHOWN = {{  # (head, row): (lse, O) as Tilescope has them
{shown}
}}
'''

_ROUND = {
    "float32": '''
def rounded(values):
    """Return float32 numbers as they lie in memory: float32."""
    return values.astype(np.float32)
''',
    "float16": '''
def rounded(values):
    """Return float32 numbers rounded to float16."""
    return values.astype(np.float32).astype(np.float16).astype(np.float32)
''',
    "bfloat16": '''
def rounded(values):
    """Return float32 numbers rounded to bfloat16, to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)).view(np.float32)
''',
}
_UNIT = {"float32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""How far O may be from its rounded self, relative to it."""

_DRAW = """
draw = np.random.default_rng({seed}).standard_normal
q = rounded(draw(({heads}, NQ, D)))
k = rounded(draw(({kv_heads}, NK, D)))
"""
_DRAW_VALUES = "v = rounded(draw(({kv_heads}, NK, DV)))\n"

_SAFETENSORS = '''
def tensor(name):
    """Return a tensor of the input file as float32."""
    with open(PATH, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        about = json.loads(file.read(size))[name]
        file.seek(8 + size + about["data_offsets"][0])
        kinds = {{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"{f8}}}
        kinds |= {{"BOOL": "?", "U8": "u1"}}
        count = math.prod(about["shape"])
        values = np.fromfile(file, kinds[about["dtype"]], count).reshape(about["shape"])
    if about["dtype"] == "BF16":
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float32)
'''
_NPZ = '''
def tensor(name):
    """Return a tensor of the input file as float32."""
    with np.load(PATH) as file:
        values = file[name]
    if values.dtype.kind in "Vu":  # bfloat16
        values = (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float32)
'''
_READ = """
q, k, v = (values.reshape(values.shape[-3:]) for values in map(tensor, "qkv"))
"""
_NUMBERS = '''
def numbers(text, shape):
    """Return float32 numbers that the script holds as text."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), "<f4").reshape(shape)


# Of a layer of Tilescope's sentence model, which has read {text}.
{lines}
'''
_F8 = '''

def f8(bits, fraction, bias):
    """Return the numbers of 8-bit patterns with so many bits of fraction."""
    exponent, low = (bits & 127) >> fraction, bits % 2**fraction
    size = np.ldexp(low / 2**fraction + (exponent > 0), np.maximum(exponent, 1) - bias)
    return np.where(bits < 128, size, -size)
'''
_READ_LATENT = """
q = tensor("q").reshape(-1, NQ, D)
k = tensor("latent").reshape(1, NK, D)
"""
_LATENT_VALUES = "v = k[..., :DV]  # of a latent: the first numbers of a key\n"
_PROJECT = '''
def made(weight, bias, heads):
    """Return x times a weight, and its bias, head by head."""
    flat = tensor("x") @ tensor(weight)
    if bias is not None:
        flat = flat + tensor(bias)
    return rounded(flat.reshape(len(flat), heads, -1).transpose(1, 0, 2))


{lines}
'''
_TURN = '''
def turned(x, first):
    """Return rows turned by their positions, from the first one's on (Su et al. 2021)."""
    n = np.arange({width} // 2)
    place = np.arange(first, first + x.shape[1])[:, None] + {offset}
    angle = place * {theta!r} ** (-2 * n / {width})
    out = x.astype(np.float64)
    one, other = {one}, {other}
    a, b = x[..., one].astype(np.float64), x[..., other].astype(np.float64)
    out[..., one] = a * np.cos(angle) - b * np.sin(angle)
    out[..., other] = a * np.sin(angle) + b * np.cos(angle)
    return rounded(out.astype(np.float32))


q, k = turned(q, NK - NQ), turned(k, 0)
'''
_PICK = """
q, k, v = q[{picked}], k[{kv_picked}], v[{kv_picked}]
"""

_REST = '''
assert (q.shape, k.shape[1:], v.shape[1:]) == ((H, NQ, D), (NK, D), (NK, DV))
q, k, v = (values.astype(np.float64) for values in (q, k, v))


def visible(head, rows):
    """Return which keys some rows of a head see."""
    i = np.arange(rows.start, rows.stop)[:, None]{shift}
    j = np.arange(NK)[None]
    seen = np.ones((len(rows), NK), dtype=bool)
{mask}    return seen


def attention(head, rows):
    """Return O and lse of some rows of a head, {and_what}."""
    s = SCALE * (q[head, rows.start : rows.stop] @ k[KV[head]].T)
{changes}    s = np.where(visible(head, rows), s, -np.inf)
    largest = np.abs(s[np.isfinite(s)]).max(initial=1.0)
    m = s.max(axis=1, keepdims=True)
    m = np.where(np.isneginf(m), 0.0, m)  # a row that sees nothing
{sink}    p = np.exp(s - m)
    l = p.sum(axis=1, keepdims=True){joins}
{weighs}    o = np.divide(p @ v[KV[head]], l, out=np.zeros((len(rows), DV)), where=l > 0)
{gates}    with np.errstate(divide="ignore"):
        return o, (m + np.log(l))[:, 0], largest{returns}


def off(ours, exact):
    """Return how far numbers are apart; equal infinities are not."""
    with np.errstate(invalid="ignore"):
        return np.where(ours == exact, 0.0, np.abs(ours - exact))


worst = 0.0
for (head, row), (lse, o) in SHOWN.items():
    exact, exact_lse, largest{given} = attention(head, range(row, row + 1))
    step = {step!r} * largest  # of float32 sums
    allowed = step * (1 + np.abs(exact[0])) * np.abs(v).max() + {unit!r} * np.abs(exact[0])
{rounds}{allows}    far, far_lse = off(np.array(o), exact[0]), off(lse, exact_lse[0])
    assert (far <= allowed).all(), f"O of head {{head}}, row {{row}}: off by {{far.max()}}"
    near = far_lse <= step * (1 + abs(lse)){lse_rounds}
    assert near, f"lse of head {{head}}, row {{row}}: off by {{far_lse}}"
    print(f"head {{head}}, row {{row}}: O off by {{far.max():.1e}}, lse off by {{far_lse:.1e}}")

{whole}O = np.zeros((H, NQ, DV))
{indent}for head in range(H):
{indent}    for start in range(0, NQ, 512):
{indent}        rows = range(start, min(start + 512, NQ))
{indent}        O[head, rows.start : rows.stop] = attention(head, rows)[0]
{indent}print(f"O of all rows: {{O.shape}}, largest {{np.abs(O).max():.6g}}")
'''
_TORCH = """
if "--torch" in sys.argv[1:]:  # the same by PyTorch, with the same mask
    import torch

    sees = np.stack([visible(head, range(NQ)) for head in range(H)])
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(x)[None] for x in (q, k[KV], v[KV])),
        attn_mask=torch.from_numpy(sees)[None], scale=SCALE,
    )[0].numpy()  # fmt: skip
    theirs[~sees.any(axis=2)] = 0.0  # a row that sees nothing
    exact = np.stack([attention(head, range(NQ))[0] for head in range(H)])
    assert np.allclose(theirs, exact, rtol=1e-9, atol=1e-12)
    print(f"PyTorch: O of all rows off by {np.abs(theirs - exact).max():.1e}")
"""
_SINK = """    sink = {logits}[head]  # one more key, of value 0
    m = np.maximum(s.max(axis=1, keepdims=True), sink)
    largest = max(largest, abs(sink))
"""
_ASKED = """if "--all" in sys.argv[1:]:  # {scores} scores take long
    """


_MASK = (
    "seqlen_q", "seqlen_k", "queries", "causal", "window", "sinks", "dilation", "global_tokens",
    "documents", "blocks", "tensor", "align",
)  # fmt: skip
_SCORING = ("scale", "temperature", "softcap", "slopes", "sink_logits")
"""The fields of a mask and of scores that the script can write."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of one head, as the engine has computed it."""

    # head, row: its place, with each query head counted alone
    head: int
    row: int
    lse: float  # ``m + ln l``
    o: F32  # (dv,) float32, read-only


def shown_rows(trace: Trace, head: int, row: int) -> tuple[ShownRow, ...]:
    """Return a row, counted as heads are packed, and some other rows of its row block."""
    w = trace.workload
    i = row // w.rows
    rows, block = w.grid.row_range(i), trace.row_block(head, i)
    others = np.linspace(rows.start, rows.stop - 1, CHECKED).astype(int).tolist()
    picked = dict.fromkeys([row, *others])
    return tuple(
        ShownRow(*w.single(head, n), float(block.lse[n - rows.start]), block.o[n - rows.start])
        for n in list(picked)[:CHECKED]
    )


def run_script(trace: Trace, head: int, row: int) -> str:
    """Return a script that computes the run's O and checks rows that the engine has computed.

    head, row: the shown row; the script checks this row, and others of its row block.
    """
    w = trace.single_heads[0]
    if w.faults.on:
        raise refuse("script", "faults", "on", "a run without faults for the script to agree")
    if not algorithm_of(trace.workload).softmax:
        name = trace.workload.algorithm
        raise refuse("script", "attention.algorithm", name, "one that has a softmax")
    for each, known in ((w.mask, _MASK), (w.scoring, _SCORING)):
        for field in fields(each):
            if field.name not in known and getattr(each, field.name):
                expected = f"a run with none but {', '.join(known)}"
                raise refuse("script", field.name, str(getattr(each, field.name)), expected)
    shown = "\n".join(_row_line(each) for each in shown_rows(trace, head, row))
    scores = len(w.picked) * w.seqlen_q * w.seqlen_k
    asks = scores > AT_ONCE
    imports = ["base64"] * w.typed + ["json", "math"] * (_reads_safetensors(w) and not w.typed)
    twin = not asks and not w.variant - {"rounding", "threshold"}
    imports += ["sys"] * (asks or twin) + ["zlib"] * w.typed
    head_text = _HEAD.format(
        title=_title(w),
        twin="; with --torch it compares PyTorch's attention, too" * twin,
        algorithm=algorithm_of(trace.workload).title,
        engine=trace.engine.name,
        imports="".join(f"import {name}\n" for name in imports),
        sizes=f"{len(w.picked)}, {w.seqlen_q}, {w.seqlen_k}, {w.head_dim}, {w.value_dim}",
        kv=list(w.kv_head_of),
        scale=float(w.logit_scale),
        shown=shown,
        changes=", with what is done to scores after the scale"
        * bool(w.variant - {"rounding", "gate"})
        + ", times the gate of the file" * w.gated,
        after=_in_docstring(f"{words}\n") if (words := done_after_words(w.file)) else "",
    )
    rest = _REST.format(
        shift=" + NK - NQ" * (w.mask.align == "bottom-right"),
        mask="".join(f"    {line}\n" for line in _mask_lines(w)),
        changes="".join(f"    {line}\n" for line in _change_lines(w)),
        sink=_SINK.format(logits=list(w.sink_logits)) if w.sink_logits else "",
        joins=" + np.exp(sink - m)" if w.sink_logits else "",
        step=STEP,
        unit=_UNIT[w.dtype],
        **_pair_lines(w),
        gates="    o = GATE[head, rows.start : rows.stop] * o\n" * w.gated,
        allows="    allowed = allowed * np.maximum(1.0, np.abs(GATE[head, row]))\n" * w.gated,
        whole=_ASKED.format(scores=scores) if asks else "",
        indent="    " if asks else "",
    )
    twin_text = _TORCH * twin
    return head_text + "\n" + _ROUND[w.dtype] + "\n" + _inputs(w) + rest + twin_text


def _pair_lines(w: Workload) -> dict[str, str]:
    """Return the script's parts on P in the type of Q, K and V: how far rounding P may move O.

    Tiles round P relative to other maxima than a row's, so the script does not round.
    """
    names = ("weighs", "returns", "given", "rounds", "lse_rounds")
    if w.pair_dtype is None:
        return {"and_what": "and their largest score", **dict.fromkeys(names, "")}
    unit, stored = UNIT[w.pair_dtype], algorithm_of(w).stores_scores
    least = 2.0**-24 if w.pair_dtype == "float16" else 0.0  # below float16's smallest numbers
    of_scores = f" + {unit!r} * largest" if stored else ""
    weights = f"(p + {least / unit!r} * l) @ np.abs(v[KV[head]])"
    return {
        "and_what": "their largest score, and Σ P |v|",
        "weighs": f"    size = {weights} / np.where(l > 0, l, 1.0)\n",
        "returns": ", size",
        "given": ", size",
        "rounds": f"    allowed += ({unit!r}{of_scores}) * size[0]  # P is rounded"
        + (", and S\n" if stored else "\n"),
        "lse_rounds": of_scores,
    }


def _title(w: Workload) -> str:
    """Return the run in one line."""
    title = _in_docstring(w.scenario.title)
    words = f"{len(w.picked)} heads, {w.seqlen_q} rows, {w.seqlen_k} keys, d = {w.head_dim}"
    return f"{title}: {words}" if title else words


def _in_docstring(text: str) -> str:
    """Return a text without the signs that would end a docstring."""
    return text.replace("\\", "/").replace('"', "'")


def _row_line(row: ShownRow) -> str:
    lse = "-np.inf" if np.isneginf(row.lse) else str(np.float32(row.lse))
    numbers = ", ".join(str(n) for n in row.o)
    return f"    ({row.head}, {row.row}): ({lse}, [{numbers}]),"


def _reads_safetensors(w: Workload) -> bool:
    return w.file is not None and not is_npz(w.file.path)


def _inputs(w: Workload) -> str:
    """Return the lines that draw or read Q, K and V."""
    heads, kv_heads = w.input_heads
    if w.file is None:
        seed = w.scenario.seed
        out = _DRAW.format(seed=seed, heads=heads, kv_heads=kv_heads)
        out += _LATENT_VALUES if w.latent else _DRAW_VALUES.format(kv_heads=kv_heads)
    elif w.typed:
        out = _NUMBERS.format(text=ascii(w.scenario.input.text), lines=_held_lines(w))
    else:
        own = w.file.q, w.file.k, w.file.v
        f8 = any(each.element in F8 for each in own)
        kinds = ', "F8_E4M3": "u1", "F8_E5M2": "u1"' if f8 else ""
        reader = (_SAFETENSORS if _reads_safetensors(w) else _NPZ).format(f8=kinds)
        out = f"PATH = {str(w.file.path.absolute())!r}\n\n{reader}" + _F8 * f8
        if any(each.other_than_read for each in own):
            out += "\n" + _taken_lines(w.file, w.latent) + _LATENT_VALUES * w.latent
        elif w.latent:
            out += _READ_LATENT + _LATENT_VALUES
        elif w.file.stored:
            out += _PROJECT.format(lines=_made_lines(w, heads, kv_heads))
        else:
            out += _READ
    if (turns := w.position) is not None:
        half, end = turns.width // 2, turns.width
        pairs = (f"slice(0, {end}, 2)", f"slice(1, {end}, 2)")
        halves = (f"slice(0, {half})", f"slice({half}, {end})")
        one, other = pairs if turns.interleaved else halves
        out += _TURN.format(width=end, offset=turns.offset, theta=turns.theta, one=one, other=other)
    if w.mask.blocks is not None:
        out += '\n\nBLOCKS = tensor("block_mask") != 0  # the visible blocks\n'
    if w.mask.tensor is not None:
        out += "\n\n# Which pairs are visible, the same of all heads or each head's own.\n"
        bits = 'np.unpackbits(tensor("mask").astype(np.uint8), axis=-1, count=NK)'
        seen = bits if _reads_safetensors(w) else 'tensor("mask")'
        out += f"MASK = {seen}.reshape(-1, NQ, NK) != 0\n"
    if w.gated and w.file is not None:
        out += f"\n\nGATE = {_gate_line(w.file)}[{list(w.picked)}]  # of each number of O\n"
    if w.picked != tuple(range(heads)):
        group = heads // kv_heads
        kv_picked = sorted({head // group for head in w.picked})
        out += _PICK.format(picked=list(w.picked), kv_picked=kv_picked)
    return out


def _held_lines(w: Workload) -> str:
    """Return the lines that hold Q, K and V of a typed text."""
    lines = []
    for name, values in zip("qkv", read_sentence(w.scenario.input, w.dtype), strict=True):
        text = base64.b85encode(zlib.compress(values.astype("<f4").tobytes(), 9)).decode()
        lines.append(f'{name} = numbers("{text}", {values.shape})')
    return "\n".join(lines)


def _taken_lines(file: InputFile, latent: bool) -> str:
    """Return the lines that read tensors whose shape, name or type is different in the file."""
    named = {"q": file.q, LATENT: file.k} if latent else {"q": file.q, "k": file.k, "v": file.v}
    scales = stored_tensors(file.path, [scale_name(name) for name in named])[0]
    out = ""
    for variable, (name, tensor) in zip("qkv", named.items(), strict=False):
        line = f'tensor("{tensor.name or name}")'
        if tensor.element in F8:
            line = f"f8({line}.astype(int), {'3, 7' if tensor.element == 'F8_E4M3' else '2, 15'})"
        line += f".reshape{tensor.lies}" + ".swapaxes(0, 1)" * tensor.tokens_first
        if tensor.element in F8 and scale_name(name) in scales:
            line += f' * tensor("{scale_name(name)}").reshape(-1, 1, 1)'
        out += f"{variable} = rounded({line})\n" if tensor.element else f"{variable} = {line}\n"
    return out


def _gate_line(file: InputFile) -> str:
    """Return the expression that reads the gate of a file, heads first."""
    gate = dict(file.extra)[GATE]
    line = f'tensor("{gate.name or GATE}").reshape{gate.lies}'
    line += ".swapaxes(0, 1)" * gate.tokens_first
    return f"rounded({line})" if gate.element or file.stored else line


def _made_lines(w: Workload, heads: int, kv_heads: int) -> str:
    assert w.file is not None
    stored = dict(w.file.stored)
    lines = []
    for name, weight, bias, count in zip(
        "qkv", WEIGHTS, BIASES, (heads, kv_heads, kv_heads), strict=False
    ):
        used = repr(bias) if bias in stored else None
        lines.append(f'{name} = made("{weight}", {used}, {count})'.replace("'", '"'))
    return "\n".join(lines)


def _change_lines(w: Workload) -> Sequence[str]:
    """Return the statements that change scaled products before the mask."""
    cap, out = w.scoring.softcap, []
    if cap:
        out.append(f"s = {cap!r} * np.tanh(s / {cap!r})")
    if w.slopes:
        slopes = [float(slope) for slope in w.slopes]
        out.append("i = np.arange(rows.start, rows.stop)[:, None] + NK - NQ")
        out.append(f"s = s - {slopes}[head] * np.abs(i - np.arange(NK))  # ALiBi")
    if w.biases is not None:
        out.append("later = np.arange(NK) - (np.arange(rows.start, rows.stop)[:, None] + NK - NQ)")
        out.append(f's = s + tensor("bias")[{list(w.picked)}[head]][later + NK - 1]')
    return out


def _mask_lines(w: Workload) -> Sequence[str]:
    """Return the statements of the mask, one or more for each condition."""
    mask, out = w.mask, []
    if mask.causal:
        out.append("seen &= j <= i")
    if mask.window:
        left, right = mask.reach
        bounds = [f"(i - {left} <= j)"] * (left < FAR)
        bounds += [f"(j <= i + {right})"] * (right < FAR and not mask.causal)
        bounds += [f"((i - j) % {mask.dilation} == 0)"] * (mask.dilation > 1)
        near = " & ".join(bounds) or "(j <= i)"
        free = f" | (j < {mask.sinks})" if mask.sinks else ""
        if mask.global_tokens:
            free += f" | (j < {mask.global_tokens}) | (i < {mask.global_tokens})"
        out.append(f"seen &= ({near}){free}" if free else f"seen &= {near}")
    if mask.documents:
        out.append(f"ends = np.cumsum({list(mask.documents)})  # of the packed documents")
        out.append('of_i, of_j = (np.searchsorted(ends, n, side="right") for n in (i, j))')
        out.append("seen &= (of_i == of_j) & (i >= 0)")  # past the last key of_i is of no document
    if mask.blocks is not None:
        size = mask.blocks.size
        own = "np.arange(rows.start, rows.stop)[:, None]"
        out.append(f"line, place = {own} // {size}, j // {size}")
        out.append("seen &= BLOCKS[line, place]")
    if mask.tensor is not None:
        out.append(f"own = {list(w.picked)}[head] % len(MASK)")
        out.append("seen &= MASK[own, rows.start : rows.stop]")
    return out
