"""Keyword spotting: the statistics that normalise the features."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from entrain.deploy.errors import CheckpointError
from entrain.models.keyword_task import FeatureStatistics, KeywordSettings
from entrain.models.preparations.contract import RETRAIN, Preparation, tensors


def _write(statistics: FeatureStatistics) -> dict[str, Any]:
    return {
        "mean": torch.from_numpy(statistics.mean),
        "deviation": torch.from_numpy(statistics.deviation),
    }


def _read(value: Any, config: KeywordSettings) -> FeatureStatistics:
    found = tensors(value, "statistics")
    shapes = {name: list(tensor.shape) for name, tensor in found.items()}
    if shapes != {"mean": [config.bands], "deviation": [config.bands]}:
        raise CheckpointError(
            f"the checkpoint's statistics are {shapes}, expected mean and deviation of "
            f"{config.bands}",
            remedy=RETRAIN,
        )
    mean, deviation = (found[name].numpy().astype(np.float32) for name in ("mean", "deviation"))
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all() and (deviation > 0).all()):
        raise CheckpointError(
            "the checkpoint's statistics must be finite, its deviations positive", remedy=RETRAIN
        )
    return FeatureStatistics(mean, deviation)


STATISTICS = Preparation(FeatureStatistics, _write, _read)
