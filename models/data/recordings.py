"""Reading 16 kHz mono recordings, WAV or FLAC."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from entrain.deploy.errors import DataError
from entrain.models.data.cache import cached_array, digest
from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE, Samples
from entrain.models.data.sound import open_sound


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
    sound = open_sound(path)
    if sound.converted:
        raise DataError(
            f"the clip has {sound.channels} channel(s) at {sound.rate} Hz, not one at "
            f"{SAMPLE_RATE} Hz",
            where=str(path),
            remedy="Convert it to 16 kHz mono.",
        )
    return sound.samples()
