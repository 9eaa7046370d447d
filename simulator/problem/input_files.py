"""Reading tensors from .safetensors and .npz files: first the header, the numbers when needed.

No pickle is ever read. Before memory is allocated, the sizes in a header are compared with the
length of the file.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import safe_open

from simulator.base.dtypes import F32, DType, bfloat16_from_bits
from simulator.base.errors import InputError, reason, refuse
from simulator.base.files import open_regular, regular
from simulator.base.limits import (
    HEADER_BYTES,
    INFLATED_BYTES,
    INFLATED_TIMES,
    TOKEN_BYTES,
)
from simulator.base.picture import Picture
from simulator.problem.file_texts import NAMES, FileTexts, is_no_text, read_texts

_SAFETENSORS_DTYPES: dict[str, DType] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_STORED: dict[DType, np.dtype[np.generic]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),
}
_WANTED = 'float32, float16 or bfloat16, as NumPy\'s x.astype("float32") makes it'
ENDINGS = (".safetensors", ".npz")
"""Endings of input files, in small letters."""
PROJECTION = "projection"
"""The directions of a feature map that projects; a file need not have them."""
BIAS = "bias"
"""What scores gain at each distance; a file need not have it."""
SINKS = "sink_logits"
"""A logit of each query head that joins its softmax; a file need not have them."""
WUK, WUV = "wuk", "wuv"
"""What makes keys and values of a latent, of each head; a file need not have them."""
UPSTREAM = "do"
"""The gradient of O, from which those of Q, K and V follow; a file need not have it."""
GATE = "gate"
"""What the layer multiplies O by before its output projection; a file need not have it."""
MORE = {
    PROJECTION: ("two axes, neither empty", 2),
    BIAS: ("two axes, neither empty", 2),
    SINKS: ("one axis, not empty", 1),
    "decay": ("three axes, none empty", 3),
    "strength": ("two axes, neither empty", 2),
    WUK: ("three axes, none empty", 3),
    WUV: ("three axes, none empty", 3),
    UPSTREAM: ("three axes, none empty", 3),
    GATE: ("three axes, none empty", 3),
}
"""What a file may have in addition to q, k and v, and of which shape."""
_TENSORS = ("q", "k", "v")
_AT_ONCE = 2**20
"""Bytes that are inflated at a time."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read of a file; `simulator.base.limits` gives the reasons."""

    header: int = HEADER_BYTES  # bytes of a safetensors header, and of the list of files in an .npz
    text: int = TOKEN_BYTES  # bytes of one text in an .npz
    # inflated, times: bytes that the arrays of an .npz may inflate to, and how many times the file
    # if it is more
    inflated: int = INFLATED_BYTES
    times: int = INFLATED_TIMES


BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file, as the header describes it."""

    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class InputFile:
    """The header of an input file.

    Attributes
    ----------
    path : Path
        The file.
    q, k, v : StoredTensor
        Shapes ``(H, Nq, d)``, ``(Hkv, Nk, d)``, ``(Hkv, Nk, dv)``, without a leading batch axis of
        1.
    said : Said
        What its texts say.
    stored : tuple of (str, StoredTensor)
        What else is in it, if q, k and v are made of that: x and the weights of a layer.
    extra : tuple of (str, StoredTensor)
        What is in it beside q, k and v.
    picture : Picture or None
        The picture of which its keys are pieces, read whole.
    """

    path: Path
    q: StoredTensor
    k: StoredTensor
    v: StoredTensor
    said: FileTexts = field(default_factory=FileTexts)
    stored: tuple[tuple[str, StoredTensor], ...] = ()
    extra: tuple[tuple[str, StoredTensor], ...] = ()
    picture: Picture | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """One for each key, or empty."""
        return self.said.tokens

    @property
    def model(self) -> str:
        """Name of the model that made the numbers; empty when the file does not say."""
        return self.said.model

    @property
    def layer(self) -> str:
        """The layer of the model; empty when the file does not say."""
        return self.said.layer

    @property
    def title(self) -> str:
        """Model and layer in words, without who published it; else the file's name."""
        parts = (self.model.rpartition("/")[2], self.layer and f"layer {self.layer}")
        return ", ".join(part for part in parts if part) or self.path.name

    @property
    def scale(self) -> float | None:
        """Softmax scale; None when the file does not say."""
        return self.said.scale

    @property
    def causal(self) -> bool | None:
        """Whether the layer is causal; None when the file does not say."""
        return self.said.causal


