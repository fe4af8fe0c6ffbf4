"""The oscillators' own way to their fixed point, in fixed point: Euler steps, renormalised.

    u = h - z (z.h),   z <- z + u,   z <- z (3 - |z|^2) / 2

with the field scaled to ``1/2 <= |h| < 1`` by a power of two, which changes the pace but not the
fixed point ``h / |h|`` of ``dz/dt = (I - z z^T) h`` (Pasqualetti and Guo 2026). The last factor is
one Newton step towards |z| = 1: without it the states spiral outwards. A start at ``sign(h_1) e_1``
is never the antipode of the field, where a free oscillator would rest for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import IntArray, rounding_shift
from entrain.deploy.arithmetic.ranges import within
from entrain.deploy.arithmetic.settling import STATE_ONE, normalised

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Path:
    """Where the states ended and how.

    Attributes:
        states: z [..., d_osc], steps of 2**-14; 0 where h = 0.
        steps: how many were taken, [...].
        converged: whether the last one moved no component by more than the tolerance, [...].
        trajectory: z after each step, [steps + 1, ..., d_osc], if it was recorded.
    """

    states: Integers
    steps: Integers
    converged: NDArray[np.bool_]
    trajectory: Integers | None = None


@dataclass(frozen=True)
class Dynamics:
    """Euler's scheme with an early exit.

    Attributes:
        most_steps: after which it gives up.
        tolerance: a step that moves no component by more, in units of 2**-14, is the last.
    """

    most_steps: int = 64
    tolerance: int = 4

    def settle(self, fields: IntArray, *, record: bool = False) -> Path:
        """The settled states of fields h [..., d_osc], int32.

        Args:
            fields: one for each query.
            record: keep every step.

        Raises:
            OverflowError: a field or an intermediate out of range.
        """
        h = scaled_field(fields)
        z = np.zeros_like(h)
        z[..., 0] = np.where(h[..., 0] < 0, -STATE_ONE, STATE_ONE)
        z[~h.any(axis=-1)] = 0
        steps = np.zeros(h.shape[:-1], np.int64)
        moving: NDArray[np.bool_] = np.asarray(h.any(axis=-1))
        trajectory = [z.copy()]
        for _ in range(self.most_steps):
            if not moving.any():
                break
            update = _update(z[moving], h[moving])
            z[moving] = _renormalised(z[moving] + update)
            steps[moving] += 1
            moving[moving] = np.abs(update).max(axis=-1) > self.tolerance
            trajectory.append(z.copy())
        return Path(z, steps, ~moving, np.stack(trajectory) if record else None)


def scaled_field(fields: IntArray) -> Integers:
    """The field times a power of two, so that its length lies from 1/2 to 1 in steps of 2**-14."""
    a = np.minimum(normalised(np.asarray(fields, np.int64)), 2**15 - 1)  # a multiplier's 16 bits
    squares = (a * a).sum(axis=-1, keepdims=True)
    bits = np.frexp(squares.astype(np.float64))[1].astype(np.int64)
    return rounding_shift(a, np.maximum((bits - 27) >> np.int64(1), 0))


def _update(z: Integers, h: Integers) -> Integers:
    along = rounding_shift((z * h).sum(axis=-1, keepdims=True), 14)
    within(along, -(2**15), 2**15 - 1, "a projection of the field")
    update: Integers = h - rounding_shift(z * along, 14)
    return update


def _renormalised(z: Integers) -> Integers:
    within(z, -(2**15), 2**15 - 1, "a component of a state")
    factor = 3 * STATE_ONE // 2 - rounding_shift((z * z).sum(axis=-1, keepdims=True), 15)
    within(factor, -(2**15), 2**15 - 1, "a Newton factor")
    renormalised = rounding_shift(z * factor, 14)
    within(renormalised, -(2**15), 2**15 - 1, "a component of a state")
    return renormalised
