"""Finds a C++ compiler, which makes shared libraries of kernels."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from kernels.build.cache import cache_folder, kept
from kernels.errors import KernelError

HERE = Path(__file__).parent
SHIM, RUNTIME, WATCH = HERE / "cuda_on_cpu.h", HERE / "runtime.cpp", HERE / "watch.cpp"
HEADERS = (SHIM, HERE / "mma_on_cpu.h")

FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-pthread",
    "-fvisibility=hidden",
    # Fast and trace builds must agree to the last bit: no product is joined to a sum unless the
    # source says so.
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",
)
WATCHED = ("-DHOST_WATCH", "-gdwarf-4")
"""The options of a module that is watched, beside ``-fsanitize=thread`` for the kernel alone: if
the module were linked with that option, the compiler's own library would take the calls that
watch.cpp answers. addr2line mistakes the names of files in newer debug information."""
SECONDS = 300  # seconds after which a compiler is stopped
_LINE = 300  # most letters of the line that says why a compiler refuses a kernel


@dataclass(frozen=True, slots=True)
class Compiler:
    """The C++ compiler that the host engine uses."""

    command: str  # path of the compiler; empty when there is none
    version: str  # first line of the compiler's ``--version``
    reason: str  # why there is none, in words a user can act on; empty when there is one

    @property
    def available(self) -> bool:
        """Whether kernels can be compiled for the CPU."""
        return not self.reason

    @property
    def word(self) -> str:
        """The compiler's short name, such as ``g++``."""
        return Path(self.command).name

    @property
    def flags(self) -> tuple[str, ...]:
        """The options of every compilation."""
        flags = (*FLAGS, "-mfma") if _has_fma() else FLAGS
        # g++ would check at each access whether an extern thread_local has a constructor.
        return flags if "clang" in self.version else (*flags, "-fno-extern-tls-init")


@cache
def _has_fma() -> bool:
    """Whether an option makes `fmaf` one instruction: on all but old processors and Intel Macs."""
    try:
        return " fma " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


@cache
def find_compiler() -> Compiler:
    """Return the compiler named by ``$CXX``, else g++, else clang++."""
    if sys.platform == "win32":
        return Compiler("", "", "the host engine needs Linux or macOS")
    wanted = os.environ.get("CXX", "")
    for name in [wanted] if wanted else ["g++", "clang++"]:
        path = shutil.which(name)
        if path is None:
            continue
        asked = subprocess.run(
            [path, "--version"],
            capture_output=True, text=True, timeout=SECONDS, check=False, env=_environment(),
        )  # fmt: skip
        if asked.returncode == 0:
            return Compiler(path, asked.stdout.partition("\n")[0], "")
    if wanted:
        return Compiler("", "", f"the C++ compiler that CXX names does not run: {wanted}")
    return Compiler("", "", "no C++ compiler: neither g++ nor clang++ is installed")


def shared_library(
    source: str, options: tuple[str, ...], *, again: bool = False, watch: bool = False
) -> Path:
    """Return the shared library of a translation unit, made now if the cache lacks it.

    options: definitions, ``-DNAME=value``.
    watch: whether watch.cpp sees what the kernels read and write.
    Raises KernelError: there is no compiler, or it refuses the source; the message has the
        compiler's own words.
    """
    compiler = _compiler()
    flags = WATCHED if watch else ()
    parts = [_part(path, flags) for path in ((RUNTIME, WATCH) if watch else (RUNTIME,))]
    stems = [part.stem for part in parts]
    key = _key(source, options, compiler.flags, flags, compiler.version, stems, _headers())

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            unit = Path(folder) / "kernel.cpp"
            unit.write_text(source, encoding="utf-8")
            front = ["-include", str(SHIM), *options, *flags]
            if watch:
                kernel = Path(folder) / "kernel.o"
                _compile([*front, "-fsanitize=thread", "-c", str(unit)], kernel)
                _compile(["-shared", str(kernel), *map(str, parts)], target)
            else:
                _compile(["-shared", *front, str(unit), *map(str, parts)], target)

    return kept(f"{key}.so", make, again=again)


def preprocessed(source: str, options: tuple[str, ...]) -> str:
    """Return a translation unit with all macros replaced."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        unit, target = Path(folder) / "kernel.cpp", Path(folder) / "kernel.ii"
        unit.write_text(source, encoding="utf-8")
        _compile(["-E", "-P", "-include", str(SHIM), *options, str(unit)], target)
        return target.read_text(encoding="utf-8")


def _part(path: Path, flags: tuple[str, ...]) -> Path:
    """Return a source of the shim as an object file."""
    compiler = _compiler()
    key = _key(path.read_text(), _headers(), compiler.flags, flags, compiler.version)
    make = partial(_compile, ["-c", *flags, str(path)])
    return kept(f"{path.stem}-{key}.o", make)


def _headers() -> str:
    """Return the text of the shim's headers."""
    return "".join(header.read_text(encoding="utf-8") for header in HEADERS)


def _compiler() -> Compiler:
    compiler = find_compiler()
    if not compiler.available:
        raise KernelError(compiler.reason)
    return compiler


def _key(*parts: object) -> str:
    return hashlib.sha256(repr((sys.platform, os.uname().machine, parts)).encode()).hexdigest()[:24]


def _environment() -> dict[str, str]:
    """Return the user's environment, without a bundle's libraries, with messages in English."""
    found = {"PATH": os.defpath, **os.environ, "LC_ALL": "C"}
    if getattr(sys, "frozen", False):
        users = found.pop("LD_LIBRARY_PATH_ORIG", "")
        found.pop("LD_LIBRARY_PATH", None)
        found |= {"LD_LIBRARY_PATH": users} if users else {}
    return found


def _compile(arguments: list[str], target: Path) -> None:
    compiler = _compiler()
    command = [compiler.command, *compiler.flags, *arguments, "-o", str(target)]
    try:
        done = subprocess.run(
            command,
            capture_output=True, text=True, timeout=SECONDS, check=False, cwd=HERE,
            env=_environment(),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{compiler.word} did not finish: {error}") from error
    if done.returncode:
        said = done.stderr.strip()
        errors = [line for line in said.splitlines() if "error" in line.lower()]
        why = (errors or said.splitlines() or [f"status {done.returncode}"])[0].strip()[:_LINE]
        raise KernelError(f"{compiler.word} refuses the kernel: {why}\n{said[:4000]}")
