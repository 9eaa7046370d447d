"""A whole attention layer: x, and the weights that make Q, K and V of x, and Y of O.

References: Vaswani et al. 2017, section 3.2.2: ``concat(head_1, ..., head_h) W_O``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, DType, round_to
from simulator.base.errors import SCENARIO, refuse
from simulator.base.matmul import matmul
from simulator.problem.elements import F8
from simulator.problem.input_files import (
    GATE,
    InputFile,
    StoredTensor,
    check_axes,
    described,
    done_after,
    read_tensor,
    stored_tensors,
)
from simulator.problem.positions import Rotary
from simulator.problem.scenario import Attention

WEIGHTS, BIASES = ("wq", "wk", "wv", "wo"), ("bq", "bk", "bv", "bo")
"""Names in a file, in the order q, k, v, o; a layer need not have biases."""
_MADE = ("q", "k", "v")


def read_layer_header(path: Path, said: Attention) -> InputFile:
    """Read the header of a layer's file: the shapes of Q, K and V that its weights make.

    path: a file with ``x`` (N, D), ``wq`` (D, H d), ``wk`` (D, Hkv d), ``wv`` (D, Hkv dv) and
        ``wo`` (H dv, D), and maybe biases of their columns, and a gate of O.
    said: the number of heads, which no shape says, and the dtype if it has one.
    """
    tensors, meta = stored_tensors(path, ("x", *WEIGHTS, *BIASES, GATE))
    for name in ("x", *WEIGHTS):
        if name not in tensors:
            have = ", ".join(sorted(tensors)) or "none"
            wanted = f"tensors x, {', '.join(WEIGHTS)} (of these the file has {have})"
            raise refuse(str(path), f"tensor {name}", "", wanted)
        check_axes(path, name, tensors[name], 2)
    for name, tensor in tensors.items():
        if tensor.element in F8:
            expected = "a wider type: only q, k and v may be F8"
            raise refuse(str(path), f"tensor {name}", tensor.element, expected)
        if tensor.dtype != tensors["x"].dtype:
            expected = f"{tensors['x'].dtype} as in x"
            raise refuse(str(path), f"tensor {name}", tensor.dtype, expected)
    if said.heads is None:
        raise refuse(SCENARIO, "attention.heads", "", "a number: the weights do not say it")
    rows, wide = tensors["x"].shape
    for name in WEIGHTS[:3]:
        if tensors[name].shape[0] != wide:
            shape = tensors[name].shape
            raise refuse(str(path), f"shape of {name}", shape, f"{wide} rows, as x is wide")
    depth = _divided(path, "wq", tensors["wq"].shape[1], said.heads, "heads")
    kv_heads = _divided(path, "wk", tensors["wk"].shape[1], depth, "columns a head, as wq has")
    if said.heads % kv_heads:
        expected = f"a number of heads that divides the {said.heads} of wq"
        raise refuse(str(path), "shape of wk", tensors["wk"].shape, expected)
    value_depth = _divided(path, "wv", tensors["wv"].shape[1], kv_heads, "KV heads, as wk has")
    if tensors["wo"].shape[0] != said.heads * value_depth:
        expected = f"{said.heads * value_depth} rows: {said.heads} heads of {value_depth}"
        raise refuse(str(path), "shape of wo", tensors["wo"].shape, expected)
    for weight, bias in zip(WEIGHTS, BIASES, strict=True):
        if bias in tensors:
            check_axes(path, bias, tensors[bias], 1)
            columns = tensors[weight].shape[1]
            if tensors[bias].shape != (columns,):
                expected = f"{columns} numbers, one for each column of {weight}"
                raise refuse(str(path), f"shape of {bias}", tensors[bias].shape, expected)
    dtype: DType = said.dtype or tensors["x"].dtype
    shapes = (said.heads, rows, depth), (kv_heads, rows, depth), (kv_heads, rows, value_depth)
    q, k, v = (StoredTensor(shape, dtype) for shape in shapes)
    extra = tuple((name, tensors.pop(name)) for name in (GATE,) if name in tensors)
    file = replace(described(path, meta, q, k, v, tuple(tensors.items())), extra=extra)
    if done := done_after(file):
        expected = f"a layer that gives O to W_O as it is, or gated by a tensor {GATE}: Y would be"
        raise refuse(str(path), "after", done, f"{expected} another. Use a file of q, k, v")
    return file


def _divided(path: Path, name: str, columns: int, by: int, words: str) -> int:
    if columns % by:
        raise refuse(str(path), f"columns of {name}", columns, f"a multiple of {by} {words}")
    return columns // by


@dataclass(frozen=True, slots=True)
class Layer:
    """x and the weights of a layer."""

    x: F32  # (N, D) float32
    # ``wq`` (D, H d), ``wk`` (D, Hkv d), ``wv`` (D, Hkv dv), ``wo`` (H dv, D), and the layer's
    # biases, all float32
    weights: Mapping[str, F32]
    shapes: tuple[tuple[int, ...], ...]  # of Q, K and V, heads first
    dtype: DType  # to which Q, K, V and O are rounded
    position: Rotary | None = None  # how Q and K are then turned

    def heads(self, *, exact: bool = False) -> tuple[F32, F32, F32]:
        """Return Q, K and V, (H, N, d) each, rounded to the dtype; Q and K with their positions."""
        q, k, v = self.unturned(exact=exact)
        if self.position is not None:
            q, k = self.position.both(q, k, self.dtype)
        return q, k, v

    def unturned(self, *, exact: bool = False) -> tuple[F32, F32, F32]:
        """Return Q, K and V as `heads` does, but before positions turn Q and K."""
        made = []
        for weight, bias, shape in zip(WEIGHTS, BIASES, self.shapes, strict=False):
            flat = self._times(self.x, weight, bias, exact=exact).astype(np.float32)
            heads, rows, depth = shape
            by_head = flat.reshape(rows, heads, depth).transpose(1, 0, 2)
            made.append(round_to(np.ascontiguousarray(by_head), self.dtype))
        q, k, v = made
        return q, k, v

    def turns(self, name: str) -> bool:
        """Return whether a tensor, q for example, is turned by positions after its product."""
        return self.position is not None and name in _MADE[:2]

    def product(self, name: str) -> F32:
        """Return the product of x that makes q, k or v, (N, columns), rounded and not turned."""
        made = self._times(self.x, f"w{name}", f"b{name}", exact=False).astype(np.float32)
        return round_to(made, self.dtype)

    def output(self, o: NDArray[np.floating], *, exact: bool = False) -> NDArray[np.floating]:
        """Return Y, (N, D), of O, (H, N, dv): ``concat(O rounded to the dtype) W_O``."""
        rounded = round_to(o.astype(np.float32), self.dtype)
        flat = rounded.transpose(1, 0, 2).reshape(o.shape[1], -1)
        return self._times(flat, "wo", "bo", exact=exact)

    def shares(self, o: NDArray[np.floating]) -> F32:
        """Return each head's share of Y, (H, N, D): the shares add up to Y without its bias."""
        heads, _, depth = o.shape
        rounded = round_to(o.astype(np.float32), self.dtype)
        wo = self.weights["wo"].reshape(heads, depth, -1)
        return np.asarray(matmul(rounded, wo), dtype=np.float32)

    @property
    def flops(self) -> dict[str, int]:
        """Matmul FLOPs of the four products, by the tensor that each makes."""
        rows = len(self.x)
        made = zip((*_MADE, "y"), WEIGHTS, strict=True)
        return {name: 2 * rows * self.weights[weight].size for name, weight in made}

    def _times(self, left: F32, weight: str, bias: str, *, exact: bool) -> NDArray[np.floating]:
        kind = np.float64 if exact else np.float32
        out = matmul(left.astype(kind, copy=False), self.weights[weight].astype(kind, copy=False))
        return out + self.weights[bias].astype(kind) if bias in self.weights else out


def read_layer(file: InputFile, position: Rotary | None = None) -> Layer:
    """Read x and the weights of a layer whose header has been read."""
    stored = {name: read_tensor(file.path, name, tensor) for name, tensor in file.stored}
    for name, values in stored.items():
        if not np.isfinite(values).all():
            place = [int(n) for n in np.argwhere(~np.isfinite(values))[0]]
            shown = float(values[tuple(place)])
            raise refuse(str(file.path), f"{name}{place}", shown, "finite numbers")
    shapes = file.q.shape, file.k.shape, file.v.shape
    return Layer(stored.pop("x"), stored, shapes, file.q.dtype, position)
