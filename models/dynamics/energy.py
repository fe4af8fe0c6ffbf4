"""What the flows climb: energies whose gradients they are, and the problem that softmax solves."""

from __future__ import annotations

import torch
from torch import Tensor


def coherence_energy(phases: Tensor, others: Tensor, couplings: Tensor) -> Tensor:
    """sum_tu A_tu cos(theta_u - theta_t), summed over all tokens and coordinates.

    With the others held fixed its gradient in the phases is the Kuramoto increment
    sum_u A_tu sin(theta_u - theta_t), whatever A. Where A is symmetric, half of the energy with
    `others` the phases themselves has the same gradient: the whole then climbs one energy.

    Args:
        phases: theta_t [..., T, k].
        others: theta_u [..., T, k].
        couplings: A [..., T, T].

    Returns:
        A number.
    """
    aligned = phases.cos() * (couplings @ others.cos()) + phases.sin() * (couplings @ others.sin())
    return aligned.sum()


def pull_energy(states: Tensor, fields: Tensor) -> Tensor:
    """The sum of z.h, whose gradient along the sphere is Lohe's flow; z and h [..., d]."""
    return (states * fields).sum()


def retrieval_objective(weights: Tensor, scores: Tensor, temperature: float = 1.0) -> Tensor:
    """a.s + temperature H(a), with the entropy H(a) = -sum a log a, for weights on the simplex.

    Args:
        weights: a [..., T], not negative, summing to 1.
        scores: s [..., T].
        temperature: what entropy is worth, positive.

    Returns:
        [...].
    """
    return (weights * scores).sum(dim=-1) - temperature * torch.xlogy(weights, weights).sum(dim=-1)


def retrieval_weights(scores: Tensor, temperature: float = 1.0) -> Tensor:
    """softmax(s / temperature), the one maximum of `retrieval_objective`; s [..., T]."""
    return torch.softmax(scores / temperature, dim=-1)
