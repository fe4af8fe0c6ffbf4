"""What a kernel is: a layer written as one call into ``firmware/kernels``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from entrain.deploy.lowering.graph import Array, Layer
from entrain.deploy.lowering.schedules.blocks import Blocks

INSTRUCTION_SETS = ("scalar", "dsp", "mve")


@dataclass(frozen=True)
class Kernel:
    """How a layer becomes a call of an inlined C kernel, specialised by constant arguments.

    Attributes:
        layer: what it computes; the layer's expression stays the definition.
        header: the file of ``firmware/kernels`` that holds the C function.
        call: C statements. They name each value that the layer reads ``<value>_in``, each constant
            array by its name here, the result ``output``, the scratch ``scratch`` (aligned by 8),
            and the blocks chosen for the compiled instruction set ``<LAYER>_ROWS`` and
            ``<LAYER>_COLUMNS`` (the layer's name in capitals).
        constants: arrays for flash, by name, in the order of the parameters.
        scratch_bytes: bytes of the arena that the kernel needs while it runs.
        blocks: for each instruction set the candidates, the best first; empty without a choice.
        overwrites: names of the values whose bytes the result may take, from their first one on: on
            every instruction set, no byte of them is read after it has been written.
        in_place_calls: by such a value's name, what stands instead of ``call`` where the result
            does take its bytes; only if that is something else.
    """

    layer: Layer
    header: str
    call: str
    constants: tuple[tuple[str, Array], ...]
    scratch_bytes: int = 0
    blocks: tuple[tuple[str, tuple[Blocks, ...]], ...] = ()
    overwrites: tuple[str, ...] = ()
    in_place_calls: tuple[tuple[str, str], ...] = ()


# None if this kernel does not compute the layer
Matcher = Callable[[Layer], Kernel | None]
