"""The language model of assets/language beside PyTorch, and the run that trains it."""

from pathlib import Path

import numpy as np
import pytest

from simulator.language.shape import Shape

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

SMALL = Shape(vocabulary=400, width=32, layers=2, heads=4, kv_heads=2, dim=8, hidden=48, learned=64)


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Tokens of sources that are drawn at random, in lines."""
    from tests.training.train import MIX, NEWLINE

    rng, path = np.random.default_rng(0), tmp_path / "tokens.npz"
    drawn = {
        f"{part} {name}": np.where(rng.random(3000) < 0.1, NEWLINE, rng.integers(1, 400, 3000))
        for part in ("learned", "held")
        for name in MIX
    }
    np.savez(path, **{name: values.astype(np.uint16) for name, values in drawn.items()})
    return path


def test_a_resumed_run_equals_a_whole_one_bit_for_bit(tokens: Path, tmp_path: Path) -> None:
    from tests.training.train import Run, Schedule

    schedule = Schedule(steps=40, rows=4, stage=(10, 30), warm=5, frequent=(257, 390))
    whole, begun = (Run(tokens, schedule, SMALL) for _ in range(2))
    losses = [whole.advance() for _ in range(40)]
    for _ in range(20):
        begun.advance()
    begun.save(tmp_path / "step.pt")
    resumed = Run(tokens, schedule, SMALL)
    resumed.load(tmp_path / "step.pt")
    assert [resumed.advance() for _ in range(20)] == losses[20:]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name
    assert losses[-1] < losses[0]


def test_what_a_run_learns_is_decided_by_its_seed_alone(tokens: Path) -> None:
    from tests.training.train import Run, Schedule

    first, again, other = (
        Run(tokens, Schedule(rows=4, seed=seed, frequent=(257, 390)), SMALL) for seed in (1, 1, 2)
    )
    found = [[run.advance() for _ in range(3)] for run in (first, again, other)]
    assert found[0] == found[1] != found[2]
