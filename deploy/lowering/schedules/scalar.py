"""The schedule for any core: nothing stored that can be recomputed, sums kept in registers.

Element-wise and layout steps are inlined into their readers. A sum that feeds one element of the
output is computed right there, in a register. Sums that several elements of a row share (a
softmax's total, an oscillator's field) are computed once a row.
"""

from __future__ import annotations

from math import prod
from typing import Any


def schedule_scalar(function: Any) -> Any:
    """The scheduled TensorIR function.

    Args:
        function: from :func:`entrain.deploy.lowering.primitive.build_primitive`.
    """
    import tvm
    from tvm.s_tir import Schedule

    schedule = Schedule(tvm.IRModule({"main": function}))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    reductions = [block for block in blocks if _reduces(schedule, block)]
    output = blocks[-1]
    for block in blocks[:-1]:
        if not _reduces(schedule, block):
            schedule.compute_inline(block)
    placed = [_place(schedule, block, output) for block in reversed(reductions)]
    for block, inside in zip(reductions, reversed(placed), strict=True):
        loops = _reduction_loops(schedule, block, inside)
        if loops:
            schedule.decompose_reduction(block, loops[0])
    return schedule.mod["main"]


def _reduces(schedule: Any, block: Any) -> bool:
    return schedule.get(block).init is not None


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
    """Compute a sum in the output's last loop if each element has its own, else once a row.

    An output without rows shares its sums as a whole; they stay before it.
    """
    from tvm.tirx import IterVar

    sums, elements = (prod(_extents(schedule, b, IterVar.DataPar)) for b in (block, output))
    consumers = schedule.get_consumers(block)
    alone = len(consumers) == 1 and schedule.get(consumers[0]).same_as(schedule.get(output))
    depth = 1 if alone and sums == elements else 2
    loops = schedule.get_loops(output)
    if depth > len(loops):
        return False
    schedule.compute_at(block, loops[-depth])
    return True
