"""The arena: values that live together never share bytes, and hardly any byte is wasted."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.memory import ALIGNMENT, aligned, plan_memory
from entrain.deploy.lowering.operators.leaves import load


def value(name, size):
    return Value(name, (size,), "int8", 1.0, 0, name)


def layer(inputs, output):
    return Layer(output.name, "add", tuple(inputs), output, load(inputs[0]))


@st.composite
def graphs(draw):
    """Layers that read any earlier values; the last one is the output."""
    source = value("input", draw(st.integers(1, 500)))
    values, layers = [source], []
    for step in range(draw(st.integers(1, 12))):
        inputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
        output = value(f"layer_{step}", draw(st.integers(1, 500)))
        layers.append(layer(inputs, output))
        values.append(output)
    return LoweredGraph("random", source, values[-1], tuple(layers))


def lives(graph, name):
    """From the layer that writes a value to the last one that reads it."""
    first = next(i for i, each in enumerate(graph.layers) if each.output.name == name)
    reads = [i for i, each in enumerate(graph.layers) if name in {v.name for v in each.inputs}]
    return first, max([first, *reads])


@given(graphs())
def test_no_two_values_that_live_together_overlap(graph):
    for a, b in combinations(plan_memory(graph).placements, 2):
        (first, last), (begin, end) = lives(graph, a.value.name), lives(graph, b.value.name)
        if first <= end and begin <= last:
            apart = a.offset + a.value.size <= b.offset or b.offset + b.value.size <= a.offset
            assert apart


@given(graphs())
def test_every_value_but_input_and_output_has_an_aligned_place_in_the_arena(graph):
    plan = plan_memory(graph)
    inner = {each.output.name for each in graph.layers} - {graph.output.name}
    assert {placement.value.name for placement in plan.placements} == inner
    for placement in plan.placements:
        assert placement.offset % ALIGNMENT == 0
        assert placement.offset >= 0
        assert placement.offset + placement.value.size <= plan.arena_bytes


@given(graphs())
def test_the_arena_is_no_smaller_than_what_lives_at_once_nor_much_larger(graph):
    plan = plan_memory(graph)
    for step in range(len(graph.layers)):
        alive = [
            placement.value.size
            for placement in plan.placements
            if lives(graph, placement.value.name)[0]
            <= step
            <= lives(graph, placement.value.name)[1]
        ]
        assert sum(map(aligned, alive)) <= plan.bound
    assert plan.bound <= plan.arena_bytes <= 1.5 * plan.bound


def test_a_chain_needs_no_more_than_its_two_largest_neighbours():
    chain = [value(f"v{i}", size) for i, size in enumerate((10, 8000, 4000, 8000, 1200, 9))]
    layers = tuple(layer([a], b) for a, b in pairwise(chain))
    plan = plan_memory(LoweredGraph("chain", chain[0], chain[-1], layers))
    assert plan.arena_bytes == plan.bound == 12000


def test_input_and_output_take_no_room():
    a, b = value("a", 100), value("b", 100)
    plan = plan_memory(LoweredGraph("one", a, b, (layer([a], b),)))
    assert plan.arena_bytes == plan.bound == 0
