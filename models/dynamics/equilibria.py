"""Lohe's flow in closed form: where it rests, where it is at any time, and when it is there.

In the plane of z and h the angle a between them obeys da/dt = -|h| sin a, so that
tan(a / 2) decays as exp(-|h| t). Every angle but pi is driven to zero; h = 0 moves nothing.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def stable_equilibrium(fields: Tensor) -> Tensor:
    """z* = h / |h|, which attracts every state but its antipode; h [..., d], and 0 where h is."""
    states: Tensor = F.normalize(fields, dim=-1, eps=torch.finfo(fields.dtype).tiny)
    return states


def unstable_equilibrium(fields: Tensor) -> Tensor:
    """-h / |h|, the only other equilibrium, which every disturbance leaves; h [..., d]."""
    return -stable_equilibrium(fields)


def angle_after(angles: Tensor, strengths: Tensor, time: Tensor | float) -> Tensor:
    """The angle between state and field after some time, 2 atan(tan(a / 2) exp(-|h| t)).

    Args:
        angles: a at the start [...], in 0..pi.
        strengths: |h| [...].
        time: t, not negative.
    """
    half = angles / 2
    # As a quotient, so that pi stays at pi.
    return 2 * torch.atan2(half.sin() * torch.exp(-strengths * time), half.cos())


def state_after(starts: Tensor, fields: Tensor, time: Tensor | float) -> Tensor:
    """The state after some time: what the integrators approximate.

    Args:
        starts: unit vectors [..., d].
        fields: h [..., d].
        time: t, not negative; a number, or [..., 1].

    Returns:
        Unit vectors [..., d]; the start where it is the antipode of h, or where h = 0.
    """
    strengths = torch.linalg.vector_norm(fields, dim=-1, keepdim=True)
    pull = stable_equilibrium(fields)
    decay = torch.exp(-strengths * time)
    # The squared cosine and sine of half the angle; differences of vectors lose no digits.
    near = (starts + pull).square().sum(dim=-1, keepdim=True) / 4
    far = (starts - pull).square().sum(dim=-1, keepdim=True) / 4
    scale = near + decay.square() * far
    tangent = starts - (near - far) * pull
    moved = (near - decay.square() * far) * pull + decay * tangent
    rests = (scale == 0) | (strengths == 0)
    safe = torch.where(rests, torch.ones_like(scale), scale)
    states: Tensor = F.normalize(torch.where(rests, starts, moved / safe), dim=-1)
    return states


def settling_time(starts: Tensor, fields: Tensor, tolerance: float) -> Tensor:
    """When the state comes within an angle of z*: log(tan(a / 2) / tan(tolerance / 2)) / |h|.

    Args:
        starts: unit vectors [..., d].
        fields: h [..., d].
        tolerance: the angle, in 0..pi, both excluded.

    Returns:
        [...], not negative; infinite from the antipode and without a field.
    """
    strengths = torch.linalg.vector_norm(fields, dim=-1)
    pull = stable_equilibrium(fields)
    # The tangent of half the angle, without the angle: infinite at the antipode.
    apart = torch.linalg.vector_norm(starts - pull, dim=-1)
    together = torch.linalg.vector_norm(starts + pull, dim=-1)
    decay = (apart / together / math.tan(tolerance / 2)).log().clamp(min=0)
    times = torch.where(decay > 0, decay / strengths, decay)
    return torch.where(strengths > 0, times, torch.full_like(times, torch.inf))
