"""Attention mechanisms, one a file, behind one forward contract.

``forward(x [B, T, d_model], *, padding: bool [B, T] | None, causal: bool) -> [B, T, d_model]``;
padding is true for real tokens. A token that sees no token reads out zero.
"""

from __future__ import annotations

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.mechanism import AttentionMechanism
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.attention.softmax import SoftmaxAttention
from entrain.models.attention.uniform import UniformAttention

MECHANISMS: dict[str, type[AttentionMechanism]] = {
    "softmax": SoftmaxAttention,
    "oscillator": OscillatorAttention,
    "uniform": UniformAttention,
}

__all__ = ["MECHANISMS", "AttentionConfig", "AttentionMechanism", "build_attention"]


def build_attention(
    config: AttentionConfig, d_model: int, heads: int, max_length: int
) -> AttentionMechanism:
    """The module of a mechanism, with random weights.

    Args:
        config: the mechanism and its settings.
        d_model: width of a token; a multiple of `heads`.
        heads: number of heads.
        max_length: longest sequence; the oscillator has one anchor a position and head.

    Raises:
        UsageError: if the width cannot be divided among the heads.
    """
    return MECHANISMS[config.mechanism](config, d_model, heads, max_length)
