"""No floating point is left in any layer, and the lowering itself would say so."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.composites.clipped import Clipped
from entrain.deploy.lowering.composites.function import Function
from entrain.deploy.lowering.composites.product import Product
from entrain.deploy.lowering.composites.ratio import OverRoot, Ratio, Root
from entrain.deploy.lowering.composites.total import BelowPeak, Highest, Total
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.graph import Layer, Value
from entrain.deploy.lowering.integers import integers, interval_of, width
from entrain.deploy.lowering.interpreter import run_layer
from entrain.deploy.lowering.merging import merged
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import MULTIPLY_INTEGERS
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.quantity import Affine, Part, Term
from entrain.deploy.lowering.quantized import check_integer

RANDOM = np.random.default_rng(23)
VALUE = Value("x", (4, 6), "int8", 0.05, 0, "x")
STORED = RANDOM.integers(-128, 128, VALUE.shape).astype("int8")


def affine(scale=0.05, offset=0.0, **bounds):
    term = Term(load(VALUE), np.asarray(scale))
    return Affine((term,), np.asarray(offset), VALUE.shape, **bounds)


def two_terms():
    steps = RANDOM.uniform(0.001, 0.1, (1, 6))
    one, two = Term(load(VALUE), steps), Term(load(VALUE), np.asarray(-0.0123))
    return Affine((one, two), RANDOM.normal(size=(4, 1)), VALUE.shape)


def alone(composite):
    return Affine((), np.zeros(()), composite.shape, parts=(Part(composite, np.ones(())),))


COMPOSITES = {
    "clipped": Clipped(affine(low=-1.0, high=2.0)),
    "product": Product(affine(), affine(0.03, 1.0)),
    "product of wide sums": Product(two_terms(), two_terms()),
    "sum": Total(alone(Product(affine(), affine(0.03, 1.0))), (1,), (4, 1)),
    "maximum": Highest(two_terms(), (1,), (4, 1)),
    "distance from the maximum": BelowPeak(two_terms(), (1,)),
    "quotient": Ratio(affine(), affine(0.03, 5.0)),
    "quotient by a root": OverRoot(affine(), affine(0.03, 5.0)),
    "root": Root(affine(0.03, 5.0)),
    "unit vector": Unit(affine(), (1,), 1e-5),
    "unit vector of a wide sum": Unit(two_terms(), (1,), 0.1),
    "function of bytes": Function(affine(), np.tanh),
    "function of a wide sum": Function(two_terms(), np.tanh),
}


def reals_of(quantity):
    """A quantity in double precision."""
    total = quantity.constant
    for term in quantity.terms:
        total = total + term.scale * STORED.astype(float)
    for part in quantity.parts:
        total = total + part.scale * value_of(part.composite)
    return np.clip(np.broadcast_to(total, quantity.shape), quantity.low, quantity.high)


def value_of(composite):
    return composite.evaluate(*map(reals_of, composite.operands))


def integers_of(node):
    layer = Layer("layer", "layer", (VALUE,), VALUE, node)
    return run_layer(layer, {"x": STORED})


@pytest.mark.parametrize("name", COMPOSITES)
@pytest.mark.parametrize("bits", [10, 15, 24])
def test_a_composite_in_integers_is_what_it_is_in_reals(name, bits):
    composite = COMPOSITES[name]
    term = composite.integers(bits, np.inf)
    expected = value_of(composite)
    ours = integers_of(term.node) * float(term.scale)
    largest = max(np.abs(expected).max(), 1e-9)
    # sixteen bits of a factor or of a table, or as many as it was given
    allowed = largest * 2.0**-13 + 2.0 * float(term.scale)
    assert np.abs(ours - expected).max() <= allowed
    assert np.ptp(term.node.interval) < 2.0**32


@pytest.mark.parametrize("name", COMPOSITES)
def test_no_integer_leaves_the_interval_that_was_proved(name):
    node = COMPOSITES[name].integers(24, np.inf).node
    for each in node.walk():
        values = integers_of(each)
        assert each.interval[0] <= values.min()
        assert values.max() <= each.interval[1]


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_composite_stays_within_the_interval_that_it_promises(name):
    low, high = COMPOSITES[name].interval
    slack = 1e-9 * max(abs(low), abs(high))
    assert low - slack <= value_of(COMPOSITES[name]).min()
    assert value_of(COMPOSITES[name]).max() <= high + slack


def test_sums_of_multiples_are_exact():
    x = load(VALUE)
    quantity = Affine(
        (Term(x, np.asarray(0.6)), Term(x, np.asarray(-0.2))), np.asarray(0.05), VALUE.shape
    )
    term = integers(quantity, 24)
    np.testing.assert_allclose(
        integers_of(term.node) * float(term.scale), STORED * 0.4 + 0.05, rtol=0.0, atol=1e-4
    )
    assert not any(type(node.operator).__name__ == "Requantize" for node in term.node.walk())


@pytest.mark.parametrize("bits", [8, 16, 24])
def test_a_node_keeps_to_its_bits(bits):
    assert width(integers(two_terms(), bits).node) <= bits


def test_bounds_are_part_of_an_interval():
    assert interval_of(affine(0.05, 1.0, low=0.0)) == (0.0, pytest.approx(1.0 + 127 * 0.05))


def test_equal_nodes_become_one():
    one, same = (integers(affine(0.03, 1.0), 14).node for _ in range(2))
    assert one is not same
    product = apply(MULTIPLY_INTEGERS, one, same)
    left, right = merged(product).operands
    assert left is right
    np.testing.assert_array_equal(integers_of(merged(product)), integers_of(product))


def test_floating_point_in_a_layer_is_a_fault_of_the_lowering():
    with pytest.raises(UnsupportedOperator, match="left float32 in the inference path") as caught:
        check_integer(constant(np.zeros(3, np.float32)))
    assert "report it" in caught.value.remedy