def is_npz(path: Path) -> bool:
    """Return whether an input file is an .npz, by its ending."""
    return path.suffix.lower() == ".npz"


def read_header(path: Path, bounds: Bounds = BOUNDS) -> InputFile:
    """Read the header of a file: what it says about its tensors, without their numbers.

    Raises InputError: the file is missing, truncated, of another kind, or lacks a tensor; or its
        shapes do not fit together.
    """
    tensors, meta = stored_tensors(path, (*_TENSORS, *MORE), bounds)
    for name in _TENSORS:
        if name not in tensors:
            have = ", ".join(sorted(tensors)) or "none"
            raise refuse(
                str(path), f"tensor {name}", "", f"tensors q, k and v (the file has {have})"
            )
    q, k, v = (without_batch(path, name, tensors[name]) for name in _TENSORS)
    _check_shapes(path, q, k, v)
    return replace(described(path, meta, q, k, v), extra=checked_extra(path, tensors, q, k))


def checked_extra(
    path: Path, tensors: Mapping[str, StoredTensor], q: StoredTensor, k: StoredTensor
) -> tuple[tuple[str, StoredTensor], ...]:
    """Return what a file has beside its inputs.

    Raises InputError: something of it has another shape.
    """
    extra = tuple((name, tensors[name]) for name in MORE if name in tensors)
    distances = q.shape[0], q.shape[1] + k.shape[1] - 1
    for name, tensor in extra:
        expected, axes = MORE[name]
        if len(tensor.shape) != axes or 0 in tensor.shape:
            raise refuse(str(path), f"shape of {name}", tensor.shape, expected)
        if name == BIAS and tensor.shape != distances:
            expected = f"{distances}: of each query head, a number for each distance of row and key"
            raise refuse(str(path), f"shape of {name}", tensor.shape, expected)
    return extra


def stored_tensors(
    path: Path, names: Collection[str], bounds: Bounds = BOUNDS
) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """Return which of some tensors are in a file, and its texts.

    Raises InputError: the file is missing, truncated or of another kind.
    """
    if path.suffix.lower() not in ENDINGS:
        raise refuse(str(path), "input.path", path.name, f"a {' or '.join(ENDINGS)} file")
    return (_npz_header if is_npz(path) else _safetensors_header)(path, names, bounds)


def described(
    path: Path,
    meta: Mapping[str, str],
    q: StoredTensor,
    k: StoredTensor,
    v: StoredTensor,
    stored: tuple[tuple[str, StoredTensor], ...] = (),
) -> InputFile:
    """Return what a header says with its texts read.

    Raises InputError: one of them cannot be used.
    """
    return InputFile(
        path, q, k, v, read_texts(path, meta, q.shape[0], q.shape[1], k.shape[1]), stored
    )


def read_tensors(file: InputFile) -> tuple[F32, F32, F32]:
    """Read Q, K and V as float32 of the shapes in the header.

    Raises InputError: the file cannot be read to its end.
    """
    names = (("q", file.q), ("k", file.k), ("v", file.v))
    q, k, v = (read_tensor(file.path, name, tensor) for name, tensor in names)
    return q, k, v


def read_tensor(path: Path, name: str, tensor: StoredTensor) -> F32:
    """Read one tensor as float32 of the shape in the header.

    Raises InputError: the file cannot be read to its end.
    """
    read = _read_npz if is_npz(path) else _read_safetensors
    return _as_float32(read(path, name, tensor), tensor)


