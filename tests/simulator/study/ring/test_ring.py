"""A ring of devices: what each holds and computes, the same O, and times of a brute-force run."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.dtypes import WIDTH
from simulator.base.tolerance import STEP
from simulator.problem.hardware import GB, Link, gpus, links
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.study.ring.dealing import LAYOUTS, block_at, dealt, owners, tokens_of
from simulator.study.ring.numbers import ring_numbers, why_no_numbers
from simulator.study.ring.timeline import ring_timeline
from simulator.study.ring.work import MOST_TOKENS, ring_of, ring_work, why_no_ring
from tests.helpers.runs import scenario, trace_of

LENGTHS = st.integers(1, 40)
DEVICES = st.integers(2, 8)
MASKS = st.sampled_from(
    [
        {}, {"causal": True}, {"window": 5}, {"causal": True, "window": 6, "sinks": 2},
        {"causal": True, "window": 8, "dilation": 2}, {"window": 3, "global_tokens": 2},
        {"causal": True, "align": "top-left"}, {"window": [2, 7]},
    ]
)  # fmt: skip
TILES = st.integers(1, 9)


def made(nq, nk, mask, rows=4, cols=3, devices=2, layout="contiguous", **more):
    w = resolve(scenario("flash2", nq=nq, nk=nk, mask=mask, rows=rows, cols=cols, **more))
    return w, ring_of(w, devices, layout)


@given(LENGTHS, DEVICES)
def test_each_token_is_dealt_once(length, devices):
    half = [length * n // (2 * devices) for n in range(2 * devices + 1)]
    for layout in LAYOUTS:
        found = [tokens_of(pieces).tolist() for pieces in dealt(layout, length, devices)]
        assert sorted(token for own in found for token in own) == list(range(length))
        for device, own in enumerate(found):
            assert own == sorted(own)
            assert owners(layout, length, devices)[own].tolist() == [device] * len(own)
            first, last = (range(half[n], half[n + 1]) for n in (device, 2 * devices - 1 - device))
            expected = {
                "contiguous": range(half[2 * device], half[2 * device + 2]),
                "zigzag": [*first, *last],
                "striped": range(device, length, devices),
            }
            assert own == list(expected[layout])


@given(LENGTHS, LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS, TILES, TILES,
       st.sampled_from([(1, 1), (4, 2)]))  # fmt: skip
def test_work_and_links_are_those_counted_pair_by_pair(
    nq, nk, devices, layout, mask, rows, cols, heads
):
    query_heads, kv_heads = heads
    w, ring = made(nq, nk, mask, rows, cols, devices, layout,
                   heads=query_heads, kv_heads=kv_heads, d=3, dv=2)  # fmt: skip
    work = ring_work(ring)
    seen = w.mask.visible(range(nq), range(nk))
    row_owner, key_owner = (owners(layout, n, devices) for n in (nq, nk))
    for device in range(devices):
        holds = device
        for step in range(devices):
            own = seen[row_owner == device][:, key_owner == holds]
            tiles = flops = moved = 0
            for i in range(0, own.shape[0], rows):
                blocks = [own[i : i + rows, j : j + cols] for j in range(0, own.shape[1], cols)]
                blocks = [block for block in blocks if block.any()]
                tiles += len(blocks)
                flops += sum(2 * block.size * (3 + 2) for block in blocks)
                moved += sum(block.shape[1] * (3 + 2) * WIDTH[w.dtype] for block in blocks)
                if blocks:
                    times = 2 if step else 1
                    moved += len(blocks[0]) * (3 * WIDTH[w.dtype] + times * (2 + 1) * 4)
            counts = [own.sum(), tiles, flops, moved]
            arrays = (work.pairs, work.tiles, work.flops, work.bytes)
            assert [array[device, step] for array in arrays] == [query_heads * n for n in counts]
            sent = np.sum(key_owner == holds) * kv_heads * (3 + 2) * WIDTH[w.dtype]
            assert work.sent[device, step] == (sent if step < devices - 1 else 0)
            holds = (holds - 1) % devices
    assert work.pairs.sum() == query_heads * seen.sum()
    block = kv_heads * nk * (3 + 2) * WIDTH[w.dtype]
    assert work.sent.sum() == (devices - 1) * block  # each block travels g - 1 links


VARIANTS = st.sampled_from(
    [
        {}, {"scores": {"softcap": 2.0}}, {"scores": {"alibi": True}},
        {"scores": {"sink_logits": [0.5, -1.0]}}, {"rescale_threshold": 1.0},
    ]
)  # fmt: skip


def check_output(w, ring, head):
    """Hold that O of a head is the reference's to rounding, and return all numbers."""
    inputs = read_inputs(w)
    found = ring_numbers(ring, inputs, head)
    size = max(np.abs(inputs.q[head] @ inputs.k[0].T).max() * w.scale, 1.0) + 40
    allowed = STEP * size * max(np.abs(inputs.v).max(), 1.0)
    assert found.error <= allowed
    assert found.apart <= 2 * allowed
    return found


