"""What `make lint` would have noticed: mutants whose types do not fit."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from tests.mutants.changes import Mutant

_OTHER = ("redundant-expr", "truthy-bool", "unused-ignore", "redundant-cast", "unreachable")
"""Errors that are about how a mutant is written down (`x and False`), not about its types."""


def refused_by_types(mutant: Mutant) -> bool:
    """Return whether mypy, as the project runs it, finds an error in a mutant."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:
        file.write(mutant.source)
        file.flush()
        asked = [sys.executable, "-m", "mypy", "--cache-dir", "build/mutants/mypy"]
        for code in _OTHER:
            asked += ["--disable-error-code", code]
        path = str(mutant.path)
        ended = subprocess.run(
            [*asked, "--shadow-file", path, file.name, path], capture_output=True, check=False
        )
    if ended.returncode > 1:
        raise RuntimeError(f"mypy does not run: {ended.stderr.decode()}")
    return ended.returncode == 1
