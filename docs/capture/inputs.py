"""What a model is given: texts, pictures and sound, and the names of its tokens."""

import contextlib
import inspect
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from loading import Reader, first_line
from pictures import (
    Patches,
    box_of,
    holds,
    open_picture,
    packed_patches,
    patches_of,
    pixels_of,
    prepared,
)
from recording import CaptureError
from sound import MOST_SECONDS, frames_of, open_sound

MOST_TOKENS = 8192
"""More are refused: attention is checked pair by pair, in float64."""
POSITIONS = ("position_embeddings", "position_embedding", "embed_positions", "wpe",
             "positions_embed")  # fmt: skip
"""Names of tables with a row for each position, beyond which a model cannot read."""
MIXING = ("qformer", "resampler", "perceiver", "abstractor", "query_tokens")
"""Parts of a model that make of a picture tokens of which none is a patch's."""
SIDES = {
    "vision": ("vision", "visual", "image", "vit", "pixel"),
    "audio": ("audio", "speech", "sound"),
    "text": ("text", "language", "llm"),
}
"""Words in the name of a stack of layers that say what its tokens are of."""


@dataclass
class Sequence:
    """Tokens that attention may run over.

    Attributes
    ----------
    side : str
        text, vision or audio; encoder or decoder of a model that has both.
    tokens : list of str
        The label of each.
    patches : Patches or None
        Where in the picture they are.
    """

    side: str
    tokens: list[str]
    patches: Patches | None = None


@dataclass
class Given:
    """What a model is given.

    Attributes
    ----------
    inputs : dict
        Tensors by the names that the model's ``forward`` has for them.
    sequences : list of Sequence
        Their tokens.
    said : list of str
        A line for each thing that was left out or changed.
    lacks : str
        What the model reads and was not given, in one line.
    """

    inputs: dict[str, Any] = field(default_factory=dict)
    sequences: list[Sequence] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    lacks: str = ""

    def of_place(self, place: str, count: int, queries: bool = False) -> Sequence | None:
        """Return the sequence of `count` tokens that a place's keys, or its queries, are of.

        None where no sequence belongs to that stack of layers, or it has another number of tokens.
        """
        stack = re.sub(r"\.?\d+(\.\d+)?$", "", place).lower()
        sides = {each.side for each in self.sequences}
        if "decoder" in sides and stack in ("", "encoder", "decoder", "cross"):
            side = "decoder" if stack == "decoder" or (stack == "cross" and queries) else "encoder"
        else:
            named = [side for side, words in SIDES.items() if any(word in stack for word in words)]
            side = named[0] if named else ""
            if not side and (stack in ("", "encoder") and len(sides) == 1):
                side = next(iter(sides))
        fit = [one for one in self.sequences if one.side == side and len(one.tokens) == count]
        return fit[0] if len(fit) == 1 else None


def tokens_of(reader: Reader, ids: Any) -> list[str]:
    """Return the text of each token, (1, N)."""
    return [reader.tokenizer.decode([token]) for token in ids[0].tolist()]


def ids_of(reader: Reader, model: Any, text: str, what: str, side: str, said: list[str]) -> Any:
    """Return the ids of a text, (1, N), that the model can read."""
    import torch

    if not text.strip():
        raise CaptureError(f"{what}: expected a text, and it is empty")
    tokenizer = reader.tokenizer
    try:
        ids = list(tokenizer(text).input_ids)
    except Exception as error:
        raise CaptureError(f"{what}: its tokens cannot be told: {first_line(error)}") from None
    if not ids:
        raise CaptureError(f"{what}: expected a text with at least one token")
    return held(torch.tensor([ids]), reader, model, what, side, said)


