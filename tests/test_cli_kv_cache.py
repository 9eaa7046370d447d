"""The command `kv-cache`: its numbers, its words, and what it refuses."""

import json
import math
from pathlib import Path

import pytest

from simulator.problem.hardware import gpus
from ui.app.cli import main
from ui.look.units import decimal_bytes_text

ROOT = Path(__file__).resolve().parent.parent


def answer(capsys, *arguments: str) -> dict:
    """Return what ``--json`` prints."""
    assert main(["kv-cache", *arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def test_the_object_in_full(capsys):
    shown = answer(
        capsys, "--model", "gpt-oss-120b", "--tokens", "1000001", "--batch", "3", "--dtype", "fp8",
        "--page-size", "32", "--weights-dtype", "int4",
    )  # fmt: skip
    row = 2 * 8 * 64
    assert shown == {
        "model": "gpt-oss-120b",
        "tokens": 1_000_001,
        "batch": 3,
        "dtype": "fp8",
        "page_size": 32,
        "weights_dtype": "int4",
        "logical": 3 * 36 * row * 1_000_001,
        "window_capped": 3 * 18 * row * (1_000_001 + 128),
        "allocated": 3 * 18 * row * (1_000_032 + 128),
        "bytes_per_token": 36 * row,
        "weight_bytes": 58_500_000_000,
        "fits": {
            name: max(0, gpu.memory_gb * 10**9 - 58_500_000_000) // (18 * row * (1_000_032 + 128))
            for name, gpu in gpus().items()
        },
        "gpus_needed": {
            name: math.ceil(
                (58_500_000_000 + 3 * 18 * row * (1_000_032 + 128)) / 1e9 / gpu.memory_gb
            )
            for name, gpu in gpus().items()
        },
    }
    assert shown["fits"]["T4"] == 0 < shown["fits"]["A100-80-SXM"]


def test_what_is_printed_is_aligned_and_the_same(capsys):
    arguments = ["--model", "Gemma-3-27B", "--tokens", "131072"]
    assert main(["kv-cache", *arguments]) == 0
    lines = capsys.readouterr().out.replace("\u2009", " ").splitlines()
    assert "iB" not in "".join(lines)
    shown = answer(capsys, *arguments)
    rows = {line.split("  ")[0].strip(): line for line in lines if line}
    for name in ("logical", "window-capped", "allocated"):
        exact = f"{shown[name.replace('-', '_')]:,} bytes".replace(",", " ")
        assert exact in rows[name]
    assert len({rows[name].index(" bytes") for name in ("logical", "allocated", "per token")}) == 1
    assert "52 of 62 layers keep 1 024 tokens" in rows["window-capped"]
    assert "27 billion parameters (published, rounded)" in rows["weights"]
    ends = set()
    for name, count in shown["fits"].items():
        words = rows[name].split()
        assert words[1:4] == [str(gpus()[name].memory_gb), "GB", "needs"]
        needed = shown["gpus_needed"][name]
        assert f"needs {needed} GPU{'s' * (needed > 1)} " in f"{rows[name]} "
        ends.add(rows[name].index(" GB"))
        holds = f"one holds {count:,} sequence".replace(",", " ")
        assert ("one holds" in rows[name], holds in rows[name]) == (count > 0, count > 0)
    assert len(ends) == 1
    assert not [line for line in lines if line != line.rstrip() or len(line) > 110]


def test_without_parameters_it_says_that_it_does_not_know(tmp_path, capsys):
    path = tmp_path / "own.toml"
    path.write_text("layers = 1\nheads = 1\nkv_heads = 1\nhead_dim = 1\n")
    assert main(["kv-cache", "--model", str(path), "--tokens", "1", "--dtype", "int4"]) == 0
    out = capsys.readouterr().out
    assert "not known: the model file gives no params_billion" in out
    assert "1 layer, 1 query head, 1 KV head of 1" in out
    assert "1 byte " in out
    shown = answer(capsys, "--model", str(path), "--tokens", "1")
    assert (shown["model"], shown["weight_bytes"], {*shown["fits"].values()}) == (
        "own", None, {None},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "Llama-3-9B", "--tokens", "1"], ["Llama-3-9B", "Llama-3-8B", ".toml"]),
        (["--model", "{tmp}/no.toml", "--tokens", "1"], ["no.toml", "No such file"]),
        (["--model", "{bad}", "--tokens", "1"], ["bad.toml", "kv_heads = 4", "heads = 6"]),
        (["--model", "{tmp}", "--tokens", "1"], ["expected"]),
        (["--tokens", "1"], ["--model"]),
        (["--model", "Llama-3-8B"], ["--tokens"]),
        (["--model", "Llama-3-8B", "--tokens", "0"], ["--tokens", '"0"', "1 to 16777216"]),
        (["--model", "Llama-3-8B", "--tokens=-5"], ["--tokens", '"-5"']),
        (["--model", "Llama-3-8B", "--tokens", "4k"], ["--tokens", '"4k"']),
        (["--model", "Llama-3-8B", "--tokens", "1.5"], ["--tokens", '"1.5"']),
        (["--model", "Llama-3-8B", "--tokens", "9" * 5000], ["--tokens", "999..."]),
        (["--model", "Llama-3-8B", "--tokens", "1", "--batch", "0"], ["--batch", '"0"']),
        (["--model", "Llama-3-8B", "--tokens", "1", "--page-size", "x"], ["--page-size", '"x"']),
        (["--model", "Llama-3-8B", "--tokens", "1", "--dtype", "fp4"], ["--dtype", "fp4", "fp8"]),
        (["--model", "Llama-3-8B", "--tokens", "1", "--engine", "numpy"], ["--engine"]),
    ],
)
def test_wrong_input_is_one_line(arguments, words, tmp_path, capsys):
    bad = tmp_path / "bad.toml"
    bad.write_text("layers = 1\nheads = 6\nkv_heads = 4\nhead_dim = 8\n")
    for key, value in (("{tmp}", tmp_path), ("{bad}", bad)):
        arguments = [argument.replace(key, str(value)) for argument in arguments]
    try:
        code = main(["kv-cache", *arguments])
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    for word in words:
        assert word in printed.err


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1_342_177_280, "1.34 GB"),
        (999_994_999, "999.99 MB"),
        (999_999_999, "1.00 GB"),
        (10**18 * 5, "5000.00 PB"),
    ],
)
def test_bytes_in_powers_of_ten(count, text):
    assert decimal_bytes_text(count) == text
