"""A picture in an input file: what is read of it, and the line that a bad one is refused with."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator.problem.masked_file import write_masked
from simulator.problem.masks import BlockMask, Mask
from tests.helpers.pictures import colours, tensors_of, texts_of
from tests.helpers.written_files import read, refusal

HIGH, WIDE = 3 * 8, 3 * 8


def written(path: Path, **changed: Any) -> Path:
    """Write a file with some tensors changed; None: left out."""
    tensors = {name: each for name, each in (tensors_of(3) | changed).items() if each is not None}
    if path.suffix == ".npz":
        np.savez(path, tokens=np.array(texts_of(3)), **tensors)
    else:
        save_file(tensors, path, {"tokens": json.dumps(texts_of(3))})
    return path


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_each_key_has_its_piece(ending: str, tmp_path: Path) -> None:
    w, _ = read(written(tmp_path / f"a.{ending}"))
    picture = w.file.picture
    assert picture.pixels.shape == (HIGH, WIDE, 3)
    assert picture.piece(0) is None  # CLS
    for key, colour in enumerate(colours(9), start=1):
        left, top, right, bottom = picture.piece(key)
        assert (right - left, bottom - top) == (8, 8)
        assert (picture.pixels[top:bottom, left:right] == colour).all()
    assert picture.piece(10) is None
    assert not picture.pixels.flags.writeable


def test_edges_between_pixels_go_to_the_nearer_one(tmp_path: Path) -> None:
    boxes = boxes_with(3, [7.6, 8.4, 16.2, 15.7])
    boxes[4] = [5.1, 5.1, 5.3, 5.3]
    w, _ = read(written(tmp_path / "a.safetensors", patch_boxes=boxes))
    assert [w.file.picture.piece(key) for key in (3, 4)] == [(8, 8, 16, 16), (5, 5, 6, 6)]


def test_a_file_without_a_picture_has_none(tmp_path: Path) -> None:
    w, _ = read(written(tmp_path / "a.safetensors", image=None, patch_boxes=None))
    assert w.file.picture is None


def test_the_same_file_is_the_same_workload_and_another_picture_is_another(tmp_path: Path) -> None:
    path = written(tmp_path / "a.safetensors")
    before, again = read(path)[0], read(path)[0]
    assert before == again
    assert hash(before) == hash(again)
    written(path, image=255 - tensors_of(3)["image"])
    assert read(path)[0] != before


def boxes_with(key: int, box: list[float]) -> np.ndarray:
    boxes = tensors_of(3)["patch_boxes"].copy()
    boxes[key] = box
    return boxes


INSIDE = "expected left < right ≤ 24 and top < bottom ≤ 24, none below 0, or four zeros"
IMAGE = tensors_of(3)["image"]


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"image": None}, "tensor image: expected it beside patch_boxes, or neither of them"),
        ({"patch_boxes": None}, "tensor patch_boxes: expected it beside image, or neither of them"),
        ({"image": IMAGE.astype(np.float32)}, "expected bytes, uint8"),
        ({"image": IMAGE[..., 0].copy()}, "shape of image = (24, 24): expected (height, width, 3)"),
        ({"image": IMAGE[..., :2].copy()}, "shape of image = (24, 24, 2): expected (height"),
        ({"image": IMAGE[:0]}, "shape of image = (0, 24, 3): expected (height, width, 3)"),
        ({"patch_boxes": np.zeros((10, 4), np.int32)}, "expected numbers, float32"),
        ({"patch_boxes": tensors_of(2)["patch_boxes"]},
         "shape of patch_boxes = (5, 4): expected (10, 4): left, top, right and bottom"),
        ({"patch_boxes": np.zeros((10, 3), np.float32)}, "shape of patch_boxes = (10, 3)"),
        ({"patch_boxes": boxes_with(4, [0, 0, 25, 8])},
         f"patch_boxes, key 4 = [0.0, 0.0, 25.0, 8.0]: {INSIDE}"),
        ({"patch_boxes": boxes_with(0, [0, -1, 8, 8])},
         f"patch_boxes, key 0 = [0.0, -1.0, 8.0, 8.0]: {INSIDE}"),
        ({"patch_boxes": boxes_with(9, [8, 8, 8, 16])},
         f"patch_boxes, key 9 = [8.0, 8.0, 8.0, 16.0]: {INSIDE}"),
        ({"patch_boxes": boxes_with(9, [0, 8, 8, np.inf])}, "key 9 = [0.0, 8.0, 8.0, inf]"),
        ({"patch_boxes": boxes_with(2, [np.nan] * 4)}, "patch_boxes, key 2 = [nan, nan, nan, nan]"),
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused_in_one_line(
    ending: str, changed: dict[str, Any], line: str, tmp_path: Path
) -> None:
    path = written(tmp_path / f"a.{ending}", **changed)
    assert refusal(path).startswith(f"{path}: ")
    assert line in refusal(path)


def test_a_picture_of_more_pixels_than_a_model_is_given_is_refused(tmp_path: Path) -> None:
    large = np.zeros((4096, 4097, 3), np.uint8)
    path = written(tmp_path / "a.safetensors", image=large)
    assert "pixels of image = 16781312: expected at most 16777216" in refusal(path)
    path = written(tmp_path / "a.safetensors", image=large[:, 1:].copy())
    assert read(path)[0].file.picture.pixels.shape == (4096, 4096, 3)


def test_a_copy_with_another_mask_keeps_the_picture(tmp_path: Path) -> None:
    path = written(tmp_path / "a.safetensors")
    w, copy = read(path)[0], tmp_path / "copy.safetensors"
    write_masked(w, Mask(10, 10, blocks=BlockMask(5, np.eye(2, dtype=np.bool_))), copy)
    masked, _ = read(copy, mask={"block": 5}, input={"head": [1]})
    assert masked.mask.blocks is not None
    assert masked.file.picture == w.file.picture
