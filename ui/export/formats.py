"""The file formats of an export, one row each; the ending of the target chooses."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.base.errors import refuse


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes
    ----------
    ending : str
        How its files end; ``frames`` for a PNG sequence.
    title : str
        Words for a person.
    film : bool
        Whether it moves.
    transparent : bool
        Whether it can be without a ground.
    even : bool
        Whether width and height have to be even.
    most_fps : int
        Frames a second at most.
    codec : str
        The encoder that PyAV has to bring, empty for none.
    pages : bool
        Whether it can hold several pictures one after another that stand still.
    """

    ending: str
    title: str
    film: bool = True
    transparent: bool = False
    even: bool = False
    most_fps: int = 120
    codec: str = ""
    pages: bool = False


FORMATS = (
    Format(".mp4", "MP4 film (H.264)", even=True, codec="libx264"),
    Format(".webm", "WebM film (VP9)", even=True, codec="libvpx-vp9"),
    # Delays of a GIF are hundredths of a second, and browsers take 1 for 10.
    Format(".gif", "GIF", most_fps=50, codec="gif"),
    Format(".webp", "WebP, lossless", transparent=True, codec="libwebp"),
    Format(".apng", "Animated PNG", transparent=True),
    Format("frames", "PNG sequence", transparent=True),
    Format(".png", "PNG picture", film=False, transparent=True),
    Format(".svg", "SVG drawing", film=False, transparent=True),
    Format(".pdf", "PDF page", film=False, transparent=True, pages=True),
)
BY_ENDING = {spec.ending: spec for spec in FORMATS}
ENDINGS = tuple(ending for ending in BY_ENDING if ending != "frames")


def format_of(target: str) -> Format:
    """Return the format that a target names.

    Raises
    ------
    InputError
        Its ending is none of those known.
    """
    name = target.lower()
    if name.endswith(("/", "\\")) or (name.endswith(".png") and "%" in name):
        return BY_ENDING["frames"]
    for ending, spec in BY_ENDING.items():
        if name.endswith(ending) and ending != "frames":
            return spec
    wanted = f"a file that ends in {', '.join(ENDINGS)}, or a folder with / for single frames"
    raise refuse("export", "-o", target, wanted)
