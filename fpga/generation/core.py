"""The settling core as a block of hardware, and its queries as streams."""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic import IntArray
from entrain.fpga.generation.verilog import Block, Memory, Port
from entrain.fpga.reference import WEIGHT_BITS, Flags, Settled, SettlingCore
from entrain.fpga.simulators.packing import packed, unpacked
from entrain.fpga.simulators.verilator import Simulator

ANCHOR_BITS, STATE_BITS, FLAG_BITS, STEP_BITS, ADDRESS_BITS = 8, 16, 4, 8, 16
COUPLING_PORT_BITS = 16  # 15 bits and a sign, which is 0


def core_block(core: SettlingCore) -> Block:
    """Its DSLX proc: anchors once, then couplings in, states and weights out, and steps if any."""
    tokens, components = core.anchors.shape
    quotient = core.quotient
    numbers = (quotient.multiplier, quotient.drop, quotient.shift, quotient.least, quotient.most)
    parameters = [
        f"u32:{tokens}",
        f"u32:{components}",
        f"s32:{core.rounding}",
        *(f"u32:{number}" for number in numbers),
    ]
    inputs = (
        Port("anchors", "s8", ANCHOR_BITS),
        Port("couplings", f"s{COUPLING_PORT_BITS}", COUPLING_PORT_BITS),
    )
    outputs = (
        Port("states", f"(s16[{components}], u4)", STATE_BITS * components + FLAG_BITS),
        Port("weights", "(u16, bool)", WEIGHT_BITS + 1),
    )
    memories = tuple(
        Memory(name, tokens * components, ADDRESS_BITS, "s8", ANCHOR_BITS)
        for name in ("field_anchors", "read_out_anchors")
    )
    if core.dynamics is None:
        name = "entrain_settling_core"
        return Block(name, "core_block", tuple(parameters), inputs, outputs, memories)
    settings = (core.dynamics.most_steps, core.dynamics.tolerance)
    return Block(
        "entrain_settling_dynamics",
        "dynamics_block",
        (*parameters, *(f"u32:{setting}" for setting in settings)),
        inputs,
        (*outputs, Port("steps", "u8", STEP_BITS)),
        memories,
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
    expected = {"states": queries, "weights": queries * tokens}
    if core.dynamics is not None:
        expected["steps"] = queries
    streams = simulator.run(
        {
            "anchors": packed(np.reshape(core.anchors, (-1, 1)), ANCHOR_BITS),
            "couplings": packed(np.reshape(couplings, (-1, 1)), COUPLING_PORT_BITS),
        },
        expected,
        most_cycles=2000 + 40 * (queries + 2) * (tokens + 20) * (components + 8),
        pauses=pauses,
    )
    states, weights = streams.transfers["states"], streams.transfers["weights"]
    cut = unpacked(weights, 1, 1, signed=False).reshape(queries, tokens).any(axis=1)
    flags = unpacked(states, 1, FLAG_BITS, signed=False)[:, 0]
    steps = np.zeros(queries, np.int64)
    if "steps" in expected:
        steps = unpacked(streams.transfers["steps"], 1, STEP_BITS, signed=False)[:, 0]
    return (
        Settled(
            unpacked(states, components, STATE_BITS, offset=FLAG_BITS, signed=True),
            unpacked(weights, 1, WEIGHT_BITS, offset=1, signed=False).reshape(queries, tokens),
            flags | np.where(cut, int(Flags.SATURATED), 0),
            steps,
        ),
        streams.cycles,
    )
