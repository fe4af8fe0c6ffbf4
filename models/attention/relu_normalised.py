"""Rectified scores in place of exponentials, divided by their sum."""

from __future__ import annotations

import torch
from torch import Tensor

from entrain.models.attention.pairwise import PairwiseAttention


class ReluNormalisedAttention(PairwiseAttention):
    """a_ij = (relu(s_ij) + epsilon) / sum_l (relu(s_il) + epsilon), s_ij = q_i.k_j / sqrt(d_head).

    The rectified scores of Zhang, Titov and Sennrich, "Sparse Attention with Linear Units", 2021,
    with softmax's normalisation by the sum in place of theirs. The weights are the couplings of
    the oscillator's relu form: what is left when nothing oscillates.
    """

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """See `PairwiseAttention`."""
        strengths = (torch.relu(scores) + self.config.epsilon) * mask
        # A row that sees anything sums to epsilon at least.
        return strengths / strengths.sum(dim=-1, keepdim=True).clamp(min=self.config.epsilon)