def held(ids: Any, reader: Reader, model: Any, what: str, side: str, said: list[str]) -> Any:
    """Return ids after holding that the model has a row for each, and for each position."""
    config = reader.config.get_text_config(decoder=side == "decoder")
    rows = getattr(config, "vocab_size", None)
    table = None
    with contextlib.suppress(Exception):
        table = model.get_input_embeddings()
    if side == "" and type(table).__name__ == "Embedding":
        rows = table.num_embeddings
    if isinstance(rows, int) and not 0 <= int(ids.min()) <= int(ids.max()) < rows:
        raise CaptureError(
            f"{reader.name}: its tokenizer gives token {int(ids.max())}, and the model has {rows} "
            "(the tokenizer of another model?)"
        )
    count, most = ids.shape[1], positions(model, side)
    if most is not None and count > most:
        raise CaptureError(f"{what}: {count} tokens, and the model has {most} positions")
    if count > MOST_TOKENS:
        raise CaptureError(f"{what}: {count} tokens, expected at most {MOST_TOKENS}")
    trained = getattr(config, "max_position_embeddings", None)
    if most is None and isinstance(trained, int) and 0 < trained < count:
        said.append(f"{what} has {count} tokens, and the model was made for {trained}")
    return ids


def positions(model: Any, side: str) -> int | None:
    """Return how many positions a model's table for texts has; None if it has none."""
    other = ("vision", "visual", "image", "audio", "encoder." if side == "decoder" else "decoder.")
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in POSITIONS and hasattr(module, "num_embeddings"):
            if any(word in f"{name}." for word in other):
                continue
            before = getattr(module, "offset", None)
            if before is None:
                before = 0 if module.padding_idx is None else module.padding_idx + 1
            return int(module.num_embeddings) - int(before)
    return None


def read(
    model: Any,
    reader: Reader,
    text: str = "",
    target: str = "",
    image: str | None = None,
    audio: str | None = None,
) -> Given:
    """Return what a model is given for texts, a picture and sound.

    Parameters
    ----------
    model, reader
        As `load` returns them.
    text, target : str
        What the model reads, and what its decoder does.
    image, audio : str or None
        Files.

    Raises
    ------
    CaptureError
        It cannot be read, or the model takes no such thing.
    """

    given = Given()
    takes = set(inspect.signature(model.forward).parameters)
    two = bool(getattr(model.config, "is_encoder_decoder", False)) and "decoder_input_ids" in takes
    sees = "pixel_values" in takes
    hears = sorted(takes & {"input_values", "input_features"})
    if image is None and audio is None:
        given.lacks = needs(sees, bool(hears))
    check_asked(reader, sees, bool(hears), takes, text, image, audio)
    words = text
    stands = placeholder(reader.config, "image" if image is not None else "audio")
    if stands is not None and (image is not None or audio is not None):
        together(model, reader, text, image, audio, given)
        given.sequences[-1].side = "encoder" if two else "text"
        words = ""
    elif image is not None:
        picture(model, reader, image, two and "input_ids" not in takes, given)
    elif audio is not None:
        sound(model, reader, audio, two, given)
    if not ({"input_ids", "decoder_input_ids"} & takes):
        if text or target:
            given.said.append("the text is left out: the model reads none")
        words = target = ""
    elif two and (image or audio) and not given.inputs.get("input_ids") is not None:
        if target:
            given.said.append("the second text is left out: the model reads one, by its decoder")
        start(model, reader, words, given)
        words = target = ""
    if words or (image is None and audio is None):
        ids = ids_of(reader, model, words, "TEXT", "encoder" if two else "", given.said)
        given.inputs["input_ids"] = ids
        given.sequences.append(Sequence("encoder" if two else "text", tokens_of(reader, ids)))
    if two and "decoder_input_ids" not in given.inputs:
        own = given.inputs["input_ids"]
        if target:
            own = ids_of(reader, model, target, "DECODER_TEXT", "decoder", given.said)
        given.inputs["decoder_input_ids"] = own
        given.sequences.append(Sequence("decoder", tokens_of(reader, own)))
    elif target and not two:
        given.said.append("the second text is left out: the model has no decoder for it")
    return given


def as_model(model: Any, given: Given) -> None:
    """Give the numbers the type that the model computes in."""
    kind = next(one.dtype for one in model.parameters() if one.is_floating_point())
    for name, value in given.inputs.items():
        if value.is_floating_point():
            given.inputs[name] = value.to(kind)


def placeholder(config: Any, what: str) -> int | None:
    """Return the token that stands for a picture's patches, or sound's frames, in a text."""
    for name in (f"{what}_token_id", f"{what}_token_index"):
        if isinstance(getattr(config, name, None), int):
            return int(getattr(config, name))
    return None


