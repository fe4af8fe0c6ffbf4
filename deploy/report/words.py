"""Numbers as a person reads them."""

from __future__ import annotations

from collections.abc import Callable

from entrain.deploy.results import Figure, Interval

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


def percent(fraction: float) -> str:
    """A fraction in per cent: ``93.4 %``."""
    return f"{100 * fraction:.1f} %"


def percent_range(interval: Interval) -> str:
    """An interval of fractions in per cent, of one sign: ``92.1-94.6 %``."""
    return f"{100 * interval[0]:.1f}{DASH}{100 * interval[1]:.1f} %"


def points(difference: float) -> str:
    """A difference of fractions in percentage points, signed: ``+0.3``; zero has no sign."""
    text = f"{100 * abs(difference):.1f}"
    if text == "0.0":
        return text
    return f"+{text}" if difference > 0 else f"{MINUS}{text}"


def points_range(interval: Interval) -> str:
    """An interval of differences in points: ``-1.1 to +0.5``."""
    return f"{points(interval[0])} to {points(interval[1])}"


def count(number: float) -> str:
    """A whole number with thousands parted: ``1,234,567``."""
    return f"{round(number):,}"


def count_range(interval: Interval) -> str:
    """An interval of whole numbers: ``5,516-7,778``."""
    return f"{count(interval[0])}{DASH}{count(interval[1])}"


def significant(number: float) -> str:
    """Three significant digits without an exponent: ``61.2``, ``0.0123``, ``1,230``."""
    if number == 0:
        return "0"
    rounded = float(f"{number:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{number:#.3g}" if abs(rounded) >= 1e-4 else f"{number:.2e}"


def times(ratio: float) -> str:
    """A ratio: ``0.62 x``."""
    return f"{significant(ratio)} \N{MULTIPLICATION SIGN}"


def memory_size(size: float) -> str:
    """Bytes as KiB, from one MiB on as MiB: ``52.1 KiB``, ``4.0 MiB``."""
    kibibytes = size / 1024
    return f"{kibibytes:.1f} KiB" if kibibytes < 1024 else f"{kibibytes / 1024:.1f} MiB"


def bounds(figure: Figure, shown: Callable[[float], str] = significant) -> str:
    """The bounds of a figure, ``50.1-79.0``; nothing where it has none."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{shown(figure.low)}{DASH}{shown(figure.high)}"


def printable(text: str) -> str:
    """The text with control characters written out, since a terminal would obey them."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )


def listed(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
