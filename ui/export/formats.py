"""The file formats of an export, one row each; the ending of the target chooses."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.base.errors import refuse


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    ending: str  # ending of its files; ``frames`` for a PNG sequence
    title: str  # its name for users
    film: bool = True  # whether the picture moves
    transparent: bool = False  # whether there can be no background
    even: bool = False  # whether width and height have to be even
    most_fps: int = 120  # most frames a second
    codec: str = ""  # the encoder that PyAV must have; empty for none
    paper: bool = False  # whether a file can contain several still pictures
    sound: str = ""  # the encoder of its sound; empty if it has none
    steps: bool = False  # whether a reader steps through the file: op by op, or slide by slide
    slides: bool = False  # whether its steps are slides, which are fewer
    folder: bool = False  # whether the target is a folder with a page in it


FORMATS = (
    Format(".mp4", "MP4 film (H.264)", even=True, codec="libx264", sound="aac"),
    Format(".webm", "WebM film (VP9)", even=True, codec="libvpx-vp9", sound="libopus"),
    # Delays of a GIF are hundredths of a second, and browsers show 1 as 10.
    Format(".gif", "GIF", most_fps=50, codec="gif"),
    Format(".webp", "WebP, lossless", transparent=True, codec="libwebp"),
    Format(".apng", "Animated PNG", transparent=True),
    Format("frames", "PNG sequence", transparent=True),
    Format(".png", "PNG picture", film=False, transparent=True),
    Format(".svg", "SVG drawing", film=False, transparent=True),
    Format(".pdf", "PDF page", film=False, transparent=True, paper=True),
    Format(".html", "HTML page that steps", film=False, steps=True),
    Format(".pptx", "PowerPoint slides", film=False, steps=True, slides=True),
    Format(
        ".reveal", "Folder of slides (reveal.js)", film=False, steps=True, slides=True, folder=True
    ),
)
WITH_SOUND = tuple(spec.ending for spec in FORMATS if spec.sound)
BY_ENDING = {spec.ending: spec for spec in FORMATS}
ENDINGS = tuple(ending for ending in BY_ENDING if ending != "frames")


def format_of(target: str) -> Format:
    """Return the format of a target."""
    name = target.lower()
    if name.rstrip("/\\").endswith(".reveal"):
        return BY_ENDING[".reveal"]
    if name.endswith(("/", "\\")) or (name.endswith(".png") and "%" in name):
        return BY_ENDING["frames"]
    for ending, spec in BY_ENDING.items():
        if name.endswith(ending) and ending != "frames":
            return spec
    wanted = f"a file that ends in {', '.join(ENDINGS)}, or a folder with / for single frames"
    raise refuse("export", "-o", target, wanted)
