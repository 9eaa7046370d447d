"""Valid files of every kind that the program opens: what the mutations start from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from simulator.base.assets import ASSETS, CAPTURES, LESSONS, SCENARIOS
from simulator.study.gpu_report import REPORT
from tests.helpers.pictures import tensors_of
from tests.helpers.written_files import numbers, write_safetensors

KINDS = (
    "scenario", "lesson", "model", "npz", "safetensors", "export", "settings", "autosave", "report",
    "trace", "clc",
)  # fmt: skip
"""What a file is opened as; the name of a seed begins with one."""

OWN_LESSON = """+++
title = "Everything"
summary = "What a step may say"
order = 4
+++

## One $x^2$ {{ Nk | count }}

```toml step
scenario = "flash2"
change.attention = { seqlen_q = 16, seqlen_k = 16, head_dim = 8 }
change.tiling = { rows = 4, cols = 4 }
clear = ["input"]
at = { tile = [1, 2], op = "exponentials" }
row = 5
layout = "steps"
point = [{ tile = [1, 1] }, { row = 3 }, { cell = ["S", 5, 2] }]
question = "What is $\\\\sqrt{d}$?"
answer = "It is {{ sqrt(d) | number 2 }}."
notes = "Say {{ entropy(3) }}."
```

Each of **{{ Tr * Tc }}** tiles, *{{ requested() | bytes }}*, `code` and
$\\frac{e^{x_i - m}}{\\sum_j e^{x_j - m}}$:

- {{ value("S", 5, 2) | number 4 }} of {{ requested("naive") / requested("flash2") | times }}
- {{ weight(5, 2) | percent 1 }}, {{ alpha(5) }}, {{ error(2) }}

## Two

```toml step
play = ["first", { visit = 3, op = 2 }]
clear = ["mask"]
choose = { model = "Llama-3-8B", tokens = 4096, quantity = "variance" }
```

