"""Attention shapes of published models and of users' own, from which KV caches are counted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import Field, ValidationError, create_model

from simulator.base.assets import ASSETS
from simulator.base.errors import InputError, refuse, shortened
from simulator.base.tables import Table, input_error, read_toml

MOST = 4096  # most layers, heads, KV heads and width of a head; the same as in scenarios

MODELS = ASSETS / "models.toml"

Count = Annotated[int, Field(ge=1, le=MOST)]
Layers = Annotated[int, Field(ge=0, le=MOST)]
Width = Annotated[int, Field(ge=1, le=2**20)]
WidthOrNone = Annotated[int, Field(ge=0, le=2**20)]
Billions = Annotated[float, Field(gt=0, le=1e6)]


@dataclass(frozen=True, slots=True)
class AttentionModel:
    """The attention of a model, as far as its KV cache and its projections depend on it.

    All fields but the name are keys of a model's file.

    References: Shazeer 2019, "Fast Transformer Decoding" (MQA). Ainslie et al. 2023, "GQA".
    DeepSeek-AI 2024, "DeepSeek-V2", section 2.1 (MLA).
    """

    name: str  # as published, or the name of a file
    layers: Count  # attention layers
    heads: Count  # query heads of a layer
    # Numbers of a key or value in one head: given, never computed as ``hidden / heads``. With MLA,
    # of a key without its RoPE part, and of a value.
    head_dim: Count
    kv_heads: Count | None = None  # KV heads of a layer; None with MLA, which caches none
    windowed_layers: Layers = 0  # how many layers keep `window` tokens at most
    window: Annotated[int, Field(ge=0, le=2**24)] = 0  # tokens; 0 when no layer is windowed
    # latent_dim, rope_dim: MLA's cached row: d_c numbers of the latent and d_h^R of the key with
    # RoPE
    latent_dim: Width | None = None
    rope_dim: WidthOrNone | None = None
    # MLA's d_c' of the queries, which is not cached; 0: queries are projected directly. None: not
    # known.
    query_latent_dim: WidthOrNone | None = None
    hidden: Width | None = None  # Width of the residual stream. None: not known.
    # All parameters, 10**9, as published: rounded. None: not known.
    params_billion: Billions | None = None
    # Parameters of a mixture of experts that one token passes through, 10**9. None: all.
    active_params_billion: Billions | None = None
    # Each head has a learned logit in the softmax's sum. It is a weight and is not cached.
    learned_sinks: bool = False
    # cache of a token in float16 as the author states it; a file is refused if its shapes give
    # another number
    kib_per_token: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @property
    def is_latent(self) -> bool:
        """Whether the cache contains MLA's latent rows instead of keys and values."""
        return self.latent_dim is not None

    @property
    def cached_numbers(self) -> int:
        """Numbers that one token adds to the cache of one layer: K and V, or MLA's row."""
        if self.kv_heads is not None:
            return 2 * self.kv_heads * self.head_dim
        return (self.latent_dim or 0) + (self.rope_dim or 0)

    @property
    def kind(self) -> str:
        """``MHA``, ``GQA``, ``MQA`` or ``MLA``."""
        if self.kv_heads is None:
            return "MLA"
        if self.kv_heads == self.heads:
            return "MHA"
        return "MQA" if self.kv_heads == 1 else "GQA"


@cache
def _table() -> type[Table]:
    """Return the table of one model in a file."""
    types = get_type_hints(AttentionModel, include_extras=True)
    keys: dict[str, Any] = {
        each.name: (types[each.name], ... if each.default is MISSING else each.default)
        for each in fields(AttentionModel)
        if each.name != "name"
    }
    return create_model("_ModelTable", __base__=Table, **keys)


def _check(model: AttentionModel, source: str) -> None:
    """Refuse keys that do not fit together."""

    def wrong(key: str, expected: str) -> InputError:
        return refuse(source, key, getattr(model, key), expected)

    if model.latent_dim is None:
        for key in ("rope_dim", "query_latent_dim"):
            if getattr(model, key) is not None:
                raise wrong(key, "latent_dim beside it: both are MLA's")
        divisor = f"a divisor of heads = {model.heads}"
        if model.kv_heads is None:
            raise wrong("kv_heads", f"{divisor}, or latent_dim for MLA")
        if model.heads % model.kv_heads:
            raise wrong("kv_heads", divisor)
    elif model.kv_heads is not None:
        raise wrong("kv_heads", "none beside latent_dim: MLA caches no KV heads")
    elif model.rope_dim is None:
        raise wrong("rope_dim", "a whole number beside latent_dim")
    if model.windowed_layers > model.layers:
        raise wrong("windowed_layers", f"at most layers = {model.layers}")
    if model.windowed_layers and not model.window:
        raise wrong("window", "its tokens, beside windowed_layers")
    if model.window and not model.windowed_layers:
        raise wrong("windowed_layers", "how many layers it holds for, beside window")
    everything, active = model.params_billion, model.active_params_billion
    if active is not None and (everything is None or active > everything):
        most = "params_billion beside it" if everything is None else f"at most {everything:g}"
        raise wrong("active_params_billion", most)
    if model.kib_per_token is not None:
        counted = Fraction(2 * model.layers * model.cached_numbers, 1024)
        if abs(model.kib_per_token - counted) > counted / 1000:
            cache_of = "the float16 cache of a token of these shapes"
            raise wrong("kib_per_token", f"{float(counted):g}, {cache_of}")


