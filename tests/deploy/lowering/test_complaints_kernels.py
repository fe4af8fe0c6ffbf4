"""What users of integer kernels run into; each test is called as its complaint is."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from drawn_integers import RANDOM, integers
from many_networks import CORES, ManyNetworks, Network
from programs import require_emulator

from entrain.deploy.lowering.interpreter import interpret


@pytest.mark.parametrize("summed", [1, 3, 5, 15, 17, 31, 33])
def test_kernels_a_sum_over_no_multiple_of_the_vector(model, lower, summed):
    x = model.quantized(model.input(1, 3, summed), 0.05, 5)
    w = model.weights(integers(summed, 5), 0.01)
    lower(model, model.quantized(model.node("MatMul", x, w), 0.0731)).check()


def many_channels(model):
    x = model.quantized(model.input(1, 2, 3, 3), 0.05, 5)
    w = model.weights(integers(259, 2, 3, 3), RANDOM.uniform(0.01, 0.03, 259))
    y = model.quantized(model.node("Conv", x, w), 0.2)
    w = model.weights(integers(3, 259, 1, 1), 0.01)
    return model.quantized(model.node("Conv", y, w), 0.5)


def rows_of_logits(model, scale=0.09):
    x = model.quantized(model.input(1, 3, 7), scale, 3)
    return model.quantized(model.node("Softmax", x, axis=-1), 1 / 255, 0, "uint8")


def spread_logits(model):
    """Their differences reach 255 steps, more than a byte holds."""
    return rows_of_logits(model, scale=4.0)


def folded_biases(model):
    """Zero points at the ends of both types, in the input, the weights and the output."""
    x = model.quantized(model.input(1, 3, 17), 0.05, 255, "uint8")
    w = model.weights(integers(17, 9, low=-100, high=100), RANDOM.uniform(0.01, 0.03, 9), 9, axis=1)
    y = model.node("Add", model.node("MatMul", x, w), model.constant(RANDOM.normal(size=9) * 5))
    y = model.quantized(y, 0.31, -128)
    b = model.weights(integers(33) * 40, 0.31 * 0.01, dtype="int32")
    y = model.node("Add", model.node("MatMul", y, model.weights(integers(9, 33), 0.01)), b)
    return model.quantized(y, 0.9, 0, "uint8")


def odd_places(model):
    """The second input begins behind three bytes, and no value has a whole number of words."""
    left = model.quantized(model.input(1, 3, name="left"), 0.05, 5)
    right = model.quantized(model.input(1, 5, name="right"), 0.04, -6)
    parts = [
        model.quantized(
            model.node("MatMul", x, model.weights(integers(extent, 7), 0.01)), 0.0431, extent
        )
        for x, extent in ((left, 3), (right, 5))
    ]
    y = model.quantized(model.node("Add", *parts), 0.0531)
    return model.quantized(
        model.node("MatMul", y, model.weights(integers(7, 5), 0.01)), 0.0631, 9, "uint8"
    )


def odd_sums(model):
    """Over 17, 33 and 3 numbers."""
    x = model.quantized(model.input(1, 3, 17), 0.05, 5)
    for summed, columns in ((17, 33), (33, 3), (3, 5)):
        y = model.node("MatMul", x, model.weights(integers(summed, columns), 0.01))
        x = model.quantized(y, 0.4, columns)
    return x


def middles_of_steps(model):
    """Every real result lies just beside the middle of two steps."""
    x = model.quantized(model.input(1, 64), 1.0)
    y = model.node("MatMul", x, model.weights(np.eye(64), 1.0))
    y = model.node("Mul", y, model.constant(0.5 - 2.0**-12))
    return model.quantized(y, 1.0)


KERNEL_COMPLAINTS = (
    *(folded_biases, rows_of_logits, spread_logits, middles_of_steps),
    *(odd_places, many_channels, odd_sums),
)


@pytest.mark.parametrize("complaint", KERNEL_COMPLAINTS)
def test_kernels_on_this_machine(model, lower, complaint):
    lower(model, complaint(model)).check()


@pytest.fixture(scope="module")
def complaints(new_model, road, tmp_path_factory):
    """The networks of all complaints about kernels, for one firmware."""
    require_emulator()
    folder, networks = tmp_path_factory.mktemp("complaints"), []
    for complaint in KERNEL_COMPLAINTS:
        model, name = new_model(), complaint.__name__
        model.output(complaint(model))
        path = model.save(folder / f"{name}.onnx")
        lowered = road.from_file(path, folder / name)
        networks.append(Network(name, path, lowered.graph, lowered.source))
    return ManyNetworks(tuple(networks))


# an M3 computes as an M0 does, which forgives less
@pytest.mark.parametrize(
    "board",
    [pytest.param(b, marks=pytest.mark.long) if b == "mps2-an385" else b for b in CORES],
)
def test_kernels_on_every_core(complaints, tmp_path, board):
    """Whatever an instruction set does in its own way, the integers are the interpreter's."""
    found = list(complaints.differences(tmp_path, board, 4))
    assert not found, "\n".join(found)


