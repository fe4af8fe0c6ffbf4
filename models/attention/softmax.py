"""Scaled dot-product attention with softmax: the baseline."""

from __future__ import annotations

import torch
from torch import Tensor

from entrain.models.attention.pairwise import PairwiseAttention


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The softmax of each row over what its mask lets through; zero where that is nothing."""
    # Finite, so that a row without any visible token stays finite, with its gradient.
    hidden = torch.finfo(scores.dtype).min
    return scores.masked_fill(mask == 0, hidden).softmax(dim=-1) * mask


class SoftmaxAttention(PairwiseAttention):
    """a_ij = exp(s_ij) / sum_l exp(s_il), s_ij = q_i.k_j / sqrt(d_head).

    Vaswani et al., "Attention Is All You Need", 2017.
    """

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """See `PairwiseAttention`."""
        return masked_softmax(scores, mask)