@dataclass(frozen=True, slots=True)
class TensorKind:
    """A kind of tensor that is no element type of Q, K and V."""

    dtype: np.dtype[np.generic]
    header: str
    words: str


FLAGS = TensorKind(np.dtype(np.bool_), "BOOL", "booleans")
WHOLE = TensorKind(np.dtype("<i4"), "I32", "whole numbers, int32")
REAL = TensorKind(np.dtype("<f4"), "F32", "numbers, float32")
BYTES = TensorKind(np.dtype(np.uint8), "U8", "bytes, uint8")


def read_kind(
    path: Path, name: str, kind: TensorKind, bounds: Bounds = BOUNDS
) -> NDArray[Any] | None:
    """Read a tensor of a kind; None if the file has none of this name.

    Raises InputError: it is of another type, or cannot be read to its end.
    """
    read = _npz_of_kind if is_npz(path) else _safetensors_of_kind
    return read(path, name, kind, bounds)


def check_finite(source: str, name: str, tensor: F32) -> None:
    """Refuse NaN and Inf, and name the first.

    Raises InputError: there is one.
    """
    finite = np.isfinite(tensor)
    if not finite.all():
        place = tuple(int(n) for n in np.unravel_index(finite.argmin(), finite.shape))
        axes = ("head", "row", "column")[-len(place) :]
        where = ", ".join(f"{axis} {n}" for axis, n in zip(axes, place, strict=True))
        raise refuse(source, f"tensor {name}, {where}", float(tensor[place]), "a finite number")


def _as_float32(stored: NDArray[np.generic], tensor: StoredTensor) -> F32:
    if tensor.dtype == "bfloat16":
        values = bfloat16_from_bits(stored.view(np.uint16))
    else:
        values = stored.astype(np.float32, copy=False)
    return np.ascontiguousarray(values.reshape(tensor.shape))


def without_batch(path: Path, name: str, tensor: StoredTensor) -> StoredTensor:
    """Return a tensor of heads without a batch axis of 1.

    Raises InputError: it has other axes, or an empty one.
    """
    shape = tensor.shape
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) != 3 or 0 in shape:
        raise refuse(
            str(path),
            f"shape of {name}",
            tensor.shape,
            "three axes (heads, tokens, dim), none empty, with at most a batch axis of 1 before",
        )
    return StoredTensor(shape, tensor.dtype)


