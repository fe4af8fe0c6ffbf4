"""Softmax attention in quantized form, to base e or 2."""

from __future__ import annotations

from math import log
from typing import Any

from torch import Tensor

from entrain.deploy.quantization.attention.projected import QuantizedProjections, scaled_scores
from entrain.deploy.quantization.folding import Fold
from entrain.deploy.quantization.layers import signed, values
from entrain.models.attention.projections import ProjectedAttention


class QuantizedSoftmax(QuantizedProjections):
    """softmax(q k^T / sqrt(d_head)) v of int8 queries, keys and values."""

    log_of_base = 1.0

    def __init__(self, attention: ProjectedAttention, fold: Fold, tokens: int) -> None:
        super().__init__(attention, fold, tokens)
        self.query, self.key, self.value = signed(), signed(), signed()
        self.context = signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, T, d_model]."""
        query = self.heads.split(values(self.query(self.to_query(tokens))))
        key = self.heads.split(values(self.key(self.to_key(tokens))))
        value = self.heads.split(values(self.value(self.to_value(tokens))))
        weights = (scaled_scores(query, key) * self.log_of_base).softmax(dim=-1)
        return self.merged(weights @ value, self.context)


class QuantizedBase2Softmax(QuantizedSoftmax):
    """The same with powers of two."""

    log_of_base = log(2.0)
