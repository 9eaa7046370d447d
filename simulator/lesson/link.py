"""A view as a string: a scenario, a place in its run, and the window's layout and choices.

After ``tilescope:1/`` comes deflated JSON, in the letters of addresses. A string from a stranger is
data. The string names only files that ship; everything in it is checked in the same way as the text
of a lesson's author.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from simulator.base.assets import ASSETS
from simulator.base.errors import InputError, refuse
from simulator.base.tables import input_error
from simulator.problem.filling import capture_names
from simulator.problem.scenario import Scenario, parse_scenario, scenario_tables, with_values
from simulator.program.playback import Cursor, first_cursor

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable

SCHEME = "tilescope:"
HEAD = f"{SCHEME}1/"  # a link's beginning, with the number of its format
MOST_LETTERS = 2000  # letters of a link: longer links are cut in messages and by some browsers
_MOST_BYTES = 2**16  # bytes of a link's JSON
_LINK = re.compile(r"[A-Za-z0-9_-]+")
# Words that links are full of: words that are known beforehand take few letters. Every later
# version has to read the links of today, so this never changes.
_KNOWN = (
    b'"faults":{"hardware":{"preset":"H100-SXM"A100-SXM"position":{"kind":"rope","theta":10000.0'
    b'"scores":{"softcap":"alibi":true"sink_logits":"batch":{"lengths":["queries":["sequence":'
    b'"input":{"source":"random","seed":0"source":"layer","path":"captures/small/step-2000-layer'
    b'"source":"sentence","text":"","model":"own","layer":"what_if":true"head":[0,1,2,3]"head":"all"'
    b'"source":"capture","name":"cat-because-layer2"robot-ball-layer2"passage-layer1"'
    b'"tiling":{"rows":16,"cols":16,"rule":"fa2","splits":"page_size":16"devices":"layout":'
    b'"mask":{"causal":true,"window":[24,0],"sinks":4,"documents":["block":"global_tokens":'
    b'"attention":{"algorithm":"flash2"flash1"naive"split-kv"paged"linear"mla","heads":8,"kv_heads":'
    b'"seqlen_q":64,"seqlen_k":64,"head_dim":32,"value_dim":"dtype":"float16"bfloat16"float32"'
    b'"scale":"temperature":"p_dtype":"storage"{"scenario":{"title":" (changed)"'
    b'"choose":{"model":"Llama-3-70B"tokens":"layout":"steps"algorithm"memory"compare"exactness"'
    b'"panel":"softmax","visit":0,"op":0,"row":0,'
)


def _no_choices() -> ChooseTable:
    from simulator.lesson.tables import ChooseTable  # imports the choices of every study

    return ChooseTable()


@dataclass(frozen=True, slots=True)
class ViewLink:
    """The view that a link describes."""

    scenario: Scenario
    cursor: Cursor = field(default_factory=first_cursor)
    row: int = 0  # the query row that is explained
    # layout, panel: name of the layout, and of its panel in front of others; "" for no change
    layout: str = ""
    panel: str = ""
    choices: ChooseTable = field(default_factory=_no_choices)  # choices in panels

    @property
    def text(self) -> str:
        """The link, as a string."""
        said = {
            "visit": self.cursor.visit, "op": self.cursor.op, "row": self.row,
            "layout": self.layout, "panel": self.panel,
            "choose": self.choices.model_dump(mode="json", exclude_defaults=True),
        }  # fmt: skip
        plain: dict[str, Any] = {"scenario": _with_shipped_name(scenario_tables(self.scenario))}
        plain |= {name: value for name, value in said.items() if value not in (0, "", {})}
        data = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        packer = zlib.compressobj(9, wbits=-15, zdict=_KNOWN)
        packed = packer.compress(data.encode("utf-8", "replace")) + packer.flush()
        text = HEAD + base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
        if len(text) > MOST_LETTERS:
            expected = f"a view that a link of {MOST_LETTERS} letters says: this one takes"
            raise refuse("link", "", "", f"{expected} {len(text)}")
        return text


def is_link(text: str) -> bool:
    """Return whether a text is meant to be a link."""
    return text.strip().lower().startswith(SCHEME)


def read_link(text: str) -> ViewLink:
    """Return the view of a link."""
    from simulator.lesson.tables import LinkTable

    text = text.strip()
    if not text.startswith(HEAD):
        raise refuse("link", "", text, f"a link that begins with {HEAD}")
    if len(text) > MOST_LETTERS:
        raise refuse("link", "", "", f"at most {MOST_LETTERS} letters, not {len(text)}")
    try:
        said = LinkTable.model_validate(_unpacked(text.removeprefix(HEAD)))
    except ValidationError as error:
        raise input_error("link", error, LinkTable) from None
    return ViewLink(
        _with_place(parse_scenario(said.scenario, "link")),
        Cursor(said.visit, said.op), said.row, said.layout, said.panel, said.choose,
    )  # fmt: skip


def _unpacked(code: str) -> dict[str, Any]:
    """Return the JSON in the letters of a link."""
    damaged = refuse("link", "", HEAD + code, "a whole link: this one is damaged")
    if not _LINK.fullmatch(code):
        raise damaged
    try:
        packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
        reader = zlib.decompressobj(wbits=-15, zdict=_KNOWN)
        data = reader.decompress(packed, _MOST_BYTES)
        if not reader.eof or reader.unused_data:
            raise damaged
        said = json.loads(data.decode("utf-8"), parse_constant=_no_number)
        json.dumps(said, ensure_ascii=False).encode("utf-8")  # half a letter may hide in an escape
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise error if isinstance(error, InputError) else damaged from None
    if not isinstance(said, dict):
        raise damaged
    return said


def _no_number(name: str) -> None:
    raise ValueError(name)


# --- files -----------------------------------------------------------------------------------


@cache
def _shipped() -> frozenset[str]:
    """Return the files that a link may name, by their paths in the assets."""
    return frozenset(
        path.relative_to(ASSETS).as_posix()
        for ending in ("safetensors", "npz")
        for path in ASSETS.rglob(f"*.{ending}")
    )


def _with_shipped_name(tables: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables with the path of a shipped file as its path in the assets."""
    path = tables.get("input", {}).get("path")
    if path is None:
        return tables
    found = Path(path)
    name = found.relative_to(ASSETS).as_posix() if found.is_relative_to(ASSETS) else ""
    if name not in _shipped():
        expected = "an input by its name, a seed or a text: a link carries no file of yours"
        raise refuse("link", "input.path", found.name, expected)
    return {**tables, "input": {**tables["input"], "path": name}}


def _with_place(scenario: Scenario) -> Scenario:
    """Return a scenario with the path of its shipped input file on this machine."""
    said = scenario.input
    if said.path is not None:
        if said.path not in _shipped():
            raise refuse("link", "input.path", said.path, "a file that ships with Tilescope")
        return with_values(scenario, {"input": {"path": str(ASSETS / said.path)}})
    if said.source == "capture" and said.name not in capture_names():
        expected = f"one of {', '.join(capture_names())}"
        raise refuse("link", "input.name", said.name, expected)
    return scenario
