"""A picture as a model is given it, and which pixels each token is of."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from recording import CaptureError

MOST_PIXELS = 50_000_000
"""A picture with more is refused: decoded it takes gigabytes, and a model sees far fewer."""
SPECIAL = (
    ("cls_token", "class_embedding"),
    ("distillation_token",),
    ("register_tokens",),
    ("detection_tokens",),
)
"""Parameters that are tokens and no patch, under the names that models give them."""
OTHERS = ("text_model", "language_model", "multimodal", "decoder", "head", "pooler")
"""Parts of a model whose parameters are not those of the stack that sees the picture."""


@dataclass
class Patches:
    """A picture as the model was given it, and its tokens.

    Attributes
    ----------
    tokens : list of str
        One for each token; empty if the config does not say which tokens there are.
    boxes : ndarray, (N, 4), float32
        x0, y0, x1, y1 of each token in pixels of the image; all 0 for a token that is no patch.
    image : ndarray, (h, w, 3), uint8
        The pixels, as they were before they were normalised; None if they cannot be told.
    grid, size : tuple of int
        Rows and columns of patches; height and width of one, in pixels.
    """

    tokens: list[str]
    boxes: np.ndarray | None
    image: np.ndarray | None
    grid: tuple[int, int] = (0, 0)
    size: tuple[int, int] = (0, 0)


def open_picture(path: str | Path, said: list[str]) -> Any:
    """Return a picture in RGB as a PIL image; say what was changed."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise CaptureError("--image needs Pillow: pip install pillow") from None
    try:
        with warnings.catch_warnings(), Image.open(path) as file:
            warnings.simplefilter("ignore")  # of many pixels, which are refused
            if file.width * file.height > MOST_PIXELS:
                raise CaptureError(
                    f"{path}: {file.width} x {file.height} pixels, expected at most "
                    f"{MOST_PIXELS // 10**6} million"
                )
            if getattr(file, "n_frames", 1) > 1:
                said.append(f"{path} has {file.n_frames} pictures: the first is read")
            file.load()
            picture = ImageOps.exif_transpose(file)
    except CaptureError:
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise CaptureError(f"{path}: {error.strerror}") from None
    except Exception as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CaptureError(f"{path}: expected a picture: {why}") from None
    if picture.mode.startswith("I;16"):
        deep = np.asarray(picture).astype(np.float32) / 257
        picture = Image.fromarray(deep.round().astype(np.uint8))
        said.append(f"{path} has 16 bits a pixel: 8 are kept")
    elif picture.mode in ("I", "F"):
        raise CaptureError(f"{path}: its pixels are numbers without a range; save it as 8-bit RGB")
    elif picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        said.append(f"{path} is partly transparent: its colours are read without that")
        picture = picture.convert("RGBA")
    return picture.convert("RGB")


def prepared(picture: Any, settings: dict[str, Any], said: list[str]) -> Any:
    """Return pixel values, (1, 3, h, w), as the settings of a model's processor say.

    For processors of transformers that need torchvision: size, crop, rescaling and mean are the
    same; pixels between two pixels are by Pillow.
    """
    import torch
    from PIL import Image

    if settings.get("do_resize", True):
        size = settings.get("size") or {"height": 224, "width": 224}
        size = {"shortest_edge": size} if isinstance(size, int) else size
        width, height = picture.size
        if "shortest_edge" in size:
            factor = size["shortest_edge"] / min(width, height)
            width, height = max(1, int(width * factor)), max(1, int(height * factor))
        elif "height" in size and "width" in size:
            width, height = size["width"], size["height"]
        else:
            raise CaptureError(f"its processor has a size of {size}: expected height and width")
        picture = picture.resize((width, height), Image.Resampling(settings.get("resample", 2)))
    if settings.get("do_center_crop"):
        crop = settings.get("crop_size") or settings["size"]
        crop = {"height": crop, "width": crop} if isinstance(crop, int) else crop
        left, top = (picture.width - crop["width"]) // 2, (picture.height - crop["height"]) // 2
        picture = picture.crop((left, top, left + crop["width"], top + crop["height"]))
    values = np.asarray(picture).astype(np.float32).transpose(2, 0, 1)
    if settings.get("do_rescale", True):
        values = values * np.float32(settings.get("rescale_factor") or 1 / 255)
        values = values - 1 if settings.get("offset") else values
    if settings.get("do_normalize", True):
        for name in ("image_mean", "image_std"):
            numbers = settings.get(name)
            if not isinstance(numbers, list) or len(numbers) != 3 or None in numbers:
                raise CaptureError(f"its processor has no {name} of three numbers")
        mean, std = (np.float32(settings[name]) for name in ("image_mean", "image_std"))
        values = (values - mean.reshape(-1, 1, 1)) / std.reshape(-1, 1, 1)
    said.append("the picture was resized by Pillow: the model's own processor needs torchvision")
    return torch.from_numpy(np.ascontiguousarray(values))[None]


def pixels_of(values: Any, settings: dict[str, Any]) -> np.ndarray | None:
    """Return the 8-bit image, (h, w, 3), that pixel values, (1, 3, h, w), were made of."""
    if values.ndim != 4 or values.shape[0] != 1 or values.shape[1] != 3:
        return None
    image = values[0].float().numpy().astype(np.float64)
    if settings.get("do_normalize", False):
        mean, std = settings.get("image_mean"), settings.get("image_std")
        if mean is None or std is None:
            return None
        mean, std = (np.resize(np.float64(each), 3).reshape(3, 1, 1) for each in (mean, std))
        image = image * std + mean
    if settings.get("do_rescale", False):
        image = image / float(settings.get("rescale_factor") or 1 / 255)
    if not -0.75 <= image.min() <= image.max() <= 255.75:
        return None
    return np.clip(np.rint(image), 0, 255).astype(np.uint8).transpose(1, 2, 0)


