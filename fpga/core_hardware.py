"""The settling core as a block of hardware, and its queries as streams."""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic import IntArray
from entrain.fpga.packing import packed, unpacked
from entrain.fpga.reference import WEIGHT_BITS, Flags, Settled, SettlingCore
from entrain.fpga.simulation import Simulator
from entrain.fpga.verilog import Block, Memory, Port

ANCHOR_BITS, STATE_BITS, FLAG_BITS, ADDRESS_BITS = 8, 16, 4, 16
COUPLING_PORT_BITS = 16  # 15 bits and a sign, which is 0


def core_block(core: SettlingCore) -> Block:
    """Its DSLX proc: anchors once, then couplings in, states and weights out."""
    tokens, components = core.anchors.shape
    quotient = core.quotient
    numbers = [f"u32:{n}" for n in (quotient.multiplier, quotient.drop, quotient.shift)]
    return Block(
        "entrain_settling_core",
        "core_block",
        (
            f"u32:{tokens}",
            f"u32:{components}",
            f"s32:{core.rounding}",
            *numbers,
            f"u32:{quotient.least}",
            f"u32:{quotient.most}",
        ),
        (
            Port("anchors", "s8", ANCHOR_BITS),
            Port("couplings", f"s{COUPLING_PORT_BITS}", COUPLING_PORT_BITS),
        ),
        (
            Port("states", f"(s16[{components}], u4)", STATE_BITS * components + FLAG_BITS),
            Port("weights", "(u16, bool)", WEIGHT_BITS + 1),
        ),
        tuple(
            Memory(name, tokens * components, ADDRESS_BITS, "s8", ANCHOR_BITS)
            for name in ("field_anchors", "read_out_anchors")
        ),
    )


def settled_in(
    simulator: Simulator, core: SettlingCore, couplings: IntArray, *, pauses: int = 0
) -> tuple[Settled, int]:
    """What the simulated block answers to couplings [queries, T], and the cycles it took.

    Raises:
        ToolError: it did not answer.
    """
    tokens, components = core.anchors.shape
    queries = len(couplings)
    streams = simulator.run(
        {
            "anchors": packed(np.reshape(core.anchors, (-1, 1)), ANCHOR_BITS),
            "couplings": packed(np.reshape(couplings, (-1, 1)), COUPLING_PORT_BITS),
        },
        {"states": queries, "weights": queries * tokens},
        most_cycles=2000 + 40 * (queries + 2) * (tokens + 20) * (components + 8),
        pauses=pauses,
    )
    states, weights = streams.transfers["states"], streams.transfers["weights"]
    cut = unpacked(weights, 1, 1, signed=False).reshape(queries, tokens).any(axis=1)
    flags = unpacked(states, 1, FLAG_BITS, signed=False)[:, 0]
    return (
        Settled(
            unpacked(states, components, STATE_BITS, offset=FLAG_BITS, signed=True),
            unpacked(weights, 1, WEIGHT_BITS, offset=1, signed=False).reshape(queries, tokens),
            flags | np.where(cut, int(Flags.SATURATED), 0),
            np.zeros(queries, np.int64),
        ),
        streams.cycles,
    )
