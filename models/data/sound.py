"""Sound files as they come: any rate, any number of channels, in blocks of 16 kHz mono."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from entrain.deploy.errors import DataError
from entrain.models.data.clips import SAMPLE_RATE, Samples, to_samples
from entrain.models.data.wav import check_wav, is_wav

BLOCK_SECONDS = 1.0
LARGEST = 8.0  # of a float sample, full scale being 1: more than that is another scale
_AGAIN = "Copy or record it again."
_OGG_PAGE, _OGG_LARGEST_PAGE, _OGG_END = b"OggS", 65_307, 4


@dataclass(frozen=True)
class Sound:
    """A sound file that was looked at, and can be read.

    Attributes:
        path: the file.
        rate: its samples a second.
        channels: how many it has.
        frames: samples of each channel, as it announces them.
    """

    path: Path
    rate: int
    channels: int
    frames: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.frames / self.rate

    @property
    def converted(self) -> str:
        """What has to be done to it, in words; empty if nothing."""
        done = []
        if self.rate != SAMPLE_RATE:
            done.append(f"resampled from {self.rate:,} to {SAMPLE_RATE:,} Hz")
        if self.channels != 1:
            done.append(f"{self.channels} channels mixed into one")
        return ", ".join(done)

    def blocks(self) -> Iterator[Samples]:
        """Its sound, int16 [N] at 16 kHz, a second or less at a time.

        Raises:
            DataError: it cannot be read to its end, or holds what is no sound.
        """
        resample = soxr.ResampleStream(self.rate, SAMPLE_RATE, 1, dtype="float32")
        read = 0
        for block in self._read():
            read += len(block)
            mono = block.mean(axis=1, dtype=np.float32)
            if self.rate != SAMPLE_RATE:
                mono = resample.resample_chunk(mono)
            yield to_samples(mono)
        if read < self.frames:
            raise self._cut_short(read)
        if self.rate != SAMPLE_RATE:
            yield to_samples(resample.resample_chunk(np.zeros(0, np.float32), last=True))

    def samples(self) -> Samples:
        """All of it, int16 [N]; errors as :meth:`blocks`."""
        return np.concatenate(list(self.blocks()))

    def _read(self) -> Iterator[NDArray[np.float32]]:
        with _opened(self.path) as file:
            while True:
                try:
                    block = file.read(
                        max(1, round(BLOCK_SECONDS * self.rate)), dtype="float32", always_2d=True
                    )
                except soundfile.LibsndfileError as error:
                    raise self._cut_short(file.tell()) from error
                if not len(block):
                    return
                self._check_numbers(block)
                yield block

    def _check_numbers(self, block: NDArray[np.float32]) -> None:
        if not np.isfinite(block).all():
            raise DataError(
                "the sound holds numbers that are not finite", where=str(self.path), remedy=_AGAIN
            )
        largest = float(np.abs(block).max())
        if largest > LARGEST:
            raise DataError(
                f"the sound has samples up to {largest:,.0f}, where full scale is 1",
                where=str(self.path),
                remedy="Divide its float samples by their full scale, or store whole numbers.",
            )

    def _cut_short(self, read: int) -> DataError:
        return DataError(
            f"the sound is cut short or damaged: {read / self.rate:.2f} of "
            f"{self.seconds:.2f} seconds can be read",
            where=str(self.path),
            remedy=_AGAIN,
        )


def open_sound(path: Path) -> Sound:
    """A WAV, FLAC, Ogg or other file that libsndfile knows, looked at.

    Raises:
        DataError: it cannot be read, is no sound, is empty, or is not whole as far as that can be
            seen without reading all of it.
    """
    try:
        with path.open("rb") as stream:
            kind = stream.read(4)
        if is_wav(kind):
            check_wav(path)
        if kind == _OGG_PAGE and not _ends_with_a_last_page(path):
            raise DataError(
                "the sound is cut short: its last page is missing", where=str(path), remedy=_AGAIN
            )
        with _opened(path) as file:
            sound = Sound(path, file.samplerate, file.channels, file.frames)
    except OSError as error:
        raise DataError(f"the sound cannot be read: {error.strerror}", where=str(path)) from error
    if sound.frames == 0:
        raise DataError("the sound is empty", where=str(path), remedy=_AGAIN)
    return sound


def _opened(path: Path) -> Any:
    try:
        return soundfile.SoundFile(path)
    except soundfile.LibsndfileError as error:
        raise DataError(
            f"this is no sound that can be read: {error.error_string.rstrip('.')}",
            where=str(path),
            remedy="WAV, FLAC, Ogg, AIFF, AU, CAF and MP3 files can be read.",
        ) from error


def _ends_with_a_last_page(path: Path) -> bool:
    """Whether the last page of an Ogg file is there, marked as the last and whole."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2 * _OGG_LARGEST_PAGE))
        tail = file.read()
    page = tail[tail.rfind(_OGG_PAGE) :]
    if len(page) < 27 or not page[5] & _OGG_END:
        return False
    segments = page[27 : 27 + page[26]]
    return len(segments) == page[26] and len(page) >= 27 + len(segments) + sum(segments)
