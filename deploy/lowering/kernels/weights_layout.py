"""The weights of a matrix product as kernels read them."""

from __future__ import annotations

import numpy as np

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.kernels.c_source import rounded_up

WORD_BYTES = 4
VECTOR_BYTES = 16
WORD_WEIGHTS = 8  # of four bits


def in_rows(weights: Array) -> Array:
    """[column, depth] as int8, each row filled up to whole words.

    Behind the last one lie zeros for vectors that read on.
    """
    columns, depth = weights.shape
    pitch = padded_depth(depth)
    filled = np.zeros(columns * pitch + rounded_up(depth, VECTOR_BYTES) - pitch, np.int8)
    filled[: columns * pitch].reshape(columns, pitch)[:, :depth] = weights
    return filled


def in_nibbles(weights: Array) -> Array:
    """[column, depth], each from -8 to 7, as words of eight, each row filled up to whole words.

    Each weight is stored plus 8: four neighbours in the low halves of a word's bytes, the next four
    in the high ones. Behind the last row lie zeros for vectors that read on.
    """
    columns, depth = weights.shape
    filled = np.full((columns, rounded_up(depth, WORD_WEIGHTS)), 8, np.uint8)
    filled[:, :depth] = weights + 8
    low, high = filled.reshape(-1, 2, WORD_BYTES).swapaxes(0, 1)
    words = np.ascontiguousarray(low | high << 4).view("<i4").astype(np.int32).ravel()
    return np.append(words, np.zeros(VECTOR_BYTES // WORD_BYTES - 1, np.int32))


def padded_depth(depth: int) -> int:
    """Bytes from one row of weights to the next; gathered patches lie as far apart."""
    return rounded_up(depth, WORD_BYTES)