1. {{ kv_cache("Llama-3-8B", 8192, "allocated") | decimal }}
2. {{ decode_seconds("Llama-3-8B", 8192) | time }}, {{ (2 + 3) ** 2 - -1 / 4 }}
"""
MODEL = """[Mine]
layers = 32
heads = 32
kv_heads = 8
head_dim = 128
params_billion = 8.0
"""
SMALL = """title = "Small"
[attention]
algorithm = "flash1"
heads = 4
kv_heads = 2
seqlen_q = 12
seqlen_k = 14
head_dim = 4
dtype = "float16"
[mask]
causal = true
align = "top-left"
window = [6, -1]
sinks = 1
[tiling]
rows = 4
cols = 4
[input]
seed = 3
head = [0, 2, 3]
[faults]
no_maximum = true
"""


def write_seeds(folder: Path, kinds: tuple[str, ...] = KINDS) -> list[Path]:
    """Write the seeds of some kinds and return their files, always in the same order."""
    makers = {
        "scenario": _scenarios, "lesson": _lessons, "model": _models, "npz": _npz,
        "safetensors": _safetensors, "export": _exports, "settings": _settings,
        "autosave": _autosaves, "report": _reports,
        "trace": _traces, "clc": _clc_logs,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        makers[kind](folder)
    return sorted(path for path in folder.iterdir() if path.name.partition(".")[0] in kinds)


def _scenarios(folder: Path) -> None:
    for name in ("flash1", "flash2", "naive"):
        text = SMALL.replace("flash1", name)
        (folder / f"scenario.small-{name}.toml").write_text(text, encoding="utf-8")
    for path in SCENARIOS.glob("*.toml"):
        # Demos of a layer name a file beside them, which must be found from here, too.
        text = path.read_text(encoding="utf-8").replace(
            'path = "', f'path = "{SCENARIOS.as_posix()}/'
        )
        (folder / f"scenario.{path.name}").write_text(text, encoding="utf-8")


def _lessons(folder: Path) -> None:
    (folder / "lesson.own.md").write_text(OWN_LESSON, encoding="utf-8")
    for path in LESSONS.glob("*.md"):
        shutil.copy(path, folder / f"lesson.{path.name}")


TRACE = """{"traceEvents": [
{"name": "thread_name", "ph": "M", "pid": 0, "tid": 3, "args": {"name": "SM 3"}},
{"name": "head 0, row block 1", "ph": "X", "ts": 1.5, "dur": 2.25, "pid": 0, "tid": 3},
{"name": "load", "ph": "B", "ts": 4, "pid": "warp", "tid": 12},
{"name": "store", "ph": "B", "ts": 5, "pid": "warp", "tid": 12},
{"ph": "E", "ts": 6, "pid": "warp", "tid": 12}, {"ph": "E", "ts": 7, "pid": "warp", "tid": 12}
], "displayTimeUnit": "ns"}
"""


def _traces(folder: Path) -> None:
    (folder / "trace.object.json").write_text(TRACE, encoding="utf-8")
    events = json.loads(TRACE)["traceEvents"]
    (folder / "trace.list.json").write_text(json.dumps(events), encoding="utf-8")


CLC_LOG = """[FA] TileScheduler=SingleTileLPTScheduler, scheduling_mode=CLC, USE_2CTA=False
[CLC] query sm=0 cta=0 (m_blk=3,h=0,b=0,s=0) valid=1
[CLC] query sm=132 cta=7 (m_blk=2,h=15,b=1,s=0) valid=1
[CLC] query sm=0 cta=0 (m_blk=-1,h=0,b=0,s=0) valid=0
"""


def _clc_logs(folder: Path) -> None:
    (folder / "clc.small.log").write_text(CLC_LOG, encoding="utf-8")


def _models(folder: Path) -> None:
    (folder / "model.own.toml").write_text(MODEL, encoding="utf-8")
    shutil.copy(ASSETS / "models.toml", folder / "model.all.toml")


PAIRS = np.arange(30).reshape(5, 6) % 7 > 0
"""The mask of a file with `numbers`."""
CHANGED = {"bias": (4, 10), "sink_logits": (4,), "gate": (4, 5, 2)}
"""What a file may have beside q, k and v of `numbers`, for scores and O; and what it may say."""
SCORES = {"window": "3", "softcap": "2.5", "alibi": "[0.5, 0.25, 0.125, 0.1]",
          "query_tokens": json.dumps([*"abcde"]), "after": "gates O"}  # fmt: skip


def _npz(folder: Path) -> None:
    said = {"tokens": np.array(["a", "é", "𝄞", "d", "e", "f"]), "model": "m", "layer": "3",
            "scale": 0.5, "causal": True}  # fmt: skip
    np.savez(folder / "npz.plain.npz", **numbers(), **said)
    np.savez_compressed(folder / "npz.packed.npz", **numbers("float16"), **said)
    np.savez(folder / "npz.bfloat16.npz", **numbers("bfloat16"))
    np.savez(folder / "npz.changed.npz", **numbers(**CHANGED), **SCORES)
    np.savez(folder / "npz.picture.npz", **tensors_of(2))
    np.savez(folder / "npz.masked.npz", **numbers(), mask=PAIRS)


def _safetensors(folder: Path) -> None:
    said = {"tokens": json.dumps(["a", "é", "𝄞", "d", "e", "f"]), "model": "m", "layer": "3",
            "scale": "0.5", "causal": "true"}  # fmt: skip
    write_safetensors(folder / "safetensors.own.safetensors", numbers("bfloat16"), said)
    write_safetensors(folder / "safetensors.plain.safetensors", numbers())
    write_safetensors(folder / "safetensors.changed.safetensors", numbers(**CHANGED), SCORES)
    write_safetensors(folder / "safetensors.picture.safetensors", tensors_of(2))
    masked = {**numbers(), "mask": np.stack([PAIRS, PAIRS, ~PAIRS, PAIRS])}
    write_safetensors(folder / "safetensors.masked.safetensors", masked)
    capture = min(CAPTURES.glob("*.safetensors"), key=lambda path: (path.stat().st_size, path.name))
    shutil.copy(capture, folder / "safetensors.capture.safetensors")


def _exports(folder: Path) -> None:
    from simulator.run.trace import simulate
    from tests.ui.export.helpers import make, options, still
    from ui.export.formats import ENDINGS, format_of

    trace = simulate(SCENARIOS / "causal.toml")
    for ending in ENDINGS:
        if ending in (".pptx", ".reveal"):
            continue  # slides hold no scenario, or are a folder of a page as above
        target = folder / f"export.one{ending}"
        film = format_of(str(target)).film
        size = {"size": (320, 240)}
        make((options if film else still)(target, visits=(1, 2), **size), trace)


def _settings(folder: Path) -> None:
    from PySide6.QtCore import QByteArray

    from ui.safety.settings import Settings

    settings = Settings(folder / "settings.own.ini")
    settings.theme, settings.text_scale, settings.motion = "light", 1.25, False
    settings.layout = "memory"
    settings.geometry = QByteArray(bytes.fromhex("01d9d0cb00030000") + bytes(58))
    settings.save_state("memory", QByteArray(bytes.fromhex("000000ff00000000fd") + bytes(40)))
    for name in ("a.toml", "größe.toml"):
        settings.add_recent(folder / name)


def _autosaves(folder: Path) -> None:
    text = f"# unsaved changes of /home/me/größe 1.toml\n{SMALL}"
    (folder / "autosave.1-0123abcd.toml").write_text(text, encoding="utf-8")


def _reports(folder: Path) -> None:
    shutil.copy(REPORT, folder / "report.gpu.json")
