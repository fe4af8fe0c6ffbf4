"""How far integer sums reach: what proves that 32 bits hold them."""

from __future__ import annotations

from entrain.deploy.lowering.graph import Interval, Node


def times(count: int, interval: Interval) -> Interval:
    """The interval of a sum of ``count`` summands or fewer."""
    low, high = interval
    return min(0, count * low), max(0, count * high)


def sum_of_products(a: Node, b: Node, count: int) -> Interval:
    """The interval of a sum of ``count`` products of elements of a and b, or fewer."""
    extremes = [x * y for x in a.interval for y in b.interval]
    return times(count, (min(extremes), max(extremes)))
