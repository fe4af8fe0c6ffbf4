"""Scaled dot-product attention with softmax: the baseline."""

from __future__ import annotations

import torch
from torch import Tensor

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.projections import ProjectedAttention, merge_heads
from entrain.models.attention.visibility import Visibility


class SoftmaxAttention(ProjectedAttention):
    """y_i = sum_j a_ij v_j with a_i = softmax over j of q_i.k_j / sqrt(d_head)."""

    def forward(self, x: Tensor, *, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        """See `AttentionMechanism`."""
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(-1, -2) / self.d_head**0.5
        visible = Visibility(padding, causal).mask(x.shape[1], like=scores)
        # Finite, so that a row without any visible token stays finite, with its gradient.
        hidden = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(visible == 0, hidden).softmax(dim=-1) * visible
        output: Tensor = self.output(merge_heads(weights @ values))
        return output

    @staticmethod
    def multiply_adds(config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:  # noqa: ARG004
        """Four linear maps, the scores, and the weighted values."""
        return 4 * tokens * d_model**2 + 2 * tokens**2 * d_model
