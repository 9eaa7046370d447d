"""Reading tensors from .safetensors and .npz files: first the header, the numbers when needed.

No pickle is ever read. Before memory is allocated, the sizes in a header are compared with the
length of the file.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors import safe_open

from simulator.base.dtypes import F32, DType, round_to
from simulator.base.errors import InputError, refuse, unusable
from simulator.base.files import open_regular, regular
from simulator.base.limits import HEADER_BYTES, INFLATED_BYTES, INFLATED_TIMES, TOKEN_BYTES
from simulator.base.picture import Picture
from simulator.problem.elements import F8, NPY, SAFETENSORS, STORED, Element, dtype_of, values_of
from simulator.problem.file_texts import NAMES, FileTexts, is_no_text, read_texts

_WANTED = 'floating-point numbers, as NumPy\'s x.astype("float32") makes them'
ENDINGS = (".safetensors", ".npz")  # endings of input files, in small letters
PROJECTION = "projection"
"""The directions of a feature map that projects; a file need not have them."""
BIAS = "bias"  # numbers that scores gain at each distance; a file need not have them
SINKS = "sink_logits"
"""A logit of each query head that joins its softmax; a file need not have them."""
WUK, WUV = "wuk", "wuv"
"""Each head's weights that make keys and values of a latent; a file need not have them."""
UPSTREAM = "do"  # the gradient of O, for a backward pass; a file need not have it
GATE = "gate"
"""The layer's factors of O before its output projection; a file need not have them."""
MORE = {
    PROJECTION: 2, BIAS: 2, SINKS: 1, "decay": 3, "strength": 2, WUK: 3, WUV: 3, UPSTREAM: 3,
    GATE: 3,
}  # fmt: skip
"""The tensors that a file may have beside q, k and v, and how many axes each has."""
_AXES = ("", "one axis, not empty", "two axes, neither empty", "three axes, none empty")
_TENSORS = ("q", "k", "v")
_AS_OUTPUT = (UPSTREAM, GATE)  # tensors in the shape, layout and dtype of O
FileLayout = Literal["hnd", "nhd"]  # the order of the axes heads, tokens and dim in a file
_AT_ONCE = 2**20  # bytes that are inflated at a time


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read of a file; `simulator.base.limits` gives the reasons."""

    header: int = HEADER_BYTES  # bytes of a safetensors header, and of the list of files in an .npz
    text: int = TOKEN_BYTES  # bytes of one text in an .npz
    # inflated, times: the arrays of an .npz may inflate to `inflated` bytes, or to `times` the size
    # of the file if that is more
    inflated: int = INFLATED_BYTES
    times: int = INFLATED_TIMES


BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file, as it is read."""

    shape: tuple[int, ...]
    dtype: DType
    element: Element | None = None  # type in the file; None: the same as dtype
    name: str = ""  # the name in the file, if it is another one
    tokens_first: bool = False  # whether tokens come before heads in the file

    @property
    def stored_as(self) -> Element:
        """The element type in the file."""
        return self.element or self.dtype

    @property
    def lies(self) -> tuple[int, ...]:
        """The shape in the file, without a batch axis of 1."""
        return (*self.shape[1::-1], *self.shape[2:]) if self.tokens_first else self.shape

    @property
    def other_than_read(self) -> bool:
        """Whether the file has another name, layout or element type for the tensor."""
        return bool(self.element or self.name or self.tokens_first)

    def taken_as(self, dtype: DType) -> StoredTensor:
        """Return the same tensor read as another dtype."""
        return replace(self, dtype=dtype, element=self.stored_as)


_Header = tuple[tuple[int, ...], Element]  # shape and type of elements, as a file says them


@dataclass(frozen=True, slots=True)
class InputFile:
    """The header of an input file."""

    path: Path
    # q, k, v: shapes (H, Nq, d), (Hkv, Nk, d), (Hkv, Nk, dv), without a leading batch axis of 1
    q: StoredTensor
    k: StoredTensor
    v: StoredTensor
    said: FileTexts = field(default_factory=FileTexts)  # the file's texts
    # x and the weights of a layer, if the file has these in the place of q, k and v
    stored: tuple[tuple[str, StoredTensor], ...] = ()
    extra: tuple[tuple[str, StoredTensor], ...] = ()  # the file's other tensors
    picture: Picture | None = None  # the picture whose pieces are the keys, read whole
    notes: tuple[str, ...] = ()  # how numbers are taken, if the author may have meant otherwise
    computed: bool = False  # whether a model computes q, k and v of a text: no other tensors

    @property
    def title(self) -> str:
        """Model and layer in words, without the publisher; else the file's name."""
        said = self.said
        parts = (said.model.rpartition("/")[2], said.layer and f"layer {said.layer}")
        return ", ".join(part for part in parts if part) or self.path.name


