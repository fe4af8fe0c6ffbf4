"""A lowered network's attention in a block: the layer's integers, whichever mechanism it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import oscillator_cases
import pytest
from attention_cases import Numbers, Size, make_case, softmax_of

from entrain.deploy.coprocessor import Coprocessor, coprocessor, hardware, several
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Layer, LoweredGraph
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.operators.leaves import Load
from entrain.deploy.lowering.tensors import random_integers
from entrain.deploy.split import split_outputs
from entrain.fpga.bridge.shape import BlockShape
from entrain.fpga.reference import OscillatorBlock, SoftmaxBlock
from entrain.fpga.simulators.verilator import compile_module

RELU = oscillator_cases.Case("relu", heads=2, keys=7, queries=5, d_head=4, d_value=6)
SEPARABLE = oscillator_cases.Case("separable", heads=2, keys=7, queries=5, d_head=6, d_value=4)
SIZE = Size(heads=2, queries=5, keys=7, d_head=4, d_value=8)
# the middle of int8 is its zero point: 0
NUMBERS = Numbers(zero_points=(0.5 + 1 / 512,) * 4)


def oscillators(case: oscillator_cases.Case) -> LoweredGraph:
    """A network that is an attention of one packed value."""
    source = oscillator_cases.source_of(case)
    layer = case.layer(source, "context")
    return LoweredGraph("network", (source,), (layer.output,), (layer,))


def apart(case: oscillator_cases.Case) -> LoweredGraph:
    """The same of queries and keys that are uint8, and values that are int8."""
    graph = oscillators(case)
    (layer,) = graph.layers
    operator = layer.expression.operator
    views = {}
    for name, dtype in (("query", "uint8"), ("key", "uint8"), ("value", "int8")):
        view = getattr(operator, name)
        value = replace(view.value, name=name, dtype=dtype)
        views[name] = replace(view, value=value)
    loads = [
        replace(node, operator=Load(view.value), dtype=view.value.dtype)
        for node, view in zip(layer.expression.operands, views.values(), strict=False)
    ]
    expression = replace(
        layer.expression,
        operator=replace(operator, **views),
        operands=(*loads, *layer.expression.operands[3:]),
    )
    inputs = tuple(view.value for view in views.values())
    layer = replace(layer, inputs=inputs, expression=expression)
    return replace(graph, inputs=inputs, layers=(layer,))


def softmaxes() -> LoweredGraph:
    case = make_case("softmax", SIZE, NUMBERS, np.random.default_rng(0))
    inputs = tuple(view.value for view in case.views)
    layer = Layer("context", "softmax attention", inputs, case.output, softmax_of(case))
    return LoweredGraph("network", inputs, (case.output,), (layer,))


@dataclass(frozen=True)
class Mechanism:
    graph: LoweredGraph
    kind: type
    shape: BlockShape


MECHANISMS = {
    "relu": Mechanism(oscillators(RELU), OscillatorBlock, BlockShape(7, 5, 4, 6, 2)),
    "separable": Mechanism(apart(SEPARABLE), OscillatorBlock, BlockShape(7, 5, 6, 4, 2)),
    "softmax": Mechanism(softmaxes(), SoftmaxBlock, BlockShape(7, 5, 4, 8, 0)),
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request) -> Mechanism:
    return MECHANISMS[request.param]


def values_of(graph: LoweredGraph, count: int):
    """Every value's integers in each of several inferences."""
    given = random_integers(graph.inputs, count)
    each = [{name: numbers[i] for name, numbers in given.items()} for i in range(count)]
    return [interpret(graph, one) for one in each]


def specified(chosen: Coprocessor, given: bytes, head: int) -> bytes:
    """What the specification answers to an input as it is sent."""
    flat, parts = np.frombuffer(given, np.uint8), {}
    for name, (vectors, size) in chosen.shape.parts.items():
        part, flat = flat[: vectors * size].reshape(vectors, size), flat[vectors * size :]
        parts[name] = part.view(np.int8)
    block = chosen.heads[head]
    if isinstance(block, OscillatorBlock):
        np.testing.assert_array_equal(parts["anchors"], block.anchors)
    scored = [parts["queries"], parts["keys"]]
    if chosen.operator.query.value.dtype == "uint8":
        scored = [part.view(np.uint8) for part in scored]
    assert not flat.size
    return block.contexts(*scored, parts["values"]).astype(np.int8).tobytes()


def test_the_block_of_a_layer_computes_the_layer(mechanism):
    chosen = coprocessor(mechanism.graph)
    assert chosen.shape == mechanism.shape
    assert [type(head) for head in chosen.heads] == [mechanism.kind] * 2
    for values in values_of(mechanism.graph, 5):
        heads = iter(range(2))
        answer = chosen.answer(
            chosen.given(values), lambda given, heads=heads: specified(chosen, given, next(heads))
        )
        np.testing.assert_array_equal(
            answer, values["context" if "context" in values else "softmax_out"]
        )


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_network_split_between_this_machine_and_the_netlist(name, tmp_path):
    graph = MECHANISMS[name].graph
    chosen = coprocessor(graph)
    simulator = compile_module(hardware(chosen, tmp_path), tmp_path)
    values = values_of(graph, 6)
    asked = several(chosen, values)
    assert asked.queries.shape == (6, 2, 5, chosen.shape.d_head)
    given = [{value.name: one[value.name] for value in graph.inputs} for one in values]
    done: list[int] = []
    split = split_outputs(graph, chosen, simulator, given, lambda: done.append(1))
    expected = np.stack([one[graph.outputs[0].name].reshape(-1) for one in values])
    np.testing.assert_array_equal(split.outputs, expected)
    assert len(done) == 6
    assert split.cycles > 6 * 2 * 5 * chosen.shape.d_value  # a component a cycle at best


def test_a_zero_point_is_refused_by_name():
    with pytest.raises(UnsupportedOperator, match="the queries have the zero point 5") as error:
        coprocessor(oscillators(replace(RELU, zero_point=5)))
    assert error.value.where == "layer context"


def test_types_that_a_block_does_not_read_are_refused():
    with pytest.raises(UnsupportedOperator, match="queries are int8, not uint8"):
        coprocessor(oscillators(SEPARABLE))
    with pytest.raises(UnsupportedOperator, match="contexts are uint8, not int8"):
        coprocessor(oscillators(replace(RELU, output="uint8", output_zero_point=100)))


def test_mechanisms_without_a_block_are_refused():
    with pytest.raises(UnsupportedOperator, match="table"):
        coprocessor(oscillators(replace(RELU, coupling="softplus")))
    with pytest.raises(UnsupportedOperator, match="p = 1"):
        coprocessor(oscillators(replace(RELU, exponent=2)))


def test_sequences_that_are_too_long_are_refused():
    with pytest.raises(UnsupportedOperator, match="129 tokens"):
        coprocessor(oscillators(replace(RELU, keys=129, queries=None)))


def test_networks_without_one_attention_are_refused():
    graph = oscillators(RELU)
    with pytest.raises(UnsupportedOperator, match="0 attentions") as error:
        coprocessor(replace(graph, layers=()))
    assert error.value.where == "network"
    with pytest.raises(UnsupportedOperator, match="2 attentions"):
        coprocessor(replace(graph, layers=graph.layers * 2))


def test_vectors_of_odd_lengths_are_refused(tmp_path):
    chosen = coprocessor(oscillators(replace(RELU, d_head=5)))
    with pytest.raises(UnsupportedOperator, match="vectors of 5"):
        hardware(chosen, tmp_path)
