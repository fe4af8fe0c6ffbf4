"""What a spotter made of sound, hop by hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.models.data.clips import SAMPLE_RATE


@dataclass(frozen=True)
class Heard:
    """A word that was heard.

    Args:
        word: its place among the words.
        score: smoothed, in millionths.
        at: how many samples had been heard by then.
    """

    word: int
    score: int
    at: int

    @property
    def seconds(self) -> float:
        """When that was, from the start of the stream."""
        return self.at / SAMPLE_RATE


@dataclass(frozen=True, eq=False)
class Hops:
    """Some hops of a stream.

    Args:
        at: int64 [N], samples heard by the end of each.
        scores: uint32 [N, classes], the network's, in millionths; 0 where it did not run.
        in_silence: bool [N], whether it did not run because nothing was loud enough.
        heard: the words, in order.
    """

    at: NDArray[np.int64]
    scores: NDArray[np.uint32]
    in_silence: NDArray[np.bool_]
    heard: tuple[Heard, ...]

    def __len__(self) -> int:
        return len(self.at)


def joined(parts: Sequence[Hops], classes: int) -> Hops:
    """Stretches of one stream, one behind the other."""
    return Hops(
        np.concatenate([np.zeros(0, np.int64), *(part.at for part in parts)]),
        np.concatenate([np.zeros((0, classes), np.uint32), *(part.scores for part in parts)]),
        np.concatenate([np.zeros(0, np.bool_), *(part.in_silence for part in parts)]),
        tuple(heard for part in parts for heard in part.heard),
    )
