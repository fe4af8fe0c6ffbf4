"""Couplings: how strongly the anchors of the visible tokens pull at a token's oscillator.

A coupling gives the field h_i = sum_j w_ij r_j. All weights w_ij are positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from entrain.models.attention.linear import with_one
from entrain.models.attention.projections import scaled_scores
from entrain.models.attention.visibility import Visible

Weights = Callable[[Tensor, Tensor, float], Tensor]
"""Makes w_ij [B, H, T, T] of queries and keys [B, H, T, d_head], and epsilon."""


class Field(Protocol):
    """Makes the field at every oscillator."""

    def __call__(
        self,
        queries: Tensor,
        keys: Tensor,
        anchors: Tensor,
        *,
        epsilon: float,
        visible: Visible,
    ) -> Tensor:
        """The field at every oscillator.

        Args:
            queries: [B, H, T, d_head].
            keys: [B, H, T, d_head].
            anchors: unit vectors [1, H, T, d_osc].
            epsilon: what is added to a coupling.
            visible: who sees whom.

        Returns:
            h [B, H, T, d_osc].
        """


@dataclass(frozen=True)
class Coupling:
    """One way to couple.

    Args:
        weights: makes the strengths w_ij, pair by pair.
        field: makes the field.
        multiply_adds: of the field, from d_osc, d_model, heads and tokens.
    """

    weights: Weights
    field: Field
    multiply_adds: Callable[[int, int, int, int], int]


def disturbed(coupling: Coupling, disturb: Callable[[Tensor], Tensor]) -> Coupling:
    """The same coupling on a device whose strengths are not exact.

    Args:
        coupling: the exact one.
        disturb: from the strengths w_ij [B, H, T, T] to those that take effect.
    """

    def weights(queries: Tensor, keys: Tensor, epsilon: float) -> Tensor:
        return disturb(coupling.weights(queries, keys, epsilon))

    return replace(coupling, weights=weights, field=_pairwise_field(weights))


def _pairwise_field(weights: Weights) -> Field:
    """The field with every strength written out: quadratic in the length."""

    def field(
        queries: Tensor, keys: Tensor, anchors: Tensor, *, epsilon: float, visible: Visible
    ) -> Tensor:
        strengths = weights(queries, keys, epsilon)
        return (strengths * visible.mask(keys.shape[2], like=strengths)) @ anchors

    return field


def _pairwise_multiply_adds(d_osc: int, d_model: int, heads: int, tokens: int) -> int:
    """The scores, and the weighted anchors."""
    return tokens**2 * (d_model + heads * d_osc)


def _softplus_weights(queries: Tensor, keys: Tensor, epsilon: float) -> Tensor:  # noqa: ARG001
    return F.softplus(scaled_scores(queries, keys))


def _relu_weights(queries: Tensor, keys: Tensor, epsilon: float) -> Tensor:
    return torch.relu(scaled_scores(queries, keys)) + epsilon


def _separable_weights(queries: Tensor, keys: Tensor, epsilon: float) -> Tensor:
    return scaled_scores(torch.relu(queries), torch.relu(keys)) + epsilon


def _separable_field(
    queries: Tensor, keys: Tensor, anchors: Tensor, *, epsilon: float, visible: Visible
) -> Tensor:
    """The field of w_ij = relu(q_i).relu(k_j) / sqrt(d_head) + epsilon: linear in the length.

    w_ij is the product of (relu(q_i) / sqrt(d_head), epsilon) and (relu(k_j), 1), so that the sum
    over j is taken once: A = sum_j relu(k_j) r_j^T, and behind it R = sum_j r_j.
    """
    scaled = F.pad(torch.relu(queries) / queries.shape[-1] ** 0.5, (0, 1), value=epsilon)
    return visible.weigh(scaled, with_one(torch.relu(keys)), anchors)


def _separable_multiply_adds(d_osc: int, d_model: int, heads: int, tokens: int) -> int:  # noqa: ARG001
    """A, and relu(q) times A."""
    return 2 * tokens * d_model * d_osc


COUPLINGS: dict[str, Coupling] = {
    "softplus": Coupling(
        _softplus_weights, _pairwise_field(_softplus_weights), _pairwise_multiply_adds
    ),
    "relu": Coupling(_relu_weights, _pairwise_field(_relu_weights), _pairwise_multiply_adds),
    "separable": Coupling(_separable_weights, _separable_field, _separable_multiply_adds),
}
