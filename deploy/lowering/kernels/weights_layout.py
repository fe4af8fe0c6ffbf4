"""The weights of a matrix product as kernels read them."""

from __future__ import annotations

import numpy as np

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.kernels.c_source import rounded_up

WORD_BYTES = 4
VECTOR_BYTES = 16


def in_rows(weights: Array) -> Array:
    """[column, depth] as int8, each row filled up to whole words.

    Behind the last one lie zeros for vectors that read on.
    """
    columns, depth = weights.shape
    pitch = padded_depth(depth)
    filled = np.zeros(columns * pitch + rounded_up(depth, VECTOR_BYTES) - pitch, np.int8)
    filled[: columns * pitch].reshape(columns, pitch)[:, :depth] = weights
    return filled


def padded_depth(depth: int) -> int:
    """Bytes from one row of weights to the next; gathered patches lie as far apart."""
    return rounded_up(depth, WORD_BYTES)
