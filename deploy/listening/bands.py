"""From log-mel values to the network's integers: an affine map a band, in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.errors import ModelError
from entrain.deploy.lowering.artifact import TensorRecord
from entrain.models.features import BANDS
from entrain.models.front_end import STEP
from entrain.models.keyword_task import FeatureStatistics

SHIFT = 24


@dataclass(frozen=True, eq=False)
class BandMaps:
    """``q = clamp((value * multiplier + offset) >> SHIFT)`` for each band.

    Args:
        multipliers: int64 [40], of values in steps of the front end.
        offsets: int64 [40], with the half that rounds.
        least: the smallest integer that the network reads.
        most: the largest.
    """

    multipliers: NDArray[np.int64]
    offsets: NDArray[np.int64]
    least: int
    most: int

    def apply(self, values: NDArray[np.int16]) -> NDArray[np.int8]:
        """The network's integers of log-mel values [..., 40]."""
        scaled = values.astype(np.int64) * self.multipliers + self.offsets
        whole: NDArray[np.int8] = np.clip(scaled >> SHIFT, self.least, self.most).astype(np.int8)
        return whole


def band_maps(statistics: FeatureStatistics, record: TensorRecord) -> BandMaps:
    """The maps of a lowered network: normalise, then quantize, within a step of doing so in floats.

    Args:
        statistics: normalise the features.
        record: the network's input.

    Raises:
        ModelError: the network reads no signed rows of 40 bands.
    """
    if record.dtype != "int8" or record.size % BANDS or record.shape[-1] != BANDS:
        raise ModelError(
            f"the network reads {record.dtype} {list(record.shape)}, no int8 rows of {BANDS} bands",
            where=record.name,
            remedy="train a spotter with 'entrain train keyword-stream'",
        )
    least, most = integer_range(record.dtype)
    steps = statistics.deviation.astype(np.float64) * record.scale
    slope = 2.0**SHIFT / steps
    offset = 2.0**SHIFT * (record.zero_point + 0.5) - statistics.mean.astype(np.float64) * slope
    multipliers = np.rint(slope * STEP)
    if multipliers.max() > np.iinfo(np.int32).max:
        raise ModelError(
            "a band of the features hardly ever changes: its map does not fit into 32 bits",
            where=record.name,
            remedy="train on sound that has something in every band",
        )
    return BandMaps(
        multipliers.astype(np.int64),
        np.rint(offset).astype(np.int64),
        int(least),
        int(most),
    )
