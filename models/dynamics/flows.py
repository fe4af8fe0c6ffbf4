"""The flows: Lohe's on the sphere, its phase equation on the circle, and Kuramoto's."""

from __future__ import annotations

import torch
from torch import Tensor


def lohe_flow(states: Tensor, fields: Tensor) -> Tensor:
    """dz/dt = (I - z z^T) h: a field pulls a state along the sphere.

    Args:
        states: z [..., d], unit vectors.
        fields: h [..., d].

    Returns:
        [..., d], tangent to the sphere at z.
    """
    return fields - (states * fields).sum(dim=-1, keepdim=True) * states


def phase_flow(phases: Tensor, fields: Tensor) -> Tensor:
    """dphi/dt = |h| sin(psi - phi), with psi the direction of h: Lohe's flow for d = 2.

    Args:
        phases: phi [...].
        fields: h [..., 2].

    Returns:
        [...], in radians a unit of time.
    """
    strengths = torch.linalg.vector_norm(fields, dim=-1)
    directions = torch.atan2(fields[..., 1], fields[..., 0])
    velocities: Tensor = strengths * torch.sin(directions - phases)
    return velocities


def kuramoto_flow(phases: Tensor, couplings: Tensor) -> Tensor:
    """dtheta_t/dt = sum_u A_tu sin(theta_u - theta_t), each difference written out.

    Every coordinate of a token's phases moves by itself, with the couplings of the token.

    Args:
        phases: theta [..., T, k].
        couplings: A [..., T, T]; row t holds what pulls at t. Need not be symmetric.

    Returns:
        [..., T, k].
    """
    differences = phases.unsqueeze(-3) - phases.unsqueeze(-2)
    return (couplings.unsqueeze(-1) * differences.sin()).sum(dim=-2)


def circular_mean(phases: Tensor, couplings: Tensor) -> tuple[Tensor, Tensor]:
    """Re and Im of G_t = sum_u A_tu e^(i theta_u), each [..., T, k]; arguments as there."""
    return couplings @ phases.cos(), couplings @ phases.sin()


def kuramoto_flow_by_mean(phases: Tensor, couplings: Tensor) -> Tensor:
    """`kuramoto_flow` as -sin(theta_t) Re G_t + cos(theta_t) Im G_t: no differences of pairs."""
    real, imaginary = circular_mean(phases, couplings)
    return phases.cos() * imaginary - phases.sin() * real
