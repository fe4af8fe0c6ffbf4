"""The espeak-ng synthesizer, called as a library.

It comes with the package espeakng-loader and is GPL-3: it is loaded while running, and nothing of
it is part of this project.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import soxr

from entrain.deploy.errors import ToolError
from entrain.models.data.clips import SAMPLE_RATE, Samples

PACKAGE = "espeakng-loader"

# From espeak-ng's interface, speak_lib.h.
_SYNCHRONOUS = 2
_RATE, _PITCH, _RANGE = 1, 3, 4
_POSITION_CHARACTER = 1
_TEXT_UTF8 = 1
_ON_SOUND = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)

_REMEDY = f"Install it with: pip install {PACKAGE}"


@dataclass(frozen=True)
class Utterance:
    """One word as somebody says it.

    Args:
        word: what is said.
        variant: the voice, a name of espeak-ng's voice variants.
        accent: an English accent by its language code.
        rate: words a minute, 80 to 450.
        pitch: 0 to 100.
        pitch_range: liveliness, 0 to 100.
    """

    word: str
    variant: str
    accent: str
    rate: int
    pitch: int
    pitch_range: int


def espeak_version() -> str:
    """The version of the package that carries the synthesizer.

    Raises:
        ToolError: if it is not installed.
    """
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise ToolError("the speech synthesizer is not installed", remedy=_REMEDY) from error


def speak(utterances: tuple[Utterance, ...]) -> list[Samples]:
    """Say words, one after the other: 16 kHz int16 each, of the length it takes.

    The same words in the same order sound the same, to the bit.

    Raises:
        ToolError: if the synthesizer is missing, or cannot say a word.
    """
    with _fresh_library() as library:
        spoken: list[Samples] = []

        def keep(sound: ctypes._Pointer[ctypes.c_short], count: int, _: int) -> int:
            if sound and count > 0:
                spoken.append(np.ctypeslib.as_array(sound, (count,)).astype(np.int16))
            return 0

        on_sound = _ON_SOUND(keep)
        rate = library.espeak_Initialize(_SYNCHRONOUS, 0, _data_path().encode(), 0)
        if rate <= 0:
            raise ToolError(
                "the speech synthesizer does not start", where=_data_path(), remedy=_REMEDY
            )
        library.espeak_SetSynthCallback(on_sound)
        words = []
        for utterance in utterances:
            spoken.clear()
            _say(library, utterance)
            if not spoken:
                raise ToolError("the speech synthesizer stays silent", where=str(utterance))
            words.append(_resampled(np.concatenate(spoken), rate))
        library.espeak_Terminate()
    return words


def _say(library: ctypes.CDLL, utterance: Utterance) -> None:
    voice = f"{utterance.accent}+{utterance.variant}"
    if library.espeak_SetVoiceByName(voice.encode()):
        raise ToolError("the speech synthesizer has no such voice", where=voice)
    library.espeak_SetParameter(_RATE, utterance.rate, 0)
    library.espeak_SetParameter(_PITCH, utterance.pitch, 0)
    library.espeak_SetParameter(_RANGE, utterance.pitch_range, 0)
    text = utterance.word.encode()
    library.espeak_Synth(text, len(text) + 1, 0, _POSITION_CHARACTER, 0, _TEXT_UTF8, None, None)


def _resampled(sound: Samples, rate: int) -> Samples:
    resampled: Samples = soxr.resample(sound, rate, SAMPLE_RATE)
    return resampled


@contextmanager
def _fresh_library() -> Iterator[ctypes.CDLL]:
    """Load the synthesizer as if for the first time.

    It carries its state from word to word, beyond a restart. A copy under another name is loaded
    beside what is there and begins anew.
    """
    source = _library_path()
    with tempfile.TemporaryDirectory(prefix="entrain-") as folder:
        copy = Path(folder) / source.name
        try:
            shutil.copyfile(source, copy)
            library = ctypes.CDLL(str(copy))
        except OSError as error:
            raise ToolError(
                f"the speech synthesizer cannot be loaded ({error})",
                where=str(source),
                remedy=_REMEDY,
            ) from error
        library.espeak_Synth.argtypes = (
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_uint,
            ctypes.c_int,
            ctypes.c_uint,
            ctypes.c_uint,
            ctypes.c_void_p,
            ctypes.c_void_p,
        )
        yield library


def _library_path() -> Path:
    espeak_version()
    import espeakng_loader

    return Path(espeakng_loader.get_library_path())


def _data_path() -> str:
    import espeakng_loader

    return str(espeakng_loader.get_data_path())
