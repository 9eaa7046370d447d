"""Every format, opened by readers that know nothing of the writers."""

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import av
import numpy as np
import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from simulator.base.assets import SCENARIOS
from simulator.program.playback import Granularity
from simulator.run.trace import simulate
from tests.ui.export.helpers import (
    DEMO,
    ROOT,
    command,
    decoded,
    frames_of,
    make,
    names,
    options,
    picture,
    prepared,
    rendered_svg,
    still,
)
from ui.export.frames import new_image, paint_frame
from ui.export.options import SCENE_NAMES, THEME_NAMES, ExportOptions
from ui.export.writers.pixels import Changes, pixels_of

FILMS = (".mp4", ".webm", ".gif", ".webp", ".apng")


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Return a film in each format, the frames as PNG, and the source."""
    folder = tmp_path_factory.mktemp("films")
    for ending in FILMS:
        make(options(folder / f"film{ending}"))
    export = make(options(f"{folder}/frames/"))
    stills = [picture(folder / "frames" / name) for name in names(folder / "frames")]
    return folder, stills, export.source


def painted(source, k):
    """Return frame `k` as it is painted, BGRA."""
    image = paint_frame(source, k, new_image(source))
    return pixels_of(image).copy()


@pytest.mark.long
def test_single_frames_are_the_painted_pictures(films):
    _, stills, source = films
    assert len(stills) == len(source) == 12
    for k, still_k in enumerate(stills):
        assert np.array_equal(still_k, painted(source, k)[..., 2::-1])
    assert len({still_k.tobytes() for still_k in stills}) == 12


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [".mp4", ".webm"])
def test_frame_k_of_a_film_is_picture_k(films, ending):
    folder, stills, _ = films
    shown = decoded(folder / f"film{ending}")
    assert len(shown) == 12
    errors = np.array([[np.abs(a - b).mean() for b in stills] for a in shown])
    assert list(errors.argmin(axis=1)) == list(range(12))
    assert errors.diagonal().max() < 4  # colour is stored at half the resolution
    flat = np.s_[2:8, 2:300]  # ground: no edge is near, so the colour has to be right
    for a, b in zip(shown, stills, strict=True):
        assert np.abs(a[flat] - b[flat]).max() <= 4


@pytest.mark.parametrize("ending", [".webp", ".apng"])
def test_frame_k_of_a_lossless_animation_is_picture_k_exactly(films, ending):
    folder, stills, _ = films
    shown = frames_of(folder / f"film{ending}")
    assert len(shown) == 12
    for a, b in zip(shown, stills, strict=True):
        assert np.array_equal(a[..., :3], b)
        assert (a[..., 3] == 255).all()


def test_frame_k_of_a_gif_is_picture_k_in_256_colours(films):
    folder, stills, _ = films
    shown = frames_of(folder / "film.gif")
    assert len(shown) == 12
    for a, b in zip(shown, stills, strict=True):
        off = np.abs(a[..., :3] - b)
        assert off.mean() < 2
        assert (off.max(axis=2) > 70).mean() < 1e-3


def test_size_and_duration(films):
    folder, _, _ = films
    for ending in (".mp4", ".webm"):
        with av.open(folder / f"film{ending}") as box:
            stream = box.streams.video[0]
            assert (stream.width, stream.height, stream.average_rate) == (480, 320, 10)
            assert box.duration == 1_200_000
    for ending in (".gif", ".webp", ".apng"):
        with Image.open(folder / f"film{ending}") as image:
            assert image.size == (480, 320)
            total = 0
            for k in range(image.n_frames):
                image.seek(k)
                image.load()
                total += image.info["duration"]
            assert total == pytest.approx(1200)


@pytest.mark.sweep(keep=1)
@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe is not here")
@pytest.mark.parametrize("ending", [".mp4", ".webm", ".gif", ".apng"])
def test_ffprobe_counts_the_same(films, ending):
    folder, _, _ = films
    asked = ["ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json"]
    done = subprocess.run([*asked, folder / f"film{ending}"], capture_output=True, check=True)
    stream = json.loads(done.stdout)["streams"][0]
    assert (stream["width"], stream["height"]) == (480, 320)
    assert int(stream["nb_read_frames"]) == 12
    assert done.stderr == b""


@pytest.mark.long
def test_delays_of_whole_milliseconds_and_hundredths_add_up(tmp_path):
    for ending, slack in ((".gif", 10), (".webp", 1)):
        make(options(tmp_path / f"a{ending}", fps=30, length=0.7))
        with Image.open(tmp_path / f"a{ending}") as image:
            durations = []
            for k in range(image.n_frames):
                image.seek(k)
                image.load()
                durations.append(image.info["duration"])
        assert len(durations) == 21
        assert abs(sum(durations) - 700) <= slack
        assert max(durations) - min(durations) <= slack


@pytest.mark.long
@pytest.mark.parametrize("ending", FILMS)
def test_pictures_that_rest_are_frames_all_the_same(ending, tmp_path):
    wanted = options(tmp_path / f"a{ending}", visits=(3, 4), length=None, pace=2.0)
    export = make(wanted)
    keys = [export.source.key(k) for k in range(len(export.source))]
    assert len(set(keys)) < len(keys)  # or nothing rests
    if ending in (".mp4", ".webm"):
        assert len(decoded(tmp_path / f"a{ending}")) == len(keys)
    else:
        assert len(frames_of(tmp_path / f"a{ending}")) == len(keys)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [".gif", ".webp", ".apng"])
def test_a_film_in_which_nothing_moves_lasts_as_long_as_any(ending, tmp_path):
    make(options(tmp_path / f"a{ending}", visits=(0, 1), by=Granularity.TILE))
    shown = frames_of(tmp_path / f"a{ending}")
    assert len(shown) == 12
    assert len({frame.tobytes() for frame in shown}) == 1
    with Image.open(tmp_path / f"a{ending}") as image:
        lasts = 0.0
        for k in range(image.n_frames):
            image.seek(k)
            image.load()
            lasts += image.info["duration"]
    assert lasts == pytest.approx(1200)


@pytest.mark.long
def test_equal_keys_are_equal_pictures(qapp):
    source = prepared(options("a.mp4", visits=(3, 5), length=None, pace=0.4)).source
    seen = {}
    for k in range(len(source)):
        pixels = painted(source, k).tobytes()
        assert seen.setdefault(source.key(k), pixels) == pixels
    assert len(set(seen.values())) > 8


@pytest.mark.long
@pytest.mark.parametrize("ending", [*FILMS, ".png", ".svg"])
def test_two_exports_are_the_same(ending, tmp_path):
    target, files = tmp_path / f"a{ending}", []
    for _ in range(2):
        make((still if ending in (".png", ".svg") else options)(target))
        files.append(target.read_bytes())
        target.rename(tmp_path / f"{len(files)}{ending}")
    if ending == ".webm":  # the container draws a number at random
        pair = [decoded(tmp_path / f"{n}.webm") for n in (1, 2)]
        assert all(np.array_equal(a, b) for a, b in zip(*pair, strict=True))
    else:
        assert files[0] == files[1]


WRITE = """
import hashlib, io, sys
import numpy as np
from PySide6.QtGui import QImage
from ui.export.writers.video import VideoWriter
random, out = np.random.default_rng(0), io.BytesIO()
shapes = random.integers(0, 256, (80, 120, 4), dtype=np.uint8).repeat(4, 0).repeat(4, 1)
writer = VideoWriter(out, ".mp4", (480, 320), 10, "")
for k in range(24):
    pixels = shapes.copy()
    pixels[:160] = np.roll(shapes[:160], k, 1)
    writer.add(writer.prepare(QImage(pixels, 480, 320, QImage.Format.Format_RGB32)))
