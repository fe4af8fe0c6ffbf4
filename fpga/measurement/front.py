"""The front of cycles x cells: blocks of several lengths and widths, and which no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from entrain.deploy.arithmetic import SeparableCoupling
from entrain.deploy.errors import UsageError
from entrain.fpga.generation.attention import LEAST_WORDS
from entrain.fpga.measurement.blocks import Sizes, block_named
from entrain.fpga.measurement.comparison import Compared
from entrain.fpga.reference import SoftmaxBlock
from entrain.fpga.verification.vectors import CoreTrial

TOKENS, LANES = (25, 49, 64), (2, 4, 8)


def front(names: Sequence[str], sizes: Sizes) -> list[tuple[str, Sizes]]:
    """Every block in all lengths, and in all widths if it scores keys.

    Softmax gets as many DSP blocks for its values as for its scores: of its weights of 15 bits each
    product fills one, of those of 8 bits half of one, as of the scores'; a width that the block
    cannot be built with is left out.

    Raises:
        UsageError: an unknown block, or vectors that the widths do not divide.
    """
    if sizes.d_head % max(LANES) or sizes.d_value % max(LANES):
        raise UsageError(
            f"vectors of {sizes.d_head} and {sizes.d_value}",
            where="--front",
            remedy=f"multiples of {max(LANES)}",
        )
    return [
        (name, replace(sizes, tokens=tokens, lanes=lanes, value_lanes=value_lanes))
        for tokens in TOKENS
        for name in names
        for lanes, value_lanes in _widths(name, sizes)
    ]


def _widths(name: str, sizes: Sizes) -> list[tuple[int, int]]:
    """Products of scores, and of weights and values, a cycle."""
    trial = block_named(name, sizes)
    if isinstance(trial, CoreTrial):
        return [(sizes.lanes, sizes.value_lanes)]
    block = trial.block
    if isinstance(block, SoftmaxBlock):
        products = 2 if block.narrow else 1  # of a DSP block
        widths = [(lanes, products * lanes // 2) for lanes in LANES]
        return [pair for pair in widths if sizes.d_value >= LEAST_WORDS * pair[1]]
    if isinstance(block.coupling, SeparableCoupling):
        return [(sizes.lanes, sizes.value_lanes)]
    return [(lanes, sizes.value_lanes) for lanes in LANES]


def unbeaten(rows: Sequence[Compared]) -> list[bool]:
    """Of which no other of its kind, board and length is better in cycles or look-up tables.

    Better in one and no worse in the other.
    """
    return [not any(_beats(other, row) for other in rows) for row in rows]


def _beats(one: Compared, other: Compared) -> bool:
    if _competition(one) != _competition(other):
        return False
    costs, others = (one.cycles, one.cells.luts), (other.cycles, other.cells.luts)
    return costs != others and all(mine <= its for mine, its in zip(costs, others, strict=True))


def _competition(row: Compared) -> tuple[bool, str, int]:
    return row.whole, row.board, row.sizes.tokens