def needs(sees: bool, hears: bool) -> str:
    """Return what a model that was given text alone may need."""
    options = ["--image FILE"] * sees + ["--audio FILE"] * hears
    named = " or ".join(["pictures"] * sees + ["sound"] * hears)
    return f"the model reads {named}: expected {' or '.join(options)}" if options else ""


def check_asked(
    reader: Reader,
    sees: bool,
    hears: bool,
    takes: set[str],
    text: str,
    image: str | None,
    audio: str | None,
) -> None:
    """Stop where a model is given what it does not take, or lacks what it needs."""
    name = reader.name
    if image is not None and audio is not None:
        raise CaptureError("--image and --audio: expected one of them")
    if image is not None and not sees:
        films = " (it reads films)" if any("video" in one for one in takes) else ""
        raise CaptureError(f"{name}: --image is given, and the model reads no pictures{films}")
    if audio is not None and not hears:
        raise CaptureError(f"{name}: --audio is given, and the model reads no sound")
    needs_text = "input_ids" in takes
    if image is None and audio is None and not needs_text:
        raise CaptureError(f"{name}: {needs(sees, hears) or 'the model reads no text'}")
    if needs_text and not text.strip():
        raise CaptureError(f"{name}: TEXT: expected a text, and it is empty")


def picture(model: Any, reader: Reader, path: str, encodes: bool, given: Given) -> None:
    """Give a picture to a model."""
    settings = reader.image_settings
    opened = open_picture(path, given.said)
    times = getattr(reader.config, "num_frames", None)
    if isinstance(times, int):
        values = prepared(opened, settings, [])
        given.inputs["pixel_values"] = values[:, None].repeat(1, times, 1, 1, 1)
        given.said.append(f"the model reads films: it is given the picture {times} times")
    elif reader.image_processor is None:
        given.inputs["pixel_values"] = prepared(opened, settings, given.said)
    else:
        made = processed(reader.image_processor, path, images=opened)
        takes = inspect.signature(model.forward).parameters
        given.inputs |= {name: value for name, value in made.items() if name in takes}
    as_model(model, given)
    of_picture(reader, model, given, "encoder" if encodes else "vision")


def processed(processor: Any, path: str, **asked: Any) -> dict[str, Any]:
    """Return what a processor makes of a file; refuse in one line."""
    try:
        return dict(processor(return_tensors="pt", **asked))
    except Exception as error:
        raise CaptureError(
            f"{path}: the model's processor cannot take it: {first_line(error)}"
        ) from None


def of_picture(reader: Reader, model: Any, given: Given, side: str) -> Patches:
    """Name the patches of a picture; return where they are."""
    values, config = given.inputs["pixel_values"], reader.config
    for name in ("vision_config", "image_config"):
        config = getattr(config, name, None) or config
    if "image_grid_thw" in given.inputs:
        patches = packed_patches(given.inputs, reader.image_settings, config)
    else:
        values = values[:, 0] if values.ndim == 5 and values.shape[1] == 1 else values
        patches = patches_of(values, pixels_of(values, reader.image_settings), config, model)
    if patches.tokens and holds(model, given.inputs, patches):
        given.sequences.append(Sequence(side, patches.tokens, patches))
    else:
        given.said.append(
            "the vision layers have no names of patches: which token is which cannot be told"
        )
    return patches


def sound(model: Any, reader: Reader, path: str, two: bool, given: Given) -> None:
    """Give sound to a model."""
    extractor = reader.extractor
    rate = getattr(extractor, "sampling_rate", None)
    if not isinstance(rate, int):
        raise CaptureError(f"{reader.name}: its feature extractor does not say how it is sampled")
    most = min(MOST_SECONDS, getattr(extractor, "chunk_length", None) or MOST_SECONDS)
    samples = open_sound(path, rate, most, given.said)
    made = processed(lambda **asked: extractor(samples, sampling_rate=rate, **asked), path)
    takes = set(inspect.signature(model.forward).parameters)
    given.inputs |= {
        name: value
        for name, value in made.items()
        if name in takes and name not in ("attention_mask", "padding_mask")
    }
    as_model(model, given)
    names = frames_of(model, given.inputs, extractor)
    if len(names) > MOST_TOKENS:
        raise CaptureError(f"{path}: {len(names)} tokens, expected at most {MOST_TOKENS}")
    own = len(samples) / rate
    if names and "input_features" in given.inputs and float(names[-1].split()[0]) > own:
        given.said.append(f"{path} has {own:.2f} s: what the model is given after that is silence")
    if not names:
        given.said.append("the frames have no names: it cannot be told when each of them is")
    else:
        given.sequences.append(Sequence("encoder" if two else "audio", names))