writer.close()
print(hashlib.sha256(out.getvalue()).hexdigest())
"""
"""A writer alone: what it writes depends on its pictures, its options and nothing else."""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone can fill memory")
def test_an_mp4_does_not_depend_on_what_was_in_memory_before():
    told = {
        subprocess.run(
            [sys.executable, "-c", WRITE], capture_output=True, check=True, cwd=ROOT,
            env={**os.environ, "MALLOC_PERTURB_": str(byte)},
        ).stdout
        for byte in (0, 1, 85, 170)
    }  # fmt: skip
    assert len(told) == 1


@given(
    st.integers(2, 9), st.integers(2, 9), st.booleans(), st.integers(1, 6),
    st.integers(0, 2**32 - 1), st.floats(0, 1),
)  # fmt: skip
def test_patches_laid_over_one_another_are_the_pictures(width, height, opaque, count, seed, share):
    draw = np.random.default_rng(seed)
    picture_now = draw.integers(0, 256, (height, width, 4), dtype=np.uint8)
    changes, shown = Changes(opaque), np.zeros((height, width, 4), np.uint8)
    for n in range(count):
        if n:
            off = draw.random((height, width)) < share
            picture_now = picture_now.copy()
            picture_now[off, :3] = draw.integers(0, 256, (off.sum(), 3), dtype=np.uint8)
        patch = changes.patch(picture_now)
        assert patch.x % 2 == patch.y % 2 == 0
        rows, cols = patch.pixels.shape[:2]
        part = shown[patch.y : patch.y + rows, patch.x : patch.x + cols]
        before = part.copy()
        if opaque:
            laid = patch.pixels[..., 3:] > 0
            assert np.isin(patch.pixels[..., 3], (0, 255)).all()
            part[:] = np.where(laid, patch.pixels, part)
            same = (before[..., :3] == part[..., :3]).all(axis=2)
            if n and rows * cols > 1:  # what is the same is transparent, and packs well
                assert not laid[same].any()
        else:
            part[:] = patch.pixels
        channels = 3 if opaque else 4
        assert np.array_equal(shown[..., :channels], picture_now[..., :channels])


# --- transparent -----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("ending", [".webp", ".apng", ".png"])
@pytest.mark.parametrize("scene", ["scene", "board"])
def test_a_transparent_export_lies_on_any_ground(ending, scene, tmp_path):
    wanted = still if ending == ".png" else options
    export = make(wanted(tmp_path / f"a{ending}", transparent=True, scene=scene))
    for k, shown in enumerate(frames_of(tmp_path / f"a{ending}")):
        exact = painted(export.source, k)[..., [2, 1, 0, 3]]
        seen = exact[..., 3:] > 0
        assert np.array_equal(shown[..., 3], exact[..., 3])
        assert np.array_equal(shown[..., :3] * seen, exact[..., :3] * seen)
        assert 0.05 < (exact[..., 3] == 0).mean() < 0.95
        assert exact[2, 2, 3] == 0


@pytest.mark.long
def test_vectors_are_transparent_when_asked(tmp_path, qapp):
    for transparent in (False, True):
        make(still(tmp_path / "a.svg", transparent=transparent))
        image = rendered_svg(tmp_path / "a.svg")
        assert (image.pixelColor(2, 2).alpha() == 0) is transparent


# --- drawings --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ["causal", "window-sinks", "real-scale"])
def test_an_svg_looks_like_the_png(name, tmp_path, qapp):
    trace, size = simulate(SCENARIOS / f"{name}.toml"), (960, 640)
    for ending in (".png", ".svg"):
        make(still(tmp_path / f"a{ending}", visits=(5, 6), size=size), trace)
    drawn = rendered_svg(tmp_path / "a.svg", size)
    drawn = pixels_of(drawn)[..., 2::-1].astype(int)
    exact = picture(tmp_path / "a.png")
    off = np.abs(drawn - exact).max(axis=2)
    assert off.mean() < 6
    # Lines that are half a pixel off differ; a missing part would be far more.
    assert (off > 80).mean() < 0.02
    text = (tmp_path / "a.svg").read_text()
    assert "<text" not in text  # outlines: fonts differ from machine to machine
    assert 'aria-label="store O' in text


def test_lines_between_tiles_are_not_clipped_away(tmp_path):
    """Qt's SVG keeps an inner clip that is over, unless it is told the outer one again."""
    make(still(tmp_path / "a.svg", visits=(5, 6), size=(960, 640)))
    tree = ElementTree.parse(tmp_path / "a.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    clips = {
        f"url(#{clip.attrib['id']})": numbers(clip.find(f"{space}path").attrib["d"])
        for clip in tree.iter(f"{space}clipPath")
    }
    seen = 0
    for group in tree.iter(f"{space}g"):
        if "clip-path" not in group.attrib:
            continue
        x, y = clips[group.attrib["clip-path"]].T
        for line in group.iter(f"{space}polyline"):
            across, down = numbers(line.attrib["points"]).T
            seen += np.ptp(across) > 200
            assert x.min() - 1 <= across.min() <= across.max() <= x.max() + 1
            assert y.min() - 1 <= down.min() <= down.max() <= y.max() + 1
    assert seen >= 3  # the grid's


