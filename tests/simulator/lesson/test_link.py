"""A view as a string: there and back, and what strings of strangers cannot do."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator.base.assets import ASSETS, CAPTURES, SCENARIOS
from simulator.base.errors import InputError
from simulator.lesson import link as links
from simulator.lesson.link import HEAD, MOST_LETTERS, ViewLink, is_link, read_link
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import load_scenario, parse_scenario
from simulator.program.playback import Cursor

CAPTURED = sorted(path.stem for path in CAPTURES.glob("*.safetensors"))
SHIPPED = sorted(path.relative_to(ASSETS).as_posix() for path in CAPTURES.rglob("*.safetensors"))
WHOLE = st.integers(1, 200_000)


def maybe(**keys: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for a table of which any keys may be absent."""
    return st.fixed_dictionaries({}, optional=keys)


INPUT = st.one_of(
    maybe(seed=st.integers(0, 2**63 - 1)),
    st.fixed_dictionaries({"source": st.just("sentence"), "text": st.text(min_size=1, max_size=80)},
                          optional={"layer": st.integers(0, 9)}),
    st.fixed_dictionaries({"source": st.just("capture"), "name": st.sampled_from(CAPTURED)},
                          optional={"head": st.lists(st.integers(0, 11), max_size=4)}),
    st.fixed_dictionaries({"source": st.sampled_from(["layer", "file"]),
                           "path": st.sampled_from(SHIPPED).map(lambda name: str(ASSETS / name))}),
)  # fmt: skip
TABLES = maybe(
    title=st.text(max_size=60),
    attention=maybe(
        algorithm=st.sampled_from(["naive", "flash1", "flash2", "split-kv", "gla", "mla"]),
        heads=st.integers(1, 64), seqlen_q=WHOLE, seqlen_k=WHOLE, head_dim=st.integers(1, 256),
        dtype=st.sampled_from(["float32", "float16", "bfloat16"]),
        scale=st.floats(1e-6, 1e6), temperature=st.floats(0.01, 100),
    ),
    mask=maybe(causal=st.booleans(), window=st.integers(0, 999), sinks=st.integers(0, 9),
               documents=st.lists(st.integers(1, 99), max_size=9)),
    scores=maybe(softcap=st.floats(0.1, 99), alibi=st.booleans()),
    position=maybe(kind=st.just("rope"), theta=st.floats(2, 1e6), offset=st.integers(-99, 99)),
    tiling=maybe(rows=WHOLE, cols=WHOLE, splits=st.integers(1, 16)),
    input=INPUT,
    hardware=maybe(preset=st.sampled_from(["H100-SXM", "A100-SXM"])),
)  # fmt: skip
CHOICES = maybe(
    model=st.just("Llama-3-70B"), tokens=st.integers(1, 2**20), jacobian=st.booleans(),
    memory=st.sampled_from(["plain", "scale", "tilted"]), step=st.integers(0, 500),
    off=st.lists(st.integers(0, 9), min_size=2, max_size=2),
)  # fmt: skip
NAMES = st.sampled_from(["", "steps", "memory", "cache", "softmax"])
PLACE = st.integers(0, 2**40)


@pytest.mark.long
@settings(max_examples=500)
@given(TABLES, PLACE, PLACE, PLACE, NAMES, NAMES, CHOICES)
def test_any_view_comes_back(
    tables: dict[str, Any], visit: int, op: int, row: int, layout: str, panel: str,
    choices: dict[str, Any],
) -> None:  # fmt: skip
    try:
        scenario = parse_scenario(tables)
    except InputError:
        assume(False)
    chosen = ChooseTable.model_validate(choices)
    view = ViewLink(scenario, Cursor(visit, op), row, layout, panel, chosen)
    text = view.text
    assert read_link(text) == view
    assert is_link(text)
    assert len(text) <= MOST_LETTERS
    assert text.isascii()