def parse_model(name: str, data: Mapping[str, Any], source: str) -> AttentionModel:
    """Return the model that plain keys describe."""
    if not (name and name.isprintable() and len(name) <= 80):
        raise refuse(source, "name", name, "1 to 80 characters that can be printed")
    try:
        table = _table().model_validate(dict(data))
    except ValidationError as error:
        raise input_error(source, error, _table()) from None
    model = AttentionModel(name=name, **table.model_dump())
    _check(model, source)
    return model


@cache
def models() -> Mapping[str, AttentionModel]:
    """Return the shipped models by name, in the order of the file."""
    tables = read_toml(MODELS)
    return {name: parse_model(name, row, f"{MODELS.name}, {name}") for name, row in tables.items()}


def load_model(path: str | os.PathLike[str]) -> AttentionModel:
    """Read a file with one model: its keys alone, also a `name` if wanted, or under ``[name]``."""
    data, source = read_toml(path), str(path)
    tables = [name for name, value in data.items() if isinstance(value, dict)]
    if len(tables) == 1 == len(data):
        return parse_model(tables[0], data[tables[0]], source)
    if len(tables) > 1 and len(tables) == len(data):
        names = shortened(", ".join(tables))
        raise refuse(source, "", "", f"one model; it holds {len(tables)}: {names}")
    name = data.pop("name", Path(path).stem)
    if not isinstance(name, str):
        raise refuse(source, "name", name, "text in quotes")
    return parse_model(name, data, source)


def find_model(text: str) -> AttentionModel:
    """Return the shipped model of a name, or the model in a ``.toml`` file."""
    if text.lower().endswith(".toml"):
        return load_model(text)
    by_lower = {name.lower(): name for name in models()}
    if text.lower() in by_lower:
        return models()[by_lower[text.lower()]]
    close = [by_lower[name] for name in get_close_matches(text.lower(), by_lower, n=4, cutoff=0.5)]
    names = ", ".join(close or models())
    said = "one like" if close else "one of"
    raise refuse("--model", "", shortened(text), f"{said} {names}, or a .toml file")


def with_kv_heads(model: AttentionModel, kv_heads: int) -> AttentionModel:
    """Return `model` with keys and values in `kv_heads` heads: MHA, GQA or MQA."""
    if kv_heads < 1 or model.heads % kv_heads:
        raise refuse(model.name, "kv_heads", kv_heads, f"a divisor of heads = {model.heads}")
    return replace(
        model,
        kv_heads=kv_heads,
        latent_dim=None,
        rope_dim=None,
        query_latent_dim=None,
        kib_per_token=None,
    )


def with_latent(
    model: AttentionModel, latent_dim: int, rope_dim: int, query_latent_dim: int | None = 0
) -> AttentionModel:
    """Return `model` with MLA's latent row of `latent_dim` + `rope_dim` numbers.

    Without a `query_latent_dim` queries are projected directly, as in DeepSeek-V2-Lite.
    """
    widths = {"latent_dim": (latent_dim, 1), "rope_dim": (rope_dim, 0)}
    for key, (value, least) in widths.items():
        if not least <= value <= 2**20:
            raise refuse(model.name, key, value, f"{least} to {2**20}")
    return replace(
        model,
        kv_heads=None,
        latent_dim=latent_dim,
        rope_dim=rope_dim,
        query_latent_dim=query_latent_dim,
        kib_per_token=None,
    )


def with_window(model: AttentionModel, window: int, layers: int) -> AttentionModel:
    """Return `model` with `layers` of its layers windowed to `window` tokens; 0 and 0: none."""
    if not 0 <= layers <= model.layers:
        raise refuse(model.name, "windowed_layers", layers, f"0 to {model.layers}")
    if window < 0 or bool(window) != bool(layers):
        raise refuse(model.name, "window", window, "tokens where layers are windowed, else 0")
    return replace(model, window=window, windowed_layers=layers)


def with_shapes(
    model: AttentionModel, layers: int, kv_heads: int | None, head_dim: int
) -> AttentionModel:
    """Return `model` with other shapes, named as changed; the same model if they are its own.

    The share of windowed layers stays the same. The number of parameters becomes unknown.

    kv_heads: KV heads of a layer; None with MLA.
    """
    if (layers, kv_heads, head_dim) == (model.layers, model.kv_heads, model.head_dim):
        return model
    for key, value in (("layers", layers), ("head_dim", head_dim)):
        if not 1 <= value <= MOST:
            raise refuse(model.name, key, value, f"1 to {MOST}")
    windowed = round(Fraction(layers * model.windowed_layers, model.layers))
    shared = model if kv_heads == model.kv_heads else with_kv_heads(model, kv_heads or 0)
    return replace(
        shared,
        name=f"{model.name}, changed",
        layers=layers,
        head_dim=head_dim,
        windowed_layers=windowed,
        window=model.window if windowed else 0,
        params_billion=None,
        active_params_billion=None,
        kib_per_token=None,
    )