def _check_shapes(path: Path, q: StoredTensor, k: StoredTensor, v: StoredTensor) -> None:
    def wrong(name: str, tensor: StoredTensor, expected: str) -> InputError:
        return refuse(str(path), f"shape of {name}", tensor.shape, expected)

    if k.shape[2] != q.shape[2]:
        raise wrong("k", k, f"head_dim {q.shape[2]} as in q")
    if v.shape[:2] != k.shape[:2]:
        raise wrong("v", v, f"{k.shape[0]} heads of {k.shape[1]} keys as in k")
    if q.shape[0] % k.shape[0]:
        raise wrong("k", k, f"a number of heads that divides the {q.shape[0]} of q")
    for name, tensor in (("k", k), ("v", v)):
        if tensor.dtype != q.dtype:
            raise refuse(str(path), f"tensor {name}", tensor.dtype, f"{q.dtype} as in q")


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    """Turn any error while reading a file into one line that names the file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except OSError as error:
        raise refuse(str(path), "", "", f"a readable file ({reason(error)})") from None
    except Exception as error:  # zipfile, zlib, numpy and json raise many kinds for bad bytes
        raise refuse(str(path), "", "", f"a whole {kind} file ({reason(error)})") from None


# --- safetensors -------------------------------------------------------------------------


@contextmanager
def safetensors(path: Path, bounds: Bounds = BOUNDS) -> Iterator[Any]:
    """Open a safetensors file whose header is not too long; any error names the file."""
    with _reading(path, "safetensors"):
        with open_regular(path) as start:  # the library's own errors do not name the file
            length = int.from_bytes(start.read(8), "little")
        if length > bounds.header:
            raise ValueError(f"a header of at most {bounds.header} bytes")
        with safe_open(path, framework="numpy") as file:
            yield file


def _safetensors_of_kind(
    path: Path, name: str, kind: TensorKind, bounds: Bounds
) -> NDArray[Any] | None:
    with safetensors(path, bounds) as file:
        if name not in file.keys():  # noqa: SIM118 - the file is no mapping
            return None
        if (stored := file.get_slice(name).get_dtype()) != kind.header:
            raise refuse(str(path), f"tensor {name}", stored, kind.words)
        found: NDArray[Any] = file.get_tensor(name)
        return found


def _safetensors_header(
    path: Path, wanted: Collection[str], bounds: Bounds
) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    with safetensors(path, bounds) as file:
        names = file.keys()
        slices = {name: file.get_slice(name) for name in wanted if name in names}
        shapes = {name: (tuple(s.get_shape()), s.get_dtype()) for name, s in slices.items()}
        said = file.metadata() or {}
        meta = {name: said[name] for name in NAMES if name in said}
    tensors = {}
    for name, (shape, dtype) in shapes.items():
        if dtype not in _SAFETENSORS_DTYPES:
            raise refuse(str(path), f"tensor {name}", dtype, _WANTED)
        tensors[name] = StoredTensor(shape, _SAFETENSORS_DTYPES[dtype])
    return tensors, meta


def _read_safetensors(path: Path, name: str, tensor: StoredTensor) -> NDArray[np.generic]:
    # safetensors cannot hand bfloat16 to numpy, so the bytes are read here; the header was
    # checked by the library against the length of the file.
    with _reading(path, "safetensors"), open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        start, _ = json.loads(file.read(length))[name]["data_offsets"]
        file.seek(8 + length + start)
        count = math.prod(tensor.shape)
        return _whole(path, name, count, np.fromfile(file, _STORED[tensor.dtype], count))


def _whole(path: Path, name: str, count: int, data: NDArray[np.generic]) -> NDArray[np.generic]:
    if data.size != count:
        raise refuse(str(path), f"size of {name}", data.size, f"{count} numbers")
    return data


# --- npz ---------------------------------------------------------------------------------


class _Start(io.FileIO):
    """A file of which no more than a bound is read at once while its list of members is read."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path, opener=regular)
        self.bounded, self.most = True, most

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file does."""
        if self.bounded and size is not None and size > self.most:
            raise ValueError(f"a list of files of at most {self.most} bytes")
        return super().read(size) or b""


@contextmanager
def _archive(
    path: Path, tensors: Collection[str], bounds: Bounds
) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an .npz and yield the members that are used, whose sizes are within the bounds."""
    with (
        _reading(path, ".npz"),
        _Start(path, bounds.header) as file,
        zipfile.ZipFile(file) as archive,
    ):
        file.bounded = False
        members = {info.filename: info for info in archive.infolist()}
        wanted = {name: members[f"{name}.npy"] for name in (*tensors, *NAMES)
                  if f"{name}.npy" in members}  # fmt: skip
        for name, info in wanted.items():
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # The other kinds are inflated by zipfile without any bound.
                raise refuse(str(path), name, "", "an array that is stored or deflated")
        size = sum(info.file_size for name, info in wanted.items() if name in tensors)
        most = max(bounds.inflated, bounds.times * path.stat().st_size)
        if size > most:
            expected = f"at most {most}: such numbers go into a .safetensors file"
            raise refuse(str(path), "unpacked bytes", size, expected)
        yield archive, wanted


