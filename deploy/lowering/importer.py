"""From a QCDQ ONNX file, through Relax, to layers in integers.

Every QuantizeLinear of something computed is a boundary: what lies between boundaries becomes one
layer. The boundaries are made outputs of the graph before Relax imports it, so that each Relax
variable that is a boundary is known by its ONNX name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.errors import ModelError, UnsupportedOperator, concerning
from entrain.deploy.lowering.graph import BYTES, Layer, LoweredGraph, Node, Value
from entrain.deploy.lowering.layer_names import identifier, layer_names
from entrain.deploy.lowering.onnx_file import boundaries, read_onnx, with_boundaries_as_outputs
from entrain.deploy.lowering.onnx_rewrites.editing import describe_node, name_of
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.leaves import Load, load
from entrain.deploy.lowering.quantity import Affine, Quantity, Term, known, value_of
from entrain.deploy.lowering.relax_function import (
    DEQUANTIZE,
    QUANTIZE,
    RelaxFunction,
    operator_of,
    read_function,
    tensors_of,
)
from entrain.deploy.lowering.requantization import moved_bytes, quantized_expression, title_of
from entrain.deploy.lowering.translations import TRANSLATIONS
from entrain.deploy.lowering.views import strides_of, view_of

INDEX_TYPES = ("int32", "int64")  # of what a Gather chooses by
INTEGER_INPUT = "uint8"  # a firmware reads bytes


@dataclass(frozen=True)
class _Boundary:
    """A Relax variable that a QuantizeLinear wrote."""

    onnx_output: str
    computed_by: str
    layer: str


# The title and the expression of a value that is known as a whole, from the values before it by
# their ONNX names; None where it has to be translated operator by operator.
Recognised = Callable[[Value, Mapping[str, Value]], tuple[str, Node] | None]


def nothing_recognised(_value: Value, _known: Mapping[str, Value]) -> None:
    """Every layer is translated operator by operator."""


def import_onnx(path: Path, name: str, recognised: Recognised = nothing_recognised) -> LoweredGraph:
    """The network of an ONNX file as integer layers.

    The first QuantizeLinear belongs to whoever feeds the device and the last DequantizeLinear to
    whoever reads it: the lowered network takes and gives 8-bit integers. An input of integers
    (words by their numbers) is taken as it is, one byte each.

    Args:
        path: the file.
        name: what the network is called from here on.
        recognised: asked first for every quantized tensor.

    Raises:
        ModelError: no usable ONNX model, or its input or output is not quantized.
        UnsupportedOperator: something has no integer form; operator, node and tensor are named.
    """
    model = read_onnx(path)
    whole, names = with_boundaries_as_outputs(model)
    function = read_function(whole, path)
    producers = dict(boundaries(model))
    labels = layer_names(names, {name: _called(node) for name, node in producers.items()})
    marks = {
        function.behind_copies(function.outputs[name]): _Boundary(
            name, _described(producers[name]), labels[name]
        )
        for name in names
    }
    outputs = tuple(function.outputs[output.name] for output in model.graph.output)
    return _Walk(function, marks, path, recognised).graph(name, outputs)


def _called(producer: Any | None) -> str:
    """What a layer is called after."""
    return "input" if producer is None else name_of(producer)


def _described(producer: Any | None) -> str:
    """The same, for messages."""
    return "input" if producer is None else describe_node(producer)


class _Walk:
    """Translates a Relax function into layers, boundary by boundary."""

    def __init__(
        self,
        function: RelaxFunction,
        marks: dict[Any, _Boundary],
        path: Path,
        recognised: Recognised,
    ) -> None:
        self.function = function
        self.marks = marks
        self.path = path
        self.recognised = recognised
        self.values: dict[Any, Value] = {}
        self.copies: dict[Any, Quantity] = {}
        self.failed: dict[Any, UnsupportedOperator] = {}
        self.quantities: dict[Any, Quantity] = {}
        self.layers: list[Layer] = []
        self.inputs: dict[Any, Value | None] = {}
        self.returned: tuple[Any, ...] = ()

    def graph(self, name: str, outputs: tuple[Any, ...]) -> LoweredGraph:
        """All layers, in the order of the Relax function."""
        parameters = self.function.parameters
        self.inputs = dict.fromkeys(parameters)
        self.returned = tuple(self.function.quantized(output) for output in outputs)
        for parameter in parameters:
            self._take_integers(parameter)
        for variable, call in self.function.bindings.items():
            if variable in self.marks:
                self._add(self.marks[variable], variable, call)
        results = tuple(self._result(variable) for variable in self.returned)
        sources = tuple(self._source(parameter) for parameter in parameters)
        layers = _needed(self.layers, results)
        computed = {layer.output.name for layer in layers}
        if not {value.name for value in results} <= computed:
            raise ModelError(
                "nothing lies between the model's input and its output",
                where=str(self.path),
                remedy="export a network with at least one operator",
            )
        if len({value.name for value in results}) < len(results):
            raise ModelError(
                "two outputs of the model are the same tensor",
                where=str(self.path),
                remedy="export each tensor once",
            )
        return LoweredGraph(name, sources, results, layers)

    def _source(self, parameter: Any) -> Value:
        """The value that an input is."""
        value = self.inputs[parameter]
        if value is None:
            raise self._not_quantized(parameter)
        return value

    def _take_integers(self, parameter: Any) -> None:
        """An input of integers needs no QuantizeLinear: it is a value already.

        Words by their numbers have the step 1; the step of quantized bytes is that of whoever
        dequantizes them.
        """
        kind, name = str(parameter.ty.dtype), str(parameter.name)
        label = self._unused(identifier(name))
        if kind in INDEX_TYPES:
            shape = tuple(int(extent) for extent in parameter.ty.shape)
            value = Value(label, shape, INTEGER_INPUT, 1.0, 0, name)
            self.inputs[parameter] = value
            self.quantities[parameter] = _dequantized(value)
        elif kind in BYTES:
            for call in self.function.bindings.values():
                if operator_of(call) == DEQUANTIZE and call.args[0].same_as(parameter):
                    with concerning(f"{self.path}: input {name}"):
                        value = self._value(_Boundary(name, name, label), call)
                        self.values[parameter] = self._input(parameter, value)

    def _unused(self, label: str) -> str:
        """The label, or another one if a layer or an input is called so."""
        taken = {mark.layer for mark in self.marks.values()}
        taken.update(value.name for value in self.inputs.values() if value is not None)
        while label in taken:
            label = f"{label}_input"
        return label

    def _add(self, mark: _Boundary, variable: Any, call: Any) -> None:
        """The value that a boundary writes, and the layer that computes it."""
        where = f"{self.path}: computing node {mark.computed_by}, tensor {mark.onnx_output}"
        try:
            value = self._value(mark, call)
            if call.args[0] in self.inputs:
                self.values[variable] = self._input(call.args[0], value)
                return
            known_whole = self.recognised(value, {v.onnx_output: v for v in self.values.values()})
            if known_whole is None:
                quantity = self._quantity(call.args[0])
                if value_of(quantity) is not None:
                    return  # known when lowering: its readers take it for a constant
                if variable not in self.returned and _is_copy(quantity, value):
                    self.copies[variable] = quantity  # its readers read what it was copied from
                    return
                expression = quantized_expression(quantity, value)
                known_whole = title_of(expression), expression
        except UnsupportedOperator as error:
            # it matters only if somebody reads it: within a recognised whole nobody does
            self.failed[variable] = UnsupportedOperator(
                error.what, where=error.where or where, remedy=error.remedy
            )
            return
        title, expression = known_whole
        loads = [node.operator for node in expression.walk() if isinstance(node.operator, Load)]
        inputs = {leaf.value.name: leaf.value for leaf in loads}
        self.layers.append(Layer(mark.layer, title, tuple(inputs.values()), value, expression))
        self.values[variable] = value

    def _input(self, parameter: Any, value: Value) -> Value:
        """The value of an input; the same one however often the model quantizes it."""
        first = self.inputs[parameter] or value
        if (first.scale, first.zero_point, first.dtype) != (
            value.scale,
            value.zero_point,
            value.dtype,
        ):
            raise UnsupportedOperator(
                f"input {parameter.name} is quantized in two ways, and a firmware takes one",
                remedy="quantize the input once, and let both readers share it",
            )
        self.inputs[parameter] = first
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
        # of a DequantizeLinear, what it reads: a model's input of bytes
        kind = (call if operator_of(call) == QUANTIZE else call.args[0]).ty
        dtype, shape = str(kind.dtype), tuple(int(extent) for extent in kind.shape)
        if dtype not in BYTES:
            raise UnsupportedOperator(
                f"an activation of type {dtype}", remedy="quantize activations to int8 or uint8"
            )
        return Value(mark.layer, shape, dtype, width, int(zero_point.item()), mark.onnx_output)

    def _result(self, variable: Any) -> Value:
        """The value that one of the model's outputs is."""
        if variable in self.failed:
            raise self.failed[variable]
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
        variable = self.function.behind_copies(expression)
        if variable not in self.quantities:
            if variable not in self.function.bindings:
                raise self._not_quantized(variable)
            self.quantities[variable] = self._translate(self.function.bindings[variable])
        return self.quantities[variable]

    def _not_quantized(self, parameter: Any) -> ModelError:
        return ModelError(
            f"input {parameter.name} is not quantized, or it is also read unquantized",
            where=str(self.path),
            remedy="begin the model with QuantizeLinear and DequantizeLinear",
        )

    def _translate(self, call: Any) -> Quantity:
        name = operator_of(call)
        if name == DEQUANTIZE:
            source = self.function.behind_copies(call.args[0])
            if source in self.failed:
                raise self.failed[source]
            if source in self.copies:
                return self.copies[source]
            if source in self.values:
                return _dequantized(self.values[source])
        if name not in TRANSLATIONS:
            raise UnsupportedOperator(
                f"{name} has no integer form here",
                remedy="supported: " + ", ".join(sorted(TRANSLATIONS)),
            )
        return TRANSLATIONS[name](call, [self._quantity(tensor) for tensor in tensors_of(call)])


def _dequantized(value: Value) -> Quantity:
    node: Node = load(value)
    if value.zero_point:
        offset = constant(np.asarray(value.zero_point, np.int32))
        node = apply(SUBTRACT_INTEGERS, node, offset)
    return Affine((Term(node, np.asarray(value.scale, np.float64)),), np.zeros(()), value.shape)


def _is_copy(quantity: Quantity, value: Value) -> bool:
    """Whether the value would hold bytes that lie in another one already, in the same order.

    Tools quantize what a Reshape writes as they do what it reads.
    """
    moved = moved_bytes(quantity, value)
    view = None if moved is None else view_of(moved)
    if view is None:
        return False
    places = np.arange(value.size).reshape(view.shape)
    return view.strides == strides_of(places)


def _needed(layers: list[Layer], outputs: tuple[Value, ...]) -> tuple[Layer, ...]:
    """Without layers whose value nobody reads."""
    wanted = {output.name for output in outputs}
    kept: list[Layer] = []
    for layer in reversed(layers):
        if layer.output.name in wanted:
            kept.append(layer)
            wanted.update(value.name for value in layer.inputs)
    return tuple(reversed(kept))