def is_npz(path: Path) -> bool:
    """Return whether an input file is an .npz, by its ending."""
    return path.suffix.lower() == ".npz"


def read_header(path: Path, *, dtype: DType | None = None, layout: FileLayout = "hnd") -> InputFile:
    """Read the header of a file, which describes its tensors, without their numbers.

    dtype: the scenario's dtype, for element types that no run has.
    layout: the order of the axes of q, k and v and of tensors in the shape of O.
    """
    tensors, meta = stored_tensors(path, (*_TENSORS, *MORE))
    for name in _TENSORS:
        if name not in tensors:
            have = ", ".join(sorted(tensors)) or "none"
            raise refuse(
                str(path), f"tensor {name}", "", f"tensors q, k and v (the file has {have})"
            )
    tensors, notes = as_run(path, tensors, _TENSORS, dtype, layout)
    q, k, v = (tensors[name] for name in _TENSORS)
    _check_shapes(path, q, k, v)
    file = described(path, meta, q, k, v)
    if not file.said.tokens:  # a list of tokens shows which axis is the tokens'
        notes += _other_layout(q, k, layout)
    return replace(file, extra=checked_extra(path, tensors, q, k), notes=notes)


def as_run(
    path: Path,
    tensors: Mapping[str, StoredTensor],
    names: Sequence[str],
    said: DType | None,
    layout: FileLayout,
) -> tuple[dict[str, StoredTensor], tuple[str, ...]]:
    """Return tensors, some of them as a run takes them: heads first, in one dtype; and notes.

    names: the tensors of the run; tensors in the shape of O follow their layout and dtype.
    """
    out = dict(tensors)
    dtype = dtype_of((tensors[name].stored_as for name in names), said)
    for name in (*names, *_AS_OUTPUT):
        if name not in tensors:
            continue
        tensor = tensors[name]
        if name in _TENSORS:
            tensor = without_batch(path, name, tensor)
        if layout == "nhd" and len(tensor.shape) == 3 and name != "latent":
            tokens, heads, width = tensor.shape
            if len(tensors[name].shape) > 2:  # with one head the order is the same
                tensor = replace(tensor, shape=(heads, tokens, width), tokens_first=True)
        own = tensor.stored_as
        if own != dtype and (name in names or dtype_of((own, dtype), said) == dtype):
            tensor = tensor.taken_as(dtype)
        out[name] = tensor
    kinds = {name: tensors[name].stored_as for name in (*names, *_AS_OUTPUT) if name in tensors}
    return out, _kind_notes(kinds, dtype)


def _kind_notes(kinds: Mapping[str, Element], dtype: DType) -> tuple[str, ...]:
    """Return notes on tensors whose type in the file is not the dtype of the run."""
    names = {each: [n for n, own in kinds.items() if own == each] for each in kinds.values()}
    out = []
    for element, own in names.items():
        if element != dtype:
            are = f"{' and '.join(filter(None, [', '.join(own[:-1]), own[-1]]))} " + (
                "is" if len(own) == 1 else "are"
            )
            verb = "rounded to" if element == "float64" else "taken as"
            out.append(f"In the file {are} {element}, here {verb} {dtype}.")
    return tuple(out)


def _other_layout(q: StoredTensor, k: StoredTensor, layout: FileLayout) -> tuple[str, ...]:
    """Return a note if the shapes would fit in the other layout, too."""
    heads, tokens = q.shape[:2]
    if heads <= tokens or tokens % k.shape[1]:
        return ()
    other = "hnd" if layout == "nhd" else "nhd"
    return (
        f'q has {heads} heads of {tokens} tokens; with [input] layout = "{other}" it would have '
        f"{tokens} heads of {heads} tokens.",
    )


def checked_extra(
    path: Path, tensors: Mapping[str, StoredTensor], q: StoredTensor, k: StoredTensor
) -> tuple[tuple[str, StoredTensor], ...]:
    """Return a file's tensors beside its inputs, with their shapes checked."""
    extra = tuple((name, tensors[name]) for name in MORE if name in tensors)
    distances = q.shape[0], q.shape[1] + k.shape[1] - 1
    for name, tensor in extra:
        check_axes(path, name, tensor, MORE[name])
        if name == BIAS and tensor.shape != distances:
            expected = f"{distances}: of each query head, a number for each distance of row and key"
            raise refuse(str(path), f"shape of {name}", tensor.shape, expected)
    return extra


