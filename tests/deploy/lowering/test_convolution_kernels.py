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


# --- depthwise, what few channels and large kernels come upon: with vectors, patches

# image, kernel, strides, padding and dilation
DEPTHWISE = {
    "more_rows_than_four": ((6, 16, 5), (5, 3), (1, 1), (2, 1, 2, 1), (1, 1)),
    "two_rows_of_nine": ((5, 11, 3), (2, 9), (1, 2), (0, 4, 1, 4), (1, 1)),
    "several_vectors": ((9, 9, 2), (7, 9), (1, 1), (3, 4, 3, 4), (1, 1)),
    "far_apart": ((20, 20, 2), (7, 7), (1, 1), (9, 9, 9, 9), (3, 3)),
    "bands": ((60, 40, 1), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1)),
    "bands_of_every_third_row": ((62, 40, 1), (2, 5), (3, 1), (1, 2, 0, 2), (1, 1)),
    "a_line": ((90, 1, 3), (9, 1), (1, 1), (8, 0, 0, 0), (1, 1)),
    "a_line_far_apart": ((300, 1, 2), (18, 1), (1, 1), (272, 0, 0, 0), (16, 1)),
    "a_block_and_a_few": ((5, 7, 20), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "a_block_and_many": ((5, 7, 28), (3, 3), (2, 1), (1, 1, 1, 1), (1, 1)),
}


@pytest.fixture(scope="module")
def depthwise():
    """Each of them over signed and unsigned images; the latter leave their channels first."""
    random = np.random.default_rng(6)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    return [
        window_layers.depthwise(
            f"{name}_{source.name}",
            source,
            choose,
            shape,
            kernel,
            Convolution(strides, padding, dilation, shape[2]),
            order,
        )
        for name, (shape, kernel, strides, padding, dilation) in DEPTHWISE.items()
        for source, order in ((SIGNED, window_layers.LAST), (UNSIGNED, window_layers.AS_IT_IS))
    ]


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_any_depthwise_kernel_is_what_numpy_computes(depthwise, tmp_path, instruction_set):
    assert {find_kernel(layer).header for layer in depthwise} == {"entrain_depthwise.h"}
    check_sanitized(tmp_path, depthwise, stored_bytes(3), *INSTRUCTION_SETS[instruction_set])


@pytest.mark.parametrize("board", BOARDS)
def test_a_board_computes_any_depthwise_kernel(depthwise, tmp_path, board):
    counts = check_on_board(tmp_path, board, depthwise, stored_bytes(3))
    layer = next(layer for layer in depthwise if layer.name == "more_rows_than_four_signed")
    most = {"mps2-an386": 2.4, "mps3-an547": 0.8}[board]  # instructions a multiply-add
    assert counts[layer.symbol] / layer.macs < most


# --- what decides


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
