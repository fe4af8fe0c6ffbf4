"""How often an oscillator fails to settle in time: a start too near the antipode, a weak field.

For directions drawn uniformly from the sphere in d dimensions these are exact. Both failures
become exponentially rarer as d grows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.special import betainc, gammainc
from scipy.stats import chi

from entrain.deploy.errors import UsageError

Floats = NDArray[np.float64]


def cap_probability(angle: ArrayLike, d: int) -> Floats:
    """P(a uniform direction lies within an angle of a given one), in d dimensions.

    Gamma(d/2) / (sqrt(pi) Gamma((d-1)/2)) times the integral of sin^(d-2) from 0 to the angle
    (Pasqualetti and Guo, proposition 4), by the regularised incomplete beta function.

    Args:
        angle: in 0..pi, any shape.
        d: at least 2.

    Raises:
        UsageError: d or an angle is out of range.
    """
    angles = np.asarray(angle, dtype=np.float64)
    _check_dimension(d)
    if not np.all((angles >= 0) & (angles <= math.pi)):
        raise UsageError("an angle must lie within 0..pi")
    half = 0.5 * betainc((d - 1) / 2, 0.5, np.sin(angles) ** 2)
    return np.asarray(np.where(angles <= math.pi / 2, half, 1 - half))


def failing_angle(strength: ArrayLike, horizon: float, tolerance: float) -> Floats:
    """How near the antipode a start must be to stay outside the tolerance at the horizon.

    Those fail whose angle to -z* is below 2 atan(exp(-|h| T) / tan(tolerance / 2)).

    Args:
        strength: |h|, not negative, any shape.
        horizon: T.
        tolerance: the angle to z* that counts as settled, in 0..pi, both excluded.
    """
    decay = np.exp(-np.asarray(strength, dtype=np.float64) * horizon)
    return np.asarray(2 * np.arctan2(decay, math.tan(tolerance / 2)))


def failure_probability(strength: ArrayLike, horizon: float, tolerance: float, d: int) -> Floats:
    """P(not within the tolerance at the horizon) from a uniform start, for each |h|: exact."""
    return cap_probability(failing_angle(strength, horizon, tolerance), d)


def weak_field_probability(limit: ArrayLike, spread: float, d: int) -> Floats:
    """P(|h| < limit) of a field with d independent Gaussian components of one deviation.

    A sum of many anchors in random directions is such a field, with the deviation
    sqrt(sum_j w_j^2 / d); for few anchors it is an approximation.

    Args:
        limit: length of a field, not negative, any shape.
        spread: deviation of a component, positive.
        d: at least 2.

    Raises:
        UsageError: d is out of range.
    """
    _check_dimension(d)
    scaled = np.asarray(limit, dtype=np.float64) / spread
    return np.asarray(gammainc(d / 2, scaled**2 / 2))


def gaussian_failure_probability(spread: float, horizon: float, tolerance: float, d: int) -> float:
    """Both failures at once: `failure_probability` averaged over Gaussian fields.

    Arguments are those of `failure_probability` and `weak_field_probability`.
    """
    _check_dimension(d)
    lengths = chi(d, scale=spread)

    def failing(strength: float) -> float:
        return float(lengths.pdf(strength) * failure_probability(strength, horizon, tolerance, d))

    # Beyond the elbow the start must be ever nearer the antipode: the integrand bends there.
    elbow = min(-math.log(math.tan(tolerance / 2)) / horizon, float(lengths.ppf(0.5)))
    near = quad(failing, 0, max(elbow, 0), limit=200)[0]
    return float(near + quad(failing, max(elbow, 0), float(lengths.isf(1e-16)), limit=200)[0])


def _check_dimension(d: int) -> None:
    if d < 2:
        raise UsageError(f"an oscillator needs at least 2 dimensions, not {d}")
