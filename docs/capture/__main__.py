"""Record Q, K and V of attention layers of a Hugging Face model, for Tilescope to open.

    python capture MODEL LAYERS OUT.safetensors [TEXT [DECODER_TEXT]] [--image FILE | --audio FILE]
                   [--weights]

MODEL is a folder or a name on the hub. LAYERS is a number, counted from 0, or a list as 0,3-5, or
all; of a model with several stacks of layers encoder.N, decoder.N or cross.N, which need the
decoder's text as well, or the stack's own name, as vision_model.N. Of more than one layer each has
a file of its own, OUT-N.safetensors. A model of pictures is given --image, one of sound --audio.
With --weights a file has x and the weights of the layer instead of Q, K and V. Needs torch and
transformers 5, Pillow for pictures, PyAV for sound; docs/capture.md tells more.
"""

import json
import os
import re
import sys
import warnings
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent)
if FOLDER not in sys.path:  # its modules are found by their names, from wherever it is started
    sys.path.insert(0, FOLDER)
EXTRA = (
    "capture needs torch and transformers 5, the extra `capture`: make run EXTRAS=capture in a "
    "checkout of Tilescope, or pip install torch transformers beside this folder"
)
USED = (
    "capture MODEL LAYERS OUT.safetensors [TEXT [DECODER_TEXT]] [--image FILE | --audio FILE] "
    "[--weights]"
)
PLACE = re.compile(r"(?:([A-Za-z_][\w.]*?)\.)?(\d{1,4})(?:-(\d{1,4})|\.(\d{1,4}))?")


class UsageError(Exception):
    """What a command line has wrong, in one line."""


def layer_list(text):
    """Return the layers that a text names, cross.0,cross.2-4 for example; None for all."""
    if text.strip() == "all":
        return None
    layers = []
    for part in text.split(","):
        match = PLACE.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"layers {text!r}: expected a number, a list as 0,3-5, or all")
        stack, first, last, own = match.groups()
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise UsageError(f"layers {text!r}: expected the lower number first in {part.strip()}")
        name = f"{stack}." if stack else ""
        layers += [f"{name}{number}" + (f".{own}" if own else "") for number in numbers]
    return list(dict.fromkeys(layers))


def write_files(name, layers, path, text="", target="", image=None, audio=None, weights=False):
    """Capture layers of a model by its name or folder; write files and return a line for each."""
    layers, path = layer_list(layers), Path(path)
    if path.suffix != ".safetensors":
        raise UsageError(f"{path}: expected a name that ends in .safetensors")
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path}: expected a file in a folder that there is")
    for file in (image, audio):
        if file is not None and not Path(file).is_file():
            raise UsageError(f"{file}: no such file")
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError:
        raise UsageError(EXTRA) from None
    from inputs import read
    from layers import capture_weights
    from loading import hold_weights, load
    from recording import CaptureError, capture

    model, reader = load(name)
    given = read(model, reader, text, target, image, audio)
    two = getattr(model.config, "is_encoder_decoder", False)
    if two:
        layers = layers and [layer if "." in layer else f"encoder.{layer}" for layer in layers]
        of_decoder = layers is None or any(not each.startswith("encoder.") for each in layers)
        if of_decoder and not target and "input_ids" in given.inputs:
            raise UsageError(f"{name}: expected a second text, which its decoder reads")
    try:
        hold_weights(model, reader, given.inputs)
        captured = (capture_weights if weights else capture)(model, layers, **given.inputs)
    except CaptureError as error:
        if given.lacks and "does not run on this" in str(error):
            raise UsageError(f"{name}: {given.lacks}; on text alone it does not run") from None
        raise
    files, lines = {}, []
    for place, (tensors, texts) in captured.items():
        file = path if len(captured) == 1 else path.with_stem(f"{path.stem}-{place}")
        tensors, texts = dict(tensors), {"model": str(name), "layer": place, **texts}
        keys = tensors["x" if weights else "k"].shape[-2]
        queries = tensors["x" if weights else "q"].shape[-2]
        said = label(place, tensors, texts, given, queries, keys)
        files[file] = (
            {
                one: tensor.float() if tensor.dtype == torch.float64 else tensor
                for one, tensor in tensors.items()
            },
            texts,
        )
        shapes = (f"{key} {tuple(tensor.shape)}" for key, tensor in tensors.items())
        lines.append(" ".join([str(file), *shapes]))
        if "after" in texts:
            said.append(f"O is not what the output projection is given: the layer {texts['after']}")
        lines += [f"  {place}: {one}" for one in said]
    save(files)
    lines += [f"left out {place}: {why}" for place, why in captured.left_out.items()]
    lines += given.said
    if any(each.dtype == torch.float64 for each in model.parameters()):
        lines.append("the model computes in float64: the numbers are rounded to float32")
    if weights:
        heads = " or ".join(map(str, sorted({captured.heads[place] for place in captured})))
        lines.append(
            f'Open it with source = "layer", and write `heads = {heads}` under [attention].'
        )
    return lines


