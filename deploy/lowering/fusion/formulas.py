"""The attention mechanisms in double precision: what a recognised region has to equal.

Queries [H, Q, D], keys [H, T, D] and values [H, T, V] give a context [H, Q, V]. Settings of an
oscillator may be arrays [.., 1, 1, 1], for as many contexts at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

NO_WEIGHT = 1e-12


def _weighed(weights: Reals, values: Reals) -> Reals:
    total = weights.sum(axis=-1, keepdims=True)
    context: Reals = weights @ values / np.maximum(total, NO_WEIGHT)
    return context


def scores(queries: Reals, keys: Reals, scale: float | Reals) -> Reals:
    """Scale * q_i.k_j, [H, Q, T]."""
    products: Reals = queries @ np.swapaxes(keys, -1, -2) * scale
    return products


def softmax(queries: Reals, keys: Reals, values: Reals, scale: float) -> Reals:
    """sum_j exp(s_ij) v_j / sum_j exp(s_ij); powers of two are a scale that holds log 2."""
    s = scores(queries, keys, scale)
    return _weighed(np.exp(s - s.max(axis=-1, keepdims=True)), values)


FEATURES: dict[str, Callable[[Reals, float], Reals]] = {
    "relu": lambda x, epsilon: np.maximum(x, 0.0) + epsilon,
    "elu": lambda x, _: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))) + 1.0,
}


def linear(queries: Reals, keys: Reals, values: Reals, feature: str, epsilon: float) -> Reals:
    """sum_j (f(q_i).f(k_j)) v_j / sum_j f(q_i).f(k_j) with f = relu + epsilon or elu + 1."""
    f = FEATURES[feature]
    return _weighed(scores(f(queries, epsilon), f(keys, epsilon), 1.0), values)


# The cheapest first: of queries and keys that are never negative, as unsigned ones are, separable
# and relu coupling are the same function, and only the former is linear in the tokens.
COUPLINGS: dict[str, Callable[[Reals, Reals, float | Reals], Reals]] = {
    "separable": lambda q, k, scale: scores(np.maximum(q, 0.0), np.maximum(k, 0.0), scale),
    "relu": lambda q, k, scale: np.maximum(scores(q, k, scale), 0.0),
    "softplus": lambda q, k, scale: np.logaddexp(0.0, scores(q, k, scale)),
}


def settled(
    queries: Reals,
    keys: Reals,
    anchors: Reals,
    coupling: str,
    scale: float | Reals,
    epsilon: float | Reals,
) -> Reals:
    """z_i = h_i / |h_i| with h_i = sum_j (w_ij + epsilon) r_j, [H, Q, d_osc]; zero where h is."""
    h = (COUPLINGS[coupling](queries, keys, scale) + epsilon) @ anchors
    length = np.sqrt((h * h).sum(axis=-1, keepdims=True))
    state: Reals = np.divide(h, length, out=np.zeros_like(h), where=length > 0.0)
    return state


def read_out(state: Reals, anchors: Reals, values: Reals, exponent: int | Reals) -> Reals:
    """sum_j a_ij v_j with a_ij = (1 + z_i.r_j)^p / sum_l (1 + z_i.r_l)^p."""
    return _weighed((1.0 + state @ np.swapaxes(anchors, -1, -2)) ** exponent, values)
