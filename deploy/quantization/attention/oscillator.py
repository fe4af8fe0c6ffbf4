"""Oscillator attention in quantized form: fields, settled states and read-outs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.deploy.quantization.anchors import LearnedAnchors
from entrain.deploy.quantization.attention.projected import QuantizedProjections, scaled_scores
from entrain.deploy.quantization.folding import Fold
from entrain.deploy.quantization.layers import rectified, signed, values
from entrain.models.attention.oscillator import OscillatorAttention

# Added under the root, so that no field settles at exactly zero and the gradient stays finite.
NO_FIELD_SQUARED = 1e-12


def relu_field(query: Tensor, key: Tensor, anchors: Tensor, epsilon: float) -> Tensor:
    """h_i = sum_j (relu(q_i.k_j / sqrt(d_head)) + epsilon) r_j.

    Args:
        query: [B, H, T, d_head].
        key: [B, H, T, d_head].
        anchors: [1, H, T, d_osc].
        epsilon: keeps every coupling positive.

    Returns:
        Fields [B, H, T, d_osc].
    """
    return (F.relu(scaled_scores(query, key)) + epsilon) @ anchors


def softplus_field(query: Tensor, key: Tensor, anchors: Tensor, _epsilon: float) -> Tensor:
    """h_i = sum_j softplus(q_i.k_j / sqrt(d_head)) r_j; positive by itself."""
    return F.softplus(scaled_scores(query, key)) @ anchors


def separable_field(query: Tensor, key: Tensor, anchors: Tensor, epsilon: float) -> Tensor:
    """w_ij = q_i.k_j / sqrt(d_head) + epsilon of what is not negative, linear in T."""
    drive = anchors.transpose(-1, -2) @ key
    return scaled_scores(query, drive) + epsilon * anchors.sum(dim=-2, keepdim=True)


def factorised_read_out(state: Tensor, anchors: Tensor, value: Tensor, _exponent: int) -> Tensor:
    """For p = 1: (sum_j v_j + z^T M) / (T + z.R), M = sum_j r_j v_j^T, R = sum_j r_j.

    Args:
        state: [B, H, T, d_osc].
        anchors: [1, H, T, d_osc].
        value: [B, H, T, d_head].
        _exponent: 1.

    Returns:
        Contexts [B, H, T, d_head].
    """
    moments = anchors.transpose(-1, -2) @ value
    alignment = (state * anchors.sum(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)
    tokens = float(anchors.shape[-2])
    return (value.sum(dim=-2, keepdim=True) + state @ moments) / (tokens + alignment)


def plain_read_out(state: Tensor, anchors: Tensor, value: Tensor, exponent: int) -> Tensor:
    """For whole p > 1: a_ij = (1 + z_i.r_j)^p / sum_l (1 + z_i.r_l)^p, then a v."""
    closeness: Tensor = (1.0 + state @ anchors.transpose(-1, -2)) ** exponent
    return closeness / closeness.sum(dim=-1, keepdim=True) @ value


Field = Callable[[Tensor, Tensor, Tensor, float], Tensor]
# each coupling with the quantizer of its queries and keys
FIELDS: dict[str, tuple[Callable[[], nn.Module], Field]] = {
    "relu": (signed, relu_field),
    "softplus": (signed, softplus_field),
    "separable": (rectified, separable_field),
}


class QuantizedOscillator(QuantizedProjections):
    """z_i = h_i / |h_i| on int8 anchors, then the read-out: no exponential, no T x T softmax."""

    def __init__(self, attention: OscillatorAttention, fold: Fold, tokens: int) -> None:
        super().__init__(attention, fold, tokens)
        config = attention.config
        self.epsilon, self.exponent = config.epsilon, _whole(config.exponent)
        self.anchors = LearnedAnchors(attention.unit_anchors(tokens))
        quantizer, self.field = FIELDS[str(config.coupling)]
        self.query, self.key, self.value = quantizer(), quantizer(), signed()
        self.read_out = factorised_read_out if self.exponent == 1 else plain_read_out
        self.context = signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, T, d_model]."""
        query = self.heads.split(values(self.query(self.to_query(tokens))))
        key = self.heads.split(values(self.key(self.to_key(tokens))))
        value = self.heads.split(values(self.value(self.to_value(tokens))))
        anchors = self.anchors()
        field = self.field(query, key, anchors, self.epsilon)
        squared = (field * field).sum(dim=-1, keepdim=True)
        state = field / (squared + NO_FIELD_SQUARED).sqrt()
        return self.merged(self.read_out(state, anchors, value, self.exponent), self.context)


def _whole(exponent: float) -> int:
    if exponent != int(exponent):
        raise UsageError(
            f"the device computes whole exponents p, not {exponent}",
            remedy="train with p = 1, 2, 3, ...",
        )
    return int(exponent)
