"""Couplings: how strongly the anchors of the visible tokens pull at a token's oscillator.

A coupling gives the field h_i = sum_j w_ij r_j. All weights w_ij are positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from entrain.models.attention.visibility import Visibility, contract


class Field(Protocol):
    """Makes the field at every oscillator."""

    def __call__(
        self,
        queries: Tensor,
        keys: Tensor,
        anchors: Tensor,
        *,
        epsilon: float,
        visible: Visibility,
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
        field: makes the field.
        multiply_adds: of the field, from d_osc, d_model, heads and tokens.
    """

    field: Field
    multiply_adds: Callable[[int, int, int, int], int]


def _pairwise(strength: Callable[[Tensor, float], Tensor]) -> Coupling:
    """The field of w_ij = strength(q_i.k_j / sqrt(d_head), epsilon): quadratic in the length."""

    def field(
        queries: Tensor, keys: Tensor, anchors: Tensor, *, epsilon: float, visible: Visibility
    ) -> Tensor:
        scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
        weights = strength(scores, epsilon) * visible.mask(keys.shape[2], like=scores)
        return weights @ anchors

    def multiply_adds(d_osc: int, d_model: int, heads: int, tokens: int) -> int:
        """The scores, and the weighted anchors."""
        return tokens**2 * (d_model + heads * d_osc)

    return Coupling(field, multiply_adds)


def _separable_field(
    queries: Tensor, keys: Tensor, anchors: Tensor, *, epsilon: float, visible: Visibility
) -> Tensor:
    """The field of w_ij = relu(q_i).relu(k_j) / sqrt(d_head) + epsilon: linear in the length.

    The sum over j is taken once: A = sum_j relu(k_j) r_j^T, and R = sum_j r_j.
    """
    drives = visible.total_outer(torch.relu(keys), anchors)
    scaled = torch.relu(queries) / queries.shape[-1] ** 0.5
    return contract(scaled, drives) + epsilon * visible.total(anchors)


def _separable_multiply_adds(d_osc: int, d_model: int, heads: int, tokens: int) -> int:  # noqa: ARG001
    """A, and relu(q) times A."""
    return 2 * tokens * d_model * d_osc


COUPLINGS: dict[str, Coupling] = {
    "softplus": _pairwise(lambda scores, _: F.softplus(scores)),
    "relu": _pairwise(lambda scores, epsilon: torch.relu(scores) + epsilon),
    "separable": Coupling(_separable_field, _separable_multiply_adds),
}
