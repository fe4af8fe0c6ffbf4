"""The families of FPGAs, one a file."""

from __future__ import annotations

from entrain.fpga.back_end.families.ecp5 import ECP5
from entrain.fpga.back_end.families.family import Family
from entrain.fpga.back_end.families.gowin import GOWIN
from entrain.fpga.back_end.families.ice40 import ICE40

# What a board file may name as its family.
FAMILIES: dict[str, Family] = {"ice40": ICE40, "ecp5": ECP5, "gowin": GOWIN}
