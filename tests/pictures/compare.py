"""What differs between two folders of pictures and bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

SEEN = 8
"""Difference of a colour channel, 0 to 255, from which an eye may see it."""


def difference(before: Path, after: Path, sheet: Path) -> str:
    """Return how two pictures differ, "" if nobody sees it; draw them side by side if they do."""
    with Image.open(before) as one, Image.open(after) as other:
        old, new = one.convert("RGB"), other.convert("RGB")
    if old.size == new.size:
        far = np.abs(np.asarray(old, int) - np.asarray(new, int)).max(axis=2) > SEEN
        if not far.any():
            return ""
        ys, xs = np.nonzero(far)
        said = f"{far.mean():.3%} of pixels, x {xs.min()}-{xs.max()}, y {ys.min()}-{ys.max()}"
    else:
        said = f"size {old.size} became {new.size}"
    both = Image.new("RGB", (old.width + new.width + 8, max(old.height, new.height)), "red")
    both.paste(old, (0, 0))
    both.paste(new, (old.width + 8, 0))
    sheet.parent.mkdir(parents=True, exist_ok=True)
    both.save(sheet)
    return said


def compare(before: Path, after: Path) -> int:
    """Print what differs and return 1 if anything does."""
    names = {
        path.relative_to(folder) for folder in (before, after) for path in folder.rglob("*.png")
    }
    names = {name for name in names if name.parts[0] != "differences"}
    count = 0
    for name in sorted(names):
        if not ((before / name).exists() and (after / name).exists()):
            said = f"only {'before' if (before / name).exists() else 'after'}"
        else:
            said = difference(before / name, after / name, after / "differences" / name)
        if said:
            count += 1
            print(f"{name}: {said}")
    print(f"{count} of {len(names)} pictures differ")
    old, new = (
        json.loads(p.read_text()) if p.exists() else {}
        for p in (before / "bits/bits.json", after / "bits/bits.json")
    )
    wrong = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    print(f"{len(wrong)} of {len({*old, *new})} results differ: {' '.join(wrong)}")
    return int(bool(count or wrong))
