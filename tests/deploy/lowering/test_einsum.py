"""Einsum, as attention is often written, in operators that the lowering knows."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites import rewrite

RANDOM = np.random.default_rng(5)
EQUATIONS = [
    *("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "btc,hcd->bhtd", "ij,jk", "ij,ij->", "i,j->ij"),
    *("ijk->ki", "ij->", "ba", "...ij,...jk->...ik", "...i,i", "b...,...->b...", "ij,jk,kl->il"),
    *("abc,cd,ab->bd", "ab,cd->", " b t c , c -> b t "),
]


def einsum(equation, *shapes, opset=17):
    """A model of one Einsum of floats."""
    names = [f"x{place}" for place in range(len(shapes))]
    node = helper.make_node("Einsum", names, ["y"], name="product", equation=equation)
    graph = helper.make_graph(
        [node],
        "einsum",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(names, shapes, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape_of(equation, *shapes))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def shape_of(equation, *shapes):
    """The shape of the result, by numpy; symbols count as 1."""
    zeros = [np.zeros([n if isinstance(n, int) else 1 for n in shape]) for shape in shapes]
    return np.einsum(equation, *zeros).shape


def check_spelled_out(equation, *shapes, opset=17):
    """Without Einsum the model computes what numpy does."""
    model = einsum(equation, *shapes, opset=opset)
    rewrite(model)
    assert "Einsum" not in {node.op_type for node in model.graph.node}
    onnx.checker.check_model(model)
    arrays = [RANDOM.normal(size=shape).astype(np.float32) for shape in shapes]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = {f"x{place}": array for place, array in enumerate(arrays)}
    (found,) = session.run(None, given)
    right = np.einsum(equation, *arrays)
    assert found.shape == right.shape
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


def shapes_of(equation, ellipsis=(2, 3)):
    """Extents for the labels of an equation, each another."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    size = {label: 2 + place for place, label in enumerate(sorted({*"".join(terms)} - {"."}))}
    made = []
    for term in terms:
        before, dots, behind = term.partition("...")
        made.append(
            [*(size[x] for x in before), *(ellipsis if dots else ()), *(size[x] for x in behind)]
        )
    return made


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("opset", [12, 17])
def test_each_equation_is_what_numpy_makes_of_it(equation, opset):
    check_spelled_out(equation, *shapes_of(equation), opset=opset)


@settings(deadline=None)
@given(data=st.data())
def test_any_equation_is_what_numpy_makes_of_it(data):
    labels = st.lists(st.sampled_from("abcde"), max_size=4, unique=True).map("".join)
    terms = data.draw(st.lists(labels.filter(bool), min_size=1, max_size=3))
    used = sorted({*"".join(terms)})
    result = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    equation = f"{','.join(terms)}->{''.join(result)}"
    check_spelled_out(equation, *shapes_of(equation))


def test_dimensions_of_an_ellipsis_are_repeated_where_they_are_1():
    check_spelled_out("...ij,...jk->...ik", (4, 1, 2, 3), (5, 3, 6))


def test_a_diagonal_is_refused_by_the_nodes_name():
    with pytest.raises(UnsupportedOperator, match="product takes a diagonal: ii->i") as caught:
        rewrite(einsum("ii->i", (3, 3)))
    assert "mask" in caught.value.remedy


def test_unknown_shapes_are_refused():
    with pytest.raises(UnsupportedOperator, match="reads are not static"):
        rewrite(einsum("ij,jk->ik", ("rows", 3), (3, 4)))


# --- quantized


def test_a_projection_into_heads_is_one_matrix_product(model, lower):
    x = model.quantized(model.input(1, 6, 8), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (2, 8, 4)), 0.01)
    heads = model.quantized(model.node("Einsum", x, w, equation="btc,hcd->bthd"), 0.1)
    lowered = lower(model, heads)
    lowered.check()
    assert [layer.macs for layer in lowered.graph.layers] == [6 * 8 * 8]
    assert "entrain_matmul(" in lowered.source["model.c"]


def test_attention_of_einsums_is_recognised(model, lower):
    x = model.quantized(model.input(1, 5, 8), 0.05, 3)
    parts = []
    for _ in range(3):
        w = model.weights(RANDOM.integers(-127, 128, (8, 2, 4)), 0.01)
        parts.append(model.quantized(model.node("Einsum", x, w, equation="btc,chd->bthd"), 0.02))
    q, k, v = parts
    scores = model.node("Einsum", q, k, equation="bqhd,bkhd->bhqk")
    weights = model.node("Softmax", model.node("Mul", scores, model.constant(0.5)), axis=-1)
    context = model.node("Einsum", weights, v, equation="bhqk,bkhd->bqhd")
    lowered = lower(model, model.quantized(context, 0.02))
    lowered.check()
    assert lowered.graph.layers[-1].title == "softmax attention"
