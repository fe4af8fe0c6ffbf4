"""The mean of the values, in quantized form."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from entrain.deploy.quantization.folding import Fold, unfolded
from entrain.deploy.quantization.layers import linear, signed, values
from entrain.models.attention.uniform import UniformAttention


class QuantizedUniform(nn.Module):
    """The mean of the values: every weight 1/T. One context serves all tokens."""

    def __init__(self, attention: UniformAttention, fold: Fold, _tokens: int) -> None:
        super().__init__()
        self.to_value = linear(fold(attention.value))
        self.to_output = linear(unfolded(attention.output))
        self.value, self.context = signed(), signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, 1, d_model], which the residual sum broadcasts."""
        value = values(self.value(self.to_value(tokens)))
        return values(self.to_output(self.context(value.mean(dim=1, keepdim=True))))
