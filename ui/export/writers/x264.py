"""The options of x264, so that the same pictures always make the same file.

x264's code for AVX-512 reads memory that nobody has written (core 165, in the macroblock tree):
the file depends on old contents there, as glibc's ``MALLOC_PERTURB_`` shows, even in one thread.
With the code for AVX2 files are as large, and encoding takes a tenth more; without the macroblock
tree files would be up to 1.4 times as large.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def x264_options() -> dict[str, str]:
    """Return the options of FFmpeg's libx264.

    x264 uses the named instructions without asking the processor, so AVX2 is named only where NumPy
    has found X86_V3, which includes it: a processor without AVX2 has no AVX-512 either.
    """
    told: Any = np.show_config(mode="dicts")
    level = {"x264-params": "asm=AVX2"} if "X86_V3" in told["SIMD Extensions"]["found"] else {}
    return {"preset": "veryfast", "crf": "20", **level}
