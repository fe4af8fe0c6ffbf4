"""Oscillators that do not rest exactly where theory says: settling in time, and noise.

A settling replaces the closed form inside `OscillatorAttention`. Everything random is seeded: on
entering one of the contexts below every oscillator gets a generator of its own, made from the seed
and its place in the network, which goes on from batch to batch. The same seed, the same batches in
the same order: the same disturbance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import couplings
from entrain.models.attention.oscillator import OscillatorAttention, settle
from entrain.models.dynamics import adaptive, euler_on_sphere, lohe_flow, random_states, state_after

# How far the paper's sequential start is from the previous token's equilibrium, per component.
JITTER = 0.05

Start = Callable[[Tensor, torch.Generator], Tensor]
"""From fields h [..., T, d_osc] to the states, on the sphere, that oscillators start from."""


class Settling(Protocol):
    """From fields h [B, H, T, d_osc] to the states z of the same shape that are read out."""

    def __call__(self, fields: Tensor, generator: torch.Generator) -> Tensor:
        """The states; what is random is drawn from the generator."""
        ...


def random_start(fields: Tensor, generator: torch.Generator) -> Tensor:
    """Anywhere on the sphere, all places alike."""
    return random_states(tuple(fields.shape), generator, fields.dtype).to(fields.device)


def axis_start(fields: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG001
    """sign(h_1) e_1: never beyond a right angle from h, for the price of one sign."""
    starts = torch.zeros_like(fields)
    starts[..., 0] = torch.where(fields[..., 0] < 0, -1.0, 1.0).to(fields.dtype)
    return starts


def sequential_start(fields: Tensor, generator: torch.Generator) -> Tensor:
    """Where the previous token rests, a little displaced; the first token starts anywhere."""
    noise = torch.randn(fields.shape, generator=generator, dtype=fields.dtype).to(fields.device)
    rest = F.normalize(settle(fields)[..., :-1, :] + JITTER * noise[..., 1:, :], dim=-1)
    return torch.cat([F.normalize(noise[..., :1, :], dim=-1), rest], dim=-2)


STARTS: dict[str, Start] = {
    "random": random_start,
    "axis": axis_start,
    "sequential": sequential_start,
}


@dataclass(frozen=True)
class Equilibrium:
    """h / |h|, as without any settling."""

    def __call__(self, fields: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """See `Settling`."""
        return settle(fields)


@dataclass(frozen=True)
class TimedSettling:
    """The exact state at the horizon, from the flow's solution in closed form; differentiable."""

    horizon: float
    start: Start = random_start

    def __call__(self, fields: Tensor, generator: torch.Generator) -> Tensor:
        """See `Settling`."""
        return state_after(self.start(fields, generator), fields, self.horizon)


@dataclass(frozen=True)
class EulerSettling:
    """The flow by Euler's method, put back on the sphere after each step; differentiable.

    Calling it raises UsageError where the step overshoots, that is from |h| step = 2 on.
    """

    horizon: float
    step: float = 0.02
    start: Start = random_start

    def __call__(self, fields: Tensor, generator: torch.Generator) -> Tensor:
        """See `Settling`."""
        return euler_on_sphere(self.start(fields, generator), fields, self.horizon, self.step)


@dataclass(frozen=True)
class AdaptiveSettling:
    """The flow by scipy's adaptive integrator, in float64; slow, and without gradients."""

    horizon: float
    tolerance: float = 1e-10
    start: Start = random_start

    def __call__(self, fields: Tensor, generator: torch.Generator) -> Tensor:
        """See `Settling`."""
        wide = fields.detach().double()
        starts = self.start(wide, generator)
        states = adaptive(
            partial(lohe_flow, fields=wide), starts, self.horizon, tolerance=self.tolerance
        )
        return F.normalize(states, dim=-1).to(fields)


@dataclass(frozen=True)
class NoisyStates:
    """Noise on every component of the settled state, put back on the sphere: (z + s g) / |z + s g|.

    Args:
        settling: what it disturbs.
        deviation: s of the standard Gaussian g.
    """

    settling: Settling
    deviation: float

    def __call__(self, fields: Tensor, generator: torch.Generator) -> Tensor:
        """See `Settling`."""
        states = self.settling(fields, generator)
        noise = torch.randn(states.shape, generator=generator, dtype=states.dtype)
        disturbed: Tensor = F.normalize(states + self.deviation * noise.to(states.device), dim=-1)
        return disturbed


