"""Products with weights are kernels: to the bit what numpy computes, on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_programs import check_on_board, check_sanitized
from product_layers import BYTES, STORED, layer, matrix, random_layer, stored_bytes, weights_of

from entrain.deploy.lowering.kernels.fully_connected import match_fully_connected
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.layout import Permute, Reshape, Slice, permuted
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.schedules.blocks import MatmulShape, matmul_blocks
from entrain.deploy.lowering.translations.offsets import less

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")


def is_kernel(one):
    return match_fully_connected(one) is not None


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_shape_is_what_numpy_computes(tmp_path, instruction_set, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    layers = [random_layer(f"layer_{number}", choose) for number in range(8)]
    joins = [one.expression.operator.terms == 2 for one in layers]
    left_over = [one.expression.operands[-1].operator.reference().any() for one in layers]
    for one, joined, constant_left in zip(layers, joins, left_over, strict=True):
        assert is_kernel(one) == (joined or not constant_left)
    stored = stored_bytes(data.draw(st.integers(0, 99)))
    check_sanitized(tmp_path, layers, stored, *INSTRUCTION_SETS[instruction_set])


# one for each path through the kernels: rows without a partner, columns left over, loops, rests
SHAPES = [
    *((1, 1, 1), (1, 64, 12), (2, 3, 5), (3, 16, 4), (5, 17, 3), (6, 36, 8), (7, 40, 9)),
    *((13, 68, 6), (9, 7, 33), (4, 132, 2), (3, 150, 5), (2, 400, 3), (8, 256, 7), (49, 32, 10)),
]


def fixed_layers():
    made = []
    for number, (rows, depth, columns) in enumerate(SHAPES):
        random = np.random.default_rng(number)

        def choose(low, high, random=random):
            return int(random.integers(low, high, endpoint=True))

        for source in STORED:
            x = matrix(source, choose(0, BYTES - rows * depth), rows, depth, depth)
            sums = apply(MatMul(), x, weights_of(columns, depth, number))
            residual = matrix("signed", choose(0, 99), rows, columns, columns + 2)
            name = f"{source}_{rows}_{depth}_{columns}"
            made += [
                layer(sums, name=name, bias=random.integers(-3000, 3000, columns)),
                layer(
                    sums,
                    name=f"{name}_residual",
                    factors=random.uniform(0.0001, 0.001, columns),
                    residual=(residual, 0.7),
                    dtype="uint8",
                    zero_point=131,
                ),
            ]
    made += [random_layer(f"random_{number}", choose) for number in range(30)]
    return [one for one in made if is_kernel(one)]


def dense(name, rows, depth, columns):
    """A layer of the bench: int8, a scale for all, a bias."""
    x = matrix("signed", 0, rows, depth, depth)
    bias = np.random.default_rng(0).integers(-3000, 3000, columns)
    return layer(apply(MatMul(), x, weights_of(columns, depth)), name=name, bias=bias)


# instructions a multiply-add at most, on a Cortex-M4F and a Cortex-M55
GOALS = {(49, 32, 128): (1.0, 0.21), (49, 64, 64): (0.95, 0.2), (31, 128, 32): (0.95, 0.17)}


@pytest.mark.parametrize("board", BOARDS)
def test_boards_compute_the_same_in_about_as_many_instructions_as_predicted(tmp_path, board):
    counted = {dense(f"dense_{number}", *shape): shape for number, shape in enumerate(GOALS)}
    layers = [*fixed_layers(), *counted]
    assert len(layers) > 70
    counts = check_on_board(tmp_path, board, layers, stored_bytes(1))
    place = BOARDS.index(board)
    for one, shape in counted.items():
        spent = counts[one.symbol]
        assert spent / np.prod(shape) < GOALS[shape][place]
        best = dict(matmul_blocks(MatmulShape(*shape)))[("dsp", "mve")[place]][0]
        assert spent == pytest.approx(best.instructions, rel=0.12)


@pytest.mark.long
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an385-m0"])
def test_small_cores_compute_the_same(tmp_path, board):
    check_on_board(tmp_path, board, fixed_layers(), stored_bytes(2))


def test_the_input_may_be_a_slice_and_the_result_a_reshape(tmp_path):
    heads = apply(Reshape((1, 5, 2, 8)), apply(Slice(0, 7, 1, 80), load(STORED["signed"])))
    one_head = apply(Reshape((1, 5, 8)), apply(Slice(2, 1, 1, 1), heads))
    sums = apply(MatMul(), less(one_head, 5), weights_of(6, 8))
    moved = layer(apply(Reshape((5, 6, 1)), sums), bias=np.arange(30).reshape(5, 6, 1))
    assert "input_stride = 16" in match_fully_connected(moved).call
    check_sanitized(tmp_path, [moved], stored_bytes(0))


def test_weights_on_the_left_of_what_is_read(tmp_path):
    x = matrix("unsigned", 3, 5, 8, 9)
    sums = apply(MatMul(), weights_of(6, 8), x)
    moved = layer(permuted(sums, (1, 0)), bias=np.arange(6))
    assert is_kernel(moved)
    assert not is_kernel(layer(sums, bias=np.arange(6)[:, None]))  # columns lie apart
    check_sanitized(tmp_path, [moved], stored_bytes(0), "-DENTRAIN_EMULATE_DSP")


def test_a_residual_in_another_order_is_no_kernel():
    sums = apply(MatMul(), matrix("signed", 0, 5, 8, 8), weights_of(5, 8))
    residual = matrix("signed", 100, 5, 5, 5)
    assert is_kernel(layer(sums, residual=(residual, 0.7)))
    assert not is_kernel(layer(sums, residual=(apply(Permute((1, 0)), residual), 0.7)))


def test_two_products_or_activations_on_both_sides_are_no_kernel():
    x = matrix("signed", 0, 5, 8, 8)
    sums = apply(MatMul(), x, weights_of(5, 8))
    assert not is_kernel(layer(sums, residual=(apply(MatMul(), x, weights_of(5, 8, 1)), 0.001)))
    assert not is_kernel(layer(apply(MatMul(), x, matrix("signed", 50, 5, 8, 8))))


def test_sums_that_may_leave_32_bits_are_no_kernel():
    weights = constant(np.full((3, 8), 127, np.int8))
    sums = apply(MatMul(), matrix("unsigned", 0, 2, 8, 8), weights)
    assert is_kernel(layer(sums, bias=[2**31 - 200000] * 3))
    # within 32 bits as integers less their zero point, but not as the bytes that are stored
    most = int(sums.interval[1])
    assert not is_kernel(layer(sums, bias=[2**31 - 1 - most] * 3))


def test_a_multiplier_for_all_is_part_of_the_code():
    sums = apply(MatMul(), matrix("signed", 0, 5, 8, 8), weights_of(6, 8))
    names = [name for name, _ in match_fully_connected(layer(sums)).constants]
    assert names == ["weights", "bias"]
    each = layer(sums, factors=np.linspace(0.001, 0.002, 6))
    assert "multipliers" in [name for name, _ in match_fully_connected(each).constants]


@settings(max_examples=200, deadline=None)
@given(rows=st.integers(1, 200), depth=st.integers(1, 300), columns=st.integers(1, 200))
def test_the_best_block_comes_first_and_fits(rows, depth, columns):
    for _, blocks in matmul_blocks(MatmulShape(rows, depth, columns)):
        assert all(0 < block.rows <= rows for block in blocks)
        costs = [block.instructions for block in blocks]
        assert costs == sorted(costs)


@settings(max_examples=100, deadline=None)
@given(rows=st.integers(1, 12), depth=st.integers(1, 200), is_unsigned=st.booleans())
def test_the_scratch_of_dsp_is_enough_for_vectors(rows, depth, is_unsigned):
    source = "unsigned" if is_unsigned else "signed"
    kernel = match_fully_connected(
        layer(apply(MatMul(), matrix(source, 0, rows, depth, depth), weights_of(3, depth)))
    )
    most = {name: max(block.rows for block in blocks) for name, blocks in kernel.blocks}
    assert kernel.scratch_bytes >= 2 * most["dsp"] * depth
    vectors = -(-depth // 16)
    # input that does not stay in registers is copied to change its signs
    if is_unsigned and most["mve"] * vectors > 4:
        assert kernel.scratch_bytes >= most["mve"] * 16 * vectors
