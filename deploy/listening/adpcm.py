"""IMA ADPCM by the firmware's own C: four bits a sample, for slow lines."""

from __future__ import annotations

import ctypes
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.c_compiler import call_c_compiler
from entrain.models.data.clips import Samples
from entrain.models.front_end.library import FIRMWARE

_SOURCES = ("listening/adpcm.c", "host/adpcm_stream.c")


class AdpcmStream:
    """One direction of a stream: what is coded depends on all that came before."""

    def __init__(self) -> None:
        self._state = np.zeros(2, np.int32)

    def encode(self, samples: Samples) -> bytes:
        """The codes of an even number of samples, the earlier of two in the low four bits."""
        given = np.ascontiguousarray(samples, np.int16)
        codes = np.empty(len(given) // 2, np.uint8)
        _library().stream_encode(
            _address(self._state), _address(given), ctypes.c_uint32(len(given)), _address(codes)
        )
        return codes.tobytes()

    def decode(self, codes: bytes) -> Samples:
        """The samples of codes, two for each byte."""
        given = np.frombuffer(codes, np.uint8)
        samples = np.empty(2 * len(given), np.int16)
        _library().stream_decode(
            _address(self._state), _address(given), ctypes.c_uint32(len(samples)), _address(samples)
        )
        return samples


def _address(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@cache
def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="entrain-adpcm-") as folder:
        made = Path(folder) / "adpcm.so"
        sources = [str(FIRMWARE / name) for name in _SOURCES]
        options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion"]
        includes = [f"-I{FIRMWARE / 'listening'}"]
        call_c_compiler(
            [*options, *includes, "-shared", "-fPIC", "-o", str(made), *sources],
            what="the firmware's C",
            where=str(FIRMWARE / _SOURCES[0]),
        )
        return ctypes.CDLL(str(made))
