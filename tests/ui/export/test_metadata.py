"""What an export says about itself, read back from every format."""

import shlex
import shutil
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pypdf
import pytest
from PIL import Image

from simulator.base.assets import CAPTURES, SCENARIOS
from simulator.base.errors import InputError
from simulator.lesson.link import ViewLink, read_link
from simulator.problem.scenario import load_scenario, parse_scenario
from simulator.run.trace import simulate
from tests.ui.export.helpers import make, options, still
from ui.export.formats import ENDINGS, format_of
from ui.export.options import ExportOptions
from ui.export.writers.metadata import READS, note_of, read_note, read_scenario

TITLE = 'A "title" with <&> ]]> – ℓ, \u202f…'


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Path:
    """Return a scenario whose title is hard to write down."""
    path = tmp_path_factory.mktemp("odd") / "an odd & long name.toml"
    text = (SCENARIOS / "window-sinks.toml").read_text()
    first = next(line for line in text.splitlines() if line.startswith("title"))
    path.write_text(text.replace(first, f"title = '{TITLE}'"))
    return path


def part(target: Path, visits: tuple[int, int] = (0, 1)) -> ExportOptions:
    """Return the options of a small export."""
    return (options if format_of(str(target)).film else still)(target, visits=visits)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending in READS])
def test_the_scenario_comes_back(ending, odd, tmp_path):
    target = tmp_path / f"an export{ending}"
    wanted = part(target, visits=(1, 4))
    export = make(wanted, simulate(odd))
    scenario = read_scenario(target)
    assert scenario == load_scenario(odd)
    assert scenario.title == TITLE
    note = read_note(target)
    assert note == export.note
    assert note.version == "0.1.0"
    view = read_link(note.link)
    assert view.scenario == scenario
    whole = wanted.format.film or wanted.format.steps
    assert view.cursor.visit == (1 if whole else 3)
    words = shlex.split(note.command)
    assert words[:4] == ["python", "-m", "ui", "export"]
    assert str(target) in words
    # The note is a scenario file as it stands.
    plain = tmp_path / "plain.toml"
    plain.write_text(note.text)
    assert load_scenario(plain) == scenario


@pytest.fixture(scope="module")
def controlled(tmp_path_factory) -> Path:
    """Return a scenario whose title and tokens contain what is no character in XML."""
    folder = tmp_path_factory.mktemp("controlled")
    q = np.random.default_rng(0).standard_normal((1, 4, 8)).astype(np.float32)
    np.savez(folder / "mine.npz", q=q, k=q, v=q, tokens=np.array(["\f", "\x1b[2J", "\ufffe", "<"]))
    path = folder / "controlled.toml"
    title = r"a\f\u001b[2J\ufffe\u0000z"
    path.write_text(f'title = "{title}"\n[input]\nsource = "file"\npath = "mine.npz"\n')
    return path


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", [".svg", ".pdf", ".webp", ".gif", ".mp4", ".png"])
def test_codes_of_control_leave_a_file_well_formed_and_the_title_comes_back(
    ending, controlled, tmp_path
):
    target = tmp_path / f"a{ending}"
    make(part(target), simulate(controlled))
    data = target.read_bytes()
    if ending == ".svg":
        labels = [each.get("aria-label") for each in ElementTree.fromstring(data).iter()]
        assert "<" in labels
    elif ending in (".pdf", ".webp"):
        start, end = data.index(b"<x:xmpmeta"), data.index(b"</x:xmpmeta>")
        ElementTree.fromstring(data[start:end] + b"</x:xmpmeta>")
    assert read_scenario(target).title == "a\f\x1b[2J\ufffe\0z"


def test_half_a_letter_in_a_path_is_left_out(tmp_path):
    scenario = parse_scenario({"input": {"source": "file", "path": "a\udc80.npz"}})
    note = note_of(ViewLink(scenario), tmp_path, "1", "")
    told = "".join(ElementTree.fromstring(note.xmp).itertext())
    assert note.text in told
    assert "a\ufffd.npz" in told
    assert not note.link  # of a file of one's own


def title_in(note: str) -> str:
    return tomllib.loads(note)["title"]


