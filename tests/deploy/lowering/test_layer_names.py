"""Layers are called as in the model, by unique C identifiers."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.lowering.layer_names import layer_names


def test_a_tensor_of_brevitas_is_called_as_its_module():
    tensor = "/attention/field/query/act_quant/export_handler/QuantizeLinear_output_0"
    assert layer_names((tensor,), {tensor: "/x/MatMul"}) == {tensor: "attention_query"}


def test_the_modules_in_between_are_named_where_it_would_not_be_clear_otherwise():
    tail = "/act_quant/export_handler/QuantizeLinear_output_0"
    tensors = (f"/attention/field/mean{tail}", f"/attention/read_out/mean{tail}")
    names = layer_names(tensors, dict.fromkeys(tensors, ""))
    assert list(names.values()) == ["attention_field_mean", "attention_read_out_mean"]


def test_a_block_is_named_only_where_there_are_several():
    tail = "/act_quant/export_handler/QuantizeLinear_output_0"
    tensors = [f"/block/attention/query{tail}", f"/block/fed{tail}"]
    names = layer_names(tuple(tensors), dict.fromkeys(tensors, ""))
    assert list(names.values()) == ["attention_query", "fed"]
    tensors = [f"/blocks.{k}/attention/query{tail}" for k in (0, 1)] + [f"/blocks.1/odd{tail}"]
    names = layer_names(tuple(tensors), dict.fromkeys(tensors, ""))
    assert list(names.values()) == ["blocks_0_attention_query", "blocks_1_attention_query", "odd"]


def test_any_other_tensor_is_called_as_the_node_that_computes_it():
    tensors = ("my_tensor", "/QuantizeLinear_output_0", "onnx::QuantizeLinear_17")
    names = layer_names(tensors, dict(zip(tensors, ("Conv_0", "/fc/Gemm", "/Add"), strict=True)))
    assert list(names.values()) == ["conv_0", "fc_gemm", "add"]


def test_an_output_is_called_without_what_onnxruntimes_tool_hangs_on_it():
    names = layer_names(
        ("y_QuantizeLinear_Output",), {"y_QuantizeLinear_Output": "y_QuantizeLinear_Input"}
    )
    assert list(names.values()) == ["y"]


def test_names_are_unique_even_if_some_look_numbered():
    tensors = ("a", "b", "c")
    names = layer_names(tensors, {"a": "add", "b": "add_2", "c": "add"})
    assert list(names.values()) == ["add", "add_2", "add_3"]


@given(st.lists(st.text(max_size=12), unique=True, max_size=8))
def test_whatever_the_names_they_become_different_identifiers(tensors):
    names = layer_names(tuple(tensors), {tensor: tensor for tensor in tensors})
    assert set(names) == set(tensors)
    assert len(set(names.values())) == len(tensors)
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", name) for name in names.values())
