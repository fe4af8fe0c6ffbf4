"""Integrators of flows: Euler's step by step in torch, and an adaptive one from scipy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.dynamics.flows import lohe_flow

Velocity = Callable[[Tensor], Tensor]
"""The velocity of a state, of the state's own shape."""


def euler(flow: Velocity, start: Tensor, horizon: float, step: float) -> Tensor:
    """Euler's method with a fixed step; the last one ends at the horizon.

    Args:
        flow: the velocity.
        start: any shape.
        horizon: the time to integrate over, not negative.
        step: of time, positive.

    Returns:
        The state at the horizon. Gradients flow back through every step.
    """
    state = start
    for length in _steps(horizon, step):
        state = state + length * flow(state)
    return state


def euler_on_sphere(starts: Tensor, fields: Tensor, horizon: float, step: float) -> Tensor:
    """Lohe's flow by Euler's method, put back on the sphere after each step.

    Args:
        starts: unit vectors [..., d].
        fields: h [..., d].
        horizon: the time to integrate over, not negative.
        step: of time, positive.

    Returns:
        Unit vectors [..., d].

    Raises:
        UsageError: if the step overshoots, so that the equilibrium would no longer attract: it
            does from |h| step = 2 on.
    """
    strongest = float(torch.linalg.vector_norm(fields.detach(), dim=-1).max()) if len(fields) else 0
    if strongest * step >= 2:
        raise UsageError(
            f"a step of {step:g} overshoots: the strongest field has a length of {strongest:.3g}",
            remedy=f"Take a step below {2 / strongest:.3g}; half of that follows the flow closely.",
        )
    states = starts
    for length in _steps(horizon, step):
        states = F.normalize(states + length * lohe_flow(states, fields), dim=-1)
    return states


def adaptive(
    flow: Velocity,
    start: Tensor,
    horizon: float,
    *,
    tolerance: float = 1e-10,
    method: str = "DOP853",
) -> Tensor:
    """Integrate by scipy's solve_ivp in float64, its steps chosen by the error; without gradients.

    Args:
        flow: the velocity.
        start: any shape.
        horizon: the time to integrate over, not negative.
        tolerance: relative and absolute, of a step's error.
        method: of solve_ivp, such as ``RK45``.

    Returns:
        The state at the horizon, of the start's shape and type.

    Raises:
        UsageError: the integrator could not keep the tolerance.
    """
    if horizon == 0 or start.numel() == 0:
        return start

    def velocity(_: float, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        state = torch.from_numpy(np.ascontiguousarray(flat)).view(start.shape)
        return flow(state).detach().reshape(-1).numpy()

    solution = solve_ivp(
        velocity,
        (0.0, horizon),
        start.detach().double().reshape(-1).numpy(),
        method=method,
        rtol=tolerance,
        atol=tolerance,
        t_eval=(horizon,),
    )
    if not solution.success:
        raise UsageError(
            f"the integrator gave up: {solution.message}",
            where=f"{method}, tolerance {tolerance:g}, horizon {horizon:g}",
            remedy="Allow a larger tolerance, or take a shorter horizon.",
        )
    end = torch.from_numpy(np.ascontiguousarray(solution.y[:, -1])).view(start.shape)
    return end.to(start)


def _steps(horizon: float, step: float) -> list[float]:
    """Equal steps, none longer than asked, that end at the horizon."""
    if not (math.isfinite(horizon) and horizon >= 0):
        raise UsageError(f"a horizon must be a time from 0 on, not {horizon}")
    if not (math.isfinite(step) and step > 0):
        raise UsageError(f"a step must be a positive time, not {step}")
    # A whole number of steps that rounding put a little above stays that number.
    count = math.ceil(horizon / step * (1 - 1e-12))
    return [horizon / count for _ in range(count)]
