"""What makes a task's inputs ready for its network, kept in the checkpoint beside the weights.

One file a kind; `PREPARATIONS` has one line each, by the task's name in `networks.TASKS`.
"""

from __future__ import annotations

from typing import Any

from entrain.models.preparations.contract import Preparation
from entrain.models.preparations.statistics import STATISTICS
from entrain.models.preparations.vocabulary import VOCABULARY, Vocabulary

PREPARATIONS: dict[str, Preparation[Any]] = {
    "keyword": STATISTICS,
    "keyword-stream": STATISTICS,
    "keyword-linear": STATISTICS,
    "agreement": VOCABULARY,
}

__all__ = ["PREPARATIONS", "Preparation", "Vocabulary"]
