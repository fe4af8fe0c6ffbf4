"""Where in its second a varied clip lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE, Samples
from entrain.models.data.spoken import spoken_part


@dataclass(frozen=True, eq=False)
class Placed:
    """Where clips go.

    Args:
        shifts: int [N], how many samples later than in its middle.
        is_cut: bool [N], whether less is left of a word than makes it one.
    """

    shifts: NDArray[np.int64]
    is_cut: NDArray[np.bool_]


class Placing(Protocol):
    """A way to place clips."""

    def place(
        self, samples: Samples, speeds: NDArray[np.float64], random: np.random.Generator
    ) -> Placed:
        """Where clips [N, 16000] go that play so much faster about their middles."""


@dataclass(frozen=True)
class Centred:
    """About where they are.

    Args:
        shift: how far a clip moves at most, in seconds to either side.
    """

    shift: float

    def place(
        self, samples: Samples, _speeds: NDArray[np.float64], random: np.random.Generator
    ) -> Placed:
        """See `Placing`; nothing counts as cut."""
        count = len(samples)
        limit = self.shift * SAMPLE_RATE
        shifts = np.rint(random.uniform(-limit, limit, count)).astype(np.int64)
        return Placed(shifts, np.zeros(count, np.bool_))


@dataclass(frozen=True)
class AsInAStream:
    """Wherever a window that slides over a stream may meet a word: whole, or a fragment of it.

    Args:
        fragments: the share of clips that are cut.
        seen: how much of a cut word is left, its beginning at the end of the second or its end at
            the beginning, as often each.
        reach: how far the middle of a whole word is from the window's at most, in seconds. Every
            word of a stream passes there.
    """

    fragments: float = 0.2
    seen: tuple[float, float] = (0.1, 0.5)
    reach: float = 0.12

    def place(
        self, samples: Samples, speeds: NDArray[np.float64], random: np.random.Generator
    ) -> Placed:
        """See `Placing`; what fills its whole second is not moved."""
        parts = np.array([spoken_part(clip) for clip in samples], np.float64)
        first, behind = ((parts - CLIP_SAMPLES / 2) / speeds[:, None] + CLIP_SAMPLES / 2).T
        count = len(samples)
        to_middle = CLIP_SAMPLES / 2 - (first + behind) / 2
        limit = self.reach * SAMPLE_RATE
        earliest = np.maximum(-first, to_middle - limit)
        latest = np.minimum(CLIP_SAMPLES - behind, to_middle + limit)
        whole = random.uniform(np.minimum(earliest, latest), latest)
        seen = random.uniform(*self.seen, count) * (behind - first)
        entering, leaving = CLIP_SAMPLES - first - seen, seen - behind
        fragment = np.where(random.random(count) < 0.5, entering, leaving)
        is_cut = (random.random(count) < self.fragments) & (earliest < latest)
        shifts = np.where(is_cut, fragment, whole)
        return Placed(np.rint(shifts).astype(np.int64), is_cut)
