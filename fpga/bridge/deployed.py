"""A block behind its serial bridge, as it goes onto a board."""

from __future__ import annotations

from pathlib import Path

from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.implementation import Implementation, implement
from entrain.fpga.back_end.synthesis import Design
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.bridge.design import bridged, line_of
from entrain.fpga.bridge.shape import BlockShape
from entrain.fpga.built import kept_module
from entrain.fpga.measurement.blocks import Sizes, block_named
from entrain.fpga.progress import Told
from entrain.fpga.reference import OscillatorBlock
from entrain.fpga.verification.implementations import block_of
from entrain.fpga.verification.vectors import CoreTrial


def deployed(name: str, sizes: Sizes, board: FpgaBoard, folder: Path) -> Design:
    """The whole FPGA: an attention block and its bridge, at the board's clock.

    Raises:
        UsageError: no such block, or one that is no attention, or too large for the bridge.
        ToolError: XLS is missing, or refuses the sources.
    """
    trial = block_named(name, sizes)
    if isinstance(trial, CoreTrial):
        raise UsageError(
            f"{name} has no bridge: it is a part of an attention block",
            remedy="build 'oscillator relu'; `entrain fpga compare` measures the part by itself",
        )
    module = kept_module(block_of(trial), folder, FAMILIES[board.family].pace)
    block = trial.block
    has_anchors = isinstance(block, OscillatorBlock)
    shape = BlockShape(
        tokens=sizes.tokens,
        queries=trial.queries.shape[1],
        d_head=sizes.d_head,
        d_value=sizes.d_value,
        d_osc=sizes.d_osc if has_anchors else 0,
    )
    table = [] if isinstance(block, OscillatorBlock) else block.softmax.exponential.table.tolist()
    line = line_of(board.name, board.clock_mhz)
    return bridged(module, shape, line, folder / f"bridge-{board.name}-{module.top}", table=table)


def implemented(
    name: str, sizes: Sizes, board: FpgaBoard, folder: Path, *, seeds: int, told: Told
) -> Implementation:
    """Its netlist, a layout a seed, the fastest's bitstream, and the cost.

    Raises:
        UsageError: as :func:`deployed`.
        DoesNotFit: the FPGA has too few cells of a kind.
        ToolError: a tool is missing or failed.
    """
    design = deployed(name, sizes, board, folder)
    target = 2 * board.clock_mhz  # nextpnr strives for what it is asked, and stops there
    return implement(design, board, folder, seeds=range(1, seeds + 1), target_mhz=target, told=told)