def start(model: Any, reader: Reader, text: str, given: Given) -> None:
    """Give a decoder the text, or where there is none the token that it starts with."""
    import torch

    if text.strip():
        ids = ids_of(reader, model, text, "TEXT", "decoder", given.said)
    else:
        first = getattr(model.config, "decoder_start_token_id", None)
        if not isinstance(first, int):
            raise CaptureError(f"{reader.name}: expected a TEXT, which its decoder reads")
        ids = torch.tensor([[first]])
        given.said.append("no text: the decoder reads the token that it starts with")
    given.inputs["decoder_input_ids"] = ids
    given.sequences.append(Sequence("decoder", tokens_of(reader, ids)))


def together(
    model: Any, reader: Reader, text: str, image: str | None, audio: str | None, given: Given
) -> None:
    """Give text and a picture, or sound, to a model that reads them as one sequence."""
    what, named = ("image", "picture") if image is not None else ("audio", "sound")
    processor, asked = reader.processor, {}
    if image is not None:
        asked["images"] = [open_picture(image, given.said)]
    if audio is not None:
        rate = reader.extractor.sampling_rate
        asked |= {"audio": open_sound(audio, rate, 30, given.said), "sampling_rate": rate}
    stands = getattr(processor, "boi_token", None) if what == "image" else None
    if image is not None:
        whole(processor, asked, given)
    stands = stands or getattr(processor, f"{what}_token", None)
    if isinstance(stands, str) and stands not in text:
        text = stands + text
        given.said.append(f"the {named} stands before the text")
    made = processed(processor, image or audio or "", text=[text], **asked)
    takes = set(inspect.signature(model.forward).parameters)
    given.inputs |= {name: value for name, value in made.items() if name in takes}
    ids, token = made["input_ids"], placeholder(reader.config, what)
    held(ids.where(ids != token, 0), reader, model, "TEXT", "", given.said)
    labels = tokens_of(reader, ids)
    stand = (ids[0] == token).nonzero().flatten().tolist()
    given.said.append(f"{len(stand)} tokens of the text stand for the {named}")
    sequence = Sequence("text", labels)
    if image is not None:
        as_model(model, given)
        patches = of_picture(reader, model, given, "vision")
        if not any(word in name for name, _ in model.named_parameters() for word in MIXING):
            sequence = in_text(labels, stand, patches)
    elif names := frames_of(model, given.inputs, reader.extractor):
        given.sequences.append(Sequence("audio", names))
    given.sequences.append(sequence)


def whole(processor: Any, asked: dict[str, Any], given: Given) -> None:
    """Ask a processor for the picture alone, where it would cut tiles out of it as well."""
    for name in ("crop_to_patches", "do_image_splitting", "do_pan_and_scan"):
        if getattr(processor.image_processor, name, None) is not None:
            asked[name] = False
            given.said.append("the picture is given whole, and not in tiles as well")


def in_text(labels: list[str], stand: list[int], patches: Patches) -> Sequence:
    """Return the tokens of a text in which some stand for a picture's patches, row by row.

    Where there are fewer than patches each stands for a square of them, if that divides the rows
    and columns; else they keep the name that the tokenizer gives them.
    """
    rows, columns = patches.grid
    side = next(
        (n for n in range(1, rows + 1) if rows // n * (columns // n) == len(stand)
         and rows % n == columns % n == 0), 0
    )  # fmt: skip
    if not side:
        return Sequence("text", labels)
    boxes = np.zeros((len(labels), 4), np.float32)
    for number, token in enumerate(stand):
        row, column = divmod(number, columns // side)
        labels[token] = f"patch {row},{column}"
        boxes[token] = box_of(row, column, [side * each for each in patches.size])
    return Sequence("text", labels, Patches(labels, boxes, patches.image))
