"""Numbers as the bits of a stream, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import IntArray

Integers = NDArray[np.int64]
Words = NDArray[np.uint32]


def packed(numbers: IntArray, bits: int) -> Words:
    """Rows of numbers as 32-bit words, the first number lowest.

    Args:
        numbers: [transfers, elements]; of a negative one the lowest ``bits`` count.
        bits: of one number.

    Returns:
        [transfers, words].
    """
    rows = np.asarray(numbers, np.int64)
    places = np.arange(bits, dtype=np.int64)
    ones = ((rows[..., None] >> places) & 1).astype(np.uint8).reshape(len(rows), -1)
    short = -ones.shape[1] % 32
    octets = np.packbits(np.pad(ones, ((0, 0), (0, short))), axis=1, bitorder="little")
    return np.ascontiguousarray(octets).view("<u4").astype(np.uint32)


def unpacked(words: Words, elements: int, bits: int, *, offset: int = 0, signed: bool) -> Integers:
    """The numbers of :func:`packed`, [transfers, elements].

    Args:
        words: [transfers, words].
        elements: numbers of a transfer.
        bits: of one number.
        offset: bits that stand below the first number.
        signed: whether the highest bit is a sign.
    """
    octets = np.ascontiguousarray(words.astype("<u4")).view(np.uint8)
    ones = np.unpackbits(octets, axis=1, bitorder="little")
    used = ones[:, offset : offset + elements * bits].reshape(len(words), elements, bits)
    weights = np.int64(1) << np.arange(bits, dtype=np.int64)
    if signed:
        weights[-1] = -weights[-1]
    numbers: Integers = used.astype(np.int64) @ weights
    return numbers
