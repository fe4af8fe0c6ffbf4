"""What a WAV file says of itself, checked: libsndfile reads damaged ones without a word.

The layout is Microsoft's and IBM's RIFF ("Multimedia Programming Interface and Data
Specifications", 1991; WAVEFORMATEXTENSIBLE, 2001), RF64 included.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from entrain.deploy.errors import DataError

PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
# Bits of a sample that each encoding may have; of what is not listed libsndfile is the judge.
_BITS = {PCM: range(1, 33), FLOAT: (32, 64), A_LAW: (8,), MU_LAW: (8,)}
_RIFF = {b"RIFF": "<", b"RF64": "<", b"RIFX": ">"}
_UNTOLD = (0, 0xFFFFFFFF)  # sizes that a recorder left open, or that another chunk tells
_SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")  # behind the encoding's two bytes
_AGAIN = "Copy or record it again, or repair it with an audio editor."


@dataclass(frozen=True)
class _Chunk:
    name: bytes
    start: int
    size: int


def is_wav(beginning: bytes) -> bool:
    """Whether a file whose first four bytes these are is a WAV file."""
    return beginning in _RIFF


def check_wav(path: Path) -> None:
    """Make sure that a WAV file is whole and does not contradict itself.

    Raises:
        DataError: it does or is not; with what is wrong.
    """
    length = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        order = _RIFF[head[:4]]
        if head[8:] != b"WAVE":
            raise _wrong(path, "its header is that of another kind of file than sound")
        (size,) = struct.unpack(order + "I", head[4:8])
        if size not in _UNTOLD and size + 8 > length + 1:  # the last byte may be padding
            raise _wrong(path, f"it is cut short: {size + 8:,} bytes announced, {length:,} there")
        frame = None
        for chunk in _chunks(file, order, length):
            if chunk.name == b"fmt ":
                frame = _checked_format(path, file, order, chunk)
            elif chunk.name == b"data":
                _check_data(path, chunk, length, frame)
                return
    raise _wrong(path, "it has no sound: there is no data chunk")


def _chunks(file: BinaryIO, order: str, length: int) -> Iterator[_Chunk]:
    place = 12
    while place + 8 <= length:
        file.seek(place)
        name, size = struct.unpack(order + "4sI", file.read(8))
        yield _Chunk(name, place + 8, size)
        place += 8 + size + size % 2


def _checked_format(path: Path, file: BinaryIO, order: str, chunk: _Chunk) -> int:
    """Bytes of a frame, one sample of each channel; 0 where that is not fixed."""
    said = file.read(min(chunk.size, 40))
    if len(said) < 16:
        raise _wrong(path, f"its fmt chunk has {len(said)} bytes, not 16 or more")
    encoding, channels, rate, _, frame, bits = struct.unpack(order + "HHIIHH", said[:16])
    if encoding == EXTENSIBLE:
        if len(said) < 40 or said[26:] != _SUBFORMAT:
            raise _wrong(path, "its extensible header names no known encoding")
        (encoding,) = struct.unpack(order + "H", said[24:26])
    if channels == 0 or rate == 0:
        raise _wrong(path, f"its header says {channels} channels at {rate} Hz")
    if encoding not in _BITS:
        return 0
    if bits not in _BITS[encoding]:
        raise _wrong(path, f"its header says samples of {bits} bits, encoding {encoding}")
    expected = channels * -(-bits // 8)
    if frame != expected:
        raise _wrong(
            path,
            f"its header contradicts itself: {channels} channels of {bits} bits are {expected} "
            f"bytes, not {frame}",
        )
    return int(expected)


def _check_data(path: Path, chunk: _Chunk, length: int, frame: int | None) -> None:
    if frame is None:
        raise _wrong(path, "its sound comes before the header says how it is encoded")
    there = length - chunk.start
    if chunk.size not in _UNTOLD and chunk.size > there:
        raise _wrong(
            path, f"it is cut short: {chunk.size:,} bytes of sound announced, {there:,} there"
        )
    if frame and chunk.size not in _UNTOLD and chunk.size % frame:
        raise _wrong(path, f"its sound ends within a frame: {chunk.size:,} bytes, {frame} a frame")


def _wrong(path: Path, what: str) -> DataError:
    return DataError(f"the WAV file is damaged: {what}", where=str(path), remedy=_AGAIN)
