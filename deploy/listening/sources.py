"""Where sound comes from: files, a folder of them, a microphone."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from entrain.deploy.errors import DataError, ToolError, UsageError
from entrain.models.data.clips import SAMPLE_RATE, Samples
from entrain.models.data.sound import Sound, open_sound

MICROPHONE_BLOCK = SAMPLE_RATE // 50
WAITING_BLOCKS = 500  # ten seconds of sound that nobody has taken yet
SUFFIXES = {".wav", ".flac", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".au", ".caf", ".mp3"}


class Source(Protocol):
    """Something that sounds."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def remark(self) -> str:
        """What was done to its sound, in words; empty if nothing."""

    def blocks(self) -> Iterator[Samples]:
        """Its sound, int16 [N] at 16 kHz, block by block.

        Raises:
            DataError: it cannot be read to its end.
        """


@dataclass(frozen=True)
class SoundFile:
    """A file that was looked at."""

    sound: Sound

    @property
    def name(self) -> str:
        """See `Source`."""
        return str(self.sound.path)

    @property
    def remark(self) -> str:
        """See `Source`."""
        return self.sound.converted

    def blocks(self) -> Iterator[Samples]:
        """See `Source`."""
        return self.sound.blocks()


def files_of(path: Path) -> list[Path]:
    """A file itself, or every sound file in a folder and those below, by name.

    Raises:
        DataError: there is none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES)
    if not found:
        raise DataError(
            "no sound files in this folder",
            where=str(path),
            remedy=f"files that are looked for: {', '.join(sorted(SUFFIXES))}",
        )
    return found


def sound_file(path: Path) -> SoundFile:
    """A file as a source.

    Raises:
        DataError: it cannot be read, or is no sound.
    """
    return SoundFile(open_sound(path))


class Microphone:
    """This machine's microphone, until it is interrupted.

    Args:
        device: PortAudio's number or a part of its name; None for the default one.

    Raises:
        ToolError: sounddevice or PortAudio is not installed.
        UsageError: there is no such microphone.
    """

    def __init__(self, device: str | None = None) -> None:
        self._sounddevice = _sounddevice()
        chosen = int(device) if device is not None and device.isdigit() else device
        try:
            found = self._sounddevice.query_devices(chosen, "input")
        except (ValueError, self._sounddevice.PortAudioError) as error:
            raise UsageError(
                f"no such microphone: {error}",
                where="--microphone",
                remedy=f"those there are: {self._known()}",
            ) from error
        self._device = int(found["index"])
        self.name = str(found["name"])
        self.remark = ""
        self.lost = 0  # samples that nobody took in time

    def blocks(self) -> Iterator[Samples]:
        """See `Source`; `lost` counts what came too quickly."""
        waiting: queue.Queue[Samples] = queue.Queue(WAITING_BLOCKS)

        def take(data: Any, frames: int, _time: object, status: Any) -> None:
            if status.input_overflow:
                self.lost += frames
            try:
                waiting.put_nowait(np.array(data[:, 0], np.int16))
            except queue.Full:
                self.lost += frames

        with self._sounddevice.InputStream(
            samplerate=SAMPLE_RATE,
            blocksize=MICROPHONE_BLOCK,
            device=self._device,
            channels=1,
            dtype="int16",
            callback=take,
        ):
            while True:
                yield waiting.get()

    def _known(self) -> str:
        devices = self._sounddevice.query_devices()
        inputs = [
            f"{each['index']} {each['name']}" for each in devices if each["max_input_channels"]
        ]
        return ", ".join(inputs) or "none"


def _sounddevice() -> Any:
    try:
        import sounddevice
    except ImportError as error:
        raise ToolError(
            "sounddevice is not installed", remedy="pip install 'entrain-edge[microphone]'"
        ) from error
    except OSError as error:
        raise ToolError(
            f"PortAudio cannot be used: {error}", remedy="sudo apt-get install libportaudio2"
        ) from error
    return sounddevice
