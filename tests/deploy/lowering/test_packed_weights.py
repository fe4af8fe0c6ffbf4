"""Weights of four bits: half as many bytes in flash, and to the bit the same results."""

from __future__ import annotations

import numpy as np
import pytest
import window_layers
from hypothesis import given
from hypothesis import strategies as st
from kernel_programs import check_on_board, check_sanitized
from product_layers import STORED, layer, matrix, stored_bytes, weights_of

from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.kernels.packed_weights import UNPACKED_BYTES, product_weights
from entrain.deploy.lowering.kernels.weights_layout import in_nibbles
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.matmul import MatMul

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
# rows, depth, columns: one call and several, such that overlap, rows of half a word, all at once
SHAPES = (
    *((31, 32, 128), (1, 64, 35), (7, 36, 37), (5, 100, 24), (2, 300, 5), (3, 1100, 6)),
    *((4, 33, 31), (6, 7, 130), (9, 64, 16)),
)


def unpacked(words, columns, depth):
    """Digit by digit of the hexadecimal words, the last of a row's first."""
    pitch = -(-depth // 8)
    rows = words[: columns * pitch].astype(np.uint32).reshape(columns, pitch)
    digits = [[int(digit, 16) for digit in f"{word:08x}"[::-1]] for word in rows.ravel()]
    # digit 0 is weight 0, digit 1 weight 4, digit 2 weight 1, ...
    ordered = np.asarray(digits)[:, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(columns, pitch * 8)
    return ordered[:, :depth] - 8


@given(columns=st.integers(1, 20), depth=st.integers(1, 40), seed=st.integers(0, 99))
def test_eight_weights_are_a_word(columns, depth, seed):
    weights = np.random.default_rng(seed).integers(-8, 8, (columns, depth))
    words = in_nibbles(weights)
    np.testing.assert_array_equal(unpacked(words, columns, depth), weights)
    assert words.nbytes <= columns * 4 * (-(-depth // 8)) + 12


@given(columns=st.integers(1, 300), depth=st.integers(1, 600))
def test_a_few_columns_are_unpacked_at_a_time(columns, depth):
    made = product_weights(np.full((columns, depth), 7))
    if not made.is_packed:
        assert columns * depth < 1024
        assert made.columns == columns
        return
    assert (made.calls - 1) * made.columns < columns <= made.calls * made.columns
    assert made.columns % 4 == 0 or made.columns == columns
    pitch = -(-depth // 4) * 4
    assert made.columns * pitch <= max(UNPACKED_BYTES + 3 * pitch, 4 * pitch)


def test_what_does_not_fit_or_saves_nothing_stays_bytes():
    assert product_weights(np.full((64, 64), -8)).is_packed
    assert not product_weights(np.full((64, 64), -9)).is_packed
    assert not product_weights(np.full((64, 64), 8)).is_packed
    assert not product_weights(np.full((8, 64), 7)).is_packed


def product(rows, depth, columns, *, joined=False, name="product"):
    sums = apply(
        MatMul(), matrix("signed", 0, rows, depth, depth), weights_of(columns, depth, 3, 4)
    )
    residual = (matrix("unsigned", 0, rows, columns, columns), 0.7) if joined else None
    factors = np.random.default_rng(depth).uniform(0.002, 0.02, columns) if joined else 0.01
    bias = np.random.default_rng(rows).integers(-300, 300, columns)
    return layer(sums, name=name, factors=factors, bias=bias, residual=residual)


def convolution(
    name,
    kernel,
    *,
    source="signed",
    strides=(1, 1),
    image=(9, 7, 16),
    outputs=44,
    order=window_layers.LAST,
):
    """A convolution with padding, of some rows, columns and channels; the order of its result."""
    random = np.random.default_rng(6)
    weights = random.integers(-8, 8, (outputs, image[2], *kernel)).astype(np.int8)
    edges = (kernel[0] // 2, kernel[1] // 2)
    operator = Convolution(strides, (*edges, *edges), (1, 1), 1)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    operand = window_layers.image(STORED[source], image, choose)
    summed = apply(operator, operand, constant(weights))
    return window_layers.rescaled(
        name, STORED[source], summed, choose, bias=True, step=0.003, order=order
    )


def packed_layers():
    made = []
    for shape in SHAPES:
        name = "x".join(map(str, shape)).replace("x", "_")
        made += [product(*shape, name=f"product_{name}")]
        made += [product(*shape, name=f"joined_{name}", joined=True)]
    made += [
        convolution("whole", (1, 1), outputs=80),
        convolution("patches", (3, 3)),
        convolution("apart", (1, 1), outputs=80, order=window_layers.AS_IT_IS),
        convolution("patches_apart", (3, 3), order=window_layers.AS_IT_IS),
        convolution("strided", (3, 2), source="unsigned", strides=(2, 1), outputs=37),
    ]
    return made


def test_all_of_them_are_packed():
    for one in packed_layers():
        names = [name for name, _ in find_kernel(one).constants]
        assert "packed_weights" in names, one.name


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_they_compute_what_numpy_does(tmp_path, instruction_set):
    check_sanitized(tmp_path, packed_layers(), stored_bytes(2), *INSTRUCTION_SETS[instruction_set])


# how many more instructions than with bytes, at 31 rows, at most
BOARDS = {"mps2-an386": ("dsp", 0.11), "mps3-an547": ("mve", 0.11), "mps2-an385-m0": (None, 0.02)}


@pytest.mark.parametrize("board", BOARDS)
def test_boards_compute_the_same_and_unpack_once_for_all_rows(tmp_path, board):
    instruction_set, more = BOARDS[board]
    rows, depth, columns = SHAPES[0]
    sums = apply(MatMul(), matrix("signed", 0, rows, depth, depth), weights_of(columns, depth))
    of_bytes = layer(sums, name="of_bytes", bias=np.arange(columns))
    packed, *others = packed_layers()
    counts = check_on_board(tmp_path, board, [packed, of_bytes, *others], stored_bytes(3))
    assert counts[packed.symbol] < (1 + more) * counts[of_bytes.symbol]
    if instruction_set:
        best = dict(find_kernel(packed).blocks)[instruction_set][0]
        assert counts[packed.symbol] == pytest.approx(best.instructions, rel=0.12)


def test_flash_holds_half_of_the_bytes():
    sizes = {name: array.nbytes for name, array in layer_function(product(49, 32, 128)).constants}
    assert sizes["packed_weights"] <= 32 * 128 / 2 + 12


# --- what may be overwritten


@pytest.mark.parametrize(
    ("shape", "overwritten"),
    [
        ((9, 64, 16), ["signed", "unsigned"]),  # one call
        ((9, 64, 32), ["unsigned"]),  # the second call still reads the input
        ((9, 64, 45), []),  # the last call reads what the one before it joined
    ],
)
def test_what_a_later_call_reads_is_not_overwritten(tmp_path, shape, overwritten):
    joined = product(*shape, joined=True)
    assert list(find_kernel(joined).overwrites) == overwritten
    for name in overwritten:
        check_sanitized(tmp_path, [joined], stored_bytes(4), overwritten=[name])


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
def test_several_calls_of_a_convolution_overwrite_nothing(kernel):
    several = convolution("several", kernel, outputs=80)
    assert find_kernel(several).overwrites == ()
