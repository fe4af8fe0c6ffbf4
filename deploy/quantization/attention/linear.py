"""Linear attention in quantized form: features of int8 or uint8 projections, and their moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from entrain.deploy.quantization.attention.projected import QuantizedProjections
from entrain.deploy.quantization.folding import Fold
from entrain.deploy.quantization.layers import rectified, signed, values
from entrain.models.attention.linear import FEATURES, LinearAttention

# relu's projections lose their sign before they are quantized
QUANTIZERS: dict[str, Callable[[], nn.Module]] = {"relu": rectified, "elu": signed}


class QuantizedLinear(QuantizedProjections):
    """f(q_i)^T M / f(q_i).S with M = sum_j f(k_j) v_j^T and S = sum_j f(k_j)."""

    def __init__(self, attention: LinearAttention, fold: Fold, tokens: int) -> None:
        super().__init__(attention, fold, tokens)
        coupling = str(attention.config.coupling)
        self.epsilon = attention.config.epsilon
        self.features = FEATURES[coupling]
        self.query, self.key = QUANTIZERS[coupling](), QUANTIZERS[coupling]()
        self.value, self.context = signed(), signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, T, d_model]."""
        query = self._featured(self.query(self.to_query(tokens)))
        key = self._featured(self.key(self.to_key(tokens)))
        value = self.heads.split(values(self.value(self.to_value(tokens))))
        total = key.sum(dim=-2, keepdim=True)
        weight = (query * total).sum(dim=-1, keepdim=True)
        return self.merged(query @ (key.transpose(-1, -2) @ value) / weight, self.context)

    def _featured(self, projected: Any) -> Tensor:
        """Features [B, H, T, F] of quantized projections."""
        return self.features(self.heads.split(values(projected)), self.epsilon)
