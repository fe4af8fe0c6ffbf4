"""Einsum in transpositions, sums, and matrix products or multiplications of two at a time."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites.editing import (
    Spelling,
    attributes,
    describe_node,
    opset,
    replace_nodes,
    shapes,
)

REWRITTEN = frozenset({"Einsum"})
ELLIPSIS = "..."
BEHIND_LETTERS = 0x100  # code points that no equation uses
AXES_AS_INPUT = 13  # the opset from which ReduceSum has them so


def spell_out_einsum(model: Any) -> None:
    """Replace every Einsum."""
    found = [node for node in model.graph.node if node.op_type == "Einsum"]
    while found:  # the shape of what one writes may follow from what another one became
        node = found[0]
        replace_nodes(model, [(node, _Einsum(model, node, shapes(model)).nodes)])
        found = [node for node in model.graph.node if node.op_type == "Einsum"]


class _Einsum(Spelling):
    """The nodes of one Einsum; a tensor goes with its labels, one a dimension."""

    def __init__(self, model: Any, node: Any, known: dict[str, tuple[int, ...]]) -> None:
        super().__init__(model, node)
        if any(name not in known for name in node.input):
            raise UnsupportedOperator(
                f"the shapes of what node {describe_node(node)} reads are not static",
                remedy="export with static shapes; only the batch may be dynamic",
            )
        equation = attributes(node)["equation"].decode().replace(" ", "")
        terms, result = _labels(equation, [len(known[name]) for name in node.input])
        if any(len(set(term)) < len(term) for term in (*terms, result)):
            raise UnsupportedOperator(
                f"node {describe_node(node)} takes a diagonal: {equation}",
                remedy="write the diagonal as a multiplication with a constant mask and a sum",
            )
        self._extents = _extents(terms, [known[name] for name in node.input])
        operands = [
            (self._expanded(name, known[name], labels), labels)
            for name, labels in zip(node.input, terms, strict=True)
        ]
        made = operands[0]
        for place, other in enumerate(operands[1:], start=2):
            made = self._together(made, other, "".join([*terms[place:], result]))
        self.finish(self._ordered(*self._summed(*made, result), result))

    def _expanded(self, tensor: str, shape: tuple[int, ...], labels: str) -> str:
        """The tensor, repeated along dimensions that are 1 here and more elsewhere."""
        wanted = [self._extents[label] for label in labels]
        if wanted == [*shape]:
            return tensor
        return self.add("Expand", [tensor, self.constant(np.asarray(wanted, np.int64))])

    def _together(
        self, one: tuple[str, str], other: tuple[str, str], needed: str
    ) -> tuple[str, str]:
        """The product of two operands, summed over what is not needed afterwards."""
        (a, of_a), (b, of_b) = (
            self._summed(tensor, labels, needed + apart)
            for (tensor, labels), (_, apart) in ((one, other), (other, one))
        )
        both = [x for x in of_a if x in of_b]
        shared = "".join(x for x in both if x in needed)
        contracted = "".join(x for x in both if x not in needed)
        left = "".join(x for x in of_a if x not in of_b)
        right = "".join(x for x in of_b if x not in of_a)
        a = self._ordered(a, of_a, shared + left + contracted)
        b = self._ordered(b, of_b, shared + contracted + right)
        if contracted:
            a = self._shaped(a, (*shared, left, contracted), shared + left + contracted)
            b = self._shaped(b, (*shared, contracted, right), shared + contracted + right)
            made, parts = self.add("MatMul", [a, b]), (*shared, left, right)
        else:
            b = self._shaped(b, (*shared, *("" for _ in left), *right), shared + right)
            a = self._shaped(a, (*shared, *left, *("" for _ in right)), shared + left)
            made, parts = self.add("Mul", [a, b]), (*shared, *left, *right)
        labels = shared + left + right
        return self._shaped(made, tuple(labels), parts), labels

    def _summed(self, tensor: str, labels: str, needed: str) -> tuple[str, str]:
        """The tensor summed over the labels that nobody needs."""
        axes = [axis for axis, label in enumerate(labels) if label not in needed]
        if not axes:
            return tensor, labels
        if opset(self._model) < AXES_AS_INPUT:
            made = self.add("ReduceSum", [tensor], axes=axes, keepdims=0)
        else:
            made = self.add(
                "ReduceSum", [tensor, self.constant(np.asarray(axes, np.int64))], keepdims=0
            )
        return made, "".join(x for x in labels if x in needed)

    def _ordered(self, tensor: str, labels: str, wanted: str) -> str:
        """The tensor with its dimensions in another order."""
        if labels == wanted:
            return tensor
        return self.add("Transpose", [tensor], perm=[labels.index(x) for x in wanted])

    def _shaped(self, tensor: str, wanted: tuple[str, ...], given: tuple[str, ...] | str) -> str:
        """The tensor with dimensions of several labels each, or of none; they keep their order."""
        extents, before = (
            [prod(self._extents[label] for label in part) for part in parts]
            for parts in (wanted, tuple(given))
        )
        if extents == before:
            return tensor
        return self.add("Reshape", [tensor, self.constant(np.asarray(extents, np.int64))])


def _labels(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with others for what an ellipsis stands for."""
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    hidden = [
        rank - len(term.replace(ELLIPSIS, "")) for term, rank in zip(terms, ranks, strict=True)
    ]
    if not arrow:
        once = sorted(x for x in set(left) - set(",.") if left.count(x) == 1)
        result = ELLIPSIS + "".join(once)
    # dimensions of an ellipsis are counted from the last one
    others = "".join(chr(BEHIND_LETTERS + k) for k in range(max(hidden)))
    terms = [
        term.replace(ELLIPSIS, others[len(others) - count :])
        for term, count in zip(terms, hidden, strict=True)
    ]
    return terms, result.replace(ELLIPSIS, others)


def _extents(terms: list[str], shapes_of: list[tuple[int, ...]]) -> dict[str, int]:
    """How many places each label goes through."""
    extents: dict[str, int] = {}
    for labels, shape in zip(terms, shapes_of, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            extents[label] = max(extent, extents.get(label, 1))
    return extents
