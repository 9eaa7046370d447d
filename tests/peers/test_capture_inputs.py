"""`capture` of models of pictures and sound: layers, names of patches and frames, and odd files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import parse_scenario
from simulator.run.trace import simulate

pytestmark = pytest.mark.peers
for package in ("torch", "transformers", "PIL", "av"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

from tests.peers.small_models import TEXT, pixels, saved, written_sound  # noqa: E402
from ui.app.cli import main  # noqa: E402

SOUND = np.sin(np.arange(16000) * 0.05) * 0.5
Capture = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a small model."""
    made: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = saved(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return folder


@pytest.fixture
def capture(folders: Callable[[str], Path], tmp_path: Path, capsys: Any) -> Capture:
    """Run the command; return its status and what it prints."""

    def run(kind: str, layers: str, *more: object) -> tuple[int, str, str]:
        words = [folders(kind), layers, tmp_path / "out.safetensors", *more]
        status = main(["capture", *map(str, words)])
        out, err = capsys.readouterr()
        assert status in (0, 2)
        assert status == 0 or len(err.splitlines()) == 1, err
        return status, out, err

    return run


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    from PIL import Image

    Image.fromarray(pixels()).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return what a file has."""
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        texts = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return tensors, {**texts, "tokens": json.loads(texts.get("tokens", "[]"))}


def model_and_inputs(folder: Path, **given: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model, and what transformers' own classes make of a picture or sound for it."""
    import transformers

    model = transformers.AutoModel.from_pretrained(folder).eval()
    made: dict[str, Any] = {}
    if "image" in given:
        from PIL import Image

        own = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
        made = dict(own(Image.open(given["image"]).convert("RGB"), return_tensors="pt"))
        made = {"pixel_values": made["pixel_values"]}
    if "sound" in given:
        own = transformers.AutoFeatureExtractor.from_pretrained(folder)
        made = dict(own(given["sound"], sampling_rate=16000, return_tensors="pt"))
        made.pop("attention_mask", None)
    if "text" in given:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        made[given.get("as", "input_ids")] = tokenizer(given["text"], return_tensors="pt").input_ids
    return model, made


def given_to(model: Any, name: str, inputs: dict[str, Any]) -> np.ndarray:
    """Return what a module of a model is given, (N, D)."""
    import torch

    found: list[Any] = []
    hook = model.get_submodule(name).register_forward_pre_hook(
        lambda own, args, kwargs: found.append(args[0] if args else kwargs["hidden_states"]),
        with_kwargs=True,
    )
    with torch.no_grad():
        model(**inputs)
    hook.remove()
    own: np.ndarray = found[0].reshape(-1, found[0].shape[-1]).float().numpy()
    return own


def opened(path: Path) -> np.ndarray:
    """Return O of a run on a file, (N, heads * dv)."""
    source = {"source": "file", "path": str(path)}
    o = simulate(parse_scenario({"input": source, "tiling": {"rows": 16, "cols": 12}})).output
    return o.transpose(1, 0, 2).reshape(o.shape[1], -1)


PICTURES = {
    "ViT": ("1", "layers.1.attention.o_proj", "layers.0", ["CLS"]),
    "DeiT": ("1", "layers.1.attention.o_proj", "layers.0", ["CLS", "distillation"]),
    "Dinov2WithRegisters": ("1", "encoder.layer.1.attention.o_proj", "encoder.layer.0", ["CLS",
                            *(f"register {n}" for n in range(1, 5))]),
    "Beit": ("1", "layers.1.attention.o_proj", "layers.0", ["CLS"]),
    "Yolos": ("1", "encoder.layer.1.attention.output.dense", "encoder.layer.0", ["CLS"]),
    "CLIP": ("vision_model.1", "vision_model.encoder.layers.1.self_attn.out_proj",
             "vision_model.encoder.layers.0", ["CLS"]),
    "Siglip": ("vision_model.1", "vision_model.encoder.layers.1.self_attn.out_proj",
               "vision_model.encoder.layers.0", []),
}  # fmt: skip
"""Layer; its output projection and the first layer, by their names; tokens before the patches."""


@pytest.mark.parametrize("kind", PICTURES)
def test_patches_are_the_tokens_of_a_picture(
    kind: str, capture: Capture, folders: Any, picture: Path, tmp_path: Path
) -> None:
    layer, projection, first, before = PICTURES[kind]
    text = {"text": TEXT} if kind in ("CLIP", "Siglip") else {}
    status, out, err = capture(kind, layer, *text.values(), "--image", picture)
    assert status == 0, err
    path = tmp_path / "out.safetensors"
    assert "patch_boxes" in out
    model, inputs = model_and_inputs(folders(kind), image=picture, **text)
    own = given_to(model, projection, inputs)
    assert np.abs(opened(path) - own).max() <= 2e-6 * np.abs(own).max()
    tensors, texts = read(path)
    tokens, boxes, image = texts["tokens"], tensors["patch_boxes"], tensors["image"]
    after = [f"object {n}" for n in range(1, 5)] if kind == "Yolos" else []
    rows, columns = (each // 8 for each in image.shape[:2])
    patches = [f"patch {row},{column}" for row in range(rows) for column in range(columns)]
    assert tokens == [*before, *patches, *after]
    assert boxes.shape == (len(tokens), 4)
    # Each token, and no other, changes with the pixels of its box.
    start = given_to(model, first, inputs)
    for number, (x0, y0, x1, y1) in enumerate(boxes.astype(int)):
        if not tokens[number].startswith("patch"):
            assert x0 == y0 == x1 == y1 == 0
            continue
        changed = inputs["pixel_values"].clone()
        changed[..., y0:y1, x0:x1] += 1
        moved = np.abs(given_to(model, first, {**inputs, "pixel_values": changed}) - start)
        assert moved.max(1).nonzero()[0].tolist() == [number]
    # The image is what the model was given, before it was normalised.
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(folders(kind), backend="pil")
    again = image.astype(np.float64) * processor.rescale_factor
    again = (again - processor.image_mean) / processor.image_std
    given = inputs["pixel_values"][0].numpy().transpose(1, 2, 0)
    assert np.abs(again - given).max() <= 0.51 / 255 / min(processor.image_std)


def test_a_processor_that_needs_torchvision_is_done_by_pillow(
    capture: Capture, folders: Any, picture: Path, tmp_path: Path
) -> None:
    from PIL import Image
    from transformers import AutoModel

    status, out, err = capture("DINOv3ViT", "1", "--image", picture)
    assert status == 0, err
    assert "resized by Pillow" in out
    tensors, texts = read(tmp_path / "out.safetensors")
    resized = Image.fromarray(pixels()).resize((32, 32), Image.Resampling.BILINEAR)
    assert (tensors["image"] == np.asarray(resized)).all()
    assert texts["tokens"][:5] == ["CLS", "register 1", "register 2", "register 3", "patch 0,0"]
    import torch

    values = (tensors["image"] / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]
    given = {"pixel_values": torch.tensor(values.transpose(2, 0, 1)[None], dtype=torch.float32)}
    model = AutoModel.from_pretrained(folders("DINOv3ViT")).eval()
    own = given_to(model, "model.layer.1.attention.o_proj", given)
    assert np.abs(opened(tmp_path / "out.safetensors") - own).max() <= 1e-5 * np.abs(own).max()


@pytest.mark.parametrize("size", [None, 40, "large", [32, 32], {"height": "32", "width": 32}])
def test_settings_of_a_processor_that_are_junk_end_in_one_line(
    size: Any, capture: Capture, folders: Any, picture: Path, tmp_path: Path, capsys: Any
) -> None:
    folder = shutil.copytree(folders("DINOv3ViT"), tmp_path / "model")
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    junk = settings | {"size": size, "image_mean": None if size is None else [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(junk))
    words = ["capture", folder, "0", tmp_path / "out.safetensors", "--image", picture]
    status = main([str(word) for word in words])
    _, err = capsys.readouterr()
    assert status == 0 or len(err.splitlines()) == 1
    assert (status == 0) == (tmp_path / "out.safetensors").exists() == (size == 40)


def test_both_towers_of_clip_have_their_own_tokens(
    capture: Capture, picture: Path, tmp_path: Path
) -> None:
    status, _, err = capture("CLIP", "text_model.0,vision_model.0", TEXT, "--image", picture)
    assert status == 0, err
    tensors, texts = read(tmp_path / "out-text_model.0.safetensors")
    assert texts["tokens"] == TEXT.split()
    assert "image" not in tensors
    assert len(read(tmp_path / "out-vision_model.0.safetensors")[1]["tokens"]) == 17
    status, _, err = capture("CLIP", "0", TEXT, "--image", picture)
    assert status == 2
    assert "vision_model.0" in err
    assert "text_model.0" in err


def test_a_whole_layer_of_a_model_of_pictures(
    capture: Capture, picture: Path, tmp_path: Path
) -> None:
    """The number of heads is the layer's own: the config of a model of two towers has none."""
    status, out, err = capture("ViT", "1", "--image", picture, "--weights")
    assert status == 0, err
    assert "write `heads = 2` under [attention]" in out
    source = {"source": "layer", "path": str(tmp_path / "out.safetensors")}
    trace = simulate(parse_scenario({"attention": {"heads": 2}, "input": source}))
    assert trace.run()[0]["layer"]["max_abs_error"] < 1e-5
    status, out, err = capture("CLIP", "text_model.1", TEXT, "--image", picture, "--weights")
    assert status == 2
    assert "no layer text_model.1 has q_proj" in err


def test_placeholders_in_a_text_are_the_patches_that_they_stand_for(
    capture: Capture, folders: Any, picture: Path, tmp_path: Path
) -> None:
    """With the vision tower's attention switched off each token hangs on one patch."""
    import torch

    status, out, err = capture("Llava", "language_model.1", f"<image> {TEXT}", "--image", picture)
    assert status == 0, err
    assert "16 tokens of the text stand for the picture" in out
    tensors, texts = read(tmp_path / "out.safetensors")
    assert texts["tokens"][:2] == ["patch 0,0", "patch 0,1"]
    assert texts["tokens"][16:] == TEXT.split()
    assert not tensors["patch_boxes"][16:].any()
    model, inputs = model_and_inputs(folders("Llava"), image=picture)
    from transformers import AutoTokenizer

    text = "<image> " * 16 + TEXT
    tokenizer = AutoTokenizer.from_pretrained(folders("Llava"))
    inputs["input_ids"] = tokenizer(text, return_tensors="pt").input_ids
    own = given_to(model, "language_model.layers.1.self_attn.o_proj", inputs)
    assert np.abs(opened(tmp_path / "out.safetensors") - own).max() <= 2e-6 * np.abs(own).max()
    for name, weights in model.named_parameters():
        if "vision_tower" in name and "out_proj" in name:
            weights.data.zero_()
    start = given_to(model, "language_model.layers.0", inputs)
    for number, (x0, y0, x1, y1) in enumerate(tensors["patch_boxes"][:16].astype(int)):
        changed = inputs["pixel_values"].clone()
        changed[..., y0:y1, x0:x1] += torch.tensor(1.0)
        moved = given_to(model, "language_model.layers.0", {**inputs, "pixel_values": changed})
        assert np.abs(moved - start).max(1).nonzero()[0].tolist() == [number]


def test_a_picture_that_is_given_as_a_list_of_patches(
    capture: Capture, folders: Any, picture: Path, tmp_path: Path
) -> None:
    """Qwen2-VL's: the pixels of a box are those of its row; a token of a text has four rows."""
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    assert capture("Qwen2VL", "visual.1,language_model.1", TEXT, "--image", picture)[0] == 0
    folder = folders("Qwen2VL")
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    made = dict(processor(Image.open(picture), return_tensors="pt"))
    tensors, texts = read(tmp_path / "out-visual.1.safetensors")
    rows, image = made["pixel_values"], tensors["image"]
    resized = Image.fromarray(pixels()).resize(image.shape[1::-1], Image.Resampling.BICUBIC)
    assert np.abs(image.astype(int) - np.asarray(resized).astype(int)).max() <= 1
    assert len(rows) == len(texts["tokens"]) == len(tensors["patch_boxes"]) == 32
    for row, token, box in zip(rows, texts["tokens"], tensors["patch_boxes"], strict=True):
        x0, y0, x1, y1 = box.astype(int)
        own = row.reshape(3, 2, 8, 8)[:, 0].numpy().transpose(1, 2, 0)
        own = (own * processor.image_std + processor.image_mean) * 255
        assert np.abs(image[y0:y1, x0:x1] - own).max() <= 0.51
        assert token == f"patch {y0 // 8},{x0 // 8}"
    model = AutoModel.from_pretrained(folder).eval()
    for name, weights in model.named_parameters():
        if "visual" in name and "attn.proj" in name:
            weights.data.zero_()
    text = AutoTokenizer.from_pretrained(folder)("<image> " * 8 + TEXT, return_tensors="pt")
    ids = text.input_ids
    inputs = {**made, "input_ids": ids, "mm_token_type_ids": (ids == 4).int()}
    start = given_to(model, "language_model.layers.0", inputs)
    in_text, texts = read(tmp_path / "out-language_model.1.safetensors")
    assert texts["tokens"][8:] == TEXT.split()
    for number, (x0, y0, x1, y1) in enumerate(in_text["patch_boxes"][:8].astype(int)):
        inside = [
            n for n, (a, b, c, d) in enumerate(tensors["patch_boxes"].astype(int))
            if x0 <= a < c <= x1 and y0 <= b < d <= y1
        ]  # fmt: skip
        assert len(inside) == 4
        changed = rows.clone()
        changed[inside] += 1
        moved = given_to(model, "language_model.layers.0", {**inputs, "pixel_values": changed})
        assert np.abs(moved - start).max(1).nonzero()[0].tolist() == [number]


def test_a_film_of_one_picture(
    capture: Capture, folders: Any, picture: Path, tmp_path: Path
) -> None:
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModel

    status, out, err = capture("VideoMAE", "1", "--image", picture)
    assert status == 0, err
    assert "the model reads films: it is given the picture 4 times" in out
    processor = AutoImageProcessor.from_pretrained(folders("VideoMAE"), backend="pil")
    inputs = dict(processor([Image.open(picture)] * 4, return_tensors="pt"))
    model = AutoModel.from_pretrained(folders("VideoMAE")).eval()
    own = given_to(model, "encoder.layer.1.attention.output.dense", inputs)
    assert np.abs(opened(tmp_path / "out.safetensors") - own).max() <= 1e-5 * np.abs(own).max()
    assert not read(tmp_path / "out.safetensors")[1]["tokens"]


def test_patches_that_are_sorted_into_windows_have_no_names(
    capture: Capture, picture: Path, tmp_path: Path
) -> None:
    status, out, _ = capture("Swin", "all", "--image", picture)
    assert status == 0
    assert "the vision layers have no names of patches" in out
    for path in tmp_path.glob("out-*"):
        tensors, texts = read(path)
        assert not texts["tokens"]
        assert "patch_boxes" not in tensors


SOUNDS = {
    "Wav2Vec2": ("1", "encoder.layers.1.attention.out_proj", 50),
    "Hubert": ("1", "encoder.layers.1.attention.out_proj", 50),
    "Whisper": ("encoder.1", "encoder.layers.1.self_attn.out_proj", 100),
}


@pytest.mark.parametrize("kind", SOUNDS)
def test_frames_are_the_tokens_of_sound(
    kind: str, capture: Capture, folders: Any, tmp_path: Path
) -> None:
    layer, projection, count = SOUNDS[kind]
    text = [TEXT] if kind == "Whisper" else []
    file = written_sound(tmp_path / "sound.wav", SOUND)
    status, _, err = capture(kind, layer, *text, "--audio", file)
    assert status == 0, err
    samples = ((SOUND * 32767).astype("<i2") / 32768).astype(np.float32)
    given = {"text": TEXT, "as": "decoder_input_ids"} if text else {}
    model, inputs = model_and_inputs(folders(kind), sound=samples, **given)
    own = given_to(model, projection, inputs)
    path = tmp_path / "out.safetensors"
    assert len(own) == count
    assert np.abs(opened(path) - own).max() <= 2e-5 * np.abs(own).max()
    assert read(path)[1]["tokens"] == [f"{0.02 * n:.2f} s" for n in range(count)]


def test_the_decoder_of_whisper_reads_the_text(capture: Capture, tmp_path: Path) -> None:
    file = written_sound(tmp_path / "sound.wav", SOUND)
    status, out, _ = capture("Whisper", "cross.1", "the cat", "--audio", file)
    assert status == 0
    assert "has 1.00 s: what the model is given after that is silence" in out
    _, texts = read(tmp_path / "out.safetensors")
    assert json.loads(texts["query_tokens"]) == ["the", "cat"]
    assert texts["tokens"][-1] == "1.98 s"
    status, out, _ = capture("Whisper", "decoder.0", "--audio", file)
    assert status == 0
    assert "the decoder reads the token that it starts with" in out
    assert read(tmp_path / "out.safetensors")[1]["tokens"] == ["<s>"]


ODD_PICTURES = {
    "one pixel": (lambda image: image.resize((1, 1)), {}, ""),
    "thin": (lambda image: image.resize((3, 200)), {}, ""),
    "grey": (lambda image: image.convert("L"), {}, ""),
    "a palette": (lambda image: image.convert("P"), {}, ""),
    "transparent": (lambda image: image.convert("RGBA"), {}, "partly transparent"),
    "four inks": (lambda image: image.convert("CMYK"), {"format": "TIFF"}, ""),
}


@pytest.mark.parametrize("kind", ODD_PICTURES)
def test_odd_pictures_are_read_in_rgb(kind: str, capture: Capture, tmp_path: Path) -> None:
    from PIL import Image

    change, more, said = ODD_PICTURES[kind]
    odd = change(Image.fromarray(pixels()))
    odd.save(tmp_path / "odd.png", **{"format": "PNG"} | more)
    status, out, err = capture("ViT", "0", "--image", tmp_path / "odd.png")
    assert status == 0, err
    assert said in out
    resized = odd.convert("RGB").resize((32, 32), Image.Resampling.BILINEAR)
    image = read(tmp_path / "out.safetensors")[0]["image"]
    assert np.abs(image.astype(int) - np.asarray(resized).astype(int)).max() <= 1


def test_a_turned_picture_and_a_film_of_pictures(capture: Capture, tmp_path: Path) -> None:
    from PIL import Image

    upright = Image.fromarray(pixels())
    exif = Image.Exif()
    exif[0x112] = 6  # is shown turned by 90 degrees
    upright.save(tmp_path / "turned.png", exif=exif)
    assert capture("ViT", "0", "--image", tmp_path / "turned.png")[0] == 0
    turned = upright.transpose(Image.Transpose.ROTATE_270).resize(
        (32, 32), Image.Resampling.BILINEAR
    )
    image = read(tmp_path / "out.safetensors")[0]["image"]
    assert np.abs(image.astype(int) - np.asarray(turned).astype(int)).max() <= 1
    upright.save(tmp_path / "film.gif", save_all=True, append_images=[upright.rotate(90)])
    status, out, _ = capture("ViT", "0", "--image", tmp_path / "film.gif")
    assert status == 0
    assert "film.gif has 2 pictures: the first is read" in out


def test_sixteen_bits_of_grey_keep_their_range(capture: Capture, tmp_path: Path) -> None:
    from PIL import Image

    ramp = np.repeat(np.linspace(0, 65535, 32).astype(np.uint16)[None], 32, axis=0)
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    status, out, _ = capture("ViT", "0", "--image", tmp_path / "deep.png")
    assert status == 0
    assert "has 16 bits a pixel: 8 are kept" in out
    image = read(tmp_path / "out.safetensors")[0]["image"]
    assert np.abs(image[0, :, 0] - ramp[0] / 257).max() <= 1


def test_what_is_no_picture_is_refused_before_the_model_runs(
    capture: Capture, picture: Path, tmp_path: Path
) -> None:
    from PIL import Image

    (tmp_path / "junk.png").write_bytes(b"not a picture")
    (tmp_path / "half.png").write_bytes(picture.read_bytes()[:3000])
    Image.new("1", (20000, 20000)).save(tmp_path / "huge.png")
    Image.fromarray(np.ones((8, 8), np.float32)).save(tmp_path / "floats.tif")
    wrong = {
        "junk.png": "expected a picture: cannot identify",
        "half.png": "expected a picture: image file is truncated",
        "huge.png": "pixels",
        "floats.tif": "numbers without a range",
        "none.png": "no such file",
    }
    for name, line in wrong.items():
        status, _, err = capture("ViT", "0", "--image", tmp_path / name)
        assert status == 2, name
        assert line in err
        assert name in err
    assert not (tmp_path / "out.safetensors").exists()


def test_odd_sound(capture: Capture, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    eight = written_sound(tmp_path / "eight.wav", rng.uniform(-0.5, 0.5, (16000, 8)))
    status, out, _ = capture("Wav2Vec2", "0", "--audio", eight)
    assert status == 0
    assert "has 8 channels: they are mixed into one" in out
    slow = written_sound(tmp_path / "slow.wav", SOUND[:8000], rate=8000)
    status, out, _ = capture("Wav2Vec2", "0", "--audio", slow)
    assert status == 0
    assert "has 8000 samples a second: the model is given 16000" in out
    assert len(read(tmp_path / "out.safetensors")[1]["tokens"]) == 50
    hour = written_sound(tmp_path / "hour.wav", np.zeros(16000 * 600))
    status, out, _ = capture("Whisper", "encoder.0", "--audio", hour)
    assert status == 0
    assert "its first 2 s are read, the rest is left out" in out


def test_what_is_no_sound_is_refused(capture: Capture, picture: Path, tmp_path: Path) -> None:
    written_sound(tmp_path / "empty.wav", np.zeros(0))
    written_sound(tmp_path / "three.wav", np.zeros(3))
    (tmp_path / "junk.wav").write_bytes(b"RIFF junk")
    wrong = {
        "empty.wav": "there are no samples in this file",
        "three.wav": "not captured: ",
        "junk.wav": "expected a file of sound",
        "picture.png": "there is none in this file",
    }
    out = tmp_path / "out.safetensors"
    for name, line in wrong.items():
        status, _, err = capture("Wav2Vec2", "0", "--audio", tmp_path / name)
        assert status == 2, name
        assert line in err
    assert not out.exists()


def test_what_a_model_does_not_read_is_said(capture: Capture, picture: Path) -> None:
    wrong = {
        ("Bert", "0", TEXT, "--image", picture): "the model reads no pictures",
        ("Bert", "0", TEXT, "--audio", picture): "the model reads no sound",
        ("ViT", "0"): "the model reads pictures: expected --image FILE",
        ("CLIP", "text_model.0", TEXT): "the model reads pictures: expected --image FILE",
        ("CLIP", "vision_model.0", "--image", picture): "TEXT: expected a text, and it is empty",
        ("Whisper", "encoder.0", TEXT): "the model reads sound: expected --audio FILE",
        ("CLIP", "0", TEXT, "--image", picture, "--audio", picture): "expected one of them",
    }
    for words, line in wrong.items():
        status, _, err = capture(*words)
        assert status == 2, words
        assert line in err
    status, out, _ = capture("ViT", "0", TEXT, "--image", picture)
    assert status == 0
    assert "the text is left out: the model reads none" in out
