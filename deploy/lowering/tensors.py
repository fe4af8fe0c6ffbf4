"""What a network reads and writes: several tensors, one buffer.

The device has one input buffer and one output buffer. In each the tensors lie one after the other,
without gaps, in the network's order; so the serial line carries plain bytes however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import ModelError

Array = NDArray[Any]
Given = Array | Mapping[str, Array]  # a bare array is that of the only tensor


class Tensor(Protocol):
    """An 8-bit tensor: a value of a lowered graph, or its record."""

    @property
    def name(self) -> str:
        """Unique among the network's values."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""

    @property
    def dtype(self) -> str:
        """``int8`` or ``uint8``."""

    @property
    def size(self) -> int:
        """Elements, and bytes."""


AnyTensor = TypeVar("AnyTensor", bound=Tensor)


def sole(tensors: Sequence[AnyTensor], kind: str) -> AnyTensor:
    """The only one of them.

    Raises:
        ModelError: there are several.
    """
    if len(tensors) != 1:
        raise ModelError(
            f"the model has {len(tensors)} {kind}s ({', '.join(t.name for t in tensors)}), and "
            "this takes a model with one",
            remedy=f"export it with one {kind}",
        )
    return tensors[0]


def offsets(tensors: Sequence[Tensor]) -> dict[str, int]:
    """Where each begins in the buffer, by name."""
    ends = accumulate((tensor.size for tensor in tensors), initial=0)
    return dict(zip((tensor.name for tensor in tensors), ends, strict=False))


def by_name(tensors: Sequence[Tensor], given: Given) -> dict[str, Array]:
    """Each tensor's integers in its shape and type.

    Raises:
        ValueError: something is missing, or has another number of elements.
    """
    if not isinstance(given, Mapping):
        given = {sole(tensors, "input").name: given}
    missing = [tensor.name for tensor in tensors if tensor.name not in given]
    if missing:
        raise ValueError(f"nothing is given for {', '.join(missing)}")
    arrays = {}
    for tensor in tensors:
        array = np.ascontiguousarray(given[tensor.name], tensor.dtype)
        if array.size != tensor.size:
            raise ValueError(f"{tensor.name}: expected {tensor.size} integers, got {array.size}")
        arrays[tensor.name] = array.reshape(tensor.shape)
    return arrays


def packed(tensors: Sequence[Tensor], given: Given) -> bytes:
    """The buffer's bytes."""
    arrays = by_name(tensors, given)
    return b"".join(arrays[tensor.name].tobytes() for tensor in tensors)


def unpacked(tensors: Sequence[Tensor], buffer: bytes) -> dict[str, Array]:
    """Each tensor's integers out of a buffer."""
    return {
        tensor.name: np.frombuffer(buffer, tensor.dtype, tensor.size, offset)
        .reshape(tensor.shape)
        .copy()
        for tensor, offset in zip(tensors, offsets(tensors).values(), strict=True)
    }


def random_integers(tensors: Sequence[Tensor], count: int) -> dict[str, Array]:
    """Integers [count, ...] over the whole range of each tensor, by name, from a fixed seed."""
    random = np.random.default_rng(0)
    drawn = {}
    for tensor in tensors:
        limits, shape = np.iinfo(tensor.dtype), (count, *tensor.shape)
        drawn[tensor.name] = random.integers(
            limits.min, limits.max, shape, tensor.dtype, endpoint=True
        )
    return drawn


def one_of(several: Mapping[str, Array], index: int) -> dict[str, Array]:
    """The values of one inference, of those of several [N, ...]."""
    return {name: values[index] for name, values in several.items()}


def buffers(tensors: Sequence[Tensor], several: Mapping[str, Array]) -> list[bytes]:
    """The buffer's bytes for each of several inferences [N, ...]."""
    count = len(several[tensors[0].name])
    return [packed(tensors, one_of(several, index)) for index in range(count)]