@pytest.mark.long
@given(LENGTHS, LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS, TILES, TILES, VARIANTS,
       st.integers(0, 1))  # fmt: skip
def test_every_layout_has_the_same_output(nq, nk, devices, layout, mask, rows, cols, more, head):
    w, ring = made(nq, nk, mask, rows, cols, devices, layout, heads=2, kv_heads=1, d=3, dv=2,
                   **more)  # fmt: skip
    check_output(w, ring, head)


@pytest.mark.long
@given(LENGTHS, LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS)
def test_numbers_after_a_step_are_of_the_keys_so_far(nq, nk, devices, layout, mask):
    w, ring = made(nq, nk, mask, 4, 3, devices, layout, d=3, dv=2)
    inputs = read_inputs(w)
    found = ring_numbers(ring, inputs, 0)
    row_owner, key_owner = (owners(layout, n, devices) for n in (nq, nk))
    s = inputs.q[0].astype(float) @ inputs.k[0].astype(float).T * w.scale
    s = np.where(w.mask.visible(range(nq), range(nk)), s, -np.inf)
    for step in range(devices):
        for row in range(nq):
            blocks = [block_at(row_owner[row], n, devices) for n in range(step + 1)]
            own = np.where(np.isin(key_owner, blocks), s[row], -np.inf)
            top = own.max()
            p = np.exp(own - top) if np.isfinite(top) else np.zeros(nk)
            o = p @ inputs.v[0] / p.sum() if p.any() else np.zeros(2)
            assert found.m[step, row] == pytest.approx(top, rel=1e-5, abs=1e-5)
            assert found.l[step, row] == pytest.approx(p.sum(), rel=1e-4, abs=1e-6)
            np.testing.assert_allclose(found.o[step, row], o, rtol=1e-4, atol=1e-5)


def by_events(works, sends, overlapped):
    """Return when each device begins each step and each block leaves, event by event."""
    g = len(works)
    begins, leaves = np.zeros((g, g)), np.zeros((g, g))
    step, worked = [0] * g, [False] * g
    sent, received, on_way = [False] * g, [False] * g, [False] * g
    queue = [(works[n][0], "work", n) for n in range(g)]

    def try_sends(now):
        for n in range(g):
            other = (n + 1) % g
            same = step[n] == step[other] and step[n] < g - 1 and not on_way[n] and not sent[n]
            if same and not received[other] and (overlapped or (worked[n] and worked[other])):
                on_way[n], leaves[n, step[n]] = True, now
                queue.append((now + sends[n][step[n]], "sent", n))

    try_sends(0.0)
    heapq.heapify(queue)
    now = 0.0
    while queue:
        now, what, n = heapq.heappop(queue)
        if what == "work":
            worked[n] = True
        else:
            on_way[n], sent[n], received[(n + 1) % g] = False, True, True
        for each in range(g):
            if worked[each] and sent[each] and received[each] and step[each] < g - 1:
                step[each] += 1
                begins[each, step[each]] = now
                worked[each] = sent[each] = received[each] = False
                queue.append((now + works[each][step[each]], "work", each))
        try_sends(now)
        heapq.heapify(queue)
    return begins, leaves, now


@given(LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS, st.booleans(),
       st.sampled_from([1e-3, 1.0, 50.0, 1e4]))  # fmt: skip
def test_times_are_those_of_a_run_event_by_event(nk, devices, layout, mask, overlapped, gbps):
    _, ring = made(nk, nk, mask, 4, 3, devices, layout, dtype="float16")
    link = Link("test", gbps, "", "")
    found = ring_timeline(ring_work(ring), link, overlapped)
    begins, leaves, end = by_events(found.works.tolist(), found.sends.tolist(), overlapped)
    np.testing.assert_allclose(found.begins, begins, rtol=1e-12, atol=0)
    np.testing.assert_allclose(found.leaves, leaves, rtol=1e-12, atol=0)
    assert found.seconds == pytest.approx(end)
    assert found.speed_up == pytest.approx(found.alone / end)
    assert found.idle == pytest.approx(1 - found.works.sum() / (devices * end), abs=1e-12)
    np.testing.assert_allclose(found.sends * gbps * GB, found.work.sent, rtol=1e-12)