def check_axes(path: Path, name: str, tensor: StoredTensor, axes: int) -> None:
    """Refuse a tensor of another number of axes, or an empty one."""
    if len(tensor.shape) != axes or 0 in tensor.shape:
        raise refuse(str(path), f"shape of {name}", tensor.shape, _AXES[axes])


def stored_tensors(
    path: Path, names: Collection[str]
) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """Return the tensors of some names that are in a file, and its texts."""
    if path.suffix.lower() not in ENDINGS:
        raise refuse(str(path), "input.path", path.name, f"a {' or '.join(ENDINGS)} file")
    read = _npz_header if is_npz(path) else _safetensors_header
    capitals = {name.upper(): name for name in names if name in _TENSORS}
    found, meta = read(path, (*names, *capitals))
    tensors = {}
    for name, (shape, element) in found.items():
        own = capitals.get(name, name)
        if own == name or own not in found:
            tensor = StoredTensor(shape, dtype_of([element]), name="" if own == name else name)
            tensors[own] = tensor if tensor.dtype == element else replace(tensor, element=element)
    return tensors, meta


def described(
    path: Path,
    meta: Mapping[str, str],
    q: StoredTensor,
    k: StoredTensor,
    v: StoredTensor,
    stored: tuple[tuple[str, StoredTensor], ...] = (),
) -> InputFile:
    """Return the file that a header describes, with its texts read."""
    return InputFile(
        path, q, k, v, read_texts(path, meta, q.shape[0], q.shape[1], k.shape[1]), stored
    )


GATES = "gates O"  # the text `after` of a layer with a gate


def done_after(file: InputFile | None) -> str:
    """Return how the layer of a file changes O before its output projection, where no run does.

    Empty without a file, without such a text, or if the change is the file's gate: runs apply it.
    """
    after = file.said.after if file else ""
    return "" if file and after == GATES and is_gated(file) else after


def is_gated(file: InputFile | None) -> bool:
    """Return whether a file has a gate of O."""
    return file is not None and GATE in dict(file.extra)


def read_tensors(file: InputFile) -> tuple[F32, F32, F32]:
    """Read Q, K and V as float32 of the shapes in the header."""
    names = (("q", file.q), ("k", file.k), ("v", file.v))
    q, k, v = (read_tensor(file.path, name, tensor) for name, tensor in names)
    return q, k, v


def read_tensor(path: Path, name: str, tensor: StoredTensor) -> F32:
    """Read one tensor as float32 of the shape in the header."""
    read = _read_npz if is_npz(path) else _read_safetensors
    stored = read(path, tensor.name or name, tensor)
    values = values_of(stored, tensor.stored_as, tensor.dtype).reshape(tensor.lies)
    if tensor.tokens_first:
        values = values.swapaxes(0, 1)
    if tensor.stored_as in F8:
        values = round_to(_scaled(path, name, values), tensor.dtype)
    return np.ascontiguousarray(values)


def scale_name(name: str) -> str:
    """Return the name of the scales of an F8 tensor."""
    return f"{name}_scale"


