"""The couplings of oscillator attention in integers, one function each.

``COUPLINGS`` is the registry of those that are a function of the score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import (
    RectifiedCoupling,
    SeparableCoupling,
    TabulatedCoupling,
    integer_range,
    rectified_coupling,
    table_scale,
    weight_bits,
)
from entrain.deploy.arithmetic.coupling import TABLE_SIZE
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.operators.heads import reach
from entrain.deploy.lowering.views import View

Reals = NDArray[np.float64]
Function = Callable[[Reals], Reals]

# What lies beyond these scores is, to less than 0.0004, the score itself or nothing.
TABLE_SPAN = 8.0


@dataclass(frozen=True, eq=False)
class IntegerCoupling:
    """A coupling and what its sums of weights times anchor codes can be.

    Attributes:
        coupling: the arithmetic.
        unit: the real coupling that one step of a weight stands for.
        peak: largest magnitude of a sum over all keys.
        table: the table, if there is one.
    """

    coupling: RectifiedCoupling | TabulatedCoupling | SeparableCoupling
    unit: float
    peak: int
    table: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """What a coupling of pairs has to know.

    Attributes:
        scale: the real score that one step of an integer score stands for.
        reach: largest magnitude of an integer score.
        pull: largest magnitude of a sum of anchor codes, each with its own sign.
    """

    scale: float
    reach: int
    pull: int

    @property
    def bits(self) -> int:
        """Of a weight."""
        return weight_bits(self.pull)

    def made(
        self, coupling: RectifiedCoupling | TabulatedCoupling, unit: float, *table: Array
    ) -> IntegerCoupling:
        """The coupling with its largest sum."""
        return IntegerCoupling(coupling, unit, (2**self.bits - 1) * self.pull, table)


def relu(pairs: Pairs) -> IntegerCoupling:
    """``max(s, 0)``."""
    coupling = rectified_coupling(pairs.reach, pairs.bits)
    return pairs.made(coupling, pairs.scale * 2**coupling.shift)


def softplus(pairs: Pairs) -> IntegerCoupling:
    """``log(1 + exp(s)) = max(s, 0) + log(1 + exp(-|s|))``."""
    return _beside_table(pairs, lambda s: np.log1p(np.exp(-np.abs(s))))


def elu(pairs: Pairs) -> IntegerCoupling:
    """``elu(s) + 1 = max(s, 0) + exp(min(s, 0))``."""
    return _beside_table(pairs, lambda s: np.exp(np.minimum(s, 0.0)))


def _beside_table(pairs: Pairs, rest: Function) -> IntegerCoupling:
    """``max(s, 0) + rest(s)``, the rest by a table that ends where it no longer changes."""
    step = 2.0 * TABLE_SPAN / TABLE_SIZE
    entries = rest(_scores(step))
    above = float(entries.max()) / pairs.scale
    rectified = rectified_coupling(pairs.reach, pairs.bits, above=above)
    unit = pairs.scale * 2**rectified.shift
    multiplier, lift = table_scale(pairs.scale / step, pairs.reach)
    coupling = TabulatedCoupling(multiplier, lift, pairs.bits, rectified)
    return pairs.made(coupling, unit, _weights(entries / unit, pairs.bits))


def tabulated(pairs: Pairs, function: Function, span: float | None) -> IntegerCoupling:
    """Any function of the score that is never negative.

    Args:
        pairs: what is known of the scores.
        function: of real scores.
        span: the score beyond which, to either side, the function no longer changes.

    Raises:
        OverflowError: it is negative somewhere, or 0 everywhere, or no number.
    """
    step = 2.0 * (span or pairs.scale * pairs.reach) / TABLE_SIZE
    entries = function(_scores(step))
    if not (np.isfinite(entries).all() and entries.min() >= 0 and entries.max() > 0):
        raise OverflowError(f"couplings from {entries.min():.3g} to {entries.max():.3g}")
    unit = float(entries.max()) / (2**pairs.bits - 1)
    multiplier, lift = table_scale(pairs.scale / step, pairs.reach)
    coupling = TabulatedCoupling(multiplier, lift, pairs.bits, None)
    return pairs.made(coupling, unit, _weights(entries / unit, pairs.bits))


def _scores(step: float) -> Reals:
    """The real score of each place of a table."""
    return step * (np.arange(TABLE_SIZE, dtype=np.float64) - TABLE_SIZE // 2)


def _weights(entries: Reals, bits: int) -> Array:
    weights: Array = np.minimum(np.rint(entries), 2**bits - 1).astype(np.int16)
    return weights


def separable(query: View, key: View, pull: int, scale: float) -> IntegerCoupling:
    """``max(q_i, 0).max(k_j, 0)``, never made pair by pair.

    Raises:
        OverflowError: a sum over the keys does not fit.
    """
    reaches = [integer_range(v.value.dtype)[1] - v.zero_point for v in (query, key)]
    most = query.shape[2] * max(reaches[0], 1)
    bits = weight_bits(most)
    if pull * max(reaches[1], 0) > 2**30:
        raise OverflowError(f"{pull * reaches[1]:.3g} of a sum of keys times anchors")
    return IntegerCoupling(SeparableCoupling(bits), scale, most << bits)


COUPLINGS: dict[str, Callable[[Pairs], IntegerCoupling]] = {
    "relu": relu,
    "softplus": softplus,
    "elu": elu,
}
SEPARABLE = "separable"


def integer_coupling(
    name: str,
    query: View,
    key: View,
    anchors: Array,
    scale: float,
    function: Function | None = None,
    span: float | None = None,
) -> IntegerCoupling:
    """The coupling of a name, or the one of a function.

    Args:
        name: of ``COUPLINGS``, or ``separable``; any other with a function.
        query: [heads, queries, d_head].
        key: [heads, keys, d_head].
        anchors: codes, int64 [heads or 1, keys, d_osc].
        scale: the real score that one step of an integer score stands for.
        function: of real scores.
        span: where the function's table ends; all scores that can occur if there is none.

    Raises:
        OverflowError: integers may grow too large.
        UnsupportedOperator: the name is unknown and there is no function.
    """
    pull = int(np.abs(anchors).sum(axis=1).max())
    if name == SEPARABLE:
        return separable(query, key, pull, scale)
    pairs = Pairs(scale, query.shape[2] * reach(query) * reach(key), pull)
    if function is not None:
        return tabulated(pairs, function, span)
    if name not in COUPLINGS:
        raise UnsupportedOperator(
            f"a coupling {name!r}", remedy=f"known: {', '.join([*COUPLINGS, SEPARABLE])}"
        )
    return COUPLINGS[name](pairs)
