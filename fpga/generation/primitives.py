"""The modules written by hand, which map onto an FPGA's own blocks: fpga/rtl/."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "rtl"

RAM = FOLDER / "entrain_ram.v"
MEMORY = FOLDER / "entrain_memory.v"
DUAL_MULTIPLY = FOLDER / "entrain_dual_multiply.v"

# All that a block may instantiate; it may be given more than it does.
PRIMITIVES = (MEMORY, RAM, DUAL_MULTIPLY)