def test_single_frames_have_it_too(odd, tmp_path):
    make(options(f"{tmp_path}/f/"), simulate(odd))
    assert read_scenario(tmp_path / "f" / "frame-00003.png").title == TITLE


@pytest.mark.parametrize("ending", [".png", ".webp", ".gif", ".pdf"])
def test_others_find_it_in_its_usual_place(ending, odd, tmp_path):
    target = tmp_path / f"a{ending}"
    make((still if ending in (".png", ".pdf") else options)(target), simulate(odd))
    if ending == ".pdf":
        about = pypdf.PdfReader(target)
        assert about.metadata.creator == "Tilescope 0.1.0"
        assert title_in(about.xmp_metadata.dc_description["x-default"]) == TITLE
        return
    with Image.open(target) as image:
        if ending == ".png":
            assert title_in(image.text["Tilescope"]) == TITLE
        elif ending == ".webp":
            assert "window = 40" in image.info["xmp"].decode()
        else:
            image.seek(image.n_frames - 1)
            image.load()
            assert b"Tilescope 0.1.0" in target.read_bytes()


def test_an_input_path_is_found_from_the_export(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    capture = next(iter(sorted(CAPTURES.glob("*.safetensors"))))
    shutil.copy(capture, tmp_path / "data" / "mine.safetensors")
    scenario = tmp_path / "s.toml"
    scenario.write_text('[input]\nsource = "file"\npath = "data/mine.safetensors"\n')
    make(still(tmp_path / "out" / "a.png"), simulate(scenario))
    assert 'path = "../data/mine.safetensors"' in read_note(tmp_path / "out" / "a.png").scenario
    moved = tmp_path.rename(tmp_path.with_name(tmp_path.name + "-moved"))
    found = read_scenario(moved / "out" / "a.png")
    assert found.input.path == str(moved / "data" / "mine.safetensors")
    assert len(simulate(found)) > 0


@pytest.mark.sweep(keep=15)
@pytest.mark.parametrize("ending", READS)
@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\4\0\0\0WEBP",
                                     b"%PDF-1.4\n", b"<svg><metadata>x</metadata></svg>",
                                     bytes(range(256)) * 8])  # fmt: skip
def test_what_is_none_of_ours_is_refused_in_a_line(ending, content, tmp_path):
    file = tmp_path / f"a{ending}"
    file.write_bytes(content)
    with pytest.raises(InputError, match="exported"):
        read_scenario(file)


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("ending", READS)
def test_a_file_cut_short_is_refused_or_read_whole(ending, odd, tmp_path):
    target = tmp_path / f"a{ending}"
    make(part(target), simulate(odd))
    data, told = target.read_bytes(), 0
    for length in (30, *(int(share * len(data)) for share in (0.02, 0.3, 0.6, 0.9, 0.999))):
        target.write_bytes(data[:length])
        try:
            assert read_scenario(target).title == TITLE
        except InputError:
            told += 1
    assert told


def test_a_missing_file_and_a_changed_note_are_told(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_scenario(tmp_path / "none.png")
    make(still(tmp_path / "a.svg"))
    text = (tmp_path / "a.svg").read_text()
    (tmp_path / "a.svg").write_text(text.replace('algorithm = "flash2"', 'algorithm = "abacus"'))
    with pytest.raises(InputError, match="abacus"):
        read_scenario(tmp_path / "a.svg")


def test_what_an_editor_adds_to_an_svg_is_left_alone(tmp_path):
    target = tmp_path / "a.svg"
    note = make(still(target)).note
    text = target.read_text().replace("<metadata>", '<metadata\n id="metadata1">')
    target.write_text(text.replace("</metadata>", "<rdf:RDF>1 &amp; 2</rdf:RDF></metadata>"))
    assert read_note(target) == note


def test_a_command_is_one_line_whatever_files_are_called(tmp_path):
    name = "a\nb\x1b[2J.png"
    note = note_of(ViewLink(parse_scenario({})), tmp_path, "1", still(name).command("x\ny.toml"))
    assert note.text.count("\n") == 3 + note.scenario.count("\n")
    assert note.command.isprintable()
