"""When a kernel reads and writes each byte: what it may overwrite.

A kernel goes in steps. In each of them it reads all that it needs before it writes anything; so the
result may take the bytes of a value if no byte is read in a later step than the one that writes it.
A kernel that takes several steps at once reads earlier and writes later, which only helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.lowering.graph import Array, Value


@dataclass(frozen=True)
class Touched:
    """Bytes of a value, by their places, and the step in which each of them is read or written.

    Both are integers; the steps broadcast to the places.
    """

    places: Array
    steps: Array


def may_overwrite(value: Value, read: Touched, written: Touched) -> bool:
    """Whether a result that is written so may take the bytes of a value that is read so.

    Args:
        value: of bytes.
        read: of the value; a byte that is read in several steps counts with the last one.
        written: of the result, from the value's first byte on.
    """
    if written.places.max() >= value.size:
        return False
    last = np.full(value.size, -1)
    np.maximum.at(last, read.places, np.broadcast_to(read.steps, read.places.shape))
    return bool((last[written.places] <= written.steps).all())
