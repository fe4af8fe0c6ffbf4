"""The firmware's spotter, compiled for this machine and called in this process."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.listening.hops import Heard, Hops
from entrain.deploy.lowering.host import KERNELS
from entrain.models.data.clips import Samples
from entrain.models.features import HOP
from entrain.models.front_end.library import FIRMWARE, compile_library

NO_WORD = np.iinfo(np.uint32).max
_OWN = ("listening/spotter.c", "listening/window.c", "app/scores.c")
_HOST = "host/spotter_stream.c"


class HostSpotter:
    """A spotter that hears what it is given as quickly as this machine can.

    Args:
        lowered: the folder of the network's C.
        settings: the folder with spotter_settings.[ch].
        words: how many words there are.
        classes: of the network.

    Raises:
        ToolError: no C compiler, or CMSIS-DSP's sources cannot be fetched.
    """

    def __init__(self, lowered: Path, settings: Path, words: int, classes: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="entrain-spotter-")
        library = Path(self._folder.name) / "spotter.so"
        own = [lowered / "model.c", lowered / "weights.c", settings / "spotter_settings.c"]
        own += [FIRMWARE / name for name in (*_OWN, _HOST)]
        own += sorted((FIRMWARE / "audio").glob("*.c"))
        folders = [lowered, settings, KERNELS, FIRMWARE / "app", FIRMWARE / "listening"]
        compile_library(own, folders, library)
        self._library = ctypes.CDLL(str(library))
        self._library.stream_hear.restype = ctypes.c_uint32
        self._classes = classes
        self._hop = np.dtype(
            [
                ("heard", np.uint64),
                ("raw", np.uint32, classes),
                ("smoothed", np.uint32, words),
                ("word", np.uint32),
                ("in_silence", np.bool_),
            ],
            align=True,
        )
        self.start()

    def start(self) -> None:
        """Forget everything."""
        self._left: Samples = np.zeros(0, np.int16)
        self._library.stream_start()

    def hear(self, samples: Samples) -> Hops:
        """Hear samples, int16 [N]; less than a frame waits for the next call."""
        given = np.ascontiguousarray(np.concatenate([self._left, samples]), np.int16)
        frames = len(given) // HOP
        self._left = given[frames * HOP :]
        hops = np.zeros(frames + 1, self._hop)
        ended = self._library.stream_hear(
            given.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint32(frames),
            hops.ctypes.data_as(ctypes.c_void_p),
        )
        return _hops(hops[:ended])


def _hops(hops: NDArray[np.void]) -> Hops:
    heard = tuple(
        Heard(int(hop["word"]), int(hop["smoothed"][hop["word"]]), int(hop["heard"]))
        for hop in hops[hops["word"] != NO_WORD]
    )
    return Hops(
        hops["heard"].astype(np.int64), hops["raw"].copy(), hops["in_silence"].copy(), heard
    )
