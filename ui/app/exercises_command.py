"""`exercises`: prints a lesson's exercises, or checks a file of answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill

from simulator.base.errors import refuse, safe_text
from simulator.base.files import check_target
from simulator.exercises.check import load_answers, printed, results, write_results
from simulator.exercises.made import Exercise, exercises_of
from ui.look.lesson_text import FORMATS

WIDE = 92
_PLAIN = str.maketrans({
    "ℓ": "l", "α": "alpha", "√": "sqrt ", "−": "-", "×": "x", "·": "*", "∞": "inf", "“": '"',
    "”": '"', "’": "'", "–": "-", "→": "->", "\u00a0": " ", "\u2009": " ",
})  # fmt: skip
"""Letters that some terminals lack."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("lesson", nargs="?", help="a lesson of Tilescope, by its name")
    parser.add_argument("--seed", type=int, metavar="N", help="what draws the numbers (0)")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="answers (.toml) to check")
    parser.add_argument("--json", type=Path, metavar="RESULT", help="write what is right here")
    parser.add_argument("--solutions", action="store_true", help="print the answers, too")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Print the exercises of a lesson, with numbers drawn from a seed, or check answers.

    Raises InputError: there is no such lesson, or the answers cannot be used.
    """
    if options.child:  # of the packaged program: it runs a student's function
        from simulator.exercises.child import main

        main()
        return 0
    answers = load_answers(options.answers) if options.answers else None
    if answers is None and options.json:
        raise refuse("exercises", "--json", str(options.json), "--answers beside it")
    if options.json:
        check_target("exercises", options.json, (".json",), [options.answers])
    lesson = options.lesson or (answers.lesson if answers else "")
    if not lesson:
        raise refuse("exercises", "", "", "the name of a lesson, as in python -m ui lessons")
    seed = options.seed
    if answers is not None:
        if answers.lesson and options.lesson and not _same(answers.lesson, options.lesson):
            raise refuse(str(answers.path), "lesson", answers.lesson, f"{options.lesson}, as asked")
        if answers.seed is not None and seed is not None and answers.seed != seed:
            raise refuse(str(answers.path), "seed", answers.seed, f"{seed}, as asked")
        seed = answers.seed if seed is None else seed
    exercises = exercises_of(lesson, seed or 0, FORMATS)
    if answers is None:
        _print_all(exercises, seed or 0, options.solutions)
        return 0
    judged, found = results(exercises, answers)
    for number, (exercise, verdict) in enumerate(judged, start=1):
        word = "not answered" if verdict is None else "right" if verdict.right else "wrong"
        says = verdict.says if verdict is not None else ""
        _say(f"{number}. {exercise.name}: {word}. {says}".strip())
        if options.solutions and (verdict is None or not verdict.right):
            _say_answer(exercise)
    print(f"{found['right']} of {found['of']} right")
    if options.json:
        write_results(options.json, found)
        print(f"written {safe_text(str(options.json))}")
    return 0 if found["right"] == found["of"] else 1


def _same(one: str, other: str) -> bool:
    return one.lstrip("0123456789-") == other.lstrip("0123456789-")


def _print_all(exercises: tuple[Exercise, ...], seed: int, solutions: bool) -> None:
    for number, exercise in enumerate(exercises, start=1):
        for line in printed(exercise, number).splitlines():
            _say(line)
        if solutions:
            _say_answer(exercise)
        print()
    if not exercises:
        print("This lesson has no exercises.")
        return
    if not solutions:
        print("Answers go into a file such as this (docs/exercises.md):\n")
        print(f'lesson = "{exercises[0].lesson}"\nseed = {seed}\nstudent = ""\n\n[answers]')
        for exercise in exercises:
            print(f'{exercise.name} = ""')


def _say_answer(exercise: Exercise) -> None:
    for n, line in enumerate(exercise.answer_text.splitlines()):
        _say(f"   {'      ' if n else 'answer'} {line}", wrapped=False)


def _say(line: str, *, wrapped: bool = True) -> None:
    text = plain(line)
    inner = " " * (len(text) - len(text.lstrip()) + 3)
    print(fill(text, WIDE, subsequent_indent=inner) if wrapped else text)


def plain(text: str) -> str:
    """Return a text in letters that any terminal has."""
    return safe_text(text.replace("$", "").translate(_PLAIN))
