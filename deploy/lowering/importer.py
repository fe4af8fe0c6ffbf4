"""From a QCDQ ONNX file, through Relax, to layers in integers.

Every QuantizeLinear of something computed is a boundary: what lies between boundaries becomes one
layer. The boundaries are made outputs of the graph before Relax imports it, so that each Relax
variable that is a boundary is known by its ONNX name.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.errors import ModelError, UnsupportedOperator
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Node, Value
from entrain.deploy.lowering.layer_names import identifier, layer_names
from entrain.deploy.lowering.onnx_file import boundaries, read_onnx, with_boundaries_as_outputs
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.leaves import Load, load
from entrain.deploy.lowering.quantity import Affine, Quantity, Term, known, value_of
from entrain.deploy.lowering.requantization import quantized_expression, title_of
from entrain.deploy.lowering.translations import TRANSLATIONS

VALUE_TYPES = ("int8", "uint8")
INDEX_TYPES = ("int32", "int64")  # of what a Gather chooses by
INTEGER_INPUT = "uint8"  # a firmware reads bytes

# TVM has no base class of its errors; its own are RuntimeErrors
_TVM_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)


@dataclass(frozen=True)
class _Boundary:
    """A Relax variable that a QuantizeLinear wrote."""

    onnx_output: str
    computed_by: str
    layer: str


def import_onnx(path: Path, name: str) -> LoweredGraph:
    """The network of an ONNX file as integer layers.

    The first QuantizeLinear belongs to whoever feeds the device and the last DequantizeLinear to
    whoever reads it: the lowered network takes and gives 8-bit integers. An input of integers
    (words by their numbers) is taken as it is, one byte each.

    Args:
        path: the file.
        name: what the network is called from here on.

    Raises:
        ModelError: no usable ONNX model, or its input or output is not quantized.
        UnsupportedOperator: something has no integer form; operator, node and tensor are named.
    """
    model = read_onnx(path)
    count = len(model.graph.output)
    if count != 1:
        raise ModelError(
            f"the model has {count} outputs, and a firmware answers with one",
            where=str(path),
            remedy="export one output",
        )
    whole, names = with_boundaries_as_outputs(model)
    function = _relax_function(whole, path)
    bindings = {
        binding.var: binding.value for block in function.body.blocks for binding in block.bindings
    }
    returned = function.body.body
    fields = getattr(bindings.get(returned, returned), "fields", [returned])
    outputs = dict(zip((output.name for output in whole.graph.output), fields, strict=True))
    producers = dict(boundaries(model))
    labels = layer_names(names, producers)
    marks = {
        _resolve(outputs[name], bindings): _Boundary(name, producers[name], labels[name])
        for name in names
    }
    walk = _Walk(bindings, marks, path)
    return walk.graph(name, function.params, outputs[model.graph.output[0].name])


def _relax_function(model: Any, path: Path) -> Any:
    from tvm.relax.frontend.onnx import from_onnx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TVM warns of every name that is no identifier
            return from_onnx(model, keep_params_in_input=False)["main"]
    except _TVM_ERRORS as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"TVM cannot import this model: {text[-1]}",
            where=str(path),
            remedy="check that its shapes are static and that onnxruntime runs it",
        ) from error


def _resolve(variable: Any, bindings: dict[Any, Any]) -> Any:
    """The variable that holds the call, behind copies."""
    while type(bindings.get(variable)).__name__ in ("Var", "DataflowVar"):
        variable = bindings[variable]
    return variable


class _Walk:
    """Translates a Relax function into layers, boundary by boundary."""

    def __init__(self, bindings: dict[Any, Any], marks: dict[Any, _Boundary], path: Path) -> None:
        self.bindings = bindings
        self.marks = marks
        self.path = path
        self.values: dict[Any, Value] = {}
        self.quantities: dict[Any, Quantity] = {}
        self.layers: list[Layer] = []
        self.source: Value | None = None

    def graph(self, name: str, parameters: Any, output: Any) -> LoweredGraph:
        """All layers, in the order of the Relax function."""
        if len(parameters) != 1:
            raise ModelError(
                f"the model has {len(parameters)} inputs, and a firmware takes one",
                where=str(self.path),
                remedy="export one input",
            )
        self._take_integers(parameters[0])
        for variable, call in self.bindings.items():
            if variable in self.marks:
                self._add(self.marks[variable], variable, call, parameters[0])
        final = self._final(output)
        if self.source is None:
            raise self._not_quantized(parameters[0])
        layers = _needed(self.layers, final)
        if not layers:
            raise ModelError(
                "nothing lies between the model's input and its output",
                where=str(self.path),
                remedy="export a network with at least one operator",
            )
        return LoweredGraph(name, self.source, final, layers)

    def _take_integers(self, parameter: Any) -> None:
        """An input of integers needs no QuantizeLinear: it is a value already, with the step 1."""
        if str(parameter.ty.dtype) not in INDEX_TYPES:
            return
        taken = {mark.layer for mark in self.marks.values()}
        label, name = identifier(str(parameter.name)), str(parameter.name)
        shape = tuple(int(extent) for extent in parameter.ty.shape)
        unused = f"{label}_input" if label in taken else label
        self.source = Value(unused, shape, INTEGER_INPUT, 1.0, 0, name)
        self.quantities[parameter] = _dequantized(self.source)

    def _add(self, mark: _Boundary, variable: Any, call: Any, parameter: Any) -> None:
        """The value that a boundary writes, and the layer that computes it."""
        where = f"{self.path}: computing node {mark.computed_by}, tensor {mark.onnx_output}"
        try:
            value = self._value(mark, call)
            if call.args[0].same_as(parameter):
                self.values[variable] = self._input(value)
                return
            quantity = self._quantity(call.args[0])
            if value_of(quantity) is not None:
                return  # known when lowering: its readers take it for a constant
            expression = quantized_expression(quantity, value)
        except UnsupportedOperator as error:
            raise UnsupportedOperator(error.what, where=where, remedy=error.remedy) from error
        loads = [node.operator for node in expression.walk() if isinstance(node.operator, Load)]
        inputs = {leaf.value.name: leaf.value for leaf in loads}
        layer = Layer(mark.layer, title_of(expression), tuple(inputs.values()), value, expression)
        self.layers.append(layer)
        self.values[variable] = value

    def _input(self, value: Value) -> Value:
        """The network's input; the same one however often the model quantizes it."""
        first = self.source or value
        if (first.scale, first.zero_point, first.dtype) != (
            value.scale,
            value.zero_point,
            value.dtype,
        ):
            raise UnsupportedOperator(
                "the input is quantized in two ways, and a firmware takes one input",
                remedy="quantize the input once, and let both readers share it",
            )
        self.source = first
        return first

    def _value(self, mark: _Boundary, call: Any) -> Value:
        scale, zero_point = (value_of(self._quantity(arg)) for arg in call.args[1:3])
        if scale is None or zero_point is None or scale.size != 1 or zero_point.size != 1:
            raise UnsupportedOperator(
                "an activation is quantized per channel or with a computed scale",
                remedy="quantize activations per tensor with static scales",
            )
        width = float(np.float32(scale.item()))
        if not (np.isfinite(width) and width > np.finfo(np.float32).tiny):
            raise UnsupportedOperator(
                f"a scale of {width}, where a positive number is needed",
                remedy="calibrate the model again",
            )
        dtype = str(call.attrs.out_dtype)
        if dtype not in VALUE_TYPES:
            raise UnsupportedOperator(
                f"an activation of type {dtype}", remedy="quantize activations to int8 or uint8"
            )
        shape = tuple(int(extent) for extent in call.ty.shape)
        return Value(mark.layer, shape, dtype, width, int(zero_point.item()), mark.onnx_output)

    def _final(self, output: Any) -> Value:
        """The value behind the model's output, past the last DequantizeLinear."""
        variable = _resolve(output, self.bindings)
        call = self.bindings.get(variable)
        if call is not None and getattr(call.op, "name", "") == "relax.dequantize":
            variable = _resolve(call.args[0], self.bindings)
        if variable not in self.values:
            raise ModelError(
                "the output is not quantized, or it does not depend on the input",
                where=str(self.path),
                remedy="end the model with QuantizeLinear and DequantizeLinear",
            )
        return self.values[variable]

    def _quantity(self, expression: Any) -> Quantity:
        """What an argument means, translated once."""
        if hasattr(expression, "value") and hasattr(expression.value, "numpy"):
            return known(expression.value.numpy())
        variable = _resolve(expression, self.bindings)
        if variable not in self.quantities:
            if variable not in self.bindings:
                raise self._not_quantized(variable)
            self.quantities[variable] = self._translate(self.bindings[variable])
        return self.quantities[variable]

    def _not_quantized(self, parameter: Any) -> ModelError:
        return ModelError(
            f"input {parameter.name} is not quantized, or it is also read unquantized",
            where=str(self.path),
            remedy="begin the model with QuantizeLinear and DequantizeLinear",
        )

    def _translate(self, call: Any) -> Quantity:
        name, arguments = _operator(call)
        if name == "relax.dequantize":
            source = _resolve(arguments[0], self.bindings)
            if source in self.values:
                return _dequantized(self.values[source])
        if name not in TRANSLATIONS:
            raise UnsupportedOperator(
                f"{name} has no integer form here",
                remedy="supported: " + ", ".join(sorted(TRANSLATIONS)),
            )
        tensors = [argument for argument in arguments if hasattr(argument.ty, "dtype")]
        return TRANSLATIONS[name](call, [self._quantity(tensor) for tensor in tensors])


def _operator(call: Any) -> tuple[str, list[Any]]:
    """The name of what is called, and its arguments.

    TVM imports a Clip as calls of functions ``maximum`` and ``minimum``, numbered when repeated.
    """
    if call.op.name == "relax.call_tir":
        function, arguments = call.args[:2]
        return re.sub(r"\d+$", "", function.name_hint), list(arguments.fields)
    return call.op.name, list(call.args)


def _dequantized(value: Value) -> Quantity:
    node: Node = load(value)
    if value.zero_point:
        offset = constant(np.asarray(value.zero_point, np.int32))
        node = apply(SUBTRACT_INTEGERS, node, offset)
    return Affine((Term(node, np.asarray(value.scale, np.float64)),), np.zeros(()), value.shape)


def _needed(layers: list[Layer], output: Value) -> tuple[Layer, ...]:
    """Without layers whose value nobody reads."""
    wanted = {output.name}
    kept: list[Layer] = []
    for layer in reversed(layers):
        if layer.output.name in wanted:
            kept.append(layer)
            wanted.update(value.name for value in layer.inputs)
    return tuple(reversed(kept))
