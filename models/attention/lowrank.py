"""Linear attention with as few features as the oscillator's read-out has: its honest rival."""

from __future__ import annotations

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.linear import LinearAttention


class LowrankAttention(LinearAttention):
    """Linear attention with d_osc + 1 learned features a head, f(W x + b).

    For p = 1 the oscillator's weights are (1, z_i).(1, r_j), of rank d_osc + 1; here both sides
    are learned maps of the tokens. Kasai et al., "Finetuning Pretrained Transformers into RNNs",
    2021, have such small learned features, with relu.
    """

    @staticmethod
    def d_key(config: AttentionConfig, d_head: int) -> int:  # noqa: ARG004
        """As many features as the oscillator's read-out has."""
        return config.d_osc + 1
