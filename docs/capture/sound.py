"""Sound as a model is given it, and when each token is."""

from pathlib import Path
from typing import Any

import numpy as np
from recording import CaptureError

MOST_SECONDS = 60
"""Longer sound is cut there: a frame of 20 ms is a token, and attention takes them by pairs."""


def open_sound(path: str | Path, rate: int, most: float, said: list[str]) -> np.ndarray:
    """Return the first sound of a file, mono, (samples,) in float32; say what was changed.

    Parameters
    ----------
    path : str or Path
        A file that FFmpeg's libraries read; a film's sound is taken.
    rate : int
        Samples a second that the model is given.
    most : float
        Seconds after which it is cut.
    said : list of str
        Gains a line for what was changed.
    """
    try:
        import av
    except ImportError:
        raise CaptureError("--audio needs PyAV: pip install av") from None
    parts, count, cut = [], 0, False
    try:
        with av.open(str(path)) as file:
            if not file.streams.audio:
                raise CaptureError(f"{path}: expected sound, and there is none in this file")
            stream = file.streams.audio[0]
            channels, own = stream.codec_context.channels, stream.codec_context.sample_rate
            resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
            for frame in file.decode(stream):
                for part in resampler.resample(frame):
                    parts.append(part.to_ndarray()[0])
                    count += len(parts[-1])
                if count > most * rate:
                    cut = True
                    break
            if not cut and parts:
                parts += [part.to_ndarray()[0] for part in resampler.resample(None)]
    except CaptureError:
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise CaptureError(f"{path}: {error.strerror}") from None
    except Exception as error:
        raise CaptureError(f"{path}: expected a file of sound: {type(error).__name__}") from None
    sound = np.concatenate([*parts, np.zeros(0, np.float32)])
    cut = cut or len(sound) > most * rate
    sound = sound[: int(most * rate)]
    if not len(sound):
        raise CaptureError(f"{path}: expected sound, and there are no samples in this file")
    if not np.isfinite(sound).all():
        raise CaptureError(f"{path}: expected finite samples, and there are NaN or infinite ones")
    if cut:
        said.append(f"{path}: its first {most:g} s are read, the rest is left out")
    if channels > 1:
        said.append(f"{path} has {channels} channels: they are mixed into one")
    if own != rate:
        said.append(f"{path} has {own} samples a second: the model is given {rate}")
    return sound


def frames_of(model: Any, inputs: dict[str, Any], extractor: Any) -> list[str]:
    """Return the times of the tokens that a model makes of sound; empty if it does not say.

    Convolutions stand before the layers: their strides tell how many samples a token is of.
    """
    rate = extractor.sampling_rate
    strides = getattr(model.config, "conv_stride", None) or [
        module.stride[0]
        for name, module in model.named_modules()
        if name.split(".")[-1] in ("conv1", "conv2", "conv3")
        and len(getattr(module, "stride", ())) == 1
    ]
    step = int(np.prod(strides))
    if not strides:
        return []
    if "input_values" in inputs and inputs["input_values"].ndim == 2:
        lengths = [
            module._get_feat_extract_output_lengths
            for module in model.modules()
            if hasattr(module, "_get_feat_extract_output_lengths")
        ]
        if not lengths:
            return []
        count, seconds = int(lengths[0](inputs["input_values"].shape[1])), step / rate
    elif "input_features" in inputs and hasattr(extractor, "hop_length"):
        features = inputs["input_features"].shape[-1]
        count, seconds = features // step, extractor.hop_length * step / rate
        if features % step:
            return []
    else:
        return []
    places = 2 if seconds >= 0.01 else 4
    return [f"{number * seconds:.{places}f} s" for number in range(count)]