def label(place, tensors, texts, given, queries, keys):
    """Add the tokens of a place to what its file has; return a line where there are none."""
    import torch

    of_keys = given.of_place(place, keys)
    of_queries = given.of_place(place, queries, queries=True)
    if of_keys is None:
        return [f"the file has no tokens: it is not known what its {keys} keys are"]
    texts["tokens"] = json.dumps(of_keys.tokens)
    if of_queries is not None and of_queries is not of_keys:
        texts["query_tokens"] = json.dumps(of_queries.tokens)
    patches = of_keys.patches
    if patches is not None and patches.boxes is not None and patches.image is not None:
        tensors["image"] = torch.from_numpy(patches.image.copy())
        tensors["patch_boxes"] = torch.from_numpy(patches.boxes)
    return []


def save(files):
    """Write files whole, or none of them."""
    from safetensors.torch import save_file

    for file in files:
        if file.is_dir():
            raise UsageError(f"{file}: expected a file, and this is a folder")
    written = {}
    try:
        for file, (tensors, texts) in files.items():
            part = file.with_name(f".{file.name}.{os.getpid()}.part")
            written[part] = file
            own = {one: tensor.contiguous().clone() for one, tensor in tensors.items()}
            save_file(own, part, texts)
        for part, file in written.items():
            os.replace(part, file)
    except Exception as error:
        raise UsageError(f"{next(iter(files))}: it cannot be written: {error}") from None
    finally:
        for part in written:
            part.unlink(missing_ok=True)


def options_of(words):
    """Return the positions and options of a command line."""
    found, places, rest = {}, [], list(words)
    while rest:
        word = rest.pop(0)
        if word == "--weights":
            found["weights"] = True
        elif word in ("--image", "--audio"):
            if not rest:
                raise UsageError(f"usage: {USED}")
            found[word[2:]] = rest.pop(0)
        elif word == "--":
            places += rest
            rest = []
        elif word.startswith("--") or len(places) > 4:
            raise UsageError(f"usage: {USED}")
        else:
            places.append(word)
    if not 3 <= len(places) <= 5:
        raise UsageError(f"usage: {USED}")
    return places, found


def one_line(error):
    """Return why there is no file: what a user can change, or what nobody has foreseen."""
    if type(error).__name__ in ("UsageError", "CaptureError"):
        return str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not captured: there is not enough memory; a shorter text takes less"
    why = (str(error).strip().splitlines() or [""])[0]
    return f"not captured: {type(error).__name__}: {why}"


def main(words):
    """Do what a command line says; return its exit status."""
    if not words or "--help" in words:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        places, found = options_of(words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = write_files(*places, **found)
    except Exception as error:
        print(one_line(error), file=sys.stderr)
        return 2
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
