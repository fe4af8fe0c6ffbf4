"""Quantizers by another name: onnxruntime writes its own where ONNX's lack a type.

Below opset 21 ONNX's QuantizeLinear and DequantizeLinear know 8 and 32 bits only; those of
onnxruntime's domain compute the same and know 4 and 16 bits too.
"""

from __future__ import annotations

from typing import Any

OWN = ("", "ai.onnx")
QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear"})
QUANTIZERS_TOO = "com.microsoft"  # the domain


def is_known(node: Any) -> bool:
    """Whether a node is of ONNX's own domain, or as good as that."""
    same = node.domain == QUANTIZERS_TOO and node.op_type in QUANTIZERS
    return same or node.domain in OWN


def take_quantizers_for_onnxs_own(model: Any) -> None:
    """Quantizers of onnxruntime's domain become ONNX's."""
    for node in model.graph.node:
        if node.op_type in QUANTIZERS and is_known(node):
            node.ClearField("domain")