def numbers(text: str) -> np.ndarray:
    return np.array(re.findall(r"-?[\d.]+", text), dtype=float).reshape(-1, 2)


def test_a_pdf_is_one_page_of_that_size_with_our_fonts(tmp_path):
    make(still(tmp_path / "a.pdf", size=(960, 640)))
    reader = pypdf.PdfReader(tmp_path / "a.pdf")
    assert len(reader.pages) == 1
    page = reader.pages[0]
    assert (float(page.mediabox.width), float(page.mediabox.height)) == (480, 320)
    fonts = {str(font["/BaseFont"]) for font in page["/Resources"]["/Font"].get_object().values()
             for font in [font.get_object()]}  # fmt: skip
    assert any("Inter" in font for font in fonts)
    assert "NumPy" in page.extract_text()


# --- the command and the window --------------------------------------------------------------


@pytest.mark.long
def test_the_command_makes_what_the_job_makes(tmp_path):
    target = tmp_path / "a.png"
    done = command("-o", str(target), "--size", "480x320", "--visits", "4", "--op", "2",
                   "--row", "33", "--theme", "light")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "visit 4, op 2" in done.stdout
    wanted = still(tmp_path / "b.png", visits=(4, 5), op=2, row=33, theme="light")
    make(wanted)
    assert np.array_equal(picture(target), picture(tmp_path / "b.png"))