def test_causal_work_is_even_in_a_zigzag_and_nearly_in_stripes():
    works = {
        layout: ring_work(made(256, 256, {"causal": True}, 8, 8, 4, layout)[1]).pairs
        for layout in LAYOUTS
    }
    whole = 256 * 257 // 2
    shares = {layout: pairs.sum(axis=1) / whole for layout, pairs in works.items()}
    assert shares["contiguous"][3] == pytest.approx(7 / 16, abs=0.01)
    assert shares["zigzag"].tolist() == pytest.approx([1 / 4] * 4, abs=1e-12)
    assert shares["striped"].tolist() == pytest.approx([1 / 4] * 4, abs=0.01)
    assert shares["striped"][3] > shares["striped"][0]


def test_what_is_too_large_or_has_nothing_to_merge_is_refused():
    large = resolve(scenario("flash2", nq=MOST_TOKENS + 1, rows=128, cols=128))
    assert why_no_ring(large) == (
        "1\u2009048\u2009577 tokens are too many to deal out one by one: at most "
        "1\u2009048\u2009576."
    )
    with pytest.raises(ValueError, match="too many"):
        ring_work(ring_of(large, 4, "zigzag"))
    uneven = resolve(scenario("flash2", nq=4097, mask={"window": 8, "dilation": 2}))
    assert "under such a mask" in why_no_ring(uneven)
    small_tiles = resolve(scenario("flash2", nq=2**17, rows=8, cols=8))
    assert why_no_ring(small_tiles) == (
        "67\u2009108\u2009864 tiles of one device are too many to count: at most "
        "4\u2009194\u2009304."
    )
    assert "Without a softmax" in why_no_ring(resolve(scenario("linear", nq=8)))
    assert "latent" in why_no_ring(resolve(scenario("mla", nq=8, d=None, latent_dim=4, rope_dim=2)))
    wide = resolve(scenario("flash2", nq=4097, rows=128, cols=128))
    assert not why_no_ring(wide)
    assert why_no_numbers(ring_of(wide, 4, "zigzag")) == (
        "Numbers of m, ℓ and O are computed up to 16\u2009777\u2009216 pairs of a row and a key; "
        "here are 16\u2009785\u2009409."
    )
    assert "under" not in why_no_ring(large)
    assert not why_no_numbers(ring_of(resolve(scenario("flash2", nq=64)), 4, "zigzag"))


def test_limits_themselves_are_not_refused():
    for tokens in (MOST_TOKENS, MOST_TOKENS + 1):
        for sizes in ({"nq": tokens, "nk": 8}, {"nq": 8, "nk": tokens}):
            w = resolve(scenario("flash2", **sizes, rows=128, cols=128))
            assert bool(why_no_ring(w)) is (tokens > 2**20)
    for tokens in (4096, 4097):
        uneven = resolve(scenario("flash2", nq=tokens, nk=8, mask={"window": 8, "dilation": 2}))
        assert bool(why_no_ring(uneven)) is (tokens > 4096)
    for more in (0, 1):  # of two halves one begins a block more
        for sizes in ({"nq": 2**17 + more, "nk": 2**16}, {"nq": 2**17, "nk": 2**16 + more}):
            w = resolve(scenario("flash2", **sizes, rows=32, cols=16))
            assert bool(why_no_ring(w)) is bool(more)
    for keys in (4096, 4097):
        w = resolve(scenario("flash2", nq=4096, nk=keys, rows=128, cols=128))
        assert bool(why_no_numbers(ring_of(w, 4, "zigzag"))) is (keys > 4096)


def test_packed_heads_are_dealt_out_one_by_one():
    sizes = {"nq": 12, "heads": 4, "kv_heads": 2, "rows": 4, "cols": 4}
    plain, packed = (resolve(scenario(name, **sizes)) for name in ("flash2", "split-kv"))
    found = [ring_work(ring_of(w, 3, "zigzag")) for w in (plain, packed)]
    np.testing.assert_array_equal(found[0].bytes, found[1].bytes)


def test_links_are_faster_than_nothing_and_slower_than_memory():
    for link in links().values():
        assert 0 < link.gbps * GB < min(1e12 * gpu.tbps for gpu in gpus().values()) * 4
        assert link.seconds(GB) == 1 / link.gbps
        assert link.source in ("vendor", "standard")


# --- keys that stay: decode context parallelism ------------------------------------------------


def staying(nq, nk, mask, devices, layout="contiguous", **more):
    w = resolve(scenario("flash2", nq=nq, nk=nk, mask=mask, **more))
    return w, ring_of(w, devices, layout, stays=True)


@given(LENGTHS, LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS, VARIANTS, st.integers(0, 1))
def test_partials_of_devices_merge_to_the_output(nq, nk, devices, layout, mask, more, head):
    w, ring = staying(nq, nk, mask, devices, layout, heads=2, kv_heads=1, d=3, dv=2, **more)
    assert len(check_output(w, ring, head).o) == devices + 1


