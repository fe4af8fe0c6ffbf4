"""Register blocks of the matrix product: what each would cost, and which is best.

How many instructions ``entrain_matmul`` takes follows from its loops: so many for each vector or
word of weights, for each output and for each block. What the compiler adds is not in the source but
in constants below, fitted to counts of the emulator for some 45 combinations of shape and block
each, gcc 12.2 -O3. The model predicts those within 7 % (Cortex-M4F), 9 % (M3) and 11 % (M55), on
average within 1.8, 1.6 and 3.5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

WORD = 4  # products of two SMLADs
LANES = 16  # products of one VMLADAV
HELD_VECTORS = 4  # of input that stay in registers for all columns
LOOP_WORDS = 8  # between two branches of the loop for DSP
# instructions that it takes to unpack a weight of four bits
UNPACKED_WEIGHT = {"scalar": 1.25, "dsp": 0.9, "mve": 0.3}


@dataclass(frozen=True)
class Blocks:
    """A register block of a kernel, and the instructions that the schedule expects of it.

    ``rows`` and ``columns`` of the result are summed up at the same time.
    """

    rows: int
    columns: int
    instructions: int


Candidates = tuple[tuple[str, tuple[Blocks, ...]], ...]


@dataclass(frozen=True)
class MatmulShape:
    """Extents of a matrix product; ``wide`` if outputs are rescaled in 64 bits."""

    rows: int
    depth: int
    columns: int
    wide: bool = False


def matmul_blocks(shape: MatmulShape) -> Candidates:
    """For each instruction set the blocks that its kernel offers, the fewest instructions first."""
    return tuple(
        (name, _ranked(shape, model, offered)) for name, (model, offered) in _KERNELS.items()
    )


def _ranked(
    shape: MatmulShape,
    model: Callable[[MatmulShape, int, int], int],
    offered: tuple[tuple[int, int], ...],
) -> tuple[Blocks, ...]:
    # three rows of three would need more scratch than DSP's two do
    most = shape.rows if shape.rows < 3 else shape.rows // 2 * 2
    fitting = [(rows, columns) for rows, columns in offered if rows <= most]
    blocks = [Blocks(rows, columns, model(shape, rows, columns)) for rows, columns in fitting]
    return tuple(sorted(blocks, key=lambda block: block.instructions))


def _parts(total: int, block: int) -> Iterator[tuple[int, int]]:
    """Block sizes that cover a total, and how often: whole blocks, then what is left."""
    whole, left = divmod(total, block)
    if whole:
        yield block, whole
    if left:
        yield left, 1


def _dsp(shape: MatmulShape, rows: int, _columns: int) -> int:
    """Pairs of rows against one column; a row without a partner against four columns."""
    words = -(-shape.depth // WORD)
    loops = (words - 1) // LOOP_WORDS
    output = 6 + 4 * shape.wide
    total = 93
    for block, times in _parts(shape.rows, rows):
        paired, single = block // 2 * 2, block % 2
        total += times * block * 5 * words  # widened: load, two halves, store, address
        if paired:
            each_word = 3 + paired // 2 + 2 * paired  # weights, loads of two rows, SMLADs
            column = words * each_word + 3 * loops * (loops > 1) + output * paired
            total += times * shape.columns * column
        if single:
            for columns, groups in _parts(shape.columns, WORD):
                total += times * groups * (words * (1 + 5 * columns) + (output + 13) * columns)
    return total


def _mve(shape: MatmulShape, rows: int, columns: int) -> int:
    """Up to three rows against four columns, two of them at a time."""
    vectors, rest = divmod(shape.depth, LANES)
    total = 0
    for block, times in _parts(shape.rows, rows):
        if block * (vectors + (rest > 0)) <= HELD_VECTORS:
            dot = (vectors + (rest > 0)) * (2 + 2 * block)
        else:
            dot = vectors * (2 + 3 * block) + (rest > 0) * (2 + 4 * block) + block
        four = 2 * dot + 1 + (13 + 15 * shape.wide) * block
        total += times * (14 + four * -(-shape.columns // columns))
    return total


def _scalar(shape: MatmulShape, rows: int, columns: int) -> int:
    """Any block, one multiplication at a time; of a Cortex-M3."""
    output = 12 + 10 * shape.wide
    total = 68
    for high, times in _parts(shape.rows, rows):
        for wide, groups in _parts(shape.columns, columns):
            step = high + wide + high * wide + 1  # loads, multiplications, loop
            total += times * groups * (shape.depth * step + output * high * wide + 14)
    return total


# what firmware/kernels/entrain_matmul_*.h can do
_KERNELS: dict[str, tuple[Callable[[MatmulShape, int, int], int], tuple[tuple[int, int], ...]]] = {
    "scalar": (_scalar, ((1, 4), (1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (4, 1))),
    "dsp": (_dsp, ((1, 1), (2, 1), (4, 1), (6, 1))),
    "mve": (_mve, ((1, 4), (2, 4), (3, 4))),
}
