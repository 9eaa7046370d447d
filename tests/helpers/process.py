"""Python in a process of its own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def python(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, from the root of the checkout, and keep what it prints as text."""
    usual = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 600, "check": False}
    return subprocess.run([sys.executable, *map(str, arguments)], **usual | options)  # noqa: PLW1510
