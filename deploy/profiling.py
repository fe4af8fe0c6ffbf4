"""Where a model's instructions go, layer by layer, beside what its core could do at best."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.boards import Board
from entrain.deploy.build import Firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.device.counting import InstructionCounts
from entrain.deploy.lowering.artifact import LoweredModel
from entrain.deploy.lowering.tensors import buffers, random_integers
from entrain.deploy.meters.modelled import CostModel
from entrain.deploy.results import Figure, amdahl_bound


@dataclass(frozen=True)
class LayerProfile:
    """A layer's cost.

    Attributes:
        name: of the layer.
        op: what it does.
        macs: multiply-adds.
        attention: whether it is the core of an attention.
        instructions: counted by the emulator.
        cycles: modelled from them, with bounds; None for a board without a cost model.
        bound: the fewest instructions in which the core can do the multiply-adds alone: no load,
            no loop, no requantization; None without multiply-adds.
    """

    name: str
    op: str
    macs: int
    attention: bool
    instructions: int
    cycles: Figure | None
    bound: int | None

    @property
    def instructions_per_mac(self) -> float | None:
        """None without multiply-adds."""
        return self.instructions / self.macs if self.macs else None


@dataclass(frozen=True)
class Profile:
    """A model's cost on a board.

    Attributes:
        layers: in order.
        cycles: modelled, of all of them; None for a board without a cost model.
        overhead: instructions of ``model_run`` itself.
        library: instructions of library functions that layers call.
        total: all of them.
    """

    layers: tuple[LayerProfile, ...]
    cycles: Figure | None
    overhead: int
    library: int
    total: int

    @property
    def core_instructions(self) -> int:
        """Instructions of the attention cores."""
        return sum(layer.instructions for layer in self.layers if layer.attention)

    @property
    def amdahl_bound(self) -> float | None:
        """How many times fewer instructions if the attention cores took none; None without one."""
        return amdahl_bound(self.core_instructions, self.total)


def profile_model(model: LoweredModel, firmware: Firmware) -> Profile:
    """Run one inference of random integers in the emulator and attribute every instruction.

    Args:
        model: the lowered model.
        firmware: its image for an emulated board.

    Raises:
        DeviceError: the emulator is lost.
        ToolError: it is not installed.
    """
    with connect(QemuAddress(firmware.board.name), firmware.image) as client:
        client.classify(*buffers(model.inputs, random_integers(model.inputs, 1)))
        counts = client.counts()
    return profile_of(model, firmware.board, counts)


def profile_of(model: LoweredModel, board: Board, counts: InstructionCounts) -> Profile:
    """Counts by function as a profile by layer."""
    found = dict(counts.by_function)
    layers = tuple(
        LayerProfile(
            layer.name,
            layer.op,
            layer.macs,
            layer.attention,
            (instructions := found.pop(layer.symbol, 0)),
            _cycles(instructions, board),
            _bound(layer.macs, board),
        )
        for layer in model.layers
    )
    overhead = found.pop("model_run", 0)
    cycles = _cycles(counts.total, board)
    return Profile(layers, cycles, overhead, sum(found.values()), counts.total)


def _cycles(instructions: int, board: Board) -> Figure | None:
    return CostModel(board.cost, board.mhz).cycles(instructions) if board.cost else None


def _bound(macs: int, board: Board) -> int | None:
    return round(macs / board.macs_per_instruction) if macs else None
