"""From Relax operators to quantities, one family a file.

``TRANSLATIONS`` is the registry: a Relax operator's name to the function that translates a call
of it. ``ONNX_OPERATORS`` says which ONNX operators arrive as those.
"""

from __future__ import annotations

from entrain.deploy.lowering.translations import (
    activations,
    boundaries,
    elementwise,
    extremes,
    joining,
    layout,
    normalization,
    pooling,
    products,
    reductions,
    selection,
)
from entrain.deploy.lowering.translations.contract import Translation

TRANSLATIONS: dict[str, Translation] = {
    **boundaries.TRANSLATIONS,
    **products.TRANSLATIONS,
    **elementwise.TRANSLATIONS,
    **reductions.TRANSLATIONS,
    **extremes.TRANSLATIONS,
    **activations.TRANSLATIONS,
    **normalization.TRANSLATIONS,
    **layout.TRANSLATIONS,
    **selection.TRANSLATIONS,
    **joining.TRANSLATIONS,
    **pooling.TRANSLATIONS,
}

ONNX_OPERATORS = frozenset().union(
    boundaries.ONNX_OPERATORS,
    products.ONNX_OPERATORS,
    elementwise.ONNX_OPERATORS,
    reductions.ONNX_OPERATORS,
    extremes.ONNX_OPERATORS,
    activations.ONNX_OPERATORS,
    normalization.ONNX_OPERATORS,
    layout.ONNX_OPERATORS,
    selection.ONNX_OPERATORS,
    joining.ONNX_OPERATORS,
    pooling.ONNX_OPERATORS,
)
