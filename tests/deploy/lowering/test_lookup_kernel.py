"""Functions of a byte are kernels: each entry where its byte finds it, on every instruction set."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_programs import check_on_board, check_sanitized
from stored_values import BYTES, STORED, stored_bytes, tensor

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.graph import Layer, Value
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.kernels.lookup import match_lookup
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS, SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.layout import Permute, Reshape, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.lookup import Lookup

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")


def index(source, first, shape):
    """Neighbouring bytes of a value, counted from the smallest one."""
    value = STORED[source]
    part = apply(Reshape(shape), apply(Slice(0, first, 1, prod(shape)), load(value)))
    low = integer_range(value.dtype)[0]
    return apply(SUBTRACT_INTEGERS, part, constant(np.asarray(low, np.int32))) if low else part


def layer(node, *, name="looked_up", dtype="int8", seed=0, entries=256):
    """The layer that looks up a random table."""
    random = np.random.default_rng(seed)
    table = random.integers(*integer_range(dtype), entries, endpoint=True).astype(dtype)
    output = Value(name, node.shape, dtype, 1.0, 0, name)
    expression = apply(Lookup(), node, constant(table))
    inputs = {each.operator.value for each in node.walk() if hasattr(each.operator, "value")}
    return Layer(name, "lookup", tuple(inputs), output, expression)


def random_layer(name, choose):
    shape = (choose(1, 4), choose(1, 70))
    source = sorted(STORED)[choose(0, len(STORED) - 1)]
    first = choose(0, BYTES - prod(shape)) * choose(0, 1)
    dtype = ("int8", "uint8")[choose(0, 1)]
    return layer(index(source, first, shape), name=name, dtype=dtype, seed=choose(0, 2**30))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_table_is_what_numpy_finds(tmp_path, instruction_set, in_place, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    layers = [random_layer(f"layer_{number}", choose) for number in range(8)]
    places = [match_lookup(one).overwrites[0] if in_place else None for one in layers]
    stored = stored_bytes(choose(0, 99))
    options = INSTRUCTION_SETS[instruction_set]
    check_sanitized(tmp_path, layers, stored, *options, overwritten=places)


def fixed_layers():
    """Every type, and all that may be left of a round of the loop, on either instruction set."""
    pairs = [(source, dtype) for source in sorted(STORED) for dtype in ("int8", "uint8")]
    each = [
        layer(index(source, 7 * number, (3, 91)), name=f"pair_{number}", dtype=dtype, seed=number)
        for number, (source, dtype) in enumerate(pairs)
    ]
    counts = (*range(1, 9), 15, 16, 17, 31, 32, 33, 100, 127, 128, 129, 143, 257)
    left = [layer(index("int8_middle", 3, (count,)), name=f"left_{count}") for count in counts]
    return [*each, *left]


# instructions an element at most
GOALS = {"mps2-an386": 3.2, "mps3-an547": 0.25}


@pytest.mark.parametrize("board", BOARDS)
def test_boards_find_the_same_in_few_instructions(tmp_path, board):
    large = layer(index("int8_middle", 0, (BYTES,)), name="large")
    layers = [*fixed_layers(), large]
    assert all(match_lookup(one) for one in layers)
    counts = check_on_board(tmp_path, board, layers, stored_bytes(1))
    assert counts[large.symbol] / BYTES < GOALS[board]


@pytest.mark.long
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an385-m0"])
def test_small_cores_find_the_same(tmp_path, board):
    check_on_board(tmp_path, board, fixed_layers(), stored_bytes(2))


def test_what_is_more_than_one_byte_or_lies_in_another_order_is_no_kernel():
    both = apply(ADD_INTEGERS, *(index(source, 0, (6, 6)) for source in ("int8_low", "uint8_low")))
    assert match_lookup(layer(both, entries=511)) is None
    turned = apply(Permute((1, 0)), index("int8_low", 0, (6, 6)))
    assert match_lookup(layer(turned)) is None
    offset = tensor("int8_middle", 0, (6, 6))
    assert match_lookup(layer(offset)) is None, "some indices would lie outside the table"


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_activations_of_a_users_model(model, lower, dtype):
    x = model.quantized(model.input(1, 5, 77), 0.0313, 3 if dtype == "int8" else 130, dtype)
    sigmoid = model.quantized(model.node("Sigmoid", x), 1 / 256, -128)
    swish = model.quantized(model.node("HardSwish", sigmoid), 0.004, 7, "uint8")
    lowered = lower(model, model.quantized(model.node("Tanh", swish), 1 / 127))
    assert dict(lowered.source.files)["model.c"].count("entrain_lookup(") == 3
    lowered.check(equal=0.99)


def test_the_table_is_one_byte_an_entry_in_flash():
    kernel = find_kernel(replace(layer(index("int8_low", 0, (9,))), name="one"))
    ((name, table),) = kernel.constants
    assert (name, table.shape, table.dtype, kernel.scratch_bytes) == ("table", (256,), np.int8, 0)
