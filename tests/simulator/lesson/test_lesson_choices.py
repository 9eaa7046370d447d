"""What a step chooses in panels."""

import pytest

from simulator.lesson.places import Framing
from simulator.lesson.reader import parse_lesson
from simulator.lesson.steps import Step


def test_choices_stay_until_another_is_made() -> None:
    text = (
        '+++\ntitle = "x"\n+++\n\n## A\n\n```toml step\nscenario = "flash2"\n'
        'choose = { model = "Llama-3-8B" }\n```\n'
        "\n## B\n\n```toml step\nchoose.tokens = 512\n```\n"
        '\n## C\n\n```toml step\nchoose = { model = "Falcon-7B", quantity = "entropy" }\n```\n'
    )
    found = [step.choices for step in parse_lesson(text).steps]
    assert [c.model for c in found] == ["Llama-3-8B", "Llama-3-8B", "Falcon-7B"]
    assert [c.tokens for c in found] == [None, 512, 512]
    assert [c.quantity for c in found] == [None, None, "entropy"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ('model = "Llama-9"', 'choose.model = "Llama-9": expected one of'),
        ("tokens = 0", "choose.tokens = 0: expected at least 1"),
        (f"tokens = {2**20 + 1}", f"choose.tokens = {2**20 + 1}: expected at most {2**20}"),
        ('quantity = "mean"', 'choose.quantity = "mean": expected'),
        ('jobs = "heads"', 'choose.jobs = "heads": expected'),
        ('ring = "bytes"', 'choose.ring = "bytes": expected "time" or "numbers"'),
        ('link = "NVLink-9"', 'choose.link = "NVLink-9": expected "NVLink-5", "NVLink-4", '),
        ("off = [1]", "choose.off = [1]: expected [layer, head], or [] for none"),
        ("off = [1, -2]", "choose.off"),
        ('off = "0 3"', "choose.off"),
        ("words = 3", "choose.words"),
    ],
)
def test_choices_that_no_panel_has_are_told(choice: str, expected: str) -> None:
    text = f'+++\ntitle = "x"\n+++\n\n## A\n\n```toml step\nchoose = {{ {choice} }}\n```\n'
    lesson = parse_lesson(text, "x.md")
    assert lesson.steps == ()
    assert str(lesson.mistakes[0]).startswith(f"x.md:8: {expected}")


def test_a_head_that_is_off_stays_off_until_it_is_on() -> None:
    steps = framed(
        'scenario = "induction"\nchoose = { jobs = "distances", off = [0, 3] }', "",
        "choose.off = []",
    )  # fmt: skip
    assert [step.choices.off for step in steps] == [(0, 3), (0, 3), ()]
    assert {step.choices.jobs for step in steps} == {"distances"}


def framed(*steps: str) -> list[Step]:
    text = '+++\ntitle = "x"\n+++\n' + "".join(
        f"\n## {n}\n\n```toml step\n{keys}\n```\n" for n, keys in enumerate(steps)
    )
    lesson = parse_lesson(text)
    assert [str(mistake) for mistake in lesson.mistakes] == []
    return list(lesson.steps)


def test_the_camera_stays_until_another_step_or_scenario_moves_it() -> None:
    steps = framed(
        'scenario = "flash2"\ncamera = { tile = [1, 2], tiles = 2 }', "", 'camera = "all"',
        "camera = { tile = [0, 0] }", 'scenario = "causal"',
    )  # fmt: skip
    near = Framing((1.5 * 4 - 4, 1.5 * 4 + 4), (2.5 * 3 - 3, 2.5 * 3 + 3))  # Br = 4, Bc = 3
    whole = Framing((0, 13), (0, 13))
    assert [step.camera for step in steps[:3]] == [near, near, whole]
    assert steps[3].camera.rows == (2 - 6, 2 + 6)
    assert steps[4].camera == Framing((0, 64), (0, 64))


def test_a_pace_is_of_one_step() -> None:
    assert [step.pace for step in framed('scenario = "flash2"\npace = 0.5', "")] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("pace = 0", "pace = 0: expected at least 0.1"),
        ("pace = 21", "pace = 21: expected at most 20"),
        ('camera = "near"', 'camera = "near": expected'),
        ("camera = {}", "camera"),
        ("camera = { tile = [0, 0], tiles = 0 }", "camera.tiles = 0: expected at least 1"),
        ("camera = { tile = [9, 0] }", "camera.tile = [9, 0]: expected a tile of 4 x 5"),
    ],
)
def test_pace_and_camera_that_cannot_be_are_told(keys: str, expected: str) -> None:
    text = f'+++\ntitle = "x"\n+++\n\n## A\n\n```toml step\nscenario = "flash2"\n{keys}\n```\n'
    lesson = parse_lesson(text, "x.md")
    assert lesson.steps == ()
    assert f": {expected}" in str(lesson.mistakes[0])


def test_tokens_are_from_one_to_a_million() -> None:
    for tokens in (1, 2**20):
        keys = f'scenario = "flash2"\nchoose.tokens = {tokens}'
        lesson = parse_lesson(f'+++\ntitle = "x"\n+++\n## A\n```toml step\n{keys}\n```\n')
        assert [step.choices.tokens for step in lesson.steps] == [tokens]
