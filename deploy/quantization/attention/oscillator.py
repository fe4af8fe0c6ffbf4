"""Attention in quantized form, one class a mechanism: the graph that the device runs.

The input is the quantized token tensor [B, T, d_model]; the norm before attention is folded into
the projections. The result is the output projection's, real, for the residual sum to quantize.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.deploy.quantization.anchors import LearnedAnchors
from entrain.deploy.quantization.folding import norm_before, unfolded
from entrain.deploy.quantization.layers import linear, positive, rectified, signed, unit, values
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.attention.softmax import SoftmaxAttention
from entrain.models.attention.uniform import UniformAttention

# Added under the root, so that no field settles at exactly zero and the gradient stays finite.
NO_FIELD_SQUARED = 1e-12


@dataclass(frozen=True)
class Heads:
    """The split of tokens into heads, in fixed numbers: the exported graph has static shapes."""

    tokens: int
    heads: int
    d_head: int

    @property
    def score_scale(self) -> float:
        """1 / sqrt(d_head)."""
        return 1.0 / sqrt(self.d_head)

    def split(self, x: Tensor) -> Tensor:
        """[B, T, d_model] to [B, H, T, d_head]."""
        return x.reshape(-1, self.tokens, self.heads, self.d_head).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """[B, H, T, d_head] to [B, T, d_model]."""
        return x.transpose(1, 2).reshape(-1, self.tokens, self.heads * self.d_head)


class QuantizedSoftmax(nn.Module):
    """softmax(q k^T / sqrt(d_head)) v, with int8 scores and uint8 probabilities."""

    def __init__(self, attention: SoftmaxAttention, norm: nn.BatchNorm1d, tokens: int) -> None:
        super().__init__()
        self.heads = Heads(tokens, attention.heads, attention.d_head)
        self.to_query = linear(norm_before(norm, attention.query))
        self.to_key = linear(norm_before(norm, attention.key))
        self.to_value = linear(norm_before(norm, attention.value))
        self.to_output = linear(unfolded(attention.output))
        self.query, self.key, self.value = signed(), signed(), signed()
        self.scores, self.probabilities, self.context = signed(), positive(), signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, T, d_model]."""
        query = self.heads.split(values(self.query(self.to_query(tokens))))
        key = self.heads.split(values(self.key(self.to_key(tokens))))
        value = self.heads.split(values(self.value(self.to_value(tokens))))
        scores = values(self.scores(query @ key.transpose(-1, -2) * self.heads.score_scale))
        probabilities = values(self.probabilities(scores.softmax(dim=-1)))
        return values(self.to_output(self.context(self.heads.merge(probabilities @ value))))


class QuantizedUniform(nn.Module):
    """The mean of the values: every weight 1/T. One context serves all tokens."""

    def __init__(self, attention: UniformAttention, norm: nn.BatchNorm1d, _tokens: int) -> None:
        super().__init__()
        self.to_value = linear(norm_before(norm, attention.value))
        self.to_output = linear(unfolded(attention.output))
        self.value, self.context = signed(), signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, 1, d_model], which the residual sum broadcasts."""
        value = values(self.value(self.to_value(tokens)))
        return values(self.to_output(self.context(value.mean(dim=1, keepdim=True))))


class PairwiseField(nn.Module):
    """h_i = sum_j w_ij r_j with w_ij = relu(q_i.k_j / sqrt(d_head)) + epsilon, uint8 couplings."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.query, self.key, self.coupling = signed(), signed(), rectified()

    def forward(self, query: Tensor, key: Tensor, anchors: Tensor, heads: Heads) -> Tensor:
        """Fields [B, H, T, d_osc] of projections [B, T, d_model] and anchors [1, H, T, d_osc]."""
        q = heads.split(values(self.query(query)))
        k = heads.split(values(self.key(key)))
        coupling = values(self.coupling(q @ k.transpose(-1, -2) * heads.score_scale))
        return coupling @ anchors + self.epsilon * anchors.sum(dim=-2, keepdim=True)


class SoftplusField(nn.Module):
    """h_i = sum_j softplus(q_i.k_j / sqrt(d_head)) r_j: a table from int8 scores to uint8."""

    def __init__(self, _epsilon: float) -> None:  # softplus is positive by itself
        super().__init__()
        self.query, self.key = signed(), signed()
        self.scores, self.coupling = signed(), positive()

    def forward(self, query: Tensor, key: Tensor, anchors: Tensor, heads: Heads) -> Tensor:
        """As PairwiseField."""
        q = heads.split(values(self.query(query)))
        k = heads.split(values(self.key(key)))
        scores = values(self.scores(q @ k.transpose(-1, -2) * heads.score_scale))
        return values(self.coupling(F.softplus(scores))) @ anchors


