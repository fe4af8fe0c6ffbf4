"""The operator Attention of opset 23 in matrix products and a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites.editing import (
    Spelling,
    attributes,
    describe_node,
    element_types,
    replace_nodes,
    shapes,
)

REWRITTEN = frozenset({"Attention"})
HEAD_COUNTS = ("q_num_heads", "kv_num_heads")  # of operands of three axes


def spell_out_attention(model: Any) -> None:
    """Replace every Attention."""
    found = [node for node in model.graph.node if node.op_type == "Attention"]
    if found:
        known, types = shapes(model), element_types(model)
        replace_nodes(
            model, [(node, _Attention(model, node, known, types).nodes) for node in found]
        )


class _Attention(Spelling):
    """The nodes of one Attention."""

    def __init__(
        self,
        model: Any,
        node: Any,
        known: dict[str, tuple[int, ...]],
        types: dict[str, int],
    ) -> None:
        self._check(node, known)
        super().__init__(model, node)
        self._types, self._given = types, attributes(node)
        self._rank = len(known[node.input[0]])
        queries, keys = HEAD_COUNTS
        (q, q_shape), (k, k_shape), (v, v_shape) = (
            self._by_heads(name, known[name], count)
            for name, count in zip(node.input[:3], (queries, keys, keys), strict=True)
        )
        heads = q_shape[1]
        k, v = self._repeated(k, k_shape, heads), self._repeated(v, v_shape, heads)
        scores = self.add("MatMul", [q, self.add("Transpose", [k], perm=[0, 1, 3, 2])])
        scale = self._given.get("scale", q_shape[3] ** -0.5)
        scores = self.add("Mul", [scores, self.constant(np.float32(scale))])
        scores = self._masked(scores, q_shape[2], k_shape[2])
        weights = self.add("Softmax", [scores], axis=-1)
        context = self.add("MatMul", [weights, v])
        if self._rank == 3:
            context = self.add("Transpose", [context], perm=[0, 2, 1, 3])
            whole = [q_shape[0], q_shape[2], heads * v_shape[3]]
            context = self.add("Reshape", [context, self.constant(np.asarray(whole, np.int64))])
        self.finish(context)

    @staticmethod
    def _check(node: Any, known: dict[str, tuple[int, ...]]) -> None:
        more, given = [*node.input[4:], *node.output[1:]], attributes(node)
        if any(more) or given.get("softcap"):
            raise UnsupportedOperator(
                f"node {describe_node(node)} keeps earlier keys and values, shows its scores or "
                "limits them softly",
                remedy="export attention over one whole sequence, without a cache or softcap",
            )
        if any(name not in known for name in node.input[:3]):
            raise UnsupportedOperator(
                f"the shapes of what node {describe_node(node)} reads are not static",
                remedy="export with static shapes; only the batch may be dynamic",
            )
        ranks = {len(known[name]) for name in node.input[:3]}
        if ranks != {4} and (ranks != {3} or not all(given.get(count) for count in HEAD_COUNTS)):
            raise UnsupportedOperator(
                f"node {describe_node(node)} does not say how its operands divide into heads",
                remedy="export with q_num_heads and kv_num_heads for operands of three axes, "
                "or give it four: batch, heads, tokens, channels",
            )

    def _by_heads(
        self, tensor: str, shape: tuple[int, ...], count: str
    ) -> tuple[str, tuple[int, ...]]:
        """The tensor as [batch, heads, tokens, channels]."""
        if len(shape) == 4:
            return tensor, shape
        batch, tokens, width = shape
        heads = int(self._given[count])
        apart = np.asarray([batch, tokens, heads, width // heads], np.int64)
        split = self.add("Reshape", [tensor, self.constant(apart)])
        moved = self.add("Transpose", [split], perm=[0, 2, 1, 3])
        return moved, (batch, heads, tokens, width // heads)

    def _repeated(self, tensor: str, shape: tuple[int, ...], heads: int) -> str:
        """Keys or values that several heads of queries share, once for each."""
        own = shape[1]
        if own == heads:
            return tensor
        places = np.repeat(np.arange(own), heads // own)
        return self.add("Gather", [tensor, self.constant(places)], axis=1)

    def _masked(self, scores: str, queries: int, keys: int) -> str:
        """Scores without those that the mask or the order of tokens forbids."""
        from onnx import TensorProto

        mask = self.node.input[3] if len(self.node.input) > 3 else ""
        if mask and self._types.get(mask) == TensorProto.BOOL:
            scores = self._only(mask, scores)
        elif mask:
            scores = self.add("Add", [scores, mask])
        if self._given.get("is_causal"):
            scores = self._only(self.constant(np.tri(queries, keys, dtype=bool)), scores)
        return scores

    def _only(self, mask: str, scores: str) -> str:
        return self.add("Where", [mask, scores, self.constant(np.float32(-np.inf))])
