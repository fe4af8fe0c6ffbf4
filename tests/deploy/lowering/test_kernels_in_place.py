"""Kernels whose result takes the bytes of what they read: to the bit what numpy computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_place_layers import (
    BYTES,
    GIVEN,
    layers_of,
)
from kernel_programs import check_sanitized
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.memory import MemoryPlan, Placement, aligned
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.program import Program

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")
SMALL_CORES = ("mps2-an385", "mps2-an385-m0")


def stored_of(layers, seed):
    random = np.random.default_rng(seed)
    return {
        value.name: random.integers(-128, 128, BYTES).astype(np.int8).view(value.dtype)
        for one in layers
        for value in one.inputs
    }


def check_overwritten(folder, instruction_set, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    offered = {one: layer_function(one).overwrites for one in layers_of(choose, 0)}
    layers = [one for one, names in offered.items() if names]
    names = [offered[one][choose(0, len(offered[one]) - 1)] for one in layers]
    stored = stored_of(layers, choose(0, 9))
    options = INSTRUCTION_SETS[instruction_set]
    check_sanitized(folder, layers, stored, *options, overwritten=names)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_whatever_is_overwritten_the_result_is_what_numpy_computes(tmp_path, instruction_set, data):
    check_overwritten(tmp_path, instruction_set, data)


@pytest.mark.long
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_many_overwritten_layers_are_what_numpy_computes(tmp_path, instruction_set, data):
    check_overwritten(tmp_path, instruction_set, data)


# --- on the emulated boards: every layer after one that makes what it overwrites


def overwriting_program(turns):
    """Layers of fixed seeds, each of which overwrites its input."""
    random = np.random.default_rng(7)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    layers, values, scratch, overwritten = [], [], [], {}
    for turn in range(turns):
        for one in layers_of(choose, turn):
            function = layer_function(one)
            value = one.inputs[0]
            if function.overwrites != (value.name,) or len(one.inputs) > 1:
                continue
            step = len(layers)
            layers += [copied(value), one]
            overwritten[one.name] = value.name
            values.append(Placement(value.name, BYTES, 0, step, step + 1))
            values.append(Placement(one.name, one.output.size, 0, step + 1, step + 1))
            if function.scratch_bytes:
                place = Placement(one.name, function.scratch_bytes, BYTES, step + 1, step + 1)
                scratch.append(place)
    last = copied(Value("last", (BYTES,), "int8", 1.0, 0, "last"))
    layers.append(last)
    graph = LoweredGraph("in_place", (GIVEN,), (last.output,), tuple(layers))
    arena = BYTES + max(aligned(each.size) for each in scratch)
    plan = MemoryPlan(tuple(values), tuple(scratch), overwritten, arena, arena)
    return Program(graph, tuple(map(layer_function, layers)), plan)


def copied(value):
    """The model's input, as integers of the value's type."""
    offset, limits = (128, (0, 255)) if value.dtype == "uint8" else (0, (-128, 127))
    requantize = Requantize((BYTES,), value.dtype, 1, 0, 29, offset, *limits)
    one = constant(np.full((), 2**29, np.int32))
    expression = apply(requantize, load(GIVEN), one, constant(np.zeros((), np.int32)))
    return Layer(value.name, "copy", (GIVEN,), value, expression)


@pytest.fixture(scope="module")
def program():
    return overwriting_program(5)


@pytest.mark.parametrize(
    "board", [*BOARDS, *(pytest.param(each, marks=pytest.mark.long) for each in SMALL_CORES)]
)
def test_the_boards_compute_the_same_in_place(program, tmp_path, board):
    require_emulator()
    assert len(program.plan.overwritten) >= 30
    lowered, image = tmp_path / "lowered", tmp_path / "firmware.elf"
    lowered.mkdir()
    for name, text in emit_model(program, "kws01").files:
        (lowered / name).write_text(text)
    build_firmware(find_board(board), lowered, image, trace=True)
    given_bytes = np.random.default_rng(1).integers(-128, 128, BYTES).astype(np.int8)
    right = interpret(program.graph, given_bytes)
    with connect(QemuAddress(board), image) as client:
        traced = client.trace(given_bytes.tobytes())
    for number, one in enumerate(program.graph.layers):
        found = np.frombuffer(traced[number], one.output.dtype).reshape(one.output.shape)
        np.testing.assert_array_equal(found, right[one.name], err_msg=one.name)
