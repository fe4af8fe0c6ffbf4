"""One-second clips and their words, whatever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.int16]

SAMPLE_RATE = 16_000
CLIP_SAMPLES = 16_000
FULL_SCALE = 32_768.0


def to_samples(sound: NDArray[Any]) -> Samples:
    """Sound of full scale 1 as whole numbers; what is louder is cut."""
    whole: Samples = np.clip(np.rint(sound * FULL_SCALE), -FULL_SCALE, FULL_SCALE - 1).astype(
        np.int16
    )
    return whole


@dataclass(frozen=True, eq=False)
class Clips:
    """One part of a data set.

    Args:
        samples: int16 [N, 16000], 16 kHz.
        targets: int64 [N], indices into the labels.
        speakers: who speaks each clip.
        names: what each clip is called in its source.
    """

    samples: Samples
    targets: NDArray[np.int64]
    speakers: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def select(self, indices: NDArray[np.int64] | Sequence[int]) -> Clips:
        """The clips at these indices, in their order."""
        chosen = [int(index) for index in indices]
        return Clips(
            samples=self.samples[chosen],
            targets=self.targets[chosen],
            speakers=tuple(self.speakers[index] for index in chosen),
            names=tuple(self.names[index] for index in chosen),
        )


def concatenate(parts: Sequence[Clips]) -> Clips:
    """The clips of all parts, one after the other."""
    return Clips(
        samples=np.concatenate([part.samples for part in parts]),
        targets=np.concatenate([part.targets for part in parts]),
        speakers=tuple(speaker for part in parts for speaker in part.speakers),
        names=tuple(name for part in parts for name in part.names),
    )


@dataclass(frozen=True, eq=False)
class KeywordData:
    """A keyword data set whose parts share no speaker.

    Args:
        labels: the words, in the order of the targets.
        train: clips to learn from.
        validation: clips to watch the training with.
        test: clips to report on.
        background: int16 recordings of noise to mix in, each at least one second; may be empty.
        source: where the clips come from, such as a folder, or ``synthetic``.
    """

    labels: tuple[str, ...]
    train: Clips
    validation: Clips
    test: Clips
    background: tuple[Samples, ...]
    source: str
