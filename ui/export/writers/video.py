"""MP4, WebM and GIF, by PyAV: frames are passed on, and no frame is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import IO, NamedTuple

import av
from av.codec.context import Flags
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from PySide6.QtGui import QImage

from ui.export.film import SEGMENT
from ui.export.sound import Sound
from ui.export.writers.gif import add_comment
from ui.export.writers.pixels import pixels_of
from ui.export.writers.x264 import x264_options
from ui.session.ticks import RATE

_OPTIONS = {
    ".mp4": ("mp4", "libx264", x264_options()),
    ".webm": (
        "webm",
        "libvpx-vp9",
        {"deadline": "realtime", "cpu-used": "8", "crf": "30", "b:v": "0", "row-mt": "1"},
    ),
}
_SOUND = {".mp4": "aac", ".webm": "libopus"}
_BITS = 64_000  # bits of sound a second: ticks are short, and there is one channel
_HUNDREDTH = Fraction(1, 100)
_THREADS = 4  # threads of an encoder, on every machine: x264 makes another file with another number
_BT709 = 1  # colour matrix, primaries and transfer of HD video, as H.273 numbers them


class CodedFrame(NamedTuple):
    """A frame as an encoder of H.264 or VP9 gives it; times are frames of its segment."""

    shown: int  # shown, decoded: its times
    decoded: int
    lasts: int
    key: bool  # whether the frame can be decoded without another
    data: bytes


class SegmentEncoder:
    """Encodes a segment of a film: the same on every machine, and after any other segment."""

    def __init__(self, ending: str, size: tuple[int, int], fps: int) -> None:
        _, codec, options = _OPTIONS[ending]
        context = av.CodecContext.create(codec, "w")
        assert isinstance(context, av.VideoCodecContext)
        context.options = dict(options)
        context.flags |= Flags.global_header
        context.framerate = Fraction(fps)
        _set_up(context, size, fps)
        self._context, self._fps, self._count = context, fps, 0

    def add(self, frame: av.VideoFrame | None) -> list[CodedFrame]:
        """Encode the next frame; None: encode all that is left. Return the finished frames."""
        if frame is not None:
            frame.pts, frame.time_base = self._count, Fraction(1, self._fps)
            self._count += 1
        return [
            CodedFrame(
                packet.pts, packet.dts, packet.duration or 1, packet.is_keyframe, bytes(packet)
            )
            for packet in self._context.encode(frame)
            if packet.pts is not None and packet.dts is not None
        ]  # fmt: skip


def _set_up(context: av.VideoCodecContext, size: tuple[int, int], fps: int) -> None:
    """Let an encoder make frames of a size in the colours of video."""
    context.width, context.height = size
    context.pix_fmt = "yuv420p"
    context.time_base = Fraction(1, fps)
    context.thread_count = _THREADS
    context.color_range = ColorRange.MPEG
    context.colorspace = context.color_primaries = context.color_trc = _BT709


class VideoFrames:
    """Makes frames for encoders of images."""

    def __init__(self) -> None:
        self._reformatter = VideoReformatter()

    def prepare(self, image: QImage) -> av.VideoFrame:
        """Return the image in the colours of video."""
        return self._reformatter.reformat(
            av.VideoFrame.from_numpy_buffer(pixels_of(image), format="bgra"),
            format="yuv420p",
            dst_colorspace=Colorspace.ITU709,
            dst_color_range=ColorRange.MPEG,
        )

    def sample(self, frame: av.VideoFrame) -> None:
        """Do nothing: no sample is needed."""


class VideoWriter(VideoFrames):
    """Writes MP4 or WebM, in segments; each segment is encoded on its own."""

    def __init__(
        self,
        out: IO[bytes],
        ending: str,
        size: tuple[int, int],
        fps: int,
        note: str,
        sound: Sound | None = None,
    ) -> None:
        super().__init__()
        container, codec, options = _OPTIONS[ending]
        self._box = av.open(out, "w", format=container)
        self._box.metadata["comment"] = note
        # This stream's encoder gives the file its head, and encodes nothing.
        stream = self._box.add_stream(codec, rate=fps, options=options)
        assert isinstance(stream, av.VideoStream)
        _set_up(stream.codec_context, size, fps)
        self._stream, self._fps = stream, fps
        self._new_encoder = partial(SegmentEncoder, ending, size, fps)
        self._encoder: SegmentEncoder | None = None
        self._sound = None if sound is None else _SoundTrack(self._box, ending, sound)
        self._count = 0  # frames that were given
        self._begin = 0  # the first frame of the segment
        self._last: av.VideoFrame | None = None

    def add(self, frame: av.VideoFrame | None) -> None:
        """Write the next frame; None: the same as the previous one."""
        if self._count % SEGMENT == 0:
            self._end_segment()
            self._encoder = self._new_encoder()
        assert self._encoder is not None
        self._last = frame = frame or self._last
        self._mux(self._encoder.add(frame))
        self._count += 1
        self._hear()

    def add_segment(self, frames: Sequence[CodedFrame]) -> None:
        """Write a segment that was encoded elsewhere."""
        self._mux(frames)
        self._count += len(frames)
        self._hear()
        self._begin = self._count

    def _end_segment(self) -> None:
        if self._encoder is not None:
            self._mux(self._encoder.add(None))
            self._encoder = None
        self._begin = self._count

    def _mux(self, frames: Iterable[CodedFrame]) -> None:
        for frame in frames:
            packet = av.Packet(frame.data)
            packet.stream, packet.time_base = self._stream, Fraction(1, self._fps)
            packet.pts, packet.dts = self._begin + frame.shown, self._begin + frame.decoded
            packet.duration, packet.is_keyframe = frame.lasts, frame.key
            self._box.mux(packet)

    def _hear(self) -> None:
        """Write the sound of the frames that were given."""
        if self._sound is not None:
            self._sound.add_until(Fraction(self._count, self._fps))

    def close(self) -> None:
        """Write the frames that the encoders still have, and the end."""
        self._end_segment()
        if self._sound is not None:
            self._sound.close()
        self._box.close()


class SegmentWriter(VideoFrames):
    """Keeps one segment, for a film that is put together elsewhere."""

    def __init__(self, ending: str, size: tuple[int, int], fps: int) -> None:
        super().__init__()
        self._encoder = SegmentEncoder(ending, size, fps)
        self._last: av.VideoFrame | None = None
        self.frames: list[CodedFrame] = []

    def add(self, frame: av.VideoFrame | None) -> None:
        """Encode the next frame; None: the same as the previous one."""
        self._last = frame = frame or self._last
        self.frames += self._encoder.add(frame)

    def close(self) -> None:
        """Encode all that is left."""
        self.frames += self._encoder.add(None)


class _SoundTrack:
    """The sound of a film, encoded as far as its pictures are."""

    def __init__(self, box: av.container.OutputContainer, ending: str, sound: Sound) -> None:
        stream = box.add_stream(_SOUND[ending], rate=RATE, layout="mono")
        assert isinstance(stream, av.AudioStream)
        stream.codec_context.bit_rate = _BITS
        self._box, self._stream, self._sound = box, stream, sound
        self._count = 0

    def add_until(self, seconds: Fraction) -> None:
        """Write all samples before a time."""
        stop = int(seconds * RATE)
        samples = self._sound.samples(self._count, stop)
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._count, Fraction(1, RATE)
        self._count = stop
        self._box.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Write the sound that the encoder still has."""
        self._box.mux(self._stream.encode(None))


