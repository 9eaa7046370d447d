"""`kv-cache`: the bytes of a model's cache, and how many of each GPU the model needs with it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from simulator.problem.hardware import gpus
from simulator.problem.models import AttentionModel, find_model
from simulator.study.kv_cache.counts import (
    ELEMENT_TYPES,
    MOST_PAGE,
    MOST_SEQUENCES,
    MOST_TOKENS,
    PAGE_SIZE,
    bytes_per_token,
    cache_bytes,
    fit,
    weight_bytes,
)
from simulator.study.kv_cache.memory import need
from ui.look.units import count_text, decimal_bytes_text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options, all but ``--json``."""
    parser.add_argument(
        "--model",
        required=True,
        metavar="NAME|FILE.toml",
        help="a model of assets/models.toml, or a file with the same keys for one model",
    )
    parser.add_argument(
        "--tokens", required=True, type=_count(MOST_TOKENS), metavar="N", help="of each sequence"
    )
    parser.add_argument(
        "--batch", type=_count(MOST_SEQUENCES), default=1, metavar="B", help="sequences (1)"
    )
    parser.add_argument(
        "--dtype", choices=ELEMENT_TYPES, default="float16", help="of the cache (float16)"
    )
    parser.add_argument(
        "--page-size",
        type=_count(MOST_PAGE),
        default=PAGE_SIZE,
        metavar="TOKENS",
        help=f"tokens of a page ({PAGE_SIZE})",
    )
    parser.add_argument(
        "--weights-dtype", choices=ELEMENT_TYPES, default="float16", help="of the weights (float16)"
    )


def run(options: argparse.Namespace) -> int:
    """Count the bytes of a model's KV cache, and how many sequences fit each GPU.

    Raises InputError: there is no such model, or its file cannot be used.
    """
    model = find_model(options.model)
    answer = kv_cache_answer(
        model,
        options.tokens,
        options.batch,
        options.dtype,
        options.page_size,
        options.weights_dtype,
    )
    if options.json:
        print(json.dumps(answer))
    else:
        print("\n".join(_report(model, answer)))
    return 0


def kv_cache_answer(
    model: AttentionModel, tokens: int, batch: int, dtype: str, page_size: int, weights_dtype: str
) -> dict[str, Any]:
    """Return what ``--json`` prints: the inputs, then exact counts of bytes.

    ``gpus_needed``: how many GPUs hold all sequences, window-capped, beside all the weights.
    ``fits``: how many sequences, allocated, one GPU holds beside them. These and ``weight_bytes``
    are None if the model's parameters are not known.
    """
    counts = cache_bytes(model, tokens, dtype, batch, page_size)
    fits = {
        name: fit(model, tokens, gpu, dtype, page_size, weights_dtype)
        for name, gpu in gpus().items()
    }
    return {
        "model": model.name,
        "tokens": tokens,
        "batch": batch,
        "dtype": dtype,
        "page_size": page_size,
        "weights_dtype": weights_dtype,
        "logical": counts.logical,
        "window_capped": counts.window_capped,
        "allocated": counts.allocated,
        "bytes_per_token": bytes_per_token(model, dtype),
        "weight_bytes": weight_bytes(model, weights_dtype),
        "fits": fits,
        "gpus_needed": {
            name: need(model, tokens, gpu, dtype, weights_dtype, batch).gpus
            for name, gpu in gpus().items()
        },
    }


def _report(model: AttentionModel, answer: dict[str, Any]) -> list[str]:
    """Return the lines of the printed tables."""
    many = f"{count_text(answer['batch'])} sequences of " if answer["batch"] > 1 else ""
    lines = [
        f"{'model':14} {model.name}: {_shape(model)}",
        f"{'cache':14} {many}{_counted(answer['tokens'], 'token')} in {answer['dtype']}",
        "",
    ]
    lines += _table(
        [
            ("per token", *_sizes(answer["bytes_per_token"]), "all layers, no window cap"),
            ("logical", *_sizes(answer["logical"]), "no cap"),
            ("window-capped", *_sizes(answer["window_capped"]), _window(model)),
            (
                "allocated",
                *_sizes(answer["allocated"]),
                f"window-capped, in whole pages of {_counted(answer['page_size'], 'token')}",
            ),
        ]
    )
    weights, wide = answer["weight_bytes"], answer["weights_dtype"]
    if weights is None:
        return [*lines, "", f"{'needs':14} not known: the model file gives no params_billion"]
    lines += [
        "",
        f"{'weights':14} {decimal_bytes_text(weights)}: {model.params_billion:g} billion "
        f"parameters (published, rounded) in {wide}",
        f"{'needs':14} GPUs for weights and cache alone; tokens/s at most: both are read once for "
        "each",
        "",
    ]
    rows = [("GPU", "memory", "", "tokens/s", "")]
    for name, gpu in gpus().items():
        found = need(model, answer["tokens"], gpu, answer["dtype"], wide, answer["batch"])
        holds = answer["fits"][name]
        rows.append((
            name,
            f"{gpu.memory_gb} GB", f"needs {_counted(found.gpus or 0, 'GPU')}",
            f"{found.tokens_per_second:.1f}",
            f"one holds {_counted(holds, 'sequence')} (allocated)" if holds else "",
        ))  # fmt: skip
    return lines + _table(rows)


def _shape(model: AttentionModel) -> str:
    heads = f"{_counted(model.layers, 'layer')}, {_counted(model.heads, 'query head')}"
    if model.kv_heads is None:
        return f"{heads}, MLA with a latent of {model.latent_dim} + {model.rope_dim}"
    return f"{heads}, {_counted(model.kv_heads, 'KV head')} of {model.head_dim} ({model.kind})"


def _window(model: AttentionModel) -> str:
    if not model.windowed_layers:
        return "no layer is windowed"
    return (
        f"{model.windowed_layers} of {_counted(model.layers, 'layer')} "
        f"keep {_counted(model.window, 'token')}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"


def _sizes(count: int) -> tuple[str, str]:
    """Return bytes in powers of ten, and exactly."""
    return decimal_bytes_text(count), _counted(count, "byte")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text in columns: names and the last column left, figures right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths[0] = max(widths[0], 14)
    figures = len(rows[0]) - 1
    return [
        "  ".join(
            [
                row[0].ljust(widths[0] - 1),
                *(row[column].rjust(widths[column]) for column in range(1, figures)),
                row[figures],
            ]
        ).rstrip()
        for row in rows
    ]


def _count(most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from 1 to `most` for argparse."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
        if not 1 <= value <= most:
            shown = text if len(text) <= 40 else text[:37] + "..."
            raise argparse.ArgumentTypeError(f'"{shown}": expected a whole number, 1 to {most}')
        return value

    return read
