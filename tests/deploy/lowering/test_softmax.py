"""Softmax in integers: along any axis, of bytes and of unquantized scores, masked, written out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PROBABILITY = 1 / 255


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 5, 7), -1), ((1, 2, 3, 4), 1), ((1, 6, 5), 1), ((1, 9), 1), ((7,), 0), ((1, 5, 1), 2)],
)
def test_over_rows_and_over_another_axis(model, lower, shape, axis):
    x = model.quantized(model.input(*shape), 0.09, 3)
    x = model.quantized(model.node("Neg", x), 0.08, 4)
    y = model.node("Softmax", x, axis=axis)
    lower(model, model.quantized(y, PROBABILITY, 0, "uint8")).check()


@pytest.mark.parametrize("scale", [0.001, 0.02, 0.3, 4.0])
def test_of_logits_spread_over_the_whole_range(model, lower, scale):
    x = model.quantized(model.input(1, 4, 4), scale)
    y = model.node("Softmax", x, axis=-1)
    lowered = lower(model, model.quantized(y, PROBABILITY, 0, "uint8"))
    rows = [[-128, 127, -128, 127], [-128] * 4, [127] * 4, [-128, -127, 0, 127]]
    lowered.check(np.array(rows, "int8")[None, None])


def test_of_transposed_scores_then_moved(model, lower):
    x = model.quantized(model.input(1, 5, 4), 0.05, 3)
    y = model.node("Softmax", model.node("Transpose", x, perm=[0, 2, 1]), axis=-1)
    y = model.node("Transpose", y, perm=[0, 2, 1])
    lower(model, model.quantized(y, PROBABILITY, 0, "uint8")).check()


def scores(model, tokens=9, scale=1.0):
    """Query times key, which no quantizer has brought to 8 bits."""
    random = np.random.default_rng(8)
    x = model.quantized(model.input(1, tokens, 16), 0.03, 3)
    w = model.weights(random.integers(-127, 128, (16, 16)), 0.004)
    query = model.quantized(model.node("MatMul", x, w), 0.05)
    return model.node(
        "Mul",
        model.node("MatMul", query, model.node("Transpose", x, perm=[0, 2, 1])),
        model.constant(scale),
    )


@pytest.mark.parametrize("scale", [0.02, 0.25, 3.0])
def test_of_scores_that_were_not_quantized(model, lower, scale):
    y = model.node("Softmax", scores(model, scale=scale), axis=-1)
    lowered = lower(model, model.quantized(y, PROBABILITY, 0, "uint8"))
    lowered.check(equal=0.97)


@pytest.mark.parametrize("depth", [-np.inf, -1e9, float(np.finfo("float32").min), -30.0])
def test_of_masked_scores(model, lower, depth):
    mask = np.where(np.tril(np.ones((9, 9))), 0.0, depth)
    y = model.node("Add", scores(model, scale=0.25), model.constant(mask))
    lowered = lower(
        model, model.quantized(model.node("Softmax", y, axis=-1), PROBABILITY, 0, "uint8")
    )
    lowered.check(equal=0.97)
    future = np.triu_indices(9, 1)
    assert not lowered.interpret(lowered.random_inputs(1)[0])[0][future].any() or depth == -30.0


@pytest.mark.parametrize("depth", [-np.inf, -1e9, -5.0])
def test_of_scores_chosen_by_a_mask(model, lower, depth):
    mask = model.constant(np.tril(np.ones((9, 9))), "bool")
    y = model.node("Where", mask, scores(model, scale=0.25), model.constant(depth))
    y = model.node("Softmax", y, axis=-1)
    lower(model, model.quantized(y, PROBABILITY, 0, "uint8")).check(equal=0.97)


def test_shares_that_are_read_before_they_are_quantized(model, lower):
    x = model.quantized(model.input(1, 5, 7), 0.06, 3)
    y = model.node("Mul", model.node("Softmax", x, axis=-1), x)
    y = model.node("ReduceSum", y, model.constant([-1], "int64"))
    lower(model, model.quantized(y, 0.05)).check(equal=0.97)


def by_powers_of_two(model, x):
    return model.node("Pow", model.constant(2.0), x)


def by_exponentials(model, x):
    return model.node("Exp", x)


def below_the_peak(model, x):
    return model.node("Exp", model.node("Sub", x, model.node("ReduceMax", x, axes=[-1])))


WRITTEN_OUT = [by_powers_of_two, by_exponentials, below_the_peak]


@pytest.mark.parametrize("exponents", WRITTEN_OUT)
@pytest.mark.parametrize("quantized", [True, False])
def test_written_out(model, lower, exponents, quantized):
    """The peak is taken off whether or not the model does, so the range cannot hurt."""
    x = scores(model, scale=0.7)
    x = model.quantized(x, 0.08, 4) if quantized else x
    above = exponents(model, x)
    below = model.node("ReduceSum", above, model.constant([-1], "int64"))
    y = model.node("Div", above, below)
    lowered = lower(model, model.quantized(y, PROBABILITY, 0, "uint8"))
    lowered.check(equal=0.97)
    assert lowered.graph.layers[-1].title == "softmax"


@pytest.mark.parametrize("quantized", [True, False])
def test_its_logarithm(model, lower, quantized):
    x = scores(model, scale=0.3)
    x = model.quantized(x, 0.05, 4) if quantized else x
    y = model.node("LogSoftmax", x, axis=-1)
    lower(model, model.quantized(y, 0.08, 127)).check(equal=0.97)


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_any_length_step_and_zero_point(new_model, road, data):
    model = new_model()
    length, step = data.draw(st.integers(1, 200)), data.draw(st.floats(0.001, 1.0))
    x = model.quantized(model.input(1, 2, length), step, data.draw(st.integers(-128, 127)))
    y = model.node("Softmax", x, axis=-1)
    model.output(model.quantized(y, PROBABILITY, 0, "uint8"))
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "small.onnx")
        lowered = road.from_file(path, Path(folder) / "lowered")
        lowered.check(equal=0.97)
        inputs = lowered.random_inputs(4)
        reals = inputs.astype(float) * float(np.float32(step))
        exponents = np.exp(reals - reals.max(-1, keepdims=True))
        expected = 255 * exponents / exponents.sum(-1, keepdims=True)
        ours = np.stack([lowered.interpret(one) for one in inputs]).reshape(expected.shape)
        assert np.abs(ours - expected).max() < 0.7, "half a step, and the exponents' 15 bits"
