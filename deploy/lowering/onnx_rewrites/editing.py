"""Reading and editing the graph of an ONNX model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array

# operators that only move elements of their first input about
MOVES = frozenset(
    {
        *("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Identity"),
        *("Slice", "Gather", "Split"),
    }
)


def describe_node(node: Any) -> str:
    """A node for messages: its name, or what it writes where it has none."""
    return node.name or f"(unnamed, writes {node.output[0]})"


def name_of(node: Any) -> str:
    """A node's name, or its first output's where it has none, to name something after."""
    return str(node.name or node.output[0])


def computed_inputs(model: Any) -> list[Any]:
    """The graph's inputs without its initializers, which older files list among them."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initializers]


def constants(model: Any) -> dict[str, Array]:
    """Every array that the file holds, by name."""
    from onnx import numpy_helper

    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            arrays[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return arrays


def attributes(node: Any) -> dict[str, Any]:
    """A node's attributes in Python's types."""
    from onnx import helper

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def with_attributes(node: Any, **changed: Any) -> None:
    """Set attributes of a node; None removes one."""
    from onnx import helper

    kept = [a for a in node.attribute if a.name not in changed]
    new = [helper.make_attribute(k, v) for k, v in changed.items() if v is not None]
    del node.attribute[:]
    node.attribute.extend([*kept, *new])


def opset(model: Any) -> int:
    """The version of ONNX's own operators that the model uses."""
    return max(
        int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")
    )


def shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """The static shape of each tensor of which it is known."""
    from onnx import shape_inference

    graph = shape_inference.infer_shapes(model, data_prop=True).graph
    known = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for info in (*graph.value_info, *graph.input, *graph.output):
        kind = info.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            known[info.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    return known


def element_types(model: Any) -> dict[str, int]:
    """The element type of each tensor of which it is known, by ONNX's number."""
    from onnx import shape_inference

    graph = shape_inference.infer_shapes(model).graph
    known = {tensor.name: int(tensor.data_type) for tensor in graph.initializer}
    for info in (*graph.value_info, *graph.input, *graph.output):
        known[info.name] = int(info.type.tensor_type.elem_type)
    return known


def producers(model: Any) -> dict[str, Any]:
    """The node that writes each tensor."""
    return {output: node for node in model.graph.node for output in node.output}


def readers(model: Any, tensor: str) -> list[Any]:
    """The nodes that read a tensor."""
    return [node for node in model.graph.node if tensor in node.input]


def is_output(model: Any, tensor: str) -> bool:
    """Whether a tensor is one of the model's outputs."""
    return any(output.name == tensor for output in model.graph.output)


class Namer:
    """Names that no tensor of the model has yet."""

    def __init__(self, model: Any) -> None:
        graph = model.graph
        self._taken = {name for node in graph.node for name in (*node.input, *node.output)}
        self._taken.update(item.name for item in (*graph.input, *graph.initializer))

    def __call__(self, stem: str) -> str:
        """A new name that begins with the stem."""
        tries = (stem if k == 0 else f"{stem}_{k}" for k in count())
        name = next(name for name in tries if name not in self._taken)
        self._taken.add(name)
        return name


def add_constant(model: Any, array: Array, name: str) -> str:
    """Put an array into the file; returns its name."""
    from onnx import numpy_helper

    model.graph.initializer.append(numpy_helper.from_array(array, name))
    return name


class Spelling:
    """The nodes that take the place of one.

    Attributes:
        node: the one.
        nodes: the others, in the order of computing.
    """

    def __init__(self, model: Any, node: Any) -> None:
        self.node = node
        self.nodes: list[Any] = []
        self._model, self._names = model, Namer(model)

    def constant(self, array: Any) -> str:
        """An array of the file; returns its name."""
        name = self._names(f"{self.node.output[0]}_constant")
        return add_constant(self._model, np.asarray(array), name)

    def add(self, operator: str, inputs: Sequence[str], **given: Any) -> str:
        """One more node; returns what it writes."""
        from onnx import helper

        output = self._names(f"{self.node.output[0]}_part")
        name = f"{name_of(self.node)}_{operator.lower()}"
        self.nodes.append(helper.make_node(operator, inputs, [output], name=name, **given))
        return output

    def finish(self, tensor: str) -> None:
        """This is what the one node wrote."""
        if not self.nodes or self.nodes[-1].output[0] != tensor:
            self.add("Identity", [tensor])
        self.nodes[-1].output[0] = self.node.output[0]


def replace_nodes(model: Any, replacements: Iterable[tuple[Any, Sequence[Any]]]) -> None:
    """Put nodes in the places of others, all at once, so that the order stays one of computing."""
    by_outputs = {tuple(old.output): new for old, new in replacements}
    if by_outputs:
        kept = ((old, tuple(old.output)) for old in model.graph.node)
        replace_graph(model, [new for old, key in kept for new in by_outputs.get(key, (old,))])


def replace_graph(model: Any, nodes: Iterable[Any]) -> None:
    """These nodes and no others."""
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
