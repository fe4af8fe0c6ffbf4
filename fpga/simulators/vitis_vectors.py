"""Test vectors of one block: what its streams carry in, and the shape of what comes out.

A testbench in ``fpga/vitis/testbench`` finds each stream in a file of its own, whose suffix names
the type of its numbers, and writes the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.arithmetic import IntArray, SeparableCoupling
from entrain.deploy.errors import UsageError
from entrain.deploy.files import write_whole
from entrain.fpga.reference import (
    LARGEST_COUPLING,
    UNIT_STEPS,
    Integers,
    OscillatorBlock,
    SettlingCore,
    SoftmaxBlock,
)
from entrain.fpga.simulators.vitis_instance import (
    Instance,
    oscillator_instance,
    settling_core_instance,
    softmax_instance,
)

# 1 + z.r of longer ones may add up to more than their division takes
LONGEST_ANCHOR = 1.125
TYPES = {".i8": np.int8, ".u8": np.uint8, ".i16": np.int16, ".u16": np.uint16}

Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Streams of one block.

    Attributes:
        instance: the block.
        inputs: the words of each input stream, by its file.
        outputs: how many words each output stream has for one query, by its file.
    """

    instance: Instance
    inputs: Mapping[str, Numbers]
    outputs: Mapping[str, int]

    def write(self, folder: Path) -> None:
        """All that ``fpga/vitis/build.tcl`` needs: ``instance.hpp``, and the input streams.

        Raises:
            UsageError: the folder cannot be written to.
        """
        write_whole(folder / "instance.hpp", self.instance.header)
        for file, words in self.inputs.items():
            write_whole(folder / file, words.tobytes())

    def outputs_in(self, folder: Path) -> list[Integers]:
        """The output streams that a testbench left: [queries, words of a query], in their order."""
        return [
            np.fromfile(folder / file, TYPES[Path(file).suffix]).reshape(-1, row).astype(np.int64)
            for file, row in self.outputs.items()
        ]


def settling_vectors(core: SettlingCore, couplings: IntArray) -> Vectors:
    """Of the settling core; out come states, weights, flags, steps.

    Args:
        core: anchors and settings.
        couplings: [queries, T], each from 0 to 2**15 - 1.

    Raises:
        OverflowError: a coupling out of range, or an anchor that is no unit vector.
        UsageError: settings that the C++ has no room for, or couplings of another shape.
    """
    tokens, components = core.anchors.shape
    longest = float(np.linalg.norm(core.anchors.astype(np.float64), axis=-1).max()) / UNIT_STEPS
    if longest > LONGEST_ANCHOR:
        raise OverflowError(f"an anchor of length {longest:.3g}")
    return Vectors(
        settling_core_instance(core),
        {
            "anchors.i8": _words("anchors", core.anchors, (tokens, components), "int8"),
            "couplings.u16": _words(
                "couplings", couplings, (-1, tokens), "uint16", LARGEST_COUPLING
            ),
        },
        {"states.i16": components, "weights.u16": tokens, "flags.u8": 1, "steps.u8": 1},
    )


def attention_vectors(
    block: OscillatorBlock | SoftmaxBlock, queries: IntArray, keys: IntArray, values: IntArray
) -> Vectors:
    """Of an attention block; out come contexts.

    Args:
        block: settings, and anchors or the table of exponentials.
        queries: [queries, d_head], int8; of the separable coupling uint8.
        keys: [T, d_head], likewise.
        values: [T, d_value], int8.

    Raises:
        OverflowError: a query, key or value out of range.
        UsageError: settings that the C++ has no room for, or arrays of other shapes.
    """
    if np.ndim(keys) != 2 or np.ndim(values) != 2:
        raise UsageError("keys and values of one head have two axes: tokens and components")
    (tokens, d_head), d_value = keys.shape, values.shape[1]
    feature = "int8"
    if isinstance(block, OscillatorBlock):
        instance = oscillator_instance(block, d_head, d_value)
        tokens = block.anchors.shape[0]
        table = {"anchors.i8": _words("anchors", block.anchors, block.anchors.shape, "int8")}
        if isinstance(block.coupling, SeparableCoupling):
            feature = "uint8"
    else:
        instance = softmax_instance(block, tokens, d_head, d_value)
        entries = block.softmax.exponential.table
        table = {"exponentials.u16": _words("exponentials", entries, entries.shape, "uint16")}
    streams = {
        "keys.i8": _words("keys", keys, (tokens, d_head), feature),
        "values.i8": _words("values", values, (tokens, d_value), "int8"),
        "queries.i8": _words("queries", queries, (-1, d_head), feature),
    }
    return Vectors(instance, table | streams, {"contexts.i8": d_value})


def _words(
    name: str, numbers: IntArray, shape: tuple[int, ...], dtype: str, most: int | None = None
) -> Numbers:
    """The words of a stream; -1 in the shape is any number."""
    array = np.asarray(numbers)
    if array.ndim != len(shape) or any(
        size not in (-1, given) for size, given in zip(shape, array.shape, strict=True)
    ):
        raise UsageError(f"{name} of shape {array.shape}", remedy=f"the block takes {shape}")
    info = np.iinfo(dtype)
    if array.size and (array.min() < info.min or array.max() > (most or info.max)):
        raise OverflowError(f"{name} from {array.min()} to {array.max()}")
    return array.astype(dtype)
