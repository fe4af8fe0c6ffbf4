"""No attention: the control that shows what a network does without mixing tokens here."""

from __future__ import annotations

import torch
from torch import Tensor

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.mechanism import AttentionMechanism
from entrain.models.attention.visibility import Visible


class NoAttention(AttentionMechanism):
    """y_i = 0: in a residual block, each token goes on as it is. It has no parameters."""

    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__(config, d_model, heads, max_length)

    def attend(self, x: Tensor, visible: Visible) -> Tensor:  # noqa: ARG002
        """See `AttentionMechanism`."""
        return torch.zeros_like(x)

    @classmethod
    def multiply_adds(cls, config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:  # noqa: ARG003
        """None."""
        return 0
