"""Storing P against computing it again: what is said is what both tile programs count."""

from dataclasses import replace
from typing import Any

import pytest

from simulator.problem.scenario import with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS, alike, baseline_of, beside, tile_program
from simulator.program.ops import Scores
from simulator.program.tile_program import TileProgram
from simulator.study.compare import at_scale
from simulator.study.race import race_of
from simulator.study.recompute import LENGTHS, over_lengths, trade_of
from simulator.study.roofline import roofline_of
from simulator.study.sweep import rule_tiles, workload_at
from tests.helpers.runs import program_of, scenario
from ui.look.units import bytes_text, flops_text
from ui.panels.compare.recompute import trade_sentences

BACKWARD = [name for name, of in ALGORITHMS.items() if of.backward]
KINDS: tuple[dict[str, Any], ...] = (
    {}, {"mask": {"causal": True}},
    {"mask": {"causal": True, "window": 20}, "heads": 4, "kv_heads": 2},
    {"scores": {"softcap": 3.0}, "nk": 130, "dv": 16},
)  # fmt: skip


def counted(program: TileProgram) -> tuple[int, int, int]:
    """Return bytes, FLOPs and those of S, op by op."""
    ops = [op for index in range(len(program)) for op in program.ops(index)]
    of_scores = sum(op.flops for op in ops if isinstance(op, Scores))
    moved = sum(op.read_bytes + op.write_bytes for op in ops)
    return moved, sum(op.flops for op in ops), of_scores


@pytest.mark.parametrize("said", KINDS, ids=str)
def test_naives_minus_flash2s_is_what_the_panel_says(said: dict[str, Any]) -> None:
    program = program_of(scenario("flash2", **{"nq": 100, "d": 32, "rows": 16, "cols": 32, **said}))
    trade = trade_of(program.workload)
    runs = {name: counted(tile_program(program.workload.as_algorithm(name)))
            for name in ("naive-backward", "flash2-backward")}  # fmt: skip
    stored, again = runs["naive-backward"], runs["flash2-backward"]
    assert trade.saved == stored[0] - again[0]
    assert trade.paid == again[1] - stored[1]
    assert trade.again.scores == again[2]
    long = trade_sentences(trade)[0]
    assert bytes_text(abs(stored[0] - again[0])) in long
    assert flops_text(abs(again[1] - stored[1])) in long
    assert ("more" if again[1] >= stored[1] else "fewer") in long
    assert long.endswith(f"S again takes {flops_text(again[2])}.")


def test_what_is_kept_grows_as_n_squared_or_as_n() -> None:
    w = resolve(scenario("flash2", nq=64, d=64, heads=2, dtype="float16"))
    found = dict(over_lengths(w))
    assert tuple(found) == LENGTHS
    for keys, trade in found.items():
        assert trade.stored.kept == {"P": 2 * keys * keys * 2}
        assert trade.again.kept == {"O": 2 * keys * 64 * 2, "LSE": 2 * keys * 4}
        assert isinstance(trade.again.scores, int)
    rows, cols = rule_tiles(w)["fa2"]
    assert (w.rows, w.cols) != (rows, cols)
    tiles = replace(w, rows=rows, cols=cols)
    assert found[256] == trade_of(workload_at(tiles, "N", 256))
    assert found[256].saved != trade_of(workload_at(w, "N", 256)).saved
    assert not over_lengths(resolve(scenario("flash2", nq=9, mask={"documents": [4, 5]})))


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_passes_stand_beside_their_forward_passes_and_are_ranked_apart(name: str) -> None:
    assert set(beside(name)) == {*BACKWARD, *(ALGORITHMS[each].forward for each in BACKWARD)}
    assert alike(name) == tuple(BACKWARD)
    assert baseline_of(name).passes_pairs
    program = program_of(scenario(name, nq=64, d=16, rows=8, cols=8))
    assert [lane.algorithm for lane in race_of(program).lanes] == BACKWARD
    scale = at_scale(program)
    assert set(scale.bytes) == set(BACKWARD)
    places = {(place.algorithm, place.phase) for place in roofline_of(program).places}
    assert {each for each, phase in places if phase != "decode"} == set(beside(name))
    assert {each for each, phase in places if phase == "backward"} == set(BACKWARD)
    assert not any(ALGORITHMS[each].backward for each, phase in places if phase == "decode")


def test_forward_runs_are_compared_as_before() -> None:
    assert alike("flash2") == beside("flash2") == ("naive", "flash1", "flash2")
    assert baseline_of("flash2").name == "naive"


def test_a_run_in_pages_or_splits_is_traded_with_its_heads_one_by_one() -> None:
    chosen = scenario("split-kv", nq=2, nk=64, heads=4, kv_heads=2)
    plain = with_values(chosen, {"attention": {"algorithm": "flash2"}})
    assert trade_of(resolve(chosen)).saved == trade_of(resolve(plain)).saved
