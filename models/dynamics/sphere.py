"""Points on the unit sphere, and angles between vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def random_states(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Tensor:
    """States drawn uniformly from the unit sphere: [*shape], the last axis the dimension."""
    states: Tensor = F.normalize(torch.randn(shape, generator=generator, dtype=dtype), dim=-1)
    return states


def angle_between(left: Tensor, right: Tensor) -> Tensor:
    """The angle between vectors [..., d], in 0..pi; exact near 0 and pi, where acos is not.

    2 atan2(|u - v|, |u + v|) of the unit vectors u and v (Kahan).
    """
    left, right = F.normalize(left, dim=-1), F.normalize(right, dim=-1)
    apart = torch.linalg.vector_norm(left - right, dim=-1)
    together = torch.linalg.vector_norm(left + right, dim=-1)
    return 2 * torch.atan2(apart, together)


def vector_of_phase(phases: Tensor) -> Tensor:
    """The point (cos, sin) on the circle: [...] to [..., 2]."""
    return torch.stack((phases.cos(), phases.sin()), dim=-1)
