"""What if: a changed scenario, and figures that are those of the summary."""

from dataclasses import replace

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.trace import simulate
from simulator.study.what_if import (
    WhatIf,
    asked,
    figures_of,
    plain,
    settings_of,
    with_causal,
    with_gpu,
    with_tiles,
    with_tokens,
    with_width,
)

REAL, BATCH, SPLIT, MLA = (load_scenario(SCENARIOS / f"{name}.toml")
                           for name in ("flash2", "batch", "split-kv", "mla"))  # fmt: skip


@pytest.mark.parametrize("scenario", [REAL, BATCH, SPLIT, MLA], ids=lambda s: s.title[:12])
def test_figures_are_those_of_the_summary(scenario) -> None:
    trace = simulate(scenario)
    found, summary = figures_of(trace.program), trace.summary()
    assert found.tiles == summary["tiles"]["visited"]
    assert found.requested == summary["hbm"]["read_bytes"] + summary["hbm"]["write_bytes"]
    model = summary["model"]
    assert found.seconds == (model and model["seconds"])
    assert found.bound == (model["bound_by"] if model else "")
    assert bool(found.why) is (model is None)


def test_what_the_file_has_otherwise_is_a_what_if_and_what_it_has_is_none() -> None:
    causal = asked(with_causal(REAL, on=True))
    assert causal.input.what_if
    assert resolve(causal).mask.causal
    back = with_causal(causal, on=False)
    assert asked(back) == back  # the file is not causal
    assert not back.input.what_if
    assert plain(REAL) is REAL


@pytest.mark.parametrize(
    ("scenario", "keys", "queries"), [(REAL, 4096, 4096), (BATCH, 300, None), (SPLIT, 2000, None)]
)
def test_another_number_of_tokens(scenario, keys, queries) -> None:
    w = resolve(scenario)
    now = settings_of(scenario, w)
    assert (now.queries, now.keys) == (w.queries, w.seqlen_k)
    changed = asked(with_tokens(scenario, keys, now))
    after = resolve(changed)
    assert (after.seqlen_k, after.queries) == (keys, queries or w.queries)
    assert settings_of(changed, w).keys == keys


@pytest.mark.parametrize("scenario", [REAL, SPLIT, MLA])
def test_another_width(scenario) -> None:
    w = resolve(scenario)
    changed = asked(with_width(scenario, 64))
    assert settings_of(changed, w).width == settings_of(changed, resolve(changed)).width == 64


def test_documents_still_add_up() -> None:
    scenario = load_scenario(SCENARIOS / "window-sinks.toml")
    w = resolve(scenario)
    n = w.seqlen_k
    packed = with_values(scenario, {"mask": {"documents": [n - 5, 3, 2]}})
    for count in (n + 7, n - 4, 2):
        changed = with_tokens(packed, count, settings_of(packed, w))
        assert sum(changed.mask.documents) == count
        assert min(changed.mask.documents) > 0


def test_tiles_and_gpu() -> None:
    by_rule = load_scenario(SCENARIOS / "real-scale.toml")
    now = settings_of(by_rule, resolve(by_rule))
    changed = with_gpu(with_tiles(by_rule, 2 * now.rows, now.cols), "T4")
    after = resolve(changed)
    assert (after.rows, after.cols, after.gpu.name) == (2 * now.rows, now.cols, "T4")


def test_a_factor_is_known_where_both_are() -> None:
    was = figures_of(simulate(REAL).program)
    now = figures_of(simulate(with_tiles(REAL, 8, 6)).program)
    tiles, size, seconds = WhatIf(REAL, REAL, was, now).factors
    assert tiles == 6 / 20
    assert size == 5044 / 8372
    assert seconds == pytest.approx(1, rel=0.01)
    unknown = figures_of(simulate(SPLIT).program)
    assert WhatIf(REAL, SPLIT, was, unknown).factors[2] is None
    assert unknown.why
    nothing = replace(was, tiles=0)  # a mask hides everything
    assert WhatIf(REAL, REAL, was, nothing).factors[0] is None
    assert WhatIf(REAL, REAL, nothing, was).factors[0] is None
