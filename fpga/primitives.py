"""The modules written by hand, which map onto an FPGA's own blocks: fpga/rtl/."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "rtl"

RAM = FOLDER / "entrain_ram.v"
MULTIPLY = FOLDER / "entrain_multiply.v"
DUAL_MULTIPLY = FOLDER / "entrain_dual_multiply.v"

# All of them; a design may be given more than it instantiates.
PRIMITIVES = (RAM, MULTIPLY, DUAL_MULTIPLY)
