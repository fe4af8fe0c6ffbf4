"""Linear attention: the weights are products of features, so their sums are taken once."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.projections import ProjectedAttention
from entrain.models.attention.visibility import Visible

FEATURES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "relu": lambda x, epsilon: torch.relu(x) + epsilon,
    "elu": lambda x, _: F.elu(x) + 1,
}

# A sum of weights below this counts as none: nothing is seen, and the read-out is zero.
NO_WEIGHT = 1e-12


def with_one(x: Tensor) -> Tensor:
    """Append a component of one to vectors [..., C]: [..., C + 1]."""
    return F.pad(x, (0, 1), value=1.0)


def linear_average(queries: Tensor, keys: Tensor, values: Tensor, visible: Visible) -> Tensor:
    """sum_j (q_i.k_j) v_j / sum_j (q_i.k_j), linear in the length.

    Numerator and denominator are one sum, of values with a one behind them.

    Args:
        queries: [B, H, T, F].
        keys: [B or 1, H, T, F], such that no q_i.k_j is negative.
        values: [B, H, T, d_head].
        visible: who sees whom.

    Returns:
        [B, H, T, d_head]; zero for a token that sees none.
    """
    weighed = visible.weigh(queries, keys, with_one(values))
    return weighed[..., :-1] / weighed[..., -1:].clamp(min=NO_WEIGHT)


class LinearAttention(ProjectedAttention):
    """y_i = sum_j (f(q_i).f(k_j)) v_j / sum_j f(q_i).f(k_j), f = elu + 1 or relu + epsilon.

    Katharopoulos et al., "Transformers are RNNs: Fast Autoregressive Transformers with Linear
    Attention", 2020, whose features are elu + 1.
    """

    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__(config, d_model, heads, max_length)
        self.features = FEATURES[str(config.coupling)]

    def attend(self, x: Tensor, visible: Visible) -> Tensor:
        """See `AttentionMechanism`."""
        queries, keys, values = self.project(x)
        epsilon = self.config.epsilon
        return self.merge(
            linear_average(
                self.features(queries, epsilon), self.features(keys, epsilon), values, visible
            )
        )

    @classmethod
    def multiply_adds(cls, config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:
        """Four linear maps, the sum of f(k) v^T, what f(q) reads of it, and the denominator."""
        d_head = d_model // heads
        features = heads * cls.d_key(config, d_head)
        projections = 2 * tokens * d_model * (features + d_model)
        return projections + tokens * features * (2 * d_head + 1)
