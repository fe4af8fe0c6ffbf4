"""Reading 16 kHz mono recordings, WAV or FLAC."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile

from entrain.deploy.errors import DataError
from entrain.models.data.cache import cached_array, digest
from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE, Samples

_AGAIN = "Copy or download this file again, or delete it."


def decode_clips(paths: Sequence[Path]) -> Samples:
    """One-second clips, int16 [N, 16000]: zeros follow a short recording, a long one is cut.

    The decoded clips are kept in the user's cache folder until a file of the list changes.

    Raises:
        DataError: if a file cannot be read or is cut short.
    """

    def decode() -> Samples:
        samples = np.zeros((len(paths), CLIP_SAMPLES), dtype=np.int16)
        for clip, path in zip(samples, paths, strict=True):
            recording = read_recording(path)[:CLIP_SAMPLES]
            clip[: len(recording)] = recording
        return samples

    stamps = [(path.resolve(), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return cached_array("speech", digest(*stamps), decode)


def read_recording(path: Path) -> Samples:
    """All samples of a recording, int16 [N].

    Raises:
        DataError: if the file cannot be read, is empty, cut short, or not 16 kHz mono.
    """
    try:
        with soundfile.SoundFile(path) as file:
            rate, channels, announced = file.samplerate, file.channels, file.frames
            samples: Samples = file.read(dtype="int16")
    except (OSError, soundfile.LibsndfileError) as error:
        raise DataError(
            f"the clip cannot be read ({error})", where=str(path), remedy=_AGAIN
        ) from error
    if (rate, channels) != (SAMPLE_RATE, 1):
        raise DataError(
            f"the clip has {channels} channel(s) at {rate} Hz, not one at {SAMPLE_RATE} Hz",
            where=str(path),
            remedy="Convert it to 16 kHz mono.",
        )
    if len(samples) == 0 or len(samples) < announced or _is_cut_short(path):
        raise DataError("the clip is empty or cut short", where=str(path), remedy=_AGAIN)
    return samples


def _is_cut_short(path: Path) -> bool:
    """Whether a WAV file is smaller than it says; libsndfile reads what is left without a word."""
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] != b"RIFF":
        return False
    (size,) = struct.unpack("<I", head[4:])
    # Recorders that stream leave the size at its largest value.
    return bool(size != 0xFFFFFFFF and size + 8 > path.stat().st_size + 1)
