"""What softmax and its kin share: a weight for every pair of tokens, made from its score."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.projections import ProjectedAttention, scaled_scores
from entrain.models.attention.visibility import Visible


class PairwiseAttention(ProjectedAttention):
    """y_i = sum_j a_ij v_j, where a_i is made of the scores q_i.k_j / sqrt(d_head)."""

    def attend(self, x: Tensor, visible: Visible) -> Tensor:
        """See `AttentionMechanism`."""
        queries, keys, values = self.project(x)
        scores = scaled_scores(queries, keys)
        weights = self.weights(scores, visible.mask(x.shape[1], like=scores))
        return self.merge(weights @ values)

    @abstractmethod
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The weights a_ij.

        Args:
            scores: [B, H, T, T].
            mask: one where i sees j, else zero; [B or 1, 1, T or 1, T].

        Returns:
            [B, H, T, T]; rows sum to one, or are zero where nothing is seen.
        """

    @classmethod
    def multiply_adds(cls, config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:  # noqa: ARG003
        """Four linear maps, the scores, and the weighted values."""
        return 4 * tokens * d_model**2 + 2 * tokens**2 * d_model
