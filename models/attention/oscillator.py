"""Attention by synchronization: oscillators settle on a sphere, driven by learned anchors.

Pasqualetti and Guo, "Attention by Synchronization in Coupled Oscillator Networks", 2026. The
oscillator of token i follows dz/dt = (I - z z^T) h_i and settles at h_i / |h_i|, so the settled
state is computed directly. `reference.py` has the equations in their plain form.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.couplings import COUPLINGS
from entrain.models.attention.projections import ProjectedAttention, merge_heads
from entrain.models.attention.visibility import Visibility, contract

# Below this length a field counts as none: its oscillator rests at zero and reads out uniformly.
NO_FIELD = 1e-12


class OscillatorAttention(ProjectedAttention):
    """y_i = sum_j a_ij v_j, a_ij ~ (1 + z_i.r_j)^p, z_i = h_i / |h_i|, h_i = sum_j w_ij r_j.

    Every position up to `max_length` has an anchor r_j in each head.
    """

    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__(config, d_model, heads, max_length)
        if config.coupling is None:
            raise UsageError("the oscillator needs a coupling")
        self.config = config
        self.coupling = COUPLINGS[config.coupling]
        self.read_out = factorised_read_out if config.exponent == 1 else plain_read_out
        on_the_sphere = F.normalize(torch.randn(heads, max_length, config.d_osc), dim=-1)
        self.anchors = nn.Parameter(on_the_sphere)

    def unit_anchors(self) -> Tensor:
        """The anchors on the unit sphere, [heads, max_length, d_osc]."""
        unit: Tensor = F.normalize(self.anchors, dim=-1)
        return unit

    def forward(self, x: Tensor, *, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        """See `AttentionMechanism`; raises UsageError if there are more tokens than anchors."""
        length, available = x.shape[1], self.anchors.shape[1]
        if length > available:
            raise UsageError(f"{length} tokens, but anchors for {available} positions only")
        anchors = self.unit_anchors()[None, :, :length]
        visible = Visibility(padding, causal)
        queries, keys, values = self.project(x)
        fields = self.coupling.field(
            queries, keys, anchors, epsilon=self.config.epsilon, visible=visible
        )
        states = settle(fields)
        read = self.read_out(states, anchors, values, self.config.exponent, visible)
        output: Tensor = self.output(merge_heads(read))
        return output

    @staticmethod
    def multiply_adds(config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:
        """Four linear maps, the field, its length, and the read-out."""
        projections = 4 * tokens * d_model**2
        coupling = COUPLINGS[str(config.coupling)]
        field = coupling.multiply_adds(config.d_osc, d_model, heads, tokens)
        lengths = heads * tokens * config.d_osc
        if config.exponent == 1:
            # M, z^T M and z.R
            read_out = (2 * tokens * d_model + heads * tokens) * config.d_osc
        else:
            # z.r for every pair, and the weighted values
            read_out = tokens**2 * (heads * config.d_osc + d_model)
        return projections + field + lengths + read_out


def settle(fields: Tensor) -> Tensor:
    """The stable equilibrium z = h / |h| of the flow in the field h [..., d_osc]; 0 where h = 0."""
    lengths = torch.linalg.vector_norm(fields, dim=-1, keepdim=True)
    states: Tensor = fields / lengths.clamp(min=NO_FIELD)
    return states


def factorised_read_out(
    states: Tensor,
    anchors: Tensor,
    values: Tensor,
    exponent: float,  # noqa: ARG001
    visible: Visibility,
) -> Tensor:
    """The read-out for p = 1, linear in the length: (V + z^T M) / (N + z.R).

    V = sum_j v_j, M = sum_j r_j v_j^T, R = sum_j r_j, and N the number of visible tokens.

    Args:
        states: z [B, H, T, d_osc].
        anchors: unit vectors r [1, H, T, d_osc].
        values: v [B, H, T, d_head].
        exponent: 1.
        visible: who sees whom.

    Returns:
        [B, H, T, d_head].
    """
    count = visible.total(values.new_ones(1, 1, values.shape[2], 1))
    pull = (states * visible.total(anchors)).sum(dim=-1, keepdim=True)
    weighted = contract(states, visible.total_outer(anchors, values))
    # z.R >= 0, as h pulls z towards the anchors: the sum is at least N.
    return (visible.total(values) + weighted) / (count + pull).clamp(min=NO_FIELD)


def plain_read_out(
    states: Tensor, anchors: Tensor, values: Tensor, exponent: float, visible: Visibility
) -> Tensor:
    """The read-out for any p > 0, with the weights (1 + z_i.r_j)^p written out.

    Arguments and result are those of `factorised_read_out`.
    """
    # The clamp takes away what rounding leaves below zero, and keeps the gradient finite.
    closeness = (1 + states @ anchors.transpose(-1, -2)).clamp(min=1e-30)
    weights = closeness**exponent * visible.mask(values.shape[2], like=values)
    return (weights @ values) / weights.sum(dim=-1, keepdim=True).clamp(min=NO_FIELD)