@pytest.mark.parametrize("demo", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_demo_has_a_short_one(demo: Path) -> None:
    view = ViewLink(load_scenario(demo), Cursor(3, 1))
    assert read_link(f"  {view.text}\n") == view
    assert len(view.text) < 250
    assert str(ASSETS) not in json.dumps(links._unpacked(view.text.removeprefix(HEAD)))


OLD = "tilescope:1/Q3UltmiurYXrNoXoNobqNjHQQXdcLQA"
"""A link that was copied long ago."""


def test_an_old_link_still_says_the_same() -> None:
    assert (
        ViewLink(parse_scenario({"mask": {"causal": True}}), Cursor(5, 3), 40, "steps").text == OLD
    )
    assert read_link(OLD).scenario.mask.causal


# --- strangers -------------------------------------------------------------------------------


def link_of(said: Any, *, text: str | None = None) -> str:
    """Return a link that says something of a stranger's."""
    packer = zlib.compressobj(9, wbits=-15)  # without the words that are known, it is one as well
    packed = packer.compress((text or json.dumps(said)).encode("utf-8", "surrogatepass"))
    return HEAD + base64.urlsafe_b64encode(packed + packer.flush()).rstrip(b"=").decode()


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_link(text)
    said = str(caught.value)
    assert said.startswith("link: ")
    assert len(said.splitlines()) == 1
    assert len(said) < 900
    return said


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../LICENSE", "captures/../captures/passage-layer1.safetensors",
     str(CAPTURES / "passage-layer1.safetensors"), "lessons", "", "C:\\x.npz", "//host/share/x.npz",
     "captures\\passage-layer1.safetensors", "scenarios/causal.toml", "captures/none.safetensors"],
)  # fmt: skip
def test_a_link_names_files_only_among_what_ships(path: str) -> None:
    said = refused(link_of({"scenario": {"input": {"source": "file", "path": path}}}))
    assert "path" in said
    stray = {"source": "random", "path": path or "x"}
    assert "ships" in refused(link_of({"scenario": {"input": stray}}))


def test_a_capture_has_the_name_of_one_that_ships() -> None:
    for name in ("../captures/passage-layer1", "small/step-0000-layer0", "/tmp/x"):
        said = refused(link_of({"scenario": {"input": {"source": "capture", "name": name}}}))
        assert "passage-layer1" in said


@pytest.mark.parametrize(
    "text",
    ["", "tilescope:", "tilescope:1/", "tilescope:2/abc", "https://example.org", HEAD + "é", HEAD +
     "a" * MOST_LETTERS, HEAD + "AAAA\nBBBB", link_of([]), link_of(5), link_of({"visit": -1}),
     link_of({"visit": 1.5}), link_of({"visit": 2**80}), link_of({"visit": True}),
     link_of({"nothing": 1}), link_of({"scenario": []}), link_of({"scenario": {"x": 1}}),
     link_of({"layout": "a" * 9000}), link_of({"choose": {"model": "none"}}),
     link_of(None, text='{"visit": NaN}'), link_of(None, text="[" * 60_000),
     link_of(None, text='{"a":' * 9000), link_of(None, text="9" * 20_000),
     link_of(None, text='{"scenario":{"title":"\\ud800"}}'), link_of(None, text=" " * 70_000),
     link_of({"scenario": {"title": "\x1b[2J" * 500}}), link_of({"scenario": {"title": 0}})],
)  # fmt: skip
def test_what_is_no_link_is_refused_in_a_line(text: str) -> None:
    assert refused(text)


GOOD = ViewLink(load_scenario(SCENARIOS / "window-sinks.toml"), Cursor(3, 2), 5, "steps").text


@pytest.mark.long
@settings(max_examples=400)
@given(st.data())
def test_fuzzed_links_are_refused_in_a_line_or_say_a_view(data: st.DataObject) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    code = list(GOOD.removeprefix(HEAD))
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(0, len(code) - 1))
            code[at : at + data.draw(st.integers(0, 3))] = data.draw(st.text(letters, max_size=3))
    else:
        code = list(data.draw(st.text(letters, max_size=200)))
    try:
        found: object = read_link(HEAD + "".join(code))
    except InputError as error:
        found = error
    assert isinstance(found, ViewLink) or len(str(found).splitlines()) == 1


def test_a_file_of_ones_own_and_a_long_view_are_refused_in_a_line(tmp_path: Path) -> None:
    mine = {"input": {"source": "file", "path": str(tmp_path / "mine.npz")}}
    with pytest.raises(InputError, match=r'^link: input.path = "mine.npz": expected .* no file'):
        assert ViewLink(parse_scenario(mine)).text
    lengths = [n * 7919 % 997 + 1 for n in range(1900)]
    with pytest.raises(InputError, match="2000 letters"):
        assert ViewLink(parse_scenario({"mask": {"documents": lengths}})).text