def test_kernels_no_double_rounding(model, lower):
    """Where the real result lies just beside the middle of two steps, one rounding decides."""
    lowered = lower(model, middles_of_steps(model))
    given = np.arange(-64, 64, 2).astype(np.int8) + 1
    expected = np.rint(given.astype(np.float64) * (0.5 - 2.0**-12))
    np.testing.assert_array_equal(lowered.host.run(given)[0], expected)


def test_kernels_values_at_odd_addresses(model, lower):
    """Extents of one and three bytes, from a buffer that begins at an odd address."""
    x = model.quantized(model.input(1, 3), 0.05, 5)
    y = model.quantized(model.node("MatMul", x, model.weights(integers(3, 1), 0.01)), 0.0431)
    z = model.node("MatMul", y, model.weights(integers(1, 3), 0.01))
    lowered = lower(model, model.quantized(z, 0.0531))
    given = lowered.random_inputs(1)[0]
    expected = interpret(lowered.graph, given)[lowered.graph.output.name]
    library = lowered.host._library(trace=False)
    for offset in range(4):
        source, result = (ctypes.create_string_buffer(16) for _ in range(2))
        ctypes.memmove(ctypes.addressof(source) + offset, given.tobytes(), 3)
        addresses = [ctypes.addressof(b) + offset for b in (source, result)]
        library.model_run(*map(ctypes.c_void_p, addresses))
        raw = ctypes.string_at(addresses[1], 3)
        np.testing.assert_array_equal(np.frombuffer(raw, np.int8), expected.reshape(-1))


def test_kernels_no_call_of_a_layer_is_dropped(model, lower):
    """A compiler that knows all addresses must not lose sight of what a layer writes."""
    left = model.quantized(model.input(1, 7, 3, name="left"), 0.05, -14)
    right = model.quantized(model.input(1, 7, 3, name="right"), 0.06, 80, "uint8")
    total = model.quantized(model.node("Add", left, right), 0.0731, 177, "uint8")
    minus = model.quantized(model.node("Neg", total), 0.0831, -47)
    apart = model.quantized(model.node("Sub", total, minus), 0.1131, 160, "uint8")
    turned = model.quantized(model.node("Neg", apart), 0.1231, -35)
    joined = model.quantized(model.node("Concat", turned, apart, axis=0), 0.1331, 113, "uint8")
    w = model.weights(integers(3, 6, low=-100, high=100), 0.0118, 8)
    y = model.quantized(model.node("MatMul", joined, w), 0.381157666, -113)
    y = model.node("MatMul", y, model.node("Transpose", y, perm=[0, 2, 1]))
    lowered = lower(model, model.quantized(y, 167.0, 72, "uint8"))
    lowered.check_c(lowered.random_inputs(2))
