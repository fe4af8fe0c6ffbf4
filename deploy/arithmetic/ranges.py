"""The ranges that were proved for integers, asserted where they are computed."""

from __future__ import annotations

from entrain.deploy.arithmetic.requantization import IntArray

LARGEST_WORD = 2**31 - 1


def within(numbers: IntArray, low: int, high: int, what: str) -> None:
    """Make sure that all numbers lie in a range.

    Raises:
        OverflowError: one does not; an error of ours, since the lowering has proved it.
    """
    if numbers.size and (numbers.min() < low or numbers.max() > high):
        raise OverflowError(f"{what} from {numbers.min()} to {numbers.max()}")


def within_word(numbers: IntArray, what: str) -> None:
    """Make sure that all numbers fit 32 bits with either sign; errors as :func:`within`."""
    within(numbers, -LARGEST_WORD, LARGEST_WORD, what)