def _scaled(path: Path, name: str, values: F32) -> F32:
    """Return F8 numbers times their scale, if the file has one: a number, or one for each head."""
    key = scale_name(name)
    tensors, _ = stored_tensors(path, (key,))
    if key not in tensors:
        return values
    scales = read_tensor(path, key, tensors[key]).ravel()
    if len(scales) not in (1, len(values)):
        expected = f"one number, or one of each of {len(values)} heads"
        raise refuse(str(path), f"shape of {key}", tensors[key].shape, expected)
    wrong = np.flatnonzero(~(np.isfinite(scales) & (scales > 0)))
    if len(wrong):
        place = f"{key}[{wrong[0]}]"
        raise refuse(str(path), place, float(scales[wrong[0]]), "a finite number above 0")
    return np.asarray(values * scales.reshape(-1, *[1] * (values.ndim - 1)), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class TensorKind:
    """The element type of a tensor beside Q, K and V."""

    dtype: np.dtype[np.generic]
    header: str
    words: str


FLAGS = TensorKind(np.dtype(np.bool_), "BOOL", "booleans")
WHOLE = TensorKind(np.dtype("<i4"), "I32", "whole numbers, int32")
REAL = TensorKind(np.dtype("<f4"), "F32", "numbers, float32")
BYTES = TensorKind(np.dtype(np.uint8), "U8", "bytes, uint8")


def read_kind(path: Path, name: str, kind: TensorKind) -> NDArray[Any] | None:
    """Read a tensor of a kind; None if the file has no tensor of this name."""
    read = _npz_of_kind if is_npz(path) else _safetensors_of_kind
    return read(path, name, kind)


def check_finite(source: str, name: str, tensor: F32) -> None:
    """Refuse NaN and Inf, and name the first."""
    finite = np.isfinite(tensor)
    if not finite.all():
        place = tuple(int(n) for n in np.unravel_index(finite.argmin(), finite.shape))
        axes = ("head", "row", "column")[-len(place) :]
        where = ", ".join(f"{axis} {n}" for axis, n in zip(axes, place, strict=True))
        raise refuse(source, f"tensor {name}, {where}", float(tensor[place]), "a finite number")


def without_batch(path: Path, name: str, tensor: StoredTensor) -> StoredTensor:
    """Return a tensor of heads without a batch axis of 1; a tensor of two axes has one head."""
    shape = tensor.shape
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    elif len(shape) == 2:
        shape = (1, *shape)
    if len(shape) != 3 or 0 in shape:
        raise refuse(
            str(path),
            f"shape of {name}",
            tensor.shape,
            "three axes (heads, tokens, dim), none empty, with at most a batch axis of 1 before",
        )
    return replace(tensor, shape=shape)


def _check_shapes(path: Path, q: StoredTensor, k: StoredTensor, v: StoredTensor) -> None:
    def wrong(name: str, tensor: StoredTensor, expected: str) -> InputError:
        return refuse(str(path), f"shape of {name}", tensor.shape, expected)

    if k.shape[2] != q.shape[2]:
        raise wrong("k", k, f"head_dim {q.shape[2]} as in q")
    if v.shape[:2] != k.shape[:2]:
        raise wrong("v", v, f"{k.shape[0]} heads of {k.shape[1]} keys as in k")
    if q.shape[0] % k.shape[0]:
        raise wrong("k", k, f"a number of heads that divides the {q.shape[0]} of q")


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    """Turn any error while reading a file into one line that names the file."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except OSError as error:
        raise unusable(path, "a readable file", error) from None
    except Exception as error:  # zipfile, zlib, numpy and json raise many kinds for bad bytes
        raise unusable(path, f"a whole {kind} file", error) from None


# --- safetensors -------------------------------------------------------------------------


@contextmanager
def safetensors(path: Path) -> Iterator[Any]:
    """Open a safetensors file whose header is not too long; any error names the file."""
    with _reading(path, "safetensors"):
        with open_regular(path) as start:  # the library's own errors do not name the file
            length = int.from_bytes(start.read(8), "little")
        if length > BOUNDS.header:
            raise ValueError(f"a header of at most {BOUNDS.header} bytes")
        with safe_open(path, framework="numpy") as file:
            yield file


def _safetensors_of_kind(path: Path, name: str, kind: TensorKind) -> NDArray[Any] | None:
    with safetensors(path) as file:
        if name not in file.keys():  # noqa: SIM118 - the file is no mapping
            return None
        if (stored := file.get_slice(name).get_dtype()) != kind.header:
            raise refuse(str(path), f"tensor {name}", stored, kind.words)
        found: NDArray[Any] = file.get_tensor(name)
        return found


def _safetensors_header(
    path: Path, wanted: Collection[str]
) -> tuple[dict[str, _Header], dict[str, str]]:
    with safetensors(path) as file:
        names = file.keys()
        slices = {name: file.get_slice(name) for name in wanted if name in names}
        shapes = {name: (tuple(s.get_shape()), s.get_dtype()) for name, s in slices.items()}
        said = file.metadata() or {}
        meta = {name: said[name] for name in NAMES if name in said}
    tensors = {}
    for name, (shape, dtype) in shapes.items():
        if dtype not in SAFETENSORS:
            raise refuse(str(path), f"tensor {name}", dtype, _WANTED)
        tensors[name] = shape, SAFETENSORS[dtype]
    return tensors, meta


def _read_safetensors(path: Path, name: str, tensor: StoredTensor) -> NDArray[np.generic]:
    # safetensors cannot hand bfloat16 to numpy, so the bytes are read here; the header was
    # checked by the library against the length of the file.
    with _reading(path, "safetensors"), open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        start, _ = json.loads(file.read(length))[name]["data_offsets"]
        file.seek(8 + length + start)
        count = math.prod(tensor.shape)
        return _whole(path, name, count, np.fromfile(file, STORED[tensor.stored_as], count))


def _whole(path: Path, name: str, count: int, data: NDArray[np.generic]) -> NDArray[np.generic]:
    if data.size != count:
        raise refuse(str(path), f"size of {name}", data.size, f"{count} numbers")
    return data


# --- npz ---------------------------------------------------------------------------------


class _Start(io.FileIO):
    """A file that refuses to read more than a bound at once while its list of members is read."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path, opener=regular)
        self.bounded, self.most = True, most

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as any file does, but not past the bound."""
        if self.bounded and size is not None and size > self.most:
            raise ValueError(f"a list of files of at most {self.most} bytes")
        return super().read(size) or b""


@contextmanager
def _archive(
    path: Path, tensors: Collection[str]
) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an .npz and yield the members that are used, whose sizes are within the bounds."""
    with (
        _reading(path, ".npz"),
        _Start(path, BOUNDS.header) as file,
        zipfile.ZipFile(file) as archive,
    ):
        file.bounded = False
        members = {info.filename: info for info in archive.infolist()}
        wanted = {name: members[f"{name}.npy"] for name in (*tensors, *NAMES)
                  if f"{name}.npy" in members}  # fmt: skip
        for name, info in wanted.items():
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # zipfile inflates the other kinds of compression without any bound.
                raise refuse(str(path), name, "", "an array that is stored or deflated")
        size = sum(info.file_size for name, info in wanted.items() if name in tensors)
        most = max(BOUNDS.inflated, BOUNDS.times * path.stat().st_size)
        if size > most:
            expected = f"at most {most}: such numbers go into a .safetensors file"
            raise refuse(str(path), "unpacked bytes", size, expected)
        yield archive, wanted


def _npz_of_kind(path: Path, name: str, kind: TensorKind) -> NDArray[Any] | None:
    with _archive(path, (name,)) as (archive, members):
        if name not in members:
            return None
        shape, fortran, dtype = _npy_header(path, archive, members[name])
        if dtype != kind.dtype:
            raise refuse(str(path), f"tensor {name}", str(dtype), kind.words)
        with archive.open(members[name]) as file:
            _npy_start(file)
            plain = np.dtype(np.uint8) if kind.dtype == np.bool_ else kind.dtype
            stored = file.read()
            numbers = np.frombuffer(stored, plain, count=len(stored) // plain.itemsize)
        return (
            _whole(path, name, math.prod(shape), numbers)
            .astype(kind.dtype)
            .reshape(shape, order="F" if fortran else "C")
        )


def _npz_header(path: Path, wanted: Collection[str]) -> tuple[dict[str, _Header], dict[str, str]]:
    with _archive(path, wanted) as (archive, members):
        tensors = {
            name: _npy_tensor(path, archive, members[name]) for name in wanted if name in members
        }
        meta = {name: _npy_text(path, archive, members[name]) for name in NAMES if name in members}
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
) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Return the shape and dtype of an array, after comparing them with the length of its data."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as file:
        shape, fortran, dtype = _npy_start(file)
        start = file.tell()
    if dtype.hasobject:
        raise refuse(str(path), f"tensor {name}", "pickled objects", "plain numbers or texts")
    if min(shape, default=0) < 0 or info.file_size != start + math.prod(shape) * dtype.itemsize:
        expected = f"the {info.file_size} bytes it has"
        raise refuse(str(path), f"shape of {name}", shape, expected)
    return shape, fortran, dtype


def _npy_tensor(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Header:
    shape, _, dtype = _npy_header(path, archive, info)
    element = NPY.get(dtype.str[1:])
    if element is None or dtype.names is not None:
        name = info.filename.removesuffix(".npy")
        raise refuse(str(path), f"tensor {name}", str(dtype), _WANTED)
    return shape, element


def _npy_text(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Return a small metadata array as text: a list of strings as JSON, a scalar as itself."""
    name = info.filename.removesuffix(".npy")
    if info.file_size > BOUNDS.text:
        raise refuse(str(path), f"bytes of {name}", info.file_size, f"at most {BOUNDS.text}")
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
    with _archive(path, (name,)) as (archive, members), archive.open(members[name]) as file:
        shape, fortran, dtype = _npy_start(file)
        # In parts, because the whole would be in memory twice.
        out = np.empty(math.prod(tensor.shape), STORED[tensor.stored_as])
        room, done = out.data.cast("B"), 0
        while part := file.read(_AT_ONCE):
            done, start = done + len(part), done
            room[start:done] = part
        _whole(path, name, out.size, out[: done // out.itemsize])
        if dtype.str[0] == ">":
            out = out.byteswap(inplace=True)
        return out.reshape(shape, order="F").ravel() if fortran else out
