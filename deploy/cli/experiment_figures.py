"""How an experiment's figures are written: what belongs to a mean, with as many decimals as it."""

from __future__ import annotations

import math

from entrain.deploy.report.words import MINUS

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def decimals(value: float) -> int:
    """As many as tell four digits, and at least two: none above a thousand."""
    if value == 0 or not math.isfinite(value):
        return 2
    size = math.floor(math.log10(abs(value)))
    return 0 if size >= 3 else max(2, 3 - size) if size >= -1 else 1 - size


def figure(value: float, like: float | None = None) -> str:
    """A figure with the decimals of ``like``, or its own: ``93.10``, ``1.997``, ``0.0042``."""
    places = decimals(value if like is None else like)
    return f"{value:,.{places}f}".replace("-", MINUS)


def signed(value: float, like: float | None = None) -> str:
    """A difference with its sign."""
    written = figure(value, like)
    return f"+{written}" if value > 0 else written


def spread(mean: float, sd: float | None) -> str:
    """A mean and its standard deviation, if there is one."""
    return figure(mean) + ("" if sd is None else f" {PLUS_MINUS} {figure(sd, mean)}")


def ends(interval: tuple[float, float], like: float) -> str:
    """An interval, with the decimals of the mean that it belongs to."""
    return " to ".join(figure(end, like) for end in interval)