def _npz_of_kind(path: Path, name: str, kind: TensorKind, bounds: Bounds) -> NDArray[Any] | None:
    with _archive(path, (name,), bounds) as (archive, members):
        if name not in members:
            return None
        shape, dtype = _npy_header(path, archive, members[name])
        if dtype != kind.dtype:
            raise refuse(str(path), f"tensor {name}", str(dtype), kind.words)
        with archive.open(members[name]) as file:
            _npy_start(file)
            plain = np.dtype(np.uint8) if kind.dtype == np.bool_ else kind.dtype
            stored = file.read()
            numbers = np.frombuffer(stored, plain, count=len(stored) // plain.itemsize)
        return _whole(path, name, math.prod(shape), numbers).astype(kind.dtype).reshape(shape)


def _npz_header(
    path: Path, wanted: Collection[str], bounds: Bounds
) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    with _archive(path, wanted, bounds) as (archive, members):
        tensors = {
            name: _npy_tensor(path, archive, members[name]) for name in wanted if name in members
        }
        meta = {
            name: _npy_text(path, archive, members[name], bounds.text)
            for name in NAMES
            if name in members
        }
    return tensors, meta


def _npy_start(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Read an array's header: shape, whether it is in Fortran order, dtype."""
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    if version not in ((2, 0), (3, 0)):  # 3.0 differs from 2.0 only in the encoding of names
        raise ValueError(f"array format {version}")
    return npy.read_array_header_2_0(file)


def _npy_header(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Return the shape and dtype of an array, after comparing them with the length of its data."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as file:
        shape, fortran, dtype = _npy_start(file)
        start = file.tell()
    if dtype.hasobject:
        raise refuse(str(path), f"tensor {name}", "pickled objects", "plain numbers or texts")
    if fortran and len(shape) > 1:
        raise refuse(str(path), f"tensor {name}", "Fortran order", "C order")
    if min(shape, default=0) < 0 or info.file_size != start + math.prod(shape) * dtype.itemsize:
        expected = f"the {info.file_size} bytes it has"
        raise refuse(str(path), f"shape of {name}", shape, expected)
    return shape, dtype


def _npy_tensor(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> StoredTensor:
    shape, dtype = _npy_header(path, archive, info)
    # numpy has no bfloat16: ml_dtypes saves it as a 2-byte void, others as its bit patterns.
    kinds: dict[str, DType] = {"f4": "float32", "f2": "float16", "V2": "bfloat16", "u2": "bfloat16"}
    kind = kinds.get(dtype.str[1:])
    if kind is None or dtype.names is not None or dtype.str[0] == ">":
        name = info.filename.removesuffix(".npy")
        raise refuse(str(path), f"tensor {name}", str(dtype), _WANTED)
    return StoredTensor(shape, kind)


def _npy_text(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> str:
    """Return a small metadata array as text: a list of strings as JSON, a scalar as itself."""
    name = info.filename.removesuffix(".npy")
    if info.file_size > most:
        raise refuse(str(path), f"bytes of {name}", info.file_size, f"at most {most}")
    _npy_header(path, archive, info)  # before numpy allocates what the header claims
    with archive.open(info) as file:
        value = npy.read_array(file, allow_pickle=False)
    if value.dtype.kind == "U" and is_no_text(value):
        raise refuse(str(path), name, "codes of no letter", "a text, a number or a list of texts")
    listed = {"tokens": "U", "query_tokens": "U", "alibi": "if"}.get(name, "")
    if value.ndim == 1 and value.dtype.kind in listed:
        return json.dumps(value.tolist())
    if value.size == 1 and value.dtype.kind in "Ubif":
        return str(value.item())
    numbers = f"{value.dtype} of shape {value.shape}"
    raise refuse(str(path), name, numbers, "a text, a number or a list of texts")


def _read_npz(path: Path, name: str, tensor: StoredTensor) -> NDArray[np.generic]:
    with _archive(path, (name,), BOUNDS) as (archive, members), archive.open(members[name]) as file:
        _npy_start(file)
        # In parts, because the whole would be in memory twice.
        out = np.empty(math.prod(tensor.shape), _STORED[tensor.dtype])
        room, done = out.data.cast("B"), 0
        while part := file.read(_AT_ONCE):
            done, start = done + len(part), done
            room[start:done] = part
        return _whole(path, name, out.size, out[: done // out.itemsize])