@contextmanager
def with_settling(network: nn.Module, settling: Settling, *, seed: int = 0) -> Iterator[None]:
    """Put a settling into every oscillator of a network, and take it out again in the end.

    Raises:
        UsageError: the network has no oscillators.
    """
    oscillators = _oscillators(network)
    before = [oscillator.settling for oscillator in oscillators]
    try:
        for oscillator, generator in zip(oscillators, _generators(seed, oscillators), strict=True):
            oscillator.settling = partial(settling, generator=generator)
        yield
    finally:
        for oscillator, earlier in zip(oscillators, before, strict=True):
            oscillator.settling = earlier


@contextmanager
def recorded_fields(network: nn.Module) -> Iterator[list[Tensor]]:
    """Keep the fields h [B, H, T, d_osc] of every call of a network's oscillators, in call order.

    Yields:
        A list that grows; what the network computes stays as it is.

    Raises:
        UsageError: the network has no oscillators.
    """
    fields: list[Tensor] = []
    oscillators = _oscillators(network)
    before = [oscillator.settling for oscillator in oscillators]
    try:
        for oscillator in oscillators:
            oscillator.settling = partial(_recording, into=fields, settling=oscillator.settling)
        yield fields
    finally:
        for oscillator, earlier in zip(oscillators, before, strict=True):
            oscillator.settling = earlier


@contextmanager
def with_coupling_noise(network: nn.Module, deviation: float, *, seed: int = 0) -> Iterator[None]:
    """Make every coupling strength of a network's oscillators inexact: w_ij exp(s g_ij).

    Strengths stay positive; for small s it is a relative error of s. The mean of exp(s g) is the
    same for all pairs, and so turns no field.

    Args:
        network: is as before in the end.
        deviation: s of the standard Gaussian g.
        seed: of the noise.

    Raises:
        UsageError: the network has no oscillators.
    """
    oscillators = _oscillators(network)
    before = [oscillator.coupling for oscillator in oscillators]
    try:
        for oscillator, generator in zip(oscillators, _generators(seed, oscillators), strict=True):
            disturb = partial(_scaled_at_random, deviation=deviation, generator=generator)
            oscillator.coupling = couplings.disturbed(oscillator.coupling, disturb)
        yield
    finally:
        for oscillator, earlier in zip(oscillators, before, strict=True):
            oscillator.coupling = earlier


@contextmanager
def disturbed(
    network: nn.Module, *, coupling_noise: float, state_noise: float, seed: int
) -> Iterator[None]:
    """Noise on couplings and on settled states: the robustness study of Pasqualetti and Guo.

    Args:
        network: is as before in the end.
        coupling_noise: deviation of the logarithm of a coupling; 0.2 is about 20 %. 0 for none.
        state_noise: deviation of a state's component before it is put back on the sphere; 0 for
            none.
        seed: of both.

    Raises:
        UsageError: a deviation is negative or no number, or the network has no oscillators.
    """
    for name, deviation in (("coupling", coupling_noise), ("state", state_noise)):
        if not 0 <= deviation < float("inf"):
            raise UsageError(f"the {name} noise must be a number from 0 on, not {deviation}")
    _oscillators(network)
    with ExitStack() as stack:
        if coupling_noise:
            stack.enter_context(with_coupling_noise(network, coupling_noise, seed=2 * seed))
        if state_noise:
            noisy = NoisyStates(Equilibrium(), state_noise)
            stack.enter_context(with_settling(network, noisy, seed=2 * seed + 1))
        yield


def _recording(fields: Tensor, into: list[Tensor], settling: Callable[[Tensor], Tensor]) -> Tensor:
    into.append(fields.detach())
    return settling(fields)


def _scaled_at_random(strengths: Tensor, deviation: float, generator: torch.Generator) -> Tensor:
    noise = torch.randn(strengths.shape, generator=generator, dtype=strengths.dtype)
    return strengths * torch.exp(deviation * noise.to(strengths.device))


def _oscillators(network: nn.Module) -> list[OscillatorAttention]:
    found = [module for module in network.modules() if isinstance(module, OscillatorAttention)]
    if not found:
        raise UsageError(
            "the network has no oscillators",
            where=type(network).__name__,
            remedy="Settling and its noise apply to oscillator attention only.",
        )
    return found


def _generators(seed: int, oscillators: list[OscillatorAttention]) -> Iterator[torch.Generator]:
    """One a module, each with a sequence of its own."""
    for place in range(len(oscillators)):
        state = np.random.SeedSequence((seed, place)).generate_state(1, np.uint64)
        yield torch.Generator().manual_seed(int(state[0]) >> 1)
