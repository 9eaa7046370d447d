"""Colours of code: which parts have one, and that a view waits for no lexer."""

import subprocess
import sys
from pathlib import Path

import pytest

from ui.look.highlight import Span, spans

ROOT = Path(__file__).resolve().parents[3]
_A_VIEW = """
import sys
from ui.look.theme import DARK, Style
from ui.panels.code.view import CodeView
from ui.widgets.application import application
app = application()
for language in ("python", "cuda"):
    CodeView("some code", language).set_style(Style(DARK))
print([name for name in sys.modules if name.startswith("pygments.lexers.")])
"""


def test_comments_keywords_and_tensors_have_colours() -> None:
    found = spans("python", 'for x in y:  # why\n    chip["O"] = alpha')
    assert found[0][0] == Span(0, 3, "keyword")
    assert found[0][-1] == Span(13, 5, "comment")
    assert [span.kind for span in found[1]] == ["O"]
    assert spans("cuda", "float l;")[0][-1] == Span(6, 1, "l")


@pytest.mark.long
def test_a_view_without_a_text_makes_no_lexer() -> None:
    """A tenth of a second, in which a window would stand still when its layout first has code."""
    said = subprocess.run(
        [sys.executable, "-c", _A_VIEW], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"
