"""What the pages say about a machine with a GPU can be installed there."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from kernels.checks.outcome import ROOT
from tests.helpers.process import python

PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", ROOT / "docs" / "gpu" / "REPORT.md"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
BROUGHT = {"numpy", "typing_extensions", "setuptools"}
"""What is there where CuPy and PyTorch are."""


def packages(extra: str) -> list[str]:
    """Return all that an extra installs, with the extras in it."""
    found = []
    for said in EXTRAS[extra]:
        inner = re.fullmatch(r"tilescope\[(.+)\]", said)
        found += packages(inner[1]) if inner else [said]
    return found


def recipes() -> list[list[str]]:
    """Return the extras of each command that sets up a machine with a GPU."""
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    told = [
        words.split() for words in re.findall(r"^\.ci/setup ([a-z0-9 -]+?)(?: +#.*)?$", text, re.M)
    ]
    return [extras for extras in told if any(extra.startswith("gpu-cuda") for extra in extras)]


def test_no_recipe_for_a_gpu_asks_for_a_build_without_cuda() -> None:
    assert recipes()
    for extras in recipes():
        wanted = [package for extra in extras for package in packages(extra)]
        assert not [each for each in wanted if "+cpu" in each and "!=" not in each], extras
        assert any(each.startswith("torch==") for each in wanted), extras


def test_both_builds_of_pytorch_are_of_the_same_release() -> None:
    pinned = {re.match(r"torch==([\d.]+)", each)[1] for extra in ("peers", "gpu-peers")
              for each in packages(extra) if each.startswith("torch")}  # type: ignore[index]  # fmt: skip
    assert len(pinned) == 1


@pytest.mark.skipif(sys.platform == "win32", reason=".ci/setup is a script for sh")
@pytest.mark.parametrize(
    ("extras", "status", "told"),
    [
        (["gpu-cuda13", "peers"], 3, r"kernels\.check wants the build with\s+CUDA, .*gpu-peers"),
        (["gpu-cuda13", "gpu-peers"], 1, r"finds no PyTorch with CUDA"),
    ],
)
def test_setup_says_which_build_it_could_not_find(
    tmp_path: Path, extras: list[str], status: int, told: str
) -> None:
    """With a pip that finds no PyTorch in the place of the real one."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "setup", tmp_path / ".ci")
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\ncase "$*" in *install*) echo "No matching distribution found for torch" >&2; '
        "exit 1 ;; esac\n",
        "utf-8",
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", ".ci/setup", *extras],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert re.search(told, done.stderr, re.DOTALL), done.stderr


def test_the_wheels_to_take_along_are_all_that_checks_import() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    command = re.search(r"pip download (?:.*\\\n)+.*", text)
    assert command
    taken = dict(re.findall(r"\b([a-z-]+)==([\d.]+)", command[0]))
    code = """
import sys, kernels.check, kernels.checks.apart, kernels.checks.case
files = {name: getattr(module, "__file__", "") for name, module in sys.modules.items()}
print(*{name.partition(".")[0] for name, file in files.items() if "site-packages" in (file or "")})
"""
    done = python("-c", code, check=True)
    owners = packages_distributions()
    used = {owner for name in done.stdout.split() for owner in owners.get(name, ())}
    named = {name.replace("_", "-") for name in used - BROUGHT}
    assert named == set(taken)
    pins = dict(re.findall(r"^([a-z-]+)==([\d.]+)", "\n".join(PROJECT["dependencies"]), re.M))
    pins["pydantic-core"] = re.search(
        r"pydantic-core==([\d.]+)", " ".join(requires("pydantic") or ())
    )[1]  # type: ignore[index]
    assert {name: taken[name] for name in taken if name in pins} == {
        n: pins[n] for n in taken if n in pins
    }
