"""What a block behind a serial line takes and gives, and how it names itself."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from entrain.fpga.simulators.verilator import Module

VERSION = "entrain 0.1.0"
TASK = "attention"


@dataclass(frozen=True)
class BlockShape:
    """What a block takes and gives.

    Attributes:
        tokens: of a sequence.
        queries: of a sequence.
        d_head: components of a query or key.
        d_value: components of a value or context.
        d_osc: components of an anchor; 0 of a block without anchors.
    """

    tokens: int
    queries: int
    d_head: int
    d_value: int
    d_osc: int

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        """Vectors and their bytes, by the stream's name, in the order of an input."""
        anchors = {"anchors": (self.tokens, self.d_osc)} if self.d_osc else {}
        return {
            **anchors,
            "keys": (self.tokens, self.d_head),
            "values": (self.tokens, self.d_value),
            "queries": (self.queries, self.d_head),
        }

    @property
    def input_bytes(self) -> int:
        """Bytes of an input."""
        return sum(vectors * size for vectors, size in self.parts.values())

    @property
    def output_bytes(self) -> int:
        """Bytes of an output."""
        return self.queries * self.d_value

    def __str__(self) -> str:
        """As the bridge announces it."""
        return (
            f"tokens={self.tokens} queries={self.queries} d_head={self.d_head} "
            f"d_value={self.d_value} d_osc={self.d_osc}"
        )


def identity(module: Module) -> str:
    """A number, in hexadecimal digits, of everything that the block's sources say."""
    text = b"".join(source.read_bytes() for source in module.sources)
    return f"{zlib.crc32(text):08x}"


def announced(module: Module, shape: BlockShape) -> str:
    """What ``profile`` answers of the block: its name, its shape and its identity."""
    return f"{VERSION} {module.top} {shape} identity={identity(module)}"
