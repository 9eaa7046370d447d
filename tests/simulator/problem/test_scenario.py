"""Scenario files: there and back, and one clear line for everything that cannot be used."""

import os
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import InputError, load_scenario, save_scenario
from simulator.base.assets import SCENARIOS
from simulator.problem.hardware import gpus
from simulator.problem.scenario import parse_scenario, scenario_tables, scenario_toml, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS
from tests.helpers.refused import refused
from tests.helpers.scarce import longest_file

SIZES = st.integers(1, 4096)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def maybe(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a table with any of these keys."""
    return st.fixed_dictionaries({}, optional=keys)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Draw valid scenarios as plain tables."""
    positive = st.floats(1e-3, 1e3)
    attention = draw(
        maybe(
            algorithm=st.sampled_from(list(ALGORITHMS)),
            seqlen_q=SIZES,
            seqlen_k=SIZES,
            head_dim=SIZES,
            value_dim=SIZES,
            dtype=st.sampled_from(["float32", "float16", "bfloat16"]),
            scale=positive,
            temperature=positive,
        )
    )
    if attention.get("algorithm") == "linear":
        attention |= {"scale": None, "temperature": 1.0}
        attention = {key: value for key, value in attention.items() if value is not None}
    attention |= draw(
        st.sampled_from([{}, {"feature_map": "elu1"}, {"feature_map": "performer", "features": 24}])
    )
    if draw(st.booleans()):
        kv_heads = draw(st.integers(1, 64))
        attention |= {"kv_heads": kv_heads, "heads": kv_heads * draw(st.integers(1, 64))}
    tiling: dict[str, Any] = draw(maybe(rule=st.sampled_from(["paper", "fa2", "fa3"])))
    if not tiling and draw(st.booleans()):
        tiling = {"rows": draw(SIZES), "cols": draw(SIZES)}
    heads = st.lists(st.integers(0, 63), min_size=1, max_size=4, unique=True)
    source = draw(maybe(seed=st.integers(0, 2**63 - 1), head=st.just("all") | heads))
    if draw(st.booleans()):
        source |= draw(
            st.sampled_from(
                [
                    {"source": "random"},
                    {"source": "file", "path": "/data/deep/mine.npz"},
                    {"source": "capture", "name": "cat-because-layer2"},
                ]
            )
        )
    some, lengths = st.integers(0, 99), st.lists(st.integers(1, 99), max_size=3)
    mask = draw(maybe(causal=st.booleans(), window=some, sinks=some, dilation=st.integers(1, 9),
                      global_tokens=some, documents=lengths, block=st.integers(1, 9)))  # fmt: skip
    hardware = draw(maybe(preset=st.sampled_from(sorted(gpus()))))
    numbers = st.lists(st.floats(0, 30), min_size=1, max_size=4)
    scores = draw(maybe(softcap=st.floats(0, 30), alibi=st.booleans() | numbers, bias=st.booleans(),
                        sink_logits=st.sampled_from(["file", False]) | numbers))  # fmt: skip
    position = draw(maybe(kind=st.just("rope"), theta=st.floats(2, 1e6), interleaved=st.booleans(),
                          fraction=st.floats(0.1, 1), offset=st.integers(-9, 9)))  # fmt: skip
    tiling |= draw(maybe(splits=st.integers(1, 256) | st.just("auto"), page_size=SIZES,
                         devices=st.integers(2, 8), layout=st.just("zigzag")))  # fmt: skip
    batch = draw(maybe(lengths=lengths.filter(bool)))
    parts = {"attention": attention, "mask": mask, "tiling": tiling, "input": source,
             "scores": scores, "position": position, "batch": batch}  # fmt: skip
    out: dict[str, Any] = {name: part for name, part in parts.items() if draw(st.booleans())}
    return out | {"title": draw(TEXT), "hardware": hardware}


# --- there and back ------------------------------------------------------------------------


@given(tables())
def test_tables_there_and_back(said: dict[str, Any]) -> None:
    once = parse_scenario(said)
    assert parse_scenario(scenario_tables(once)) == once
    # What its author did not say is not said for them.
    written = scenario_tables(once)
    assert written == {key: value for key, value in said.items() if value not in ({}, "")}
    assert tomllib.loads(scenario_toml(once)) == written


@given(said=tables())
def test_files_there_and_back(said: dict[str, Any], tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("scenarios")
    once = parse_scenario(said)
    save_scenario(once, folder / "a.toml")
    assert load_scenario(folder / "a.toml") == once
    assert os.listdir(folder) == ["a.toml"]


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_scenarios_are_usable(path: Path) -> None:
    shipped = load_scenario(path)
    assert shipped.title
    workload = resolve(shipped)
    assert workload.algorithm == shipped.attention.algorithm
    assert parse_scenario(scenario_tables(shipped)) == shipped


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    file = tmp_path / "a" / "s.toml"
    file.write_text('[input]\nsource = "file"\npath = "../data/x.npz"\n', encoding="utf-8")
    scenario = load_scenario(file)
    assert scenario.input.path == str(tmp_path / "data" / "x.npz")
    save_scenario(scenario, tmp_path / "a" / "b" / "t.toml")
    written = tomllib.loads((tmp_path / "a" / "b" / "t.toml").read_text(encoding="utf-8"))
    assert written["input"]["path"] == "../../data/x.npz"
    assert load_scenario(tmp_path / "a" / "b" / "t.toml").input.path == scenario.input.path


def test_values_replaced_and_removed() -> None:
    first = parse_scenario({"title": "a", "attention": {"scale": 0.5, "heads": 4}})
    second = with_values(first, {"attention": {"scale": None, "heads": 8}, "title": "b"})
    assert scenario_tables(second) == {"title": "b", "attention": {"heads": 8}}
    assert with_values(first, {"mask": {"causal": True}}).mask.causal is True
    assert first.attention.scale == 0.5
    assert "attention.kv_heads = 3" in refused(with_values, first, {"attention": {"kv_heads": 3}})


def test_none_is_as_if_nothing_were_said() -> None:
    said = {"attention": {"heads": None}, "mask": {"causal": None, "window": 3}}
    assert scenario_tables(parse_scenario(said)) == {"mask": {"window": 3}}


# --- what cannot be used -------------------------------------------------------------------

BAD = [
    # unknown keys
    ("[attention]\nheds = 2", "attention.heds = 2: expected one of algorithm, heads, kv_heads"),
    ("[atention]\nheads = 2", "atention = "),
    ("titel = 'x'", 'titel = "x": expected one of title, attention'),
    ("[mask.inner]\nx = 1", "mask.inner = "),
    # wrong types
    ("[attention]\nheads = '2'", 'attention.heads = "2": expected a whole number'),
    ("[attention]\nheads = 2.0", "attention.heads = 2.0: expected a whole number"),
    ("[attention]\nheads = true", "attention.heads = true: expected a whole number"),
    ("[attention]\nscale = 'x'", 'attention.scale = "x": expected a number'),
    (
        "[attention]\nalgorithm = 2",
        'attention.algorithm = 2: expected "naive", "flash1", "flash2", "split-kv", '
        '"paged", "mla", "linear", "linear-recurrent", "gla", "deltanet", "naive-backward" '
        'or "flash2-backward"',
    ),
    ("[attention]\nfeature_map = 'elu1'\nfeatures = 8",
     'attention.features = 8: expected no features without feature_map = "performer"'),
    ("[attention]\nfeature_map = 'relu'", 'attention.feature_map = "relu": expected "elu1" or'),
    ("[attention]\nalgorithm = 'flash9'", 'attention.algorithm = "flash9": expected "naive"'),
    ("[attention]\ndtype = 'float64'", 'attention.dtype = "float64": expected "float32"'),
    ("[mask]\ncausal = 1", "mask.causal = 1: expected true or false"),
    ("[mask]\ncausal = 'yes'", 'mask.causal = "yes": expected true or false'),
    ("attention = 3", "attention = 3: expected a table"),
    ("mask = []", "mask = []: expected a table"),
    ("title = 1979-05-27", "title = 1979-05-27: expected text in quotes"),
    ("[input]\nseed = 1.5", "input.seed = 1.5: expected a whole number"),
    ("[input]\nhead = 'some'", 'input.head = "some": expected head numbers or "all"'),
    ("[input]\nhead = 3", 'input.head = 3: expected head numbers or "all"'),
    ("[input]\nhead = [1, 'x']", "input.head = [1, 'x']: expected head numbers"),
    ("[input]\nhead = [-1]", 'input.head = [-1]: expected head numbers or "all"'),
    # sizes
    ("[attention]\nheads = 6\nkv_heads = 4", "attention.kv_heads = 4: expected a divisor of att"),
    ("[attention]\nscale = 0.0", "attention.scale = 0.0: expected a number above 0"),
    ("[attention]\nscale = nan", "attention.scale = nan: expected a "),
    ("[attention]\ntemperature = inf", "attention.temperature = inf: expected a finite number"),
    ("[attention]\ntemperature = -1.0", "attention.temperature = -1.0: expected a number above"),
    ('[tiling]\nlayout = "round"',
     'tiling.layout = "round": expected "contiguous", "zigzag" or "striped"'),
    ("[tiling]\nrows = 4", "tiling.rows = 4: expected tiling.cols beside it"),
    ("[tiling]\ncols = 4", "tiling.cols = 4: expected tiling.rows beside it"),
    ("[tiling]\nrule = 'fa2'\nrows = 4\ncols = 4", 'tiling.rule = "fa2": expected either a rule'),
    ("[tiling]\nrule = 'fa2'\nrows = 4", 'tiling.rule = "fa2": expected either a rule'),
    ("[tiling]\nrule = 'fa2'\ncols = 4", 'tiling.rule = "fa2": expected either a rule'),
    ("[tiling]\nrule = 'fa9'", 'tiling.rule = "fa9": expected "paper", "fa2" or "fa3"'),
    ("[mask]\ndocuments = [3, 0]", "mask.documents = [3, 0]: expected a list of numbers of tokens"),
    ("[mask]\ndocuments = 3", "mask.documents = 3: expected"),
    # input and hardware
    ("[input]\nsource = 'file'", 'input.path: expected input.path with source = "file"'),
    ("[input]\nsource = 'capture'", 'input.name: expected input.name with source = "capture"'),
    ("[input]\nsource = 'web'", 'input.source = "web": expected "random", "file", "capture",'),
    ("[input]\nhead = []", "input.head = []: expected distinct head numbers, at least one"),
    ("[input]\nhead = [1, 1]", "input.head = [1, 1]: expected distinct head numbers"),
    ("[hardware]\npreset = 'H900'", 'hardware.preset = "H900": expected one of V100-SXM'),
    ("[hardware]\npreset = '{braces}'", 'hardware.preset = "{braces}": expected one of'),
    # not TOML
    ("[attention\nheads = 2", "expected TOML ("),
    ("heads", "expected TOML ("),
    ("a = " + "[" * 5000, "expected TOML ("),
    ("[input]\nseed = " + "1" * 5000, "expected TOML ("),
    # what a message must survive
    ("[input]\nseed = 0x1" + "0" * 5000, "input.seed = "),
    ("[attention]\n'a\\nb' = 1", "attention.a"),
    ('[attention]\n"a\\nb" = 1', "attention.a b = 1: expected one of"),
    ("'" + "k" * 5000 + "' = 1", "kkk... = 1: expected one of title"),
    ("[hardware]\npreset = '''a\n\n" + "b" * 300 + "'''", 'hardware.preset = "a bbb'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "key", "least", "most"),
    [
        ("attention", "heads", 1, 4096),
        ("attention", "kv_heads", 1, 4096),
        ("attention", "seqlen_q", 1, 2**24),
        ("attention", "seqlen_k", 1, 2**24),
        ("attention", "head_dim", 1, 4096),
        ("attention", "value_dim", 1, 4096),
        ("mask", "window", 0, 2**24),
        ("mask", "sinks", 0, 2**24),
        ("mask", "dilation", 1, 2**24),
        ("mask", "global_tokens", 0, 2**24),
        ("mask", "block", 1, 2**24),
        ("tiling", "rows", 1, 2**24),
        ("tiling", "cols", 1, 2**24),
        ("tiling", "devices", 2, 8),
        ("tiling", "page_size", 1, 2**24),
        ("input", "seed", 0, 2**63 - 1),
    ],
)
def test_sizes_are_from_a_least_to_a_most(table: str, key: str, least: int, most: int) -> None:
    beside = {"rows": 1, "cols": 1} if table == "tiling" else {}
    for good in (least, most):
        chosen = parse_scenario({table: {**beside, key: good}})
        assert getattr(getattr(chosen, table), key) == good
    for bad in (least - 1, most + 1):
        with pytest.raises(InputError, match=rf"{table}\.{key} = {bad}: expected at "):
            parse_scenario({table: {**beside, key: bad}})


def test_what_is_not_said_is_as_the_page_has_it() -> None:
    chosen = parse_scenario({})
    assert (chosen.title, chosen.attention.algorithm) == ("", "flash2")
    assert chosen.attention.temperature == 1
    assert (chosen.mask.causal, chosen.mask.window, chosen.mask.sinks) == (None, None, 0)
    assert (chosen.mask.dilation, chosen.mask.global_tokens) == (1, 0)
    assert (chosen.mask.documents, chosen.mask.block) == ((), None)
    assert (chosen.input.source, chosen.input.seed, chosen.input.head) == ("random", 0, "all")
    assert chosen.hardware.preset == "H100-SXM"
    assert chosen.faults.on == ()
    longest = "x" * 500
    assert parse_scenario({"title": longest}).title == longest
    assert "expected at most 500 characters" in refused(parse_scenario, {"title": longest + "x"})


@pytest.mark.parametrize(("text", "message"), BAD, ids=[m[:40] for _, m in BAD])
def test_a_bad_file_is_told_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text, encoding="utf-8")
    line = refused(load_scenario, file)
    assert line.isprintable()
    assert len(line) < 600
    assert line.startswith(f"{file}: ")
    assert message in line


def test_all_mistakes_are_counted_and_kept() -> None:
    with pytest.raises(InputError) as error:
        parse_scenario({"attention": {"heads": 0, "seqlen_q": "x"}, "mask": {"window": -1}})
    assert [m.key for m in error.value.mistakes] == [
        "attention.heads",
        "attention.seqlen_q",
        "mask.window",
    ]
    assert [m.value for m in error.value.mistakes] == ["0", '"x"', "-1"]
    assert str(error.value) == "scenario: attention.heads = 0: expected at least 1 (and 2 more)"


def test_files_that_are_no_scenario(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes('title = "Größe"'.encode("latin-1"))
    assert refused(load_scenario, latin) == f"{latin}: byte 11: expected TOML in UTF-8"
    utf16 = tmp_path / "utf16.toml"
    utf16.write_bytes('title = "x"'.encode("utf-16"))
    assert "expected TOML in UTF-8" in refused(load_scenario, utf16)
    for missing in (tmp_path / "no.toml", tmp_path, tmp_path / "a\0b.toml", tmp_path / ("n" * 300)):
        assert "expected a readable file (" in refused(load_scenario, missing)


@given(st.binary(max_size=60))
def test_no_bytes_give_anything_but_a_scenario_or_an_input_error(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "s.toml"
        file.write_bytes(data)
        try:
            told = load_scenario(file).title
        except InputError as error:
            told = str(error)
    assert told.isprintable() or data.startswith(b"title")


# --- what does not resolve -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "attention.seqlen_q: expected a whole number"),
        ({"attention": {"seqlen_q": 4}}, "attention.head_dim: expected a whole number"),
        ({"attention": {"seqlen_q": 4, "head_dim": 4}, "input": {"head": [1]}},
         "input.head = [1]: expected numbers from 0 to 0"),
        ({"input": {"source": "capture", "name": "../../etc/passwd"}},
         'input.name = "../../etc/passwd": expected one of cat-because-layer0'),
        ({"attention": {"seqlen_q": 2**24, "head_dim": 1}, "tiling": {"rows": 1, "cols": 99}},
         "tiling.rows = 1: expected tiles that cut seqlen_q = 16777216 into at most"),
        # float32 holds neither: every score would be inf or 0.
        ({"attention": {"seqlen_q": 4, "head_dim": 4, "scale": 1e300}},
         "attention.scale = 1e+300: expected"),
        ({"attention": {"seqlen_q": 4, "head_dim": 4, "temperature": 1e300}},
         "attention.temperature = 1e+300: expected"),
        ({"attention": {"seqlen_q": 4, "head_dim": 4, "temperature": 5e-324}},
         "attention.temperature = 5e-324: expected"),
    ],
)  # fmt: skip
def test_scenarios_that_do_not_resolve(said: dict[str, Any], message: str) -> None:
    assert message in refused(resolve, parse_scenario(said))


# --- saving --------------------------------------------------------------------------------


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    save_scenario(parse_scenario({"title": "old"}), file)
    before = file.read_bytes()
    with longest_file(5):
        line = refused(save_scenario, parse_scenario({"title": "new"}), file)
    assert line == f"{file}: expected a file that can be written (File too large)"
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["s.toml"]


@pytest.mark.parametrize("name", ["plain/s.toml", "missing/s.toml", ".", "a\0b.toml", "n" * 300])
def test_places_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("a file, not a folder", encoding="utf-8")
    told = refused(save_scenario, parse_scenario({}), tmp_path / name)
    assert "expected a file that can be written" in told
    assert os.listdir(tmp_path) == ["plain"]


@pytest.mark.parametrize("side", ["rows", "cols"])
def test_as_many_blocks_as_there_may_be_and_one_more(side: str) -> None:
    table = {"head_dim": 8, "seqlen_q": 4 * 262_144, "seqlen_k": 4 * 262_144}
    tiles = {"rows": 64, "cols": 64, side: 4}
    w = resolve(parse_scenario({"attention": table, "tiling": tiles}))
    assert (w.grid.Tr if side == "rows" else w.grid.Tc) == 262_144
    longer = {**table, "seqlen_q": 4 * 262_144 + 1, "seqlen_k": 4 * 262_144 + 1}
    with pytest.raises(InputError, match="into at most 262144 blocks"):
        resolve(parse_scenario({"attention": longer, "tiling": tiles}))
