"""`capture`: docs/capture, started as a command of Tilescope."""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path

from simulator.base.errors import refuse

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "capture" / "__main__.py"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub")
    parser.add_argument(
        "layers", metavar="LAYERS",
        help="a number from 0, a list as 0,3-5, or all; or with the name of a stack, encoder.N",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT.safetensors", help="of more layers OUT-N.safetensors")
    parser.add_argument("text", metavar="TEXT", nargs="?", default="", help="what the model reads")
    parser.add_argument(
        "decoder", metavar="DECODER_TEXT", nargs="?", default="", help="what its decoder reads"
    )
    parser.add_argument("--image", metavar="FILE", help="what a model of pictures is given")
    parser.add_argument("--audio", metavar="FILE", help="what a model of sound is given")
    parser.add_argument("--weights", action="store_true", help="record x and the layer's weights")


def run(options: argparse.Namespace) -> int:
    """Record Q, K and V of layers of a Hugging Face model in files that Tilescope opens.

    Raises InputError: there is no script, because this is the desktop binary.
    """
    if not SCRIPT.is_file():
        expected = 'another copy than the binary: pip install "tilescope[capture]", or a checkout'
        raise refuse("capture", "", "", expected)
    words = [options.model, options.layers, options.out, options.text, options.decoder]
    for name in ("image", "audio"):
        if getattr(options, name) is not None:
            words += [f"--{name}", getattr(options, name)]
    words += ["--weights"] if options.weights else []
    code: int = runpy.run_path(str(SCRIPT))["main"](words)
    return code
