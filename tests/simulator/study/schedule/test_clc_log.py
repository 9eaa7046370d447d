"""Logs of CLC: tiles of each multiprocessor in the order of the lines, or a line that says why."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.base.limits import TRACE_BYTES, TRACE_EVENTS, TRACE_LANES
from simulator.study.schedule.clc_log import read_clc_log
from tests.helpers.refused import refused

# Written by the form that FlashAttention's AI/CLC_TRACE_DEBUG.md tells.
SAMPLE = """[FA] TileScheduler=SingleTileLPTScheduler, scheduling_mode=CLC, USE_2CTA=False
[CLC] query sm=12 cta=0 (m_blk=1,h=3,b=0,s=0) valid=1
[CLC] query sm=3 cta=1 (m_blk=0,h=3,b=0,s=0) valid=1
warning: something of somebody else
[CLC] query sm=12 cta=0 (m_blk=1,h=2,b=1,s=0) valid=1
[CLC] query sm=3 cta=1 (m_blk=-1,h=-1,b=-1,s=-1) valid=0
[CLC] query sm=12 cta=0 (m_blk=0,h=0,b=0,s=0) valid=0
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "clc.log"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_form_that_is_documented_is_read(tmp_path: Path, ends: str) -> None:
    found = read_clc_log(written(tmp_path, SAMPLE.replace("\n", ends)))
    assert not found.timed
    assert found.lanes == ("SM 3", "SM 12")
    assert found.lane.tolist() == [1, 0, 1]
    assert found.start.tolist() == [0, 0, 1]
    assert found.end.tolist() == [1, 1, 2]
    assert found.names[2] == "m_blk 1, h 2, b 1, s 0, taken by cta 0"


queries = st.lists(
    st.tuples(st.integers(0, 8), *[st.integers(-5, 200)] * 5, st.booleans()), min_size=1
)


@given(queries, st.sampled_from(["", "noise\n", "[FA] [CLC]\n"]))
def test_each_multiprocessor_has_its_tiles_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, drawn: list, noise: str
) -> None:
    lines = [
        f"{noise}[CLC] query sm={sm} cta={c} (m_blk={m},h={h},b={b},s={s}) valid={int(given)}\n"
        for sm, c, m, h, b, s, given in drawn
    ]
    path = written(tmp_path_factory.getbasetemp(), "".join(lines))
    expected = [each for each in drawn if each[-1]]
    if not expected:
        with pytest.raises(InputError, match=f"{len(drawn)} asked for a tile and got none"):
            read_clc_log(path)
        return
    found = read_clc_log(path)
    for sm in {each[0] for each in expected}:
        own = [n for n, lane in enumerate(found.lane) if found.lanes[lane] == f"SM {sm}"]
        assert [found.names[n] for n in own] == [
            f"m_blk {m}, h {h}, b {b}, s {s}, taken by cta {c}"
            for its, c, m, h, b, s, _ in expected if its == sm
        ]  # fmt: skip
        assert found.start[own].tolist() == list(range(len(own)))


GIVEN = "[CLC] query sm={} cta=0 (m_blk=0,h=0,b=0,s=0) valid=1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a line [CLC] query sm=…"),
        ("{}", "expected a line [CLC] query sm=…"),
        (GIVEN.format(0) + GIVEN.format("x"), "line 2: expected [CLC] query sm=…"),
        (GIVEN.format(0)[:30], "line 1: expected [CLC] query sm=…"),
        (GIVEN.format("9" * 5000), "line 1: expected [CLC] query sm=…"),
        (GIVEN.format(0).replace("valid=1", "valid=2"), "line 1: expected [CLC] query sm=…"),
        (
            "".join(GIVEN.format(n) for n in range(TRACE_LANES + 1)),
            f"multiprocessors = {TRACE_LANES + 1}: expected at most {TRACE_LANES}",
        ),
        ("\0" * (TRACE_BYTES + 1), f"expected a CLC log of at most {TRACE_BYTES}"),
    ],
)  # fmt: skip
def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(read_clc_log, written(tmp_path, text))


def test_no_log_that_is_read_has_more_events_than_a_trace(tmp_path: Path) -> None:
    assert len(GIVEN.format(0)) * TRACE_EVENTS > TRACE_BYTES
    assert refused(read_clc_log, tmp_path / "none.log")
