"""Where in a clip its word is said."""

from __future__ import annotations

import numpy as np

from entrain.models.data.clips import SAMPLE_RATE, Samples

QUIET_DB = 30.0  # what lies so far below a clip's loudest moment is not the word
MOMENT = SAMPLE_RATE // 50  # samples over which loudness is taken


def spoken_part(clip: Samples) -> tuple[int, int]:
    """The first sample of what is said in a clip, and the one behind the last.

    From the first to the last moment (20 ms) whose power is within 30 dB of the loudest one's.
    """
    moments = len(clip) // MOMENT
    power = np.square(clip[: moments * MOMENT].astype(np.float64)).reshape(moments, -1).mean(axis=1)
    loud = np.flatnonzero(power >= power.max() * 10 ** (-QUIET_DB / 10))
    return int(loud[0]) * MOMENT, int(loud[-1] + 1) * MOMENT
