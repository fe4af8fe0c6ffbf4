"""Settling itself: how often oscillators arrive in time, and what stops them.

The protocol is that of Pasqualetti and Guo, table 6 and figures 2 and 7: fields, several starts
each, the flow integrated to a horizon, and the distance to the equilibrium there. Their fields are
those of language models, whose weights but for one are not published; `FIELDS` has ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.deploy.statistics import wilson_interval
from entrain.models.attention.settling import STARTS, AdaptiveSettling, Start, TimedSettling
from entrain.models.choices import check_choice
from entrain.models.dynamics import (
    angle_between,
    cap_probability,
    failure_probability,
    settling_time,
    stable_equilibrium,
    unstable_equilibrium,
)
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.fields import FIELDS
from entrain.models.training import EpochReport

# Of the papers: a field this short hardly moves anything, a distance this long has not arrived.
WEAK_FIELD = 0.01
FAR = 0.1
HORIZONS = (30, 100, 500, 1000, 5000)
ANGLES = np.linspace(0.01, math.pi / 2, 50)
# Of these angles two are shown in tables: nearest to pi / 8 and to pi / 4.
SHOWN = {"eighth": 12, "quarter": 24}


@dataclass(frozen=True)
class Flow:
    """Oscillators in fields of some kind, let go, and looked at after the horizon.

    Args:
        d_osc: dimension of an oscillator.
        fields: a name of `FIELDS`: where h comes from.
        sequences: how many are looked at.
        tokens: of a sequence that is drawn; each is one oscillator.
        median: of |h|, where lengths are drawn.
        spread: deviation of log |h|, where lengths are drawn.
        epochs: of training, where the fields are a trained network's.
        start: a name of `STARTS`.
        starts: how many times every oscillator is let go.
        integrator: ``adaptive``, or ``exact``, the flow's solution in closed form.
        horizon: when it is looked at.
        tolerance: a distance |z - z*| below which it has arrived, in 0..2.

    Raises:
        UsageError: for a name that does not exist, or a number out of range.
    """

    d_osc: int = 2
    fields: str = "couplings"
    sequences: int = 8
    tokens: int = 128
    median: float = 1.0
    spread: float = 1.0
    epochs: int = 20
    start: str = "random"
    starts: int = 5
    integrator: str = "adaptive"
    horizon: float = 30.0
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        for name, choices in (("fields", FIELDS), ("start", STARTS), ("integrator", INTEGRATORS)):
            check_choice(name, getattr(self, name), choices)
        if self.d_osc < 2:
            raise UsageError(f"an oscillator needs at least 2 dimensions, not {self.d_osc}")
        for name in ("sequences", "tokens", "epochs", "starts", "median", "spread", "horizon"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"{name} must be positive, not {getattr(self, name)}")
        if not 0 < self.tolerance < 2:
            raise UsageError(f"the tolerance must lie between 0 and 2, not {self.tolerance}")

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """Get the fields, let go and look.

        Metrics: ``converged``, ``far`` and ``weak`` in per cent (of oscillators let go; of fields),
        ``mean_error`` the mean distance, ``median_time`` when half have arrived, ``converged_T``
        by later horizons; from a random start also ``expected``, the probability of having
        converged, and how near starts are to the antipode, measured and by the formula.
        """
        fields = FIELDS[self.fields](self, seed, place, on_epoch)
        fields = fields.expand(self.starts, *fields.shape)
        generator = torch.Generator().manual_seed(2 * seed + 1)
        starts = STARTS[self.start](fields, generator)
        settling = INTEGRATORS[self.integrator](self.horizon, lambda *_: starts)
        errors = torch.linalg.vector_norm(
            settling(fields, generator) - stable_equilibrium(fields), dim=-1
        )
        times = settling_time(starts, fields, _angle_of(self.tolerance))
        by_horizon = [_per_cent(times <= horizon) for horizon in HORIZONS]
        metrics = {
            "converged": _per_cent(errors < self.tolerance),
            "far": _per_cent(errors > FAR),
            "weak": _per_cent(torch.linalg.vector_norm(fields, dim=-1) < WEAK_FIELD),
            "mean_error": float(errors.mean()),
            "median_time": float(times.flatten().quantile(0.5, interpolation="lower")),
        }
        for horizon, share in zip(HORIZONS, by_horizon, strict=True):
            metrics[f"converged_{horizon}"] = share
        curves = {"converged_by_horizon": tuple(by_horizon)}
        if self.start == "random":
            metrics["expected"] = self._expected(fields)
            near = _antipodal(starts, fields)
            metrics |= near.metrics
            curves |= near.curves
        return Outcome(metrics, curves)

    def _expected(self, fields: Tensor) -> float:
        """What converges of random starts in these fields, by the formula, in per cent."""
        strengths = torch.linalg.vector_norm(fields[0], dim=-1).numpy()
        failing = failure_probability(
            strengths, self.horizon, _angle_of(self.tolerance), self.d_osc
        )
        return 100 * (1 - float(failing.mean()))


INTEGRATORS: Mapping[str, Callable[[float, Start], AdaptiveSettling | TimedSettling]] = {
    "adaptive": lambda horizon, start: AdaptiveSettling(horizon, start=start),
    "exact": TimedSettling,
}


def _antipodal(starts: Tensor, fields: Tensor) -> Outcome:
    """How many starts lie within each of `ANGLES` of the unstable equilibrium, in per cent.

    Beside it the formula, and for how many angles it lies in the 95 % interval of what is measured
    (the counts at neighbouring angles hang together).
    """
    angles = angle_between(starts, unstable_equilibrium(fields)).flatten().sort().values.numpy()
    counts = np.searchsorted(angles, ANGLES)
    formula = cap_probability(ANGLES, fields.shape[-1])
    intervals = [wilson_interval(int(count), len(angles)) for count in counts]
    inside = [low <= p <= high for (low, high), p in zip(intervals, formula, strict=True)]
    measured = 100 * counts / len(angles)
    metrics = {
        "antipodal_inside": 100 * float(np.mean(inside)),
        "antipodal_difference": float(np.abs(measured - 100 * formula).max()),
    }
    for name, place in SHOWN.items():
        metrics[f"antipodal_{name}"] = float(measured[place])
        metrics[f"antipodal_{name}_formula"] = 100 * float(formula[place])
    return Outcome(
        metrics,
        {
            "antipodal": tuple(float(value) for value in measured),
            "antipodal_formula": tuple(100 * float(value) for value in formula),
        },
    )


def _angle_of(distance: float) -> float:
    """The angle between unit vectors at a distance."""
    return 2 * math.asin(distance / 2)


def _per_cent(which: Tensor) -> float:
    return 100 * float(which.double().mean())
