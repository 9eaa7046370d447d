"""Tiles in flight have the colours that they have in their matrix."""

import numpy as np

from simulator.base.assets import SCENARIOS
from simulator.run.motion import Motion
from simulator.run.trace import simulate
from ui.board.flights import tile_sheet
from ui.board.middle import middle_at
from ui.look.heat import colour_map, indices
from ui.look.theme import DARK, Style


def test_weights_fly_in_the_map_of_their_matrix() -> None:
    trace = simulate(SCENARIOS / "naive.toml")
    tried = 0
    for visit in range(len(trace.program)):
        for number, op in enumerate(trace.program.ops(visit)):
            pairs = [move for move in op.moves if move.tensor in ("S", "P")]
            if number == 0 or not op.stores or not pairs:
                continue
            motion = Motion(trace.snapshot(visit, number - 1), trace.snapshot(visit, number))
            for move in pairs:
                sheet = tile_sheet(move, motion, Style(DARK))
                values = motion.after.state[move.tensor]
                assert sheet is not None
                words = colour_map(DARK, move.tensor)
                low, high = middle_at(motion.after).value_range(motion.after, move.tensor)
                wanted = words[indices(np.float32(values), low, high)]
                height, width = values.shape
                found = [[sheet.image.pixel(x, y) for x in range(width)] for y in range(height)]
                np.testing.assert_array_equal(np.uint32(found), wanted)
                tried += 1
    assert tried > 20
