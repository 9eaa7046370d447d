"""What a step chooses in panels."""

import pytest

from simulator.lesson.reader import parse_lesson


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
        ("words = 3", "choose.words"),
    ],
)
def test_choices_that_no_panel_has_are_told(choice: str, expected: str) -> None:
    text = f'+++\ntitle = "x"\n+++\n\n## A\n\n```toml step\nchoose = {{ {choice} }}\n```\n'
    lesson = parse_lesson(text, "x.md")
    assert lesson.steps == ()
    assert str(lesson.mistakes[0]).startswith(f"x.md:8: {expected}")


def test_tokens_are_from_one_to_a_million() -> None:
    for tokens in (1, 2**20):
        keys = f'scenario = "flash2"\nchoose.tokens = {tokens}'
        lesson = parse_lesson(f'+++\ntitle = "x"\n+++\n## A\n```toml step\n{keys}\n```\n')
        assert [step.choices.tokens for step in lesson.steps] == [tokens]
