"""What each implementation of a block answers to test vectors: by name, one row a vector.

All are to answer what the reference does: XLS's JIT of the DSLX, the vendor's C++ in C simulation,
and the generated Verilog in Verilator and in Icarus Verilog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from entrain.fpga.built import kept_module, simulator_of
from entrain.fpga.generation.attention import contexts_in, hardware_block
from entrain.fpga.generation.core import core_block, settled_in
from entrain.fpga.generation.verilog import Block
from entrain.fpga.reference import Integers, Settled, SoftmaxBlock
from entrain.fpga.simulators import c_simulation, just_in_time
from entrain.fpga.simulators.icarus import IcarusSimulator
from entrain.fpga.simulators.verilator import Simulator
from entrain.fpga.verification.vectors import AttentionTrial, CoreTrial, Trial

Answers = Mapping[str, Integers]  # each [vectors, ...]


def reference(trial: Trial, _folder: Path) -> Answers:
    """By the specification."""
    if isinstance(trial, CoreTrial):
        return _core(trial.core.settled(trial.couplings))
    return _by_sequence(trial, trial.block.contexts)


def by_jit(trial: Trial, _folder: Path) -> Answers:
    """By the DSLX functions, compiled by XLS for this machine."""
    if isinstance(trial, CoreTrial):
        return _core(just_in_time.settled(trial.core, trial.couplings))
    block = trial.block
    if isinstance(block, SoftmaxBlock):
        return _by_sequence(trial, lambda q, k, v: just_in_time.softmax_contexts(block, q, k, v))
    return _by_sequence(trial, lambda q, k, v: just_in_time.oscillator_contexts(block, q, k, v))


def by_c_simulation(trial: Trial, folder: Path) -> Answers:
    """By the C++, compiled with g++."""
    if isinstance(trial, CoreTrial):
        return _core(c_simulation.settled(trial.core, trial.couplings, folder))
    return _by_sequence(trial, lambda q, k, v: c_simulation.contexts(trial.block, q, k, v, folder))


def by_verilator(trial: Trial, folder: Path) -> Answers:
    """By the Verilog, in Verilator."""
    return simulated(trial, simulator_of(kept_module(block_of(trial), folder), folder))


def by_icarus(trial: Trial, folder: Path) -> Answers:
    """By the Verilog, in Icarus Verilog, driven by cocotb."""
    module = kept_module(block_of(trial), folder)
    return simulated(trial, IcarusSimulator(module, folder / f"icarus-{module.top}.log"))


IMPLEMENTATIONS: dict[str, Callable[[Trial, Path], Answers]] = {
    "DSLX (JIT)": by_jit,
    "Vitis C++ (C simulation)": by_c_simulation,
    "Verilog (Verilator)": by_verilator,
    "Verilog (Icarus)": by_icarus,
}
SAMPLED = "Verilog (Icarus)"  # is given some vectors; the others all
WHOLE = tuple(name for name in IMPLEMENTATIONS if name != SAMPLED)


def block_of(trial: Trial) -> Block:
    """The hardware that a trial is for."""
    if isinstance(trial, CoreTrial):
        return core_block(trial.core)
    return hardware_block(
        trial.block,
        tokens=trial.keys.shape[1],
        queries=trial.queries.shape[1],
        d_head=trial.keys.shape[2],
        d_value=trial.values.shape[2],
        lanes=trial.lanes,
        value_lanes=trial.value_lanes,
    )


def simulated(trial: Trial, simulator: Simulator) -> Answers:
    """What a simulator of the trial's hardware answers."""
    if isinstance(trial, CoreTrial):
        settled, _ = settled_in(simulator, trial.core, trial.couplings, pauses=trial.pauses)
        return _core(settled)
    found, _ = contexts_in(
        simulator, trial.block, trial.queries, trial.keys, trial.values, pauses=trial.pauses
    )
    return {"contexts": np.concatenate(found)}


def _core(settled: Settled) -> Answers:
    return {
        "states": settled.states,
        "weights": settled.weights,
        "flags": settled.flags,
        "steps": settled.steps,
    }


def _by_sequence(
    trial: AttentionTrial, contexts: Callable[[Integers, Integers, Integers], Integers]
) -> Answers:
    sequences = zip(trial.queries, trial.keys, trial.values, strict=True)
    return {"contexts": np.concatenate([contexts(*sequence) for sequence in sequences])}
