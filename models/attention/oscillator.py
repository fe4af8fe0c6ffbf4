"""Attention by synchronization: oscillators settle on a sphere, driven by anchors.

Pasqualetti and Guo, "Attention by Synchronization in Coupled Oscillator Networks", 2026. The
oscillator of token i follows dz/dt = (I - z z^T) h_i and settles at h_i / |h_i|, so the settled
state is computed directly. `reference.py` has the equations in their plain form.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from entrain.models.attention.anchors import ANCHOR_KINDS
from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.couplings import COUPLINGS, Coupling
from entrain.models.attention.linear import NO_WEIGHT, linear_average, with_one
from entrain.models.attention.projections import ProjectedAttention
from entrain.models.attention.visibility import Visible

# Below this length a field counts as none: its oscillator rests at zero and reads out uniformly.
NO_FIELD = 1e-12


class OscillatorAttention(ProjectedAttention):
    """y_i = sum_j a_ij v_j, a_ij ~ (1 + z_i.r_j)^p, z_i = h_i / |h_i|, h_i = sum_j w_ij r_j.

    Every position has an anchor r_j in each head. Two parts can be replaced, to study a flow or a
    device that does not reach the equilibrium exactly:

    Attributes:
        settling: from fields h [B, H, T, d_osc] to states z of the same shape; `settle` at first.
        coupling: how w_ij and the field are made; `couplings.disturbed` makes an inexact one.
    """

    settling: Callable[[Tensor], Tensor]
    coupling: Coupling

    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__(config, d_model, heads, max_length)
        self.anchors = ANCHOR_KINDS[config.anchors](heads, max_length, config.d_osc)
        self.coupling = COUPLINGS[str(config.coupling)]
        self.settling = settle
        self.read_out = factorised_read_out if config.exponent == 1 else plain_read_out

    def unit_anchors(self, length: int, first: int = 0) -> Tensor:
        """The anchors of `length` positions, the first of them `first`: [heads, length, d_osc].

        Raises:
            UsageError: if anchors are learned and there are not so many.
        """
        anchors: Tensor = self.anchors(length, first)
        return anchors

    def attend(self, x: Tensor, visible: Visible) -> Tensor:
        """See `AttentionMechanism`."""
        anchors = self.unit_anchors(x.shape[1], visible.first).unsqueeze(0)
        queries, keys, values = self.project(x)
        fields = self.coupling.field(
            queries, keys, anchors, epsilon=self.config.epsilon, visible=visible
        )
        states = self.settling(fields)
        return self.merge(self.read_out(states, anchors, values, self.config.exponent, visible))

    @classmethod
    def multiply_adds(cls, config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:
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
    visible: Visible,
) -> Tensor:
    """The read-out for p = 1, linear in the length: (V + z^T M) / (N + z.R).

    V = sum_j v_j, M = sum_j r_j v_j^T, R = sum_j r_j, and N the number of visible tokens: they are
    the four parts of the one sum that linear attention with the features (z_i, 1) and (r_j, 1)
    takes. No weight 1 + z.r is negative, as neither vector is longer than one.

    Args:
        states: z [B, H, T, d_osc].
        anchors: unit vectors r [1, H, T, d_osc].
        values: v [B, H, T, d_head].
        exponent: 1.
        visible: who sees whom.

    Returns:
        [B, H, T, d_head].
    """
    return linear_average(with_one(states), with_one(anchors), values, visible)


def plain_read_out(
    states: Tensor, anchors: Tensor, values: Tensor, exponent: float, visible: Visible
) -> Tensor:
    """The read-out for any p > 0, with the weights (1 + z_i.r_j)^p written out.

    Arguments and result are those of `factorised_read_out`.
    """
    # The clamp takes away what rounding leaves below zero, and keeps the gradient finite.
    closeness = (1 + states @ anchors.transpose(-1, -2)).clamp(min=1e-30)
    weights = closeness**exponent * visible.mask(values.shape[2], like=values)
    return (weights @ values) / weights.sum(dim=-1, keepdim=True).clamp(min=NO_WEIGHT)
