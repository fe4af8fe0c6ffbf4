"""Running the bench on an emulated board: exact counts, and every result checked to the bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from entrain.deploy.bench.variants import EXTERNALS, MAKERS, Made, renamed
from entrain.deploy.boards import Board
from entrain.deploy.build import Firmware, build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.errors import Mismatch
from entrain.deploy.files import write_whole
from entrain.deploy.lowering.artifact import describe, write_lowered
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.graph import Array, LoweredGraph
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.program import planned
from entrain.deploy.lowering.tensors import random_integers

OURS = "ours"


@dataclass(frozen=True)
class Measured:
    """What one case costs on one board; all instructions are counted by the emulator.

    Attributes:
        name: of the case.
        board: where.
        macs: multiply-adds.
        instructions: of our kernels, of ``model_run``, and of whatever they call.
        others: instructions of the same layer from other compilers, by the keys of ``MAKERS``;
            None where a compiler has no form of it.
        flash_bytes: of the whole firmware with our kernels.
        ram_bytes: likewise, without the stack.
    """

    name: str
    board: str
    macs: int
    instructions: int
    others: dict[str, int | None]
    flash_bytes: int
    ram_bytes: int


def measure_case(name: str, network: LoweredGraph, board: Board, folder: Path) -> Measured:
    """Build a case for a board, run it in the emulator, and check every element.

    Args:
        name: of the case.
        network: of one layer, for which other compilers' forms are measured too, or of several.
        board: an emulated one.
        folder: empty; holds the generated C and the firmware afterwards.

    Raises:
        Mismatch: a layer's integers differ from the reference's.
        ToolError: no compiler, or no emulator.
    """
    ours = [Made(layer_function(layer)) for layer in network.layers]
    firmware, counts = _run(network, ours, board, folder / OURS)
    others: dict[str, int | None] = {}
    if len(network.layers) == 1:
        forms = {
            key: maker(renamed(network.layers[0], key), board) for key, maker in MAKERS.items()
        }
        made = [form for form in forms.values() if form is not None]
        layers = tuple(each.function.layer for each in made)
        theirs = replace(network, layers=layers, outputs=(layers[-1].output,)) if made else network
        found = _run(theirs, made, board, folder / "theirs")[1] if made else {}
        others = {key: None if form is None else _sum(found, key) for key, form in forms.items()}
    return Measured(
        name,
        board.name,
        network.macs,
        sum(counts.values()),
        others,
        firmware.flash_bytes,
        firmware.ram_bytes,
    )


def _run(
    graph: LoweredGraph, made: list[Made], board: Board, folder: Path
) -> tuple[Firmware, dict[str, int]]:
    """Build a network of these functions, check its every layer, and count its instructions."""
    program = planned(graph, tuple(each.function for each in made))
    lowered = folder / "lowered"
    lowered.mkdir(parents=True)
    for file, text in emit_model(program, "bench").files:
        write_whole(lowered / file, text)
    for file, content in [item for each in made for item in each.files]:
        (lowered / file).write_bytes(content)
    if any(each.files for each in made):
        write_whole(lowered / "externals.c", EXTERNALS)
    write_lowered(lowered, describe(program, "bench"))
    given = random_integers(graph.inputs, 1)[graph.input.name][0]
    _check(graph, build_firmware(board, lowered, folder / "trace.elf", trace=True), given)
    firmware = build_firmware(board, lowered, folder / "count.elf")
    return firmware, _counts(firmware, given)


def _check(graph: LoweredGraph, firmware: Firmware, given: Array) -> None:
    expected = interpret(graph, given)
    with connect(QemuAddress(firmware.board.name), firmware.image) as client:
        traced = client.trace(given.tobytes())
    for index, layer in enumerate(graph.layers):
        wanted = expected[layer.output.name].tobytes()
        if traced[index] != wanted:
            differing = sum(a != b for a, b in zip(traced[index], wanted, strict=True))
            raise Mismatch(
                f"{differing} of {len(wanted)} elements of {layer.name} differ from the reference",
                where=f"{graph.name} on {firmware.board.name}",
                remedy="this is a fault of the kernel; please report it",
            )


def _counts(firmware: Firmware, given: Array) -> dict[str, int]:
    with connect(QemuAddress(firmware.board.name), firmware.image) as client:
        client.classify(given.tobytes())
        return client.counts().by_function


def _sum(counts: dict[str, int], layer: str) -> int:
    """Instructions of a layer's function and of what stands beside it under its name."""
    return sum(count for name, count in counts.items() if name.startswith(f"layer_{layer}"))
