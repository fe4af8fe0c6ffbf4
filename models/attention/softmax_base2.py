"""Softmax with powers of two: what a device computes with shifts in place of exponentials."""

from __future__ import annotations

from math import log

from torch import Tensor

from entrain.models.attention.pairwise import PairwiseAttention
from entrain.models.attention.softmax import masked_softmax


class Base2SoftmaxAttention(PairwiseAttention):
    """a_ij = 2^s_ij / sum_l 2^s_il, s_ij = q_i.k_j / sqrt(d_head).

    Stevens et al., "Softermax: Hardware/Software Co-Design of an Efficient Softmax for
    Transformers", 2021. The queries learn whatever scale they need.
    """

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        """See `PairwiseAttention`."""
        return masked_softmax(scores * log(2), mask)