@pytest.mark.long
def test_the_command_says_frames_and_seconds(tmp_path):
    done = command("-o", f"{tmp_path}/f-%02d.png", "--size", "480x320", "--length", "0.3")
    assert done.returncode == 0, done.stderr
    assert "9 frames, 0.3 s at 30 fps" in done.stdout
    assert names(tmp_path) == [f"f-{k:02d}.png" for k in range(9)]
    assert done.stderr == ""


@pytest.mark.long
def test_a_fault_is_named_in_every_scene(tmp_path):
    faulty = tmp_path / "faulty.toml"
    faulty.write_text(DEMO.read_text() + "\n[faults]\nforget_alpha = true\n")
    for scene in ("scene", "board"):
        make(still(tmp_path / "a.svg", scene=scene, size=(960, 640)), simulate(faulty))
        assert 'aria-label="FAULT' in (tmp_path / "a.svg").read_text()


@given(
    target=st.sampled_from(["a b.gif", "x.png", "f/"]), scene=st.sampled_from(SCENE_NAMES),
    size=st.tuples(st.integers(320, 7680), st.integers(240, 4320)),
    theme=st.sampled_from(THEME_NAMES),
    by=st.sampled_from([None, Granularity.OP, Granularity.TILE]),
    visits=st.none() | st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)),
    pace=st.none() | st.floats(0.1, 9), fps=st.integers(1, 50), row=st.none() | st.integers(0, 9),
    transparent=st.booleans(),
)  # fmt: skip
def test_a_command_asks_for_the_options_that_it_was_made_of(**values):
    from ui.app.cli import _command_parser

    wanted = ExportOptions(**values)
    if not wanted.format.film:
        wanted = dataclasses.replace(wanted, fps=30)
    words = _command_parser("export").parse_args(shlex.split(wanted.command("demo.toml"))[4:])
    assert ExportOptions.asked(words, lesson=False) == wanted
