"""From a layout to the bitstream that configures the FPGA."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.place_and_route import Layout
from entrain.fpga.back_end.tools import run_tool, tool_version
from entrain.fpga.boards import FpgaBoard
from entrain.fpga.kept import kept, log_of


@dataclass(frozen=True)
class Bitstream:
    """A file that configures a board's FPGA, and everything that its maker printed."""

    path: Path
    log: Path


def pack(layout: Layout, board: FpgaBoard, folder: Path) -> Bitstream:
    """The bitstream of ``layout``, kept in ``folder``.

    Raises:
        ToolError: the packer is not installed.
        FpgaToolFailed: it refuses the layout.
    """
    family = FAMILIES[board.family]
    arguments = family.packing(family.devices[board.device])

    def make(made: Path, log: Path) -> None:
        shutil.copyfile(layout.path, made / layout.path.name)
        run_tool(family.packer, arguments, made, log)
        (made / layout.path.name).unlink()

    made_of = [tool_version(family.packer), *arguments]
    place = kept(folder, f"bitstream-{board.name}", [*made_of, layout.path.read_bytes()], make)
    return Bitstream(place / family.bitstream, log_of(place))
