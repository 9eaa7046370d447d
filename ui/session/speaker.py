"""A sound device that plays ticks: mixing, opening and closing."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import sys
from collections import deque
from collections.abc import Generator
from threading import Event
from typing import Any

import numpy as np

from simulator.base.dtypes import F32
from ui.session.ticks import RATE, limited, tick

PERIOD_MS = 20
"""Milliseconds of sound that the device asks for at once. It keeps two or three such periods, and
a tick is as late. With shorter periods, sound stutters when the engine computes."""
_PATIENCE_S = 0.5
"""How long closing waits for the device to ask once more; a stopped device never asks."""


class NoSoundError(Exception):
    """Says in one line why nothing can be heard."""


class Mixer:
    """Mixes ticks; they are asked for in one thread and mixed in another."""

    def __init__(self) -> None:
        self._waves: dict[str, F32] = {}
        self._asked: deque[F32] = deque()  # the only value that both threads change
        self._rest: F32 = np.zeros(0, dtype=np.float32)  # the sum of all samples still to be heard

    def play(self, tensor: str) -> None:
        """Let a tensor's tick begin with the samples that are asked for next."""
        if tensor not in self._waves:
            self._waves[tensor] = tick(tensor)
        self._asked.append(self._waves[tensor])

    @property
    def silent(self) -> bool:
        """Whether nothing sounds or waits."""
        return not self._asked and not len(self._rest)

    def samples(self, count: int) -> F32:
        """Return the next samples, -1 to 1."""
        while self._asked:
            wave = self._asked[0]
            out = np.zeros(max(len(wave), len(self._rest)), dtype=np.float32)
            out[: len(self._rest)] += self._rest
            out[: len(wave)] += wave
            self._rest = out
            self._asked.popleft()  # only now: a tick waits until it is in the sum
        now = np.zeros(count, dtype=np.float32)
        part = self._rest[:count]
        now[: len(part)] = part
        self._rest = self._rest[count:]
        return limited(now)


class Speaker:
    """An open sound device; it is silent until a tick is played.

    backend: name of the only backend of miniaudio that is tried, ``NULL`` for one that plays to
        nobody; by default the system's backends.
    Raises NoSoundError: there is no sound device, or no library for one.
    """

    def __init__(self, backend: str = "") -> None:
        self._mixer = Mixer()
        self._ending = False
        self._ended = Event()
        self._device = _open(backend)
        source = self._source()
        next(source)
        try:
            self._device.start(source)
        except Exception as error:
            _close(self._device)
            raise _no_device(error) from error
        atexit.register(self.close)  # a process may end without closing its window

    @property
    def silent(self) -> bool:
        """Whether the device has played all ticks."""
        return self._mixer.silent

    def play(self, tensor: str) -> None:
        """Play a tensor's tick."""
        self._mixer.play(tensor)

    def close(self) -> None:
        """Close the device; its thread has ended then."""
        atexit.unregister(self.close)
        # The source ends in the device's thread: if the source were removed here, that thread could
        # look for it at the same moment.
        if self._ending:
            return
        self._ending = True
        self._ended.wait(_PATIENCE_S)
        _close(self._device)

    def _source(self) -> Generator[bytes, int, None]:
        """Yield samples in the device's thread, in which no error may be raised."""
        count = yield b""
        while not self._ending:
            try:
                samples = self._mixer.samples(count).tobytes()
            except Exception:  # nobody could be told; without samples the device is silent
                samples = b""
            count = yield samples
        self._ended.set()


def _open(backend: str) -> Any:
    """Return a device of miniaudio."""
    try:
        import miniaudio
    except ImportError as error:
        raise NoSoundError("No sound: miniaudio, the library for it, is not here.") from error
    _hush()
    try:
        device = miniaudio.PlaybackDevice(
            output_format=miniaudio.SampleFormat.FLOAT32,
            nchannels=1,
            sample_rate=RATE,
            buffersize_msec=PERIOD_MS,
            backends=[miniaudio.Backend[backend]] if backend else None,
            app_name="Tilescope",
        )
    except miniaudio.MiniaudioError as error:
        raise _no_device(error) from error
    if device.backend == "Null" and backend != "NULL":  # miniaudio's choice if no other works
        _close(device)
        raise NoSoundError("No sound: this computer has no sound device.")
    return device


def _close(device: Any) -> None:
    """Close a device, and its connection to the system, which miniaudio's Python leaves open."""
    from miniaudio import lib

    device.close()
    lib.ma_context_uninit(device._context)


def _no_device(error: Exception) -> NoSoundError:
    why = error.args[0] if error.args else type(error).__name__
    return NoSoundError(f"No sound: no device can be opened ({why}).")


_SAY_NOTHING = ctypes.CFUNCTYPE(None)(lambda: None)
"""Replaces the function that prints ALSA's errors; its arguments are left alone."""


def _hush() -> None:
    """Keep ALSA from printing a page of errors where there is no device."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libasound.so.2").snd_lib_error_set_handler(_SAY_NOTHING)
