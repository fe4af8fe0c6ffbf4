"""The weights of a matrix product in flash: bytes, or packed if four bits hold each of them.

A kernel reads bytes. Packed weights are unpacked into the scratch, as many columns of the product
as have room there, and the kernel is called for those, then for the next ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import indent

from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.kernels.c_source import rounded_up
from entrain.deploy.lowering.kernels.weights_layout import in_nibbles, in_rows, padded_depth
from entrain.deploy.lowering.schedules.blocks import (
    UNPACKED_WEIGHT,
    Candidates,
    MatmulShape,
    matmul_blocks,
)

LEAST_BYTES = 1024  # half of them are saved, for the code that unpacks
UNPACKED_BYTES = 1024  # of the arena; more if not even a few columns fit
FEW_COLUMNS = 4  # that kernels sum up together
WRITTEN_BEHIND = 32  # bytes behind the last row that vectors write, and some


@dataclass(frozen=True)
class ProductWeights:
    """How a kernel is called with the weights of a matrix product.

    Attributes:
        weights: [columns of the product, products in a sum].
        columns: of one call; all of them unless weights are packed.
        is_packed: whether they lie in flash as four bits each.
    """

    weights: Array
    columns: int
    is_packed: bool

    @property
    def calls(self) -> int:
        """How often the kernel is called."""
        return -(-len(self.weights) // self.columns)

    @property
    def overlaps(self) -> bool:
        """Whether the last call computes columns again, having too few of its own."""
        return self.calls * self.columns > len(self.weights)

    @property
    def constant(self) -> tuple[str, Array]:
        """What lies in flash, and its name."""
        if self.is_packed:
            return "packed_weights", in_nibbles(self.weights)
        return "weights", in_rows(self.weights)

    @property
    def scratch_bytes(self) -> int:
        """For unpacked weights, before what the kernel needs itself; a multiple of 8."""
        if not self.is_packed:
            return 0
        return rounded_up(self.columns * self._pitch, 8) + WRITTEN_BEHIND

    @property
    def operand(self) -> str:
        """C of the kernel's weights."""
        return "scratch" if self.is_packed else "weights"

    @property
    def scratch(self) -> str:
        """C of the kernel's own scratch."""
        return f"(uint8_t *)scratch + {self.scratch_bytes}" if self.is_packed else "scratch"

    def columns_of(self, pointer: str, apart: int = 1) -> str:
        """C of where the columns of one call begin; numbers of columns lie so far apart."""
        step = "column" if apart == 1 else f"column * {apart}"
        return f"{pointer} + {step}" if self.calls > 1 else pointer

    def called(self, call: str) -> str:
        """C of all calls."""
        if not self.is_packed:
            return call
        row = "" if self.calls == 1 else f" + column * {rounded_up(self.weights.shape[1], 8) // 8}"
        unpack = (
            f"entrain_unpack_rows(packed_weights{row}, scratch, {self.columns}, {self._pitch});\n"
        )
        if self.calls == 1:
            return unpack + call
        total, last = len(self.weights), len(self.weights) - self.columns
        body = unpack + call
        if self.overlaps:
            body = f"const int32_t column = (next < {last}) ? next : {last};\n{body}"
        step = "next" if self.overlaps else "column"
        head = f"for (int32_t {step} = 0; {step} < {total}; {step} += {self.columns}) {{"
        return f"{head}\n{indent(body, '    ')}\n}}"

    def blocks(self, shape: MatmulShape) -> Candidates:
        """Register blocks of a call, and the instructions of all calls."""
        if not self.is_packed:
            return matmul_blocks(shape)
        one = matmul_blocks(replace(shape, columns=self.columns))
        unpacked = self.columns * self._pitch
        return tuple(
            (
                name,
                tuple(
                    replace(
                        block,
                        instructions=self.calls
                        * (block.instructions + round(unpacked * UNPACKED_WEIGHT[name])),
                    )
                    for block in blocks
                ),
            )
            for name, blocks in one
        )

    @property
    def _pitch(self) -> int:
        return padded_depth(self.weights.shape[1])


def as_bytes(weights: Array) -> ProductWeights:
    """A byte each; all columns are computed by one call."""
    return ProductWeights(weights, len(weights), False)


def product_weights(weights: Array) -> ProductWeights:
    """Packed if that makes the firmware smaller, else bytes.

    Args:
        weights: [columns of the product, products in a sum], from -128 to 127.
    """
    total, depth = weights.shape
    fits = weights.min() >= -8 and weights.max() <= 7
    if not fits or total * padded_depth(depth) < LEAST_BYTES:
        return as_bytes(weights)
    most = max(UNPACKED_BYTES // padded_depth(depth), FEW_COLUMNS)
    calls = -(-total // most)
    return ProductWeights(weights, min(rounded_up(-(-total // calls), FEW_COLUMNS), total), True)
