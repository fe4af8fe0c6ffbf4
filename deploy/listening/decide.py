"""Decisions from scores: the rule of firmware/listening/spotter.c, over a stream that is known.

With it thresholds can be tried without running the network again; tests hold the C to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.listening.hops import Heard, Hops


def decide(
    hops: Hops, smoothed_hops: int, thresholds: Sequence[int], refractory: Sequence[int]
) -> tuple[Heard, ...]:
    """The words that are heard in a whole stream.

    A word is heard when it has the largest mean score of the last hops, that reaches its threshold,
    and it was not heard within its refractory time; scores from before any word that was heard
    count no more.

    Args:
        hops: the stream from its start.
        smoothed_hops: over how many hops scores are averaged.
        thresholds: millionths, one a word.
        refractory: hops, one a word.
    """
    words = len(thresholds)
    scores = hops.scores[:, :words].astype(np.int64)
    # Forgetting only lowers means: no other hop can come to anything.
    candidates = np.flatnonzero((means(scores, smoothed_hops) >= np.array(thresholds)).any(axis=1))
    heard: list[Heard] = []
    begins = 0  # the first hop whose scores count
    allowed = [0] * words
    for hop in candidates.tolist():
        recent = scores[max(begins, hop + 1 - smoothed_hops) : hop + 1]
        smoothed = recent.sum(axis=0) // smoothed_hops
        word = int(smoothed.argmax())
        if smoothed[word] >= thresholds[word] and hop >= allowed[word]:
            heard.append(Heard(word, int(smoothed[word]), int(hops.at[hop])))
            begins = hop + 1
            allowed[word] = hop + refractory[word]
    return tuple(heard)


def means(scores: NDArray[np.int64], smoothed_hops: int) -> NDArray[np.int64]:
    """Of each hop the mean of it and those before it, [N, words]; before the start all were 0."""
    sums = np.cumsum(scores, axis=0)
    sums[smoothed_hops:] -= sums[:-smoothed_hops].copy()
    whole: NDArray[np.int64] = sums // smoothed_hops
    return whole
