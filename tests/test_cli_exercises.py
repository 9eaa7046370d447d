"""`python -m ui exercises`: what it prints, checks, writes and refuses."""

import json

import pytest

from simulator.exercises.made import exercises_of
from ui.app.cli import main
from ui.look.lesson_text import FORMATS

LESSON = "online-softmax"


def answers(tmp_path, text: str):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def solved() -> dict[str, str]:
    """Return the answers that the program prints, by name."""
    return {each.name: each.answer_text for each in exercises_of(LESSON, 4, FORMATS)}


def test_the_same_seed_asks_the_same_and_another_seed_something_else(capsys):
    told = []
    for seed in ("4", "4", "5"):
        assert main(["exercises", LESSON, "--seed", seed]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] != told[2]
    assert told[0].isascii()
    assert "[answers]" in told[0]
    assert main(["exercises", LESSON, "--seed", "4", "--solutions"]) == 0
    solutions = capsys.readouterr().out
    assert "return alpha * l + P.sum(axis=1)" in solutions
    assert "[answers]" not in solutions


def test_right_answers_end_with_0_and_wrong_ones_with_1_and_a_result(tmp_path, capsys):
    right = "".join(f"{name} = '''{text}'''\n" for name, text in solved().items())
    head = f'lesson = "{LESSON}"\nseed = 4\nstudent = "Ada"\n[answers]\n'
    result = tmp_path / "result.json"
    path = answers(tmp_path, head + right)
    assert main(["exercises", "--answers", str(path), "--json", str(result)]) == 0
    found = json.loads(result.read_text(encoding="utf-8"))
    assert found["right"] == found["of"] == len(solved())
    assert (found["format"], found["student"], found["seed"]) == (1, "Ada", 4)
    path = answers(tmp_path, head + "alpha = -7\n")
    assert main(["exercises", "--answers", str(path), "--json", str(result)]) == 1
    found = json.loads(result.read_text(encoding="utf-8"))
    assert found["right"] == 0
    first, second = found["exercises"][:2]
    assert (first["given"], first["right"], first["says"]) == (-7, False, "Too small.")
    assert (second["answered"], second["given"]) == (False, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[answers]\nalpha = "many"', "answers: alpha"),
        ("[answers]\nnone = 1", "answers.none"),
        ('lesson = "kv-cache"', "lesson"),
        ("seed = 3", "seed"),
        ("seed = true", "seed"),
        ('[answers]\nrow-sum = "away.py"', "answers.row-sum"),
        ("what = 1", "one of lesson, seed, student, answers"),
    ],
)
def test_answers_that_cannot_be_used_are_told_in_one_line(tmp_path, capsys, text, words):
    path = answers(tmp_path, text)
    asked = ["exercises", LESSON, "--seed", "4", "--answers", str(path)]
    assert main([*asked, "--json", str(tmp_path / "r.json")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert words.split(": ")[-1] in told
    assert str(path) in told
    assert not (tmp_path / "r.json").exists()


def test_a_lesson_that_is_not_there_is_refused(capsys):
    assert main(["exercises", "nothing"]) == 2
    assert "one of" in capsys.readouterr().err
    assert main(["exercises", LESSON, "--json", "r.json"]) == 2