def patches_of(values: Any, image: np.ndarray | None, config: Any, model: Any) -> Patches:
    """Return the tokens that a model makes of pixel values, (1, 3, h, w).

    Patches are numbered by row and column from 0; tokens that are no patch stand before them, and
    tokens that look for objects after them. `holds` tells whether a model does so.
    """
    none = Patches([], None, image)
    size = getattr(config, "patch_size", None)
    size = list(size) if isinstance(size, (list, tuple)) else [size, size]
    if values.ndim != 4 or len(size) != 2 or not all(isinstance(each, int) for each in size):
        return none
    if getattr(config, "window_size", 0) or hasattr(config, "depths"):
        return none  # patches are sorted into windows, or there are fewer from stage to stage
    rows, columns = values.shape[2] // size[0], values.shape[3] // size[1]
    counts = [0] * len(SPECIAL)
    for name, parameter in model.named_parameters():
        if not any(word in name for word in OTHERS):
            for place, names in enumerate(SPECIAL):
                if name.rpartition(".")[2] in names:
                    counts[place] = 1 if place < 2 else parameter.shape[-2]
    tokens = ["CLS"] * counts[0] + ["distillation"] * counts[1]
    tokens += [f"register {number}" for number in range(1, counts[2] + 1)]
    first = len(tokens)
    tokens += [f"patch {row},{column}" for row in range(rows) for column in range(columns)]
    boxes = np.zeros((len(tokens) + counts[3], 4), np.float32)
    for number in range(rows * columns):
        boxes[first + number] = box_of(*divmod(number, columns), size)
    tokens += [f"object {number}" for number in range(1, counts[3] + 1)]
    return Patches(tokens, boxes, image, (rows, columns), (size[0], size[1]))


def packed_patches(inputs: dict[str, Any], settings: dict[str, Any], config: Any) -> Patches:
    """Return the tokens of a picture that is given as a list of patches, as to Qwen2-VL.

    Patches of a square that will be one token of the text stand together, row by row.
    """
    values, grid = inputs["pixel_values"], inputs["image_grid_thw"].tolist()
    size, side, times = (
        settings.get(name) for name in ("patch_size", "merge_size", "temporal_patch_size")
    )
    if len(grid) != 1 or grid[0][0] != 1 or None in (size, side, times):
        return Patches([], None, None)
    rows, columns = grid[0][1:]
    if tuple(values.shape) != (rows * columns, 3 * times * size * size):
        return Patches([], None, None)
    squares = values.reshape(rows // side, columns // side, side, side, 3, times, size, size)
    whole = squares[..., 0, :, :].permute(4, 0, 2, 5, 1, 3, 6)
    image = pixels_of(whole.reshape(1, 3, rows * size, columns * size), settings)
    order = np.indices((rows, columns)).reshape(2, rows // side, side, columns // side, side)
    order = order.transpose(1, 3, 2, 4, 0).reshape(-1, 2)
    boxes = np.array([box_of(row, column, (size, size)) for row, column in order], np.float32)
    tokens = [f"patch {row},{column}" for row, column in order]
    if getattr(config, "window_size", 0):  # the model sorts them into windows
        tokens = []
    return Patches(tokens, boxes, image, (rows, columns), (size, size))


class SeenError(Exception):
    """What the first layer was given is known: the model need not run further."""


def holds(model: Any, inputs: dict[str, Any], patches: Patches) -> bool:
    """Return whether each token changes with the pixels of its patch and with no others.

    The model is asked, up to its first layer of so many tokens: for the first patch, the last one
    and two between, pixels are changed, and what the layer is given is compared.
    """
    import torch

    count, seen = len(patches.tokens), []

    def see(_: Any, args: Any, kwargs: Any) -> None:
        given = args[0] if args else kwargs.get("hidden_states")
        if isinstance(given, torch.Tensor) and given.numel() == count * given.shape[-1]:
            seen.append(given.detach().reshape(count, -1).clone())
            raise SeenError

    layers = [module for name, module in model.named_modules() if name.split(".")[-1].isdigit()]
    hooks = [layer.register_forward_pre_hook(see, with_kwargs=True) for layer in layers]
    real = [number for number, box in enumerate(patches.boxes) if box[2]]
    asked = [real[round(part * (len(real) - 1))] for part in (0, 0.35, 0.6, 1)]
    try:
        for number in [None, *asked]:
            values = inputs["pixel_values"].clone()
            if number is not None:
                x0, y0, x1, y1 = (int(each) for each in patches.boxes[number])
                part = values[number] if values.ndim == 2 else values[..., y0:y1, x0:x1]
                part += 1
            try:
                with torch.no_grad(), torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)
                    model(**{**inputs, "pixel_values": values})
                return False
            except SeenError:
                pass
            except Exception:
                return False
    finally:
        for hook in hooks:
            hook.remove()
    changed = [(one - seen[0]).abs().amax(-1).nonzero().flatten().tolist() for one in seen[1:]]
    return changed == [[number] for number in asked]


def box_of(row: int, column: int, size: Sequence[int]) -> tuple[int, int, int, int]:
    """Return x0, y0, x1, y1 of a patch of some height and width, in pixels."""
    height, width = size
    return column * width, row * height, (column + 1) * width, (row + 1) * height
