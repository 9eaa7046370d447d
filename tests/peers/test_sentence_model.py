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


def test_what_numpy_computes_is_what_pytorch_does() -> None:
    from simulator.language.model import LanguageModel
    from simulator.language.tokenizer import Tokenizer
    from tests.training.model import Model

    torch.manual_seed(0)
    twin = Model(SMALL).eval()
    weights = {name: value.detach().numpy() for name, value in twin.named_parameters()}
    own = LanguageModel(SMALL, weights, Tokenizer(()))
    tokens, kept = [0, *range(30, 79)], []
    with torch.no_grad():
        logits = twin(torch.tensor([tokens]), kept)[0].numpy()
    found = own.run(tokens)
    assert np.abs(found.logits - logits).max() < 1e-4
    for layer, of_layer in enumerate(kept):
        for ours, theirs in zip((found.q, found.k, found.v), of_layer, strict=True):
            np.testing.assert_allclose(ours[layer], theirs[0].numpy(), atol=1e-4)


def test_tokens_are_those_of_the_tokenizers_library() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    from simulator.language.tokenizer import WORDS, Tokenizer
    from tests.training.templates import documents
    from tests.training.tokens import learn, lines

    assert tokenizers.Regex(WORDS)
    texts = [lines(text) for text in documents(count=300)]
    library, merges = learn(texts, 900)
    own, rng = Tokenizer(merges), np.random.default_rng(0)
    letters = list("theaoinsr THE  'll've's 0123,.!?-\n\t\"\u00e9\u00fc\u4e2d\U0001f600\u0301")
    odd = ["".join(rng.choice(letters, 60)) for _ in range(300)]
    for text in [*texts[:100], *(" " + each for each in odd)]:
        assert own.encode(text)[1:] == library.encode(text).ids, text


def test_the_model_that_ships_computes_what_pytorch_does() -> None:
    from simulator.language.models import MODELS, WEIGHTS, opened
    from tests.training.model import Model

    if not WEIGHTS.exists():
        pytest.skip("make sentence-model trains it")
    from safetensors.numpy import load_file

    own, stored = opened(MODELS["own"]), load_file(WEIGHTS)
    twin = Model(own.shape).eval()
    twin.load_state_dict({n: torch.from_numpy(v.astype(np.float32)) for n, v in stored.items()})
    tokens = own.tokenizer.encode("The cat sat on the mat because it was tired. " * 6)[:64]
    with torch.no_grad():
        logits = twin(torch.tensor([tokens]))[0].numpy()
    assert np.abs(own.run(tokens).logits - logits).max() <= 1e-4
