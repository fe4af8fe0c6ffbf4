"""Attention in quantized form, one mechanism a file: the graph that the device runs.

The input is a quantized tensor [B, T, d_model]: the tokens, or what the norm before attention makes
of them; the rest of that norm is folded into the projections. The result is the output
projection's, real, for the residual sum to quantize.

Queries, keys, values, anchors and contexts are quantized; what happens between them is real here.
The lowering recognises it and computes it in one go, with integers so wide that an int8 step of
the context is all that the two differ by.
"""

from __future__ import annotations

from entrain.deploy.quantization.attention.linear import QuantizedLinear
from entrain.deploy.quantization.attention.oscillator import QuantizedOscillator
from entrain.deploy.quantization.attention.softmax import QuantizedBase2Softmax, QuantizedSoftmax
from entrain.deploy.quantization.attention.uniform import QuantizedUniform

__all__ = [
    "QuantizedBase2Softmax",
    "QuantizedLinear",
    "QuantizedOscillator",
    "QuantizedSoftmax",
    "QuantizedUniform",
]
