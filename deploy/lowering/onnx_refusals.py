"""What is refused of an ONNX file as a whole: other ways to quantize it, and foreign operators."""

from __future__ import annotations

from typing import Any

from entrain.deploy.errors import ModelError, UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites import REWRITTEN, describe_node
from entrain.deploy.lowering.onnx_rewrites.domains import QUANTIZERS, is_known
from entrain.deploy.lowering.onnx_rewrites.folding import FOLDED

# how the operators of other ways to quantize begin
OTHER_FORMAT = (
    *("QLinear", "ConvInteger", "MatMulInteger", "DynamicQuantize", "QAttention", "QGemm"),
    *("Quant", "BipolarQuant", "MultiThreshold"),
)
TO_QDQ = (
    "quantize it in the format QDQ, which is QuantizeLinear and DequantizeLinear with ordinary "
    "operators between them: onnxruntime's quantize_static with quant_format=QuantFormat.QDQ "
    "writes it, and Brevitas' export_onnx_qcdq"
)


def check_quantized(model: Any) -> None:
    """Raises ModelError: the model is one of floats; what else it could not have is told too."""
    found = {node.op_type for node in model.graph.node}
    if found & QUANTIZERS or any(name.startswith(OTHER_FORMAT) for name in found):
        return
    known = _known_operators() | FOLDED
    foreign = {n.op_type for n in model.graph.node if n.op_type not in known or not is_known(n)}
    without = f"; and do without {', '.join(sorted(foreign))}: no integer form is known here"
    raise ModelError(
        "the model is not quantized: it holds no QuantizeLinear and no DequantizeLinear",
        remedy=TO_QDQ + (without if foreign else ""),
    )


def check_domains(model: Any) -> None:
    """Raises UnsupportedOperator: an operator is none of ONNX's own, whatever it is called."""
    for node in model.graph.node:
        if not is_known(node):
            raise UnsupportedOperator(
                f"operator {node.op_type} of node {describe_node(node)} belongs to the domain "
                f"{node.domain}, and only ONNX's own operators are known here",
                remedy=TO_QDQ
                if node.op_type.startswith(OTHER_FORMAT)
                else "export the model with ONNX's own operators, and take it as it is before an "
                "optimizer; onnxruntime's keeps to them up to the level ORT_ENABLE_BASIC",
            )


def check_operators(model: Any) -> None:
    """Raises UnsupportedOperator: a node of the rewritten model has no integer form."""
    known = _known_operators()
    for node in model.graph.node:
        if node.op_type not in known:
            raise UnsupportedOperator(
                f"operator {node.op_type} of node {describe_node(node)} has no integer form here",
                remedy=TO_QDQ
                if node.op_type.startswith(OTHER_FORMAT)
                else "supported operators: " + ", ".join(sorted(known)),
            )


def _known_operators() -> frozenset[str]:
    from entrain.deploy.lowering.translations import ONNX_OPERATORS

    return frozenset(ONNX_OPERATORS) | REWRITTEN