class GifWriter:
    """Writes a GIF: one palette from a few samples, no dithering, only the changes.

    Dithering would differ in every frame: the file would be ten times as large.
    """

    def __init__(self, out: IO[bytes], size: tuple[int, int], fps: int, note: str) -> None:
        self._out, self._size, self._fps, self._note = out, size, fps, note
        self._box = av.open(out, "w", format="gif", options={"loop": "0"})
        stream = self._box.add_stream("gif", rate=fps)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = size
        stream.pix_fmt = "pal8"
        stream.time_base = stream.codec_context.time_base = _HUNDREDTH
        self._stream = stream
        self._samples: list[av.VideoFrame] = []
        self._graph: av.filter.Graph | None = None
        self._count = 0
        self._last: av.VideoFrame | None = None

    def prepare(self, image: QImage) -> av.VideoFrame:
        """Return a copy of the image, because the filter compares it with the next image."""
        return av.VideoFrame.from_ndarray(pixels_of(image), format="bgra")

    def sample(self, frame: av.VideoFrame) -> None:
        """Add the colours of a frame to the palette."""
        self._samples.append(frame)

    def _palette(self) -> av.VideoFrame:
        graph = av.filter.Graph()
        feed = self._feed(graph, *self._size, "bgra")
        made = graph.add("palettegen", "stats_mode=full:reserve_transparent=1")
        sink = graph.add("buffersink")
        feed.link_to(made)
        made.link_to(sink)
        graph.configure()
        for n, frame in enumerate(self._samples):
            frame.pts, frame.time_base = n, _HUNDREDTH
            feed.push(frame)
        feed.push(None)
        self._samples.clear()
        palette = sink.pull()
        assert isinstance(palette, av.VideoFrame)
        return palette

    def _feed(
        self, graph: av.filter.Graph, width: int, height: int, kind: str
    ) -> av.filter.FilterContext:
        pixels = av.VideoFormat(kind)
        return graph.add_buffer(width=width, height=height, format=pixels, time_base=_HUNDREDTH)

    def _start(self) -> None:
        palette = self._palette()
        self._graph = graph = av.filter.Graph()
        self._source = self._feed(graph, *self._size, "bgra")
        colours = self._feed(graph, palette.width, palette.height, palette.format.name)
        use = graph.add("paletteuse", "dither=none:diff_mode=rectangle")
        self._sink = graph.add("buffersink")
        self._source.link_to(use, 0, 0)
        colours.link_to(use, 0, 1)
        use.link_to(self._sink)
        graph.configure()
        palette.pts, palette.time_base = 0, _HUNDREDTH
        colours.push(palette)
        colours.push(None)

    def add(self, frame: av.VideoFrame | None) -> None:
        """Write the next frame; None: the same as the previous one."""
        if self._graph is None:
            self._start()
        time = round(100 * self._count / self._fps)
        self._count += 1
        if frame is None:
            assert self._last is not None
            self._last.pts = time
            self._box.mux(self._stream.encode(self._last))
            return
        frame.pts, frame.time_base = time, _HUNDREDTH
        self._source.push(frame)
        self._drain()

    def _drain(self) -> None:
        while True:
            try:
                frame = self._sink.pull()
            except (av.BlockingIOError, av.EOFError):
                return
            assert isinstance(frame, av.VideoFrame)
            self._last = frame
            self._box.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Write the frames that are left, the comment and the end."""
        self._source.push(None)
        self._drain()
        self._box.mux(self._stream.encode(None))
        self._box.close()
        add_comment(self._out, self._note)
