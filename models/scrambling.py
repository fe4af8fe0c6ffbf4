"""Clips of no word, made of words: what a spotter has to know that it does not know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.models.data.clips import CLIP_SAMPLES, Samples
from entrain.models.data.spoken import spoken_part

REVERSED = 0.3  # the share that is played backwards; the rest is joined of two words' halves
SEAM = 160  # samples in which one half turns into the other


@dataclass(frozen=True, eq=False)
class Scrambled:
    """Clips of which some are of no word any more.

    Args:
        samples: int16 [N, 16000].
        is_scrambled: bool [N].
    """

    samples: Samples
    is_scrambled: NDArray[np.bool_]


def scramble(
    samples: Samples, targets: NDArray[np.int64], share: float, random: np.random.Generator
) -> Scrambled:
    """Take a share of the clips out of the words.

    Args:
        samples: int16 [N, 16000].
        targets: int64 [N]; halves of the same target are not joined.
        share: in [0, 1]; what fills its whole second is left alone.
        random: where the draws come from.
    """
    parts = [spoken_part(clip) for clip in samples]
    is_word = np.array([behind - first < CLIP_SAMPLES for first, behind in parts])
    chosen = is_word & (random.random(len(samples)) < share)
    result = samples.copy()
    for index in np.flatnonzero(chosen).tolist():
        first, behind = parts[index]
        partners = np.flatnonzero(is_word & (targets != targets[index]))
        if random.random() < REVERSED or not len(partners):
            result[index, first:behind] = samples[index, first:behind][::-1]
            continue
        other = int(random.choice(partners))
        head, tail = (
            _halves(samples[index], parts[index])[0],
            _halves(samples[other], parts[other])[1],
        )
        joined = _joined(head.astype(np.float32), tail.astype(np.float32))[:CLIP_SAMPLES]
        start = (CLIP_SAMPLES - len(joined)) // 2
        result[index] = 0
        result[index, start : start + len(joined)] = np.rint(joined)
    return Scrambled(result, chosen)


def _halves(clip: Samples, part: tuple[int, int]) -> tuple[Samples, Samples]:
    middle = sum(part) // 2
    return clip[part[0] : middle], clip[middle : part[1]]


def _joined(head: NDArray[np.float32], tail: NDArray[np.float32]) -> NDArray[np.float32]:
    """Two sounds as one, the second as loud as the first."""
    tail = tail * min(_level(head) / max(_level(tail), 1.0), 32_767 / max(np.abs(tail).max(), 1.0))
    seam = min(SEAM, len(head), len(tail))
    rising = np.linspace(0, 1, seam, dtype=np.float32)
    mixed = head[len(head) - seam :] * rising[::-1] + tail[:seam] * rising
    return np.concatenate([head[: len(head) - seam], mixed, tail[seam:]])


def _level(sound: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(sound))))
