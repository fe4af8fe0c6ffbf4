"""The schedule for any core: nothing stored that can be recomputed, sums kept in registers.

Element-wise and layout steps are inlined into their readers. A sum that feeds one element of the
output is computed right there, in a register. Sums that several elements of a row share (a
softmax's total, an oscillator's field) are computed once a row, and so is what is made of them for
the whole row (the factor of a quotient).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

LARGEST_ROW = 3072  # bytes of sums that are kept for a row; larger ones are made for each element
LARGEST_OUTSIDE = 1024  # bytes of sums that are kept for several rows


def schedule_scalar(function: Any) -> Any:
    """The scheduled TensorIR function.

    Args:
        function: from :func:`entrain.deploy.lowering.primitive.build_primitive`.
    """
    import tvm
    from tvm.s_tir import Schedule

    schedule = Schedule(tvm.IRModule({"main": function}))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    output = blocks[-1]
    kept = [b for b in blocks[:-1] if _reduces(schedule, b) or _is_shared(schedule, b)]
    kept += [output] if _reduces(schedule, output) else []
    names = {schedule.get(block).name_hint for block in kept}
    for block in blocks[:-1]:
        if schedule.get(block).name_hint not in names:
            schedule.compute_inline(block)
    placed = [_place(schedule, block, output) for block in reversed(kept)]
    for block, inside in zip(kept, reversed(placed), strict=True):
        loops = _reduction_loops(schedule, block, inside) if _reduces(schedule, block) else []
        if loops:
            schedule.decompose_reduction(block, loops[0])
    return schedule.mod["main"]


def _reduces(schedule: Any, block: Any) -> bool:
    return schedule.get(block).init is not None


def _is_shared(schedule: Any, block: Any) -> bool:
    """Whether a step computes something of a sum that is then read more than once an element."""
    from tvm.tirx import IterVar

    moves = type(schedule.get(block).body.value).__name__ == "BufferLoad"
    if moves or not _reads_a_sum(schedule, block):
        return False
    elements = prod(_extents(schedule, block, IterVar.DataPar))
    return any(_iterations(schedule, r) > elements for r in schedule.get_consumers(block))


def _iterations(schedule: Any, block: Any) -> int:
    return prod(int(axis.dom.extent) for axis in schedule.get(block).iter_vars)


def _reads_a_sum(schedule: Any, block: Any) -> bool:
    producers = schedule.get_producers(block)
    return any(_reduces(schedule, p) or _reads_a_sum(schedule, p) for p in producers)


def _extents(schedule: Any, block: Any, kind: int) -> list[int]:
    axes = schedule.get(block).iter_vars
    return [int(axis.dom.extent) for axis in axes if axis.iter_type == kind]


def _reduction_loops(schedule: Any, block: Any, inside: bool) -> list[Any]:
    """Loops that sum, outermost first: the last ones; inside the output's none has extent 1."""
    from tvm.tirx import IterVar

    extents = _extents(schedule, block, IterVar.CommReduce)
    count = sum(extent > 1 for extent in extents) if inside else len(extents)
    loops = list(schedule.get_loops(block))
    return loops[len(loops) - count :]


def _place(schedule: Any, block: Any, output: Any) -> bool:
    """Compute a sum in the output's last loop if each element has its own, else where it is shared.

    That is the innermost loop in which it is computed no more often than in any other whose array
    is small enough. An output without rows shares its sums as a whole, before it.
    """
    from tvm.tirx import IterVar

    sums, elements = (prod(_extents(schedule, b, IterVar.DataPar)) for b in (block, output))
    consumers = schedule.get_consumers(block)
    alone = len(consumers) == 1 and schedule.get(consumers[0]).same_as(schedule.get(output))
    loops = schedule.get_loops(output)
    if alone and sums == elements:
        schedule.compute_at(block, loops[-1])
        return True
    if len(loops) < 2:
        return False
    *outer, row, element = loops
    limits = [(row, LARGEST_ROW), *((loop, LARGEST_OUTSIDE) for loop in reversed(outer))]
    costs = [(_cost(schedule, block, loop), limit) for loop, limit in limits]
    small = [cost for cost, limit in costs if cost is not None and cost.kept <= limit]
    best = min(small, key=lambda cost: cost.work) if small else _cost(schedule, block, element)
    if best is None:
        return False
    schedule.compute_at(block, best.loop)
    return True


@dataclass(frozen=True)
class _Cost:
    """What computing a block in a loop costs: how often it runs, and the bytes that it keeps."""

    loop: Any
    work: int
    kept: int


def _cost(schedule: Any, block: Any, loop: Any) -> _Cost | None:
    """The cost of a place; None if something outside of the loop reads the block."""
    from tvm.s_tir.schedule import ScheduleError
    from tvm.tirx import IterVar

    trial = schedule.copy()
    try:
        trial.compute_at(block, loop)
    except ScheduleError:
        return None
    loops = trial.get_loops(block)
    place = next(k for k, each in enumerate(loops) if trial.get(each).same_as(trial.get(loop)))
    extents = [int(trial.get(each).extent) for each in loops]
    summed = prod(_extents(schedule, block, IterVar.CommReduce))
    width = np.dtype(str(schedule.get(block).body.value.ty.dtype)).itemsize
    return _Cost(loop, prod(extents), prod(extents[place + 1 :]) // summed * width)
