"""Kernels of convolutions and pools: to the bit what numpy computes, on every instruction set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import window_layers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_programs import check_on_board, check_sanitized, sanitized

from entrain.deploy.lowering.graph import Value
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.kernels.depthwise import positions_in_16_bits
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")
BYTES = 4000
SIGNED = Value("signed", (BYTES,), "int8", 1.0, 5, "signed")
UNSIGNED = Value("unsigned", (BYTES,), "uint8", 1.0, 133, "unsigned")  # the same reals, as bytes


def stored_bytes(seed):
    values = np.random.default_rng(seed).integers(-128, 128, BYTES).astype(np.int8)
    return {"signed": values, "unsigned": (values.astype(int) + 128).astype(np.uint8)}


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_geometry_is_what_numpy_computes(tmp_path, instruction_set, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    layers = window_layers.layers((SIGNED, UNSIGNED), choose)
    assert [layer.name for layer in layers if find_kernel(layer) is None] == []
    stored = stored_bytes(choose(0, 9))
    check_sanitized(tmp_path, layers, stored, *INSTRUCTION_SETS[instruction_set])


# --- on the emulated boards, many shapes in one firmware


def renamed(layer, name):
    return replace(layer, name=name, output=replace(layer.output, name=name))


@pytest.fixture(scope="module")
def shapes():
    """Layers of all kinds, from a fixed seed."""
    random = np.random.default_rng(4)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    found = []
    for turn in range(5):
        made = window_layers.layers((SIGNED, UNSIGNED), choose)
        found += [renamed(layer, f"{layer.name}_{turn}") for layer in made]
    return found


@pytest.mark.parametrize("board", BOARDS)
def test_the_boards_compute_the_same(shapes, tmp_path, board):
    check_on_board(tmp_path, board, shapes, stored_bytes(1))


# --- what decides


@given(data=st.data())
def test_sums_in_16_bits_never_overflow(data):
    channels, rows, columns = (data.draw(st.integers(1, 4)) for _ in range(3))
    limit = data.draw(st.integers(1, 128))
    random = np.random.default_rng(data.draw(st.integers(0, 2**30)))
    weights = random.integers(-limit, limit, (channels, 1, rows, columns)).astype(np.int8)
    positions = positions_in_16_bits(weights)
    flat = np.abs(weights.reshape(channels, -1).astype(int))
    groups = [flat[:, i : i + positions].sum(axis=1) for i in range(0, flat.shape[1], positions)]
    assert positions == 1 or max(int(group.max()) for group in groups) * 128 < 2**15


def test_padding_is_the_zero_point_not_0(tmp_path):
    """An image of zero points stays 0 under any kernel, at its borders too."""
    conv = Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    operand = window_layers.image(SIGNED, (3, 3, 2), lambda low, _: low)
    weights = constant(np.full((4, 2, 3, 3), 127, np.int8))
    summed = apply(conv, operand, weights)
    layer = window_layers.rescaled(
        "padded", SIGNED, summed, lambda low, _: low, bias=False, step=1.0
    )
    (found,) = sanitized(tmp_path, [layer], {"signed": np.full(BYTES, SIGNED.zero_point, np.int8)})
    assert (found == layer.output.zero_point).all()


def test_a_bias_finer_than_the_sums_is_left_to_generated_loops():
    conv = Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    operand = window_layers.image(SIGNED, (3, 3, 2), lambda low, _: low)
    summed = apply(conv, operand, constant(np.ones((4, 2, 1, 1), np.int8)))
    layer = window_layers.rescaled("fine", SIGNED, summed, lambda low, _: low, bias=True, step=0.1)
    assert find_kernel(layer)
    sums, multipliers, rest = layer.expression.operands
    finer = constant(np.full_like(rest.operator.reference(), 3))
    expression = apply(layer.expression.operator, sums, multipliers, finer)
    assert find_kernel(replace(layer, expression=expression)) is None
