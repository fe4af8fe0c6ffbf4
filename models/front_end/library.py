"""The front end on this machine: the firmware's own C, compiled once and kept in the cache."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.c_compiler import call_c_compiler
from entrain.deploy.files import writing_whole
from entrain.models.data.cache import cache_folder, digest
from entrain.models.data.clips import Samples
from entrain.models.features import BANDS, HOP, WINDOW
from entrain.models.front_end.cmsis import cmsis_dsp

STEP = 2.0**-11  # of a value

FIRMWARE = Path(str(files("entrain.firmware")))
AUDIO = FIRMWARE / "audio"
_WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wconversion")
_COMMON = ("-O3", "-fPIC", "-ffunction-sections", "-fdata-sections", "-fvisibility=hidden")
# CMSIS-DSP without CMSIS-Core, and by the same C on every core: see firmware/CMakeLists.txt.
_PORTABLE = ("-D__GNUC_PYTHON__", "-DARM_MATH_AUTOVECTORIZE")


def log_mel_steps(samples: Samples) -> NDArray[np.int16]:
    """Log-mel values as the board computes them, to the last bit.

    Args:
        samples: int16 [N, S], S of 400 or more, at 16 kHz.

    Returns:
        int16 [N, 1 + (S - 400) // 320, 40], in steps of :data:`STEP`.

    Raises:
        ValueError: samples of another type or shape.
        ToolError: no C compiler, or CMSIS-DSP's sources cannot be fetched.
        UsageError: the cache cannot be written.
    """
    if samples.ndim != 2 or samples.dtype != np.int16 or samples.shape[1] < WINDOW:
        raise ValueError(f"clips must be int16 [N, {WINDOW} or more], not {samples.shape}")
    clips, length = samples.shape
    values = np.empty((clips, 1 + (length - WINDOW) // HOP, BANDS), np.int16)
    given = np.ascontiguousarray(samples)
    load().log_mel_clips(
        given.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_uint32(clips),
        ctypes.c_uint32(length),
        values.ctypes.data_as(ctypes.c_void_p),
    )
    return values


def log_mel(samples: Samples) -> NDArray[np.float32]:
    """Log-mel values, what networks are trained on: :func:`log_mel_steps` times :data:`STEP`.

    Args:
        samples: int16 [N, S], as there; errors as there too.

    Returns:
        float32 [N, 1 + (S - 400) // 320, 40], exact.
    """
    return log_mel_steps(samples) * np.float32(STEP)


@cache
def load() -> ctypes.CDLL:
    """The compiled front end.

    Raises:
        ToolError: no C compiler, or CMSIS-DSP's sources cannot be fetched.
        UsageError: the cache cannot be written.
    """
    own = [*sorted(AUDIO.glob("*.c")), FIRMWARE / "host" / "log_mel_clips.c"]
    contents = [path.read_text(encoding="utf-8") for path in [*own, *sorted(AUDIO.glob("*.h"))]]
    key = digest(cmsis_dsp().folder.name, *_COMMON, _call(["--version"], "cc"), *contents)
    library = cache_folder() / "front-end" / f"{key}.so"
    if not library.is_file():
        with writing_whole(library) as made:
            compile_library(own, [], made)
    return ctypes.CDLL(str(library))


def compile_library(own: Sequence[Path], folders: Sequence[Path], library: Path) -> None:
    """Compile C of the firmware with what the front end needs of CMSIS-DSP.

    Args:
        own: the C files.
        folders: where their headers lie, beside the front end's.
        library: the shared library to write.

    Raises:
        ToolError: no C compiler, it refuses a file, or CMSIS-DSP's sources cannot be fetched.
    """
    cmsis = cmsis_dsp()
    includes = [f"-isystem{place}" for place in cmsis.includes]
    includes += [f"-I{place}" for place in [AUDIO, *folders]]
    options = ["-std=gnu11", *_COMMON, *_PORTABLE, *includes]
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for sources, warnings in ((own, _WARNINGS), (cmsis.sources, ("-w",))):
            for source in sources:
                made = str(Path(folder) / f"{source.stem}.o")
                _call([*options, *warnings, "-c", str(source), "-o", made], str(source))
                objects.append(made)
        _call(["-shared", "-Wl,--gc-sections", *objects, "-o", str(library)], str(library))


def _call(arguments: list[str], where: str) -> str:
    return call_c_compiler(arguments, what="the firmware's C", where=where)
