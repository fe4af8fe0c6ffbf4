"""Normalized rows are kernels: to the bit what numpy computes, on every instruction set."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod, sqrt

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_programs import check_on_board, check_sanitized, expected
from programs import require_emulator
from stored_values import BYTES, STORED, stored_bytes, tensor

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.bench import shapes
from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.kernels.layer_norm import match_layer_norm
from entrain.deploy.lowering.operators import apply
from entrain.deploy.lowering.operators.layout import Permute
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.program import build_program
from entrain.deploy.lowering.quantity import Affine, Term
from entrain.deploy.lowering.requantization import quantized_expression
from entrain.deploy.lowering.translations.elementwise import scaled, sum_of
from entrain.deploy.lowering.translations.offsets import less
from entrain.deploy.lowering.translations.reductions import without_mean

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")


def layer(
    node,
    *,
    name="normal",
    step=0.05,
    epsilon=1e-5,
    centred=True,
    axes=None,
    gamma=40.0,
    beta=0.0,
    dtype="int8",
    zero_point=-3,
    bounds=(-inf, inf),
):
    """Normalized rows times gamma plus beta, in steps of the result."""
    axes = axes or (len(node.shape) - 1,)
    columns = prod(node.shape[axis] for axis in axes)
    values = Affine((Term(node, np.asarray(step)),), np.zeros(()), node.shape)
    vector = without_mean(values, axes) if centred else values
    normal = whole(Unit(vector, axes, epsilon * columns))
    factor = np.asarray(gamma, float) * sqrt(columns)
    shift = Affine((), np.asarray(beta, float), node.shape)
    total = sum_of(scaled(normal, factor, node.shape), shift, node.shape)
    output = Value(name, node.shape, dtype, 1.0, zero_point, name)
    low, high = bounds
    expression = quantized_expression(replace(total, low=low, high=high), output)
    read = {each.operator.value for each in node.walk() if hasattr(each.operator, "value")}
    return Layer(name, "normalization", tuple(read), output, expression)


def is_kernel(one):
    return match_layer_norm(one) is not None


def nearly_even(seed):
    """Stored bytes with rows, of any width, that differ by little or by nothing."""
    random, stored = np.random.default_rng(seed), stored_bytes(seed)
    for name, values in stored.items():
        ends = integer_range(STORED[name].dtype)
        for first in range(0, BYTES, 150):
            width = int(random.integers(1, 100))
            values[first : first + width] = random.integers(*ends)
            values[first + random.integers(width)] += random.integers(0, 2)
    return stored


def random_layer(name, choose):
    """Any shape, types, zero points, bounds, factors and biases; always a kernel."""
    shape = (choose(1, 4), choose(1, 70))
    random = np.random.default_rng(choose(0, 2**30))
    dtype = ("int8", "uint8")[choose(0, 1)]
    ends = integer_range(dtype)
    source = sorted(STORED)[choose(0, len(STORED) - 1)]
    each = shape[1:] if choose(0, 1) else ()
    return layer(
        tensor(source, choose(0, BYTES - prod(shape)), shape),
        name=name,
        step=10.0 ** choose(-3, 1) * random.uniform(0.3, 1),
        epsilon=(0.0, 1e-12, 1e-5, 1.0)[choose(0, 3)],
        centred=bool(choose(0, 3)),
        gamma=random.uniform(10, 200) * random.choice([-1, 1], each),
        beta=random.uniform(-40, 40, each) * choose(0, 1),
        dtype=dtype,
        zero_point=(*ends, choose(*ends))[choose(0, 2)],
        bounds=((-inf, inf), (0.0, inf), (-inf, 0.0), (-30.0, 40.0))[choose(0, 3)],
    )


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_rows_are_what_numpy_computes(tmp_path, instruction_set, in_place, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    layers = [random_layer(f"layer_{number}", choose) for number in range(8)]
    places = [match_layer_norm(one).overwrites[0] if in_place else None for one in layers]
    stored = nearly_even(choose(0, 99))
    options = INSTRUCTION_SETS[instruction_set]
    check_sanitized(tmp_path, layers, stored, *options, overwritten=places)


def of_width(columns, name, **options):
    """Rows of the bench's kind, for as many as the stored bytes have."""
    return layer(tensor("int8_middle", 5, (min(3, 5990 // columns), columns)), name=name, **options)


def fixed_layers():
    random = np.random.default_rng(0)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    # all that may be left of a round of the loop, on either instruction set; squares of 64 bits
    widths = (*range(2, 10), 12, 15, 16, 17, 31, 32, 33, 47, 64, 65, 300, 5900)
    odd = [of_width(columns, f"odd_{columns}") for columns in widths]
    each = [
        of_width(columns, f"each_{columns}", gamma=random.uniform(9, 90, columns), beta=4.3)
        for columns in (3, 8, 21, 32)
    ]
    randoms = [random_layer(f"random_{number}", choose) for number in range(30)]
    return [*odd, *each, *randoms]


# instructions an element at most: alike for all columns, and with a table
GOALS = {"mps2-an386": (10.0, 14.5), "mps3-an547": (4.5, 7.0)}


@pytest.mark.parametrize("board", BOARDS)
def test_boards_compute_the_same_in_few_instructions(tmp_path, board):
    node, gammas = tensor("int8_middle", 0, (49, 32)), np.linspace(20, 60, 32)
    large = [
        layer(node, name="alike"),
        layer(node, name="table", gamma=gammas, beta=gammas - 33.3),
    ]
    layers = [*fixed_layers(), *large]
    assert all(map(is_kernel, layers))
    counts = check_on_board(tmp_path, board, layers, nearly_even(1))
    for one, goal in zip(large, GOALS[board], strict=True):
        assert counts[one.symbol] / one.output.size < goal


@pytest.mark.long
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an385-m0"])
def test_small_cores_compute_the_same(tmp_path, board):
    check_on_board(tmp_path, board, fixed_layers(), nearly_even(2))


def test_the_kernel_is_the_formula():
    """In double precision: half a step off and little else, whatever a row's deviation."""
    stored = nearly_even(3)
    one = layer(tensor("int8_middle", 0, (184, 31)))
    rows = stored["int8_middle"][: 184 * 31].reshape(184, 31) * 0.05
    normal = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    exact = np.clip(40 * normal - 3, -128, 127)
    assert is_kernel(one)
    assert np.abs(expected([one], stored)[0] - exact).max() < 0.51


def test_over_several_axes_or_under_another_shape():
    assert is_kernel(layer(tensor("int8_middle", 0, (3, 4, 5)), axes=(1, 2)))
    assert is_kernel(layer(tensor("int8_middle", 0, (3, 5, 1)), axes=(1,)))
    assert not is_kernel(layer(tensor("int8_middle", 0, (3, 4, 5)), axes=(1,)))
    turned = apply(Permute((1, 0)), tensor("int8_middle", 0, (6, 6)))
    assert not is_kernel(layer(turned))


def test_factors_that_differ_from_row_to_row_are_no_kernel():
    node = tensor("int8_middle", 0, (3, 8))
    assert not is_kernel(layer(node, gamma=np.asarray([[10.0], [20.0], [30.0]])))
    assert not is_kernel(layer(node, beta=np.asarray([[10.0], [20.0], [30.0]])))
    assert not is_kernel(layer(node, gamma=1e6)), "its shift is too short"


def test_one_factor_for_all_columns_takes_no_flash():
    node = tensor("int8_middle", 0, (3, 8))
    assert match_layer_norm(layer(node)).constants == ()
    ((_, table),) = match_layer_norm(layer(node, beta=np.arange(8.0))).constants
    assert (table.shape, table.dtype) == ((3, 8), np.int32)


@pytest.mark.parametrize("board", BOARDS)
def test_rows_are_overwritten_on_boards(tmp_path, board):
    """A chain of normalizations and a table in the bytes of one value."""
    require_emulator()
    source = Value("source", (5, 37), "int8", 0.05, 5, "source")
    layers = [layer(less(load(source), 5), name="first")]
    for name in ("second", "third", "last"):
        before = layers[-1].output
        layers.append(layer(less(load(before), -3), name=name, beta=np.arange(37.0) - 20))
    graph = LoweredGraph("chain", (source,), (layers[-1].output,), tuple(layers))
    program = build_program(graph)
    assert program.plan.overwritten
    for file, text in emit_model(program, "linear").files:
        (tmp_path / file).write_text(text)
    image = build_firmware(find_board(board), tmp_path, tmp_path / "chain.elf").image
    given_bytes = nearly_even(4)["int8_middle"][:185].reshape(5, 37)
    with connect(QemuAddress(board), image) as client:
        written = client.classify(given_bytes.tobytes())
    assert written == interpret(graph, given_bytes)["last"].tobytes()


def test_the_layer_of_the_bench_is_a_kernel():
    (one,) = shapes.layer_norm(49, 32).layers
    assert is_kernel(one)