class SeparableField(nn.Module):
    """w_ij = relu(q_i).relu(k_j) / sqrt(d_head) + epsilon, by A = sum_j relu(k_j) r_j^T in int8."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.query, self.key, self.drive = rectified(), rectified(), signed()

    def forward(self, query: Tensor, key: Tensor, anchors: Tensor, heads: Heads) -> Tensor:
        """As PairwiseField, linear in T."""
        q = heads.split(values(self.query(query)))
        k = heads.split(values(self.key(key)))
        drive = values(self.drive(anchors.transpose(-1, -2) @ k))
        pull = q @ drive.transpose(-1, -2) * heads.score_scale
        return pull + self.epsilon * anchors.sum(dim=-2, keepdim=True)


class FactorisedReadOut(nn.Module):
    """For p = 1: (mean v + z^T M) / (1 + z.R), M = mean_j r_j v_j^T, R = mean_j r_j."""

    def __init__(self, _exponent: float) -> None:
        super().__init__()
        self.moments, self.mean = signed(), signed()

    def forward(self, state: Tensor, anchors: Tensor, value: Tensor, heads: Heads) -> Tensor:
        """Contexts [B, H, T, d_head] of states, anchors [.., T, d_osc] and values."""
        moments = values(self.moments(anchors.transpose(-1, -2) @ value * (1.0 / heads.tokens)))
        mean = values(self.mean(value.mean(dim=-2, keepdim=True)))
        alignment = (state * anchors.mean(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)
        return (mean + state @ moments) / (1.0 + alignment)


class PlainReadOut(nn.Module):
    """For whole p > 1: a_ij = (1 + z_i.r_j)^p / sum_l (1 + z_i.r_l)^p in uint8, then a v."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        if exponent != int(exponent):
            raise UsageError(
                f"the device computes whole exponents p, not {exponent}",
                remedy="train with p = 1, 2, 3, ...",
            )
        self.exponent = int(exponent)
        self.weights = positive()

    def forward(self, state: Tensor, anchors: Tensor, value: Tensor, _heads: Heads) -> Tensor:
        """As FactorisedReadOut."""
        closeness = (1.0 + state @ anchors.transpose(-1, -2)) ** self.exponent
        weights = closeness / closeness.sum(dim=-1, keepdim=True)
        return values(self.weights(weights)) @ value


FIELDS: dict[str, type[nn.Module]] = {
    "relu": PairwiseField,
    "softplus": SoftplusField,
    "separable": SeparableField,
}


class QuantizedOscillator(nn.Module):
    """z_i = h_i / |h_i| on int8 anchors, then the read-out: no exponential, no T x T softmax."""

    def __init__(self, attention: OscillatorAttention, norm: nn.BatchNorm1d, tokens: int) -> None:
        super().__init__()
        config = attention.config
        self.heads = Heads(tokens, attention.heads, attention.d_head)
        self.to_query = linear(norm_before(norm, attention.query))
        self.to_key = linear(norm_before(norm, attention.key))
        self.to_value = linear(norm_before(norm, attention.value))
        self.to_output = linear(unfolded(attention.output))
        self.anchors = LearnedAnchors(attention.unit_anchors(tokens))
        self.field = FIELDS[str(config.coupling)](config.epsilon)
        read_out = FactorisedReadOut if config.exponent == 1 else PlainReadOut
        self.read_out = read_out(config.exponent)
        self.state, self.value, self.context = unit(), signed(), signed()

    def forward(self, tokens: Any) -> Tensor:
        """[B, T, d_model] to [B, T, d_model]."""
        anchors = self.anchors()
        field = self.field(self.to_query(tokens), self.to_key(tokens), anchors, self.heads)
        squared = (field * field).sum(dim=-1, keepdim=True)
        state = values(self.state(field / (squared + NO_FIELD_SQUARED).sqrt()))
        value = self.heads.split(values(self.value(self.to_value(tokens))))
        context = self.heads.merge(self.read_out(state, anchors, value, self.heads))
        return values(self.to_output(self.context(context)))
