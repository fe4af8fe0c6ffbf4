"""Where each value lies in the arena: offsets by live ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from entrain.deploy.lowering.graph import LoweredGraph, Value

ALIGNMENT = 8


@dataclass(frozen=True)
class Placement:
    """A value's bytes in the arena, and the layers (first to last, inclusive) while it lives."""

    value: Value
    offset: int
    first: int
    last: int

    @property
    def end(self) -> int:
        """The first byte behind it, aligned."""
        return self.offset + aligned(self.value.size)


@dataclass(frozen=True)
class MemoryPlan:
    """The arena of a network.

    ``bound`` is what no plan can undercut: the most bytes that live at the same time.
    """

    placements: tuple[Placement, ...]
    arena_bytes: int
    bound: int

    def offset(self, name: str) -> int:
        """Offset of a value by name; KeyError for the model's input and output."""
        return {p.value.name: p.offset for p in self.placements}[name]

    def scratch_offset(self, layer: str) -> int:
        """Offset of the bytes that a layer needs while it runs."""
        raise KeyError(layer)

    def overwrites(self, _layer: str) -> bool:
        """Whether a layer's output shares bytes with one of its inputs."""
        return False


def aligned(size: int) -> int:
    """The size rounded up to the arena's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def in_place_candidates(graph: LoweredGraph) -> dict[str, tuple[str, ...]]:
    """Layers whose output may overwrite an input, and which inputs those are."""
    return {}


def plan_memory(
    graph: LoweredGraph,
    scratch: Mapping[str, int] | None = None,
    in_place: Mapping[str, tuple[str, ...]] | None = None,
) -> MemoryPlan:
    """Largest value first, each at the lowest offset free during its life.

    The model's input and output are the caller's buffers and take no room in the arena.
    """
    ranges = _live_ranges(graph)
    placed: list[Placement] = []
    for value, first, last in sorted(ranges, key=lambda r: (-r[0].size, r[1])):
        neighbours = [p for p in placed if p.first <= last and first <= p.last]
        offset = 0
        for neighbour in sorted(neighbours, key=lambda p: p.offset):
            if offset + aligned(value.size) <= neighbour.offset:
                break
            offset = max(offset, neighbour.end)
        placed.append(Placement(value, offset, first, last))
    bound = max(
        sum(aligned(value.size) for value, first, last in ranges if first <= step <= last)
        for step in range(len(graph.layers))
    )
    arena = max((p.end for p in placed), default=0)
    return MemoryPlan(tuple(sorted(placed, key=lambda p: p.first)), arena, bound)


def _live_ranges(graph: LoweredGraph) -> list[tuple[Value, int, int]]:
    last_use: dict[str, int] = {}
    for step, layer in enumerate(graph.layers):
        last_use.update({value.name: step for value in layer.inputs})
    return [
        (layer.output, step, last_use.get(layer.output.name, step))
        for step, layer in enumerate(graph.layers)
        if layer.output.name != graph.output.name
    ]