@pytest.mark.long
@given(LENGTHS, LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS)
def test_a_device_has_what_its_own_keys_leave_of_all_rows(nq, nk, devices, layout, mask):
    w, ring = staying(nq, nk, mask, devices, layout, d=3, dv=2)
    inputs = read_inputs(w)
    found, key_owner = ring_numbers(ring, inputs, 0), owners(layout, nk, devices)
    s = inputs.q[0].astype(float) @ inputs.k[0].astype(float).T * w.scale
    s = np.where(w.mask.visible(range(nq), range(nk)), s, -np.inf)
    for part in range(devices + 1):
        own = np.where((key_owner == part) | (part == devices), s, -np.inf)
        top = own.max(axis=1)
        p = np.exp(own - np.where(np.isneginf(top), 0, top)[:, None])
        total = p.sum(axis=1)
        o = p @ inputs.v[0] / np.where(total == 0, 1, total)[:, None]
        np.testing.assert_allclose(found.m[part], top, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found.l[part], total, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.o[part], o, rtol=1e-4, atol=1e-5)


@given(
    LENGTHS, LENGTHS, DEVICES, st.sampled_from(LAYOUTS), MASKS, st.sampled_from([(1, 1), (4, 2)])
)
def test_each_device_sends_o_and_lse_of_all_rows_once(nq, nk, devices, layout, mask, heads):
    w, ring = staying(nq, nk, mask, devices, layout, heads=heads[0], kv_heads=heads[1], d=3, dv=2,
                      dtype="float16")  # fmt: skip
    work, seen = ring_work(ring), w.mask.visible(range(nq), range(nk))
    key_owner = owners(layout, nk, devices)
    assert work.sent.shape == work.tiles.shape == (devices, 1)
    assert (work.sent == heads[0] * nq * (2 + 1) * 4).all()
    for device in range(devices):
        own = seen[:, key_owner == device]
        assert work.pairs[device, 0] == heads[0] * own.sum()
        tiles = [
            own[i : i + w.rows, j : j + w.cols]
            for i in range(0, nq, w.rows) for j in range(0, own.shape[1], w.cols)
        ]  # fmt: skip
        tiles = [tile for tile in tiles if tile.any()]
        assert work.tiles[device, 0] == heads[1] * len(tiles)
        assert work.flops[device, 0] == heads[0] * sum(2 * tile.size * (3 + 2) for tile in tiles)


@pytest.mark.parametrize("devices", [2, 4])
def test_bytes_of_a_decode_are_those_of_as_many_splits(devices):
    sizes = {"nq": 1, "nk": 64, "heads": 8, "kv_heads": 2, "d": 8, "dv": 4, "rows": 4, "cols": 8}
    said = scenario("split-kv", **sizes, dtype="float16", mask={"causal": True})
    w = resolve(with_values(said, {"tiling": {"splits": devices, "devices": devices}}))
    single = w.as_algorithm("flash2")
    work = ring_work(ring_of(single, devices, "contiguous", stays=True))
    program = tile_program(w)
    splits = sum(
        op.read_bytes + op.write_bytes
        for n in range(len(program))
        for op in program.ops(n)
        if not program.launches[program.visit(n).launch].combines
    )
    assert work.bytes.sum() == splits
    partials = program.counters(len(program) - 1).write
    assert work.sent.sum() == partials["O_partial"] + partials["LSE_partial"]


def test_the_output_of_a_decode_is_that_of_the_run():
    said = scenario(
        "split-kv", nq=2, nk=50, heads=4, kv_heads=2, d=8, cols=8, mask={"causal": True}
    )
    trace = trace_of(with_values(said, {"tiling": {"splits": 3, "devices": 5}}))
    single, inputs = trace.single_heads
    for layout in LAYOUTS:
        ring = ring_of(single, 5, layout, stays=True)
        for head in range(4):
            found = ring_numbers(ring, inputs, head)
            np.testing.assert_allclose(found.o[-1], trace.output[head], rtol=1e-5, atol=1e-6)


@pytest.mark.long
@given(LENGTHS, DEVICES, MASKS, st.sampled_from([1e-3, 50.0, 1e4]))
def test_a_device_sends_when_it_is_done(nk, devices, mask, gbps):
    _, ring = staying(3, nk, mask, devices, dtype="float16")
    found = ring_timeline(ring_work(ring), Link("test", gbps, "", ""), overlapped=True)
    assert not found.begins.any()
    np.testing.assert_array_equal(found.leaves, found.works)
    assert found.seconds == pytest.approx((found.works + found.sends).max())
    np.testing.assert_allclose(found.sends * gbps * GB, found.work.sent, rtol=1e-12)
