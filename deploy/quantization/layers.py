"""Brevitas layers with this project's formats.

Weights: int8 per output channel, tables of words int8 per tensor, both without -128. Biases: int32
in steps of input times weight. Activations: int8, uint8 behind a ReLU, per tensor. Unit vectors
(anchors, settled states): int8 in steps of 1/127.
"""

from __future__ import annotations

from typing import Any

import brevitas.nn as qnn
import torch
from brevitas.core.scaling import ScalingImplType
from brevitas.inject.enum import RestrictValueType
from brevitas.nn.quant_layer import QuantNonLinearActLayer
from brevitas.quant import (
    Int8ActPerTensorFloat,
    Int8WeightPerChannelFloat,
    Int8WeightPerTensorFloat,
    Int32Bias,
    Uint8ActPerTensorFloat,
)
from torch import Tensor, nn

from entrain.deploy.quantization.folding import Folded

UNIT_STEPS = 127


class UnitInt8(Int8ActPerTensorFloat):  # type: ignore[misc]
    """int8 with the fixed step 1/127, for what lies on or in the unit sphere."""

    scaling_impl_type = ScalingImplType.CONST
    restrict_scaling_type = RestrictValueType.FP
    # the largest code is 127 and means 1; -128 is never reached, so it need not be forbidden
    max_val = 128 / UNIT_STEPS
    min_val = -max_val


def linear(folded: Folded) -> nn.Module:
    """A quantized linear map; its input must be a quantized tensor."""
    outputs, inputs = folded.weight.shape
    layer = qnn.QuantLinear(
        inputs, outputs, bias=True, weight_quant=Int8WeightPerChannelFloat, bias_quant=Int32Bias
    )
    return _with_weights(layer, folded)


def convolution(folded: Folded, like: nn.Conv2d) -> nn.Module:
    """A quantized convolution with the geometry of ``like``; its input must be quantized."""
    layer = qnn.QuantConv2d(
        like.in_channels,
        like.out_channels,
        like.kernel_size,
        stride=like.stride,
        padding=like.padding,
        groups=like.groups,
        bias=True,
        weight_quant=Int8WeightPerChannelFloat,
        bias_quant=Int32Bias,
    )
    return _with_weights(layer, folded)


def embedding(table: Tensor) -> nn.Module:
    """A quantized table [rows, d_model], one step for all of it; gives the rows it is asked for."""
    rows, width = table.shape
    layer = qnn.QuantEmbedding(rows, width, weight_quant=Int8WeightPerTensorFloat)
    with torch.no_grad():
        layer.get_parameter("weight").copy_(table)
    return _module(layer)


def _with_weights(layer: nn.Module, folded: Folded) -> nn.Module:
    with torch.no_grad():
        layer.get_parameter("weight").copy_(folded.weight)
        layer.get_parameter("bias").copy_(folded.bias)
    return layer


def signed() -> nn.Module:
    """Quantizes to int8, with a learned step."""
    return _module(qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat, return_quant_tensor=True))


def positive() -> nn.Module:
    """Quantizes what is never negative to uint8, with a learned step."""
    return _module(qnn.QuantIdentity(act_quant=Uint8ActPerTensorFloat, return_quant_tensor=True))


def rectified() -> nn.Module:
    """ReLU, then uint8 with a learned step."""
    return _module(qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat, return_quant_tensor=True))


def gelu() -> nn.Module:
    """int8, its GELU, and that in int8 again, with a learned step each.

    A function of 256 values: the device looks them up.
    """
    layer = QuantNonLinearActLayer(
        act_impl=nn.GELU,
        passthrough_act=False,
        input_quant=Int8ActPerTensorFloat,
        act_quant=Int8ActPerTensorFloat,
        return_quant_tensor=True,
    )
    return _module(layer)


def layer_normalised(like: nn.LayerNorm) -> nn.Module:
    """The layer norm without its factor and offset, then int8 with a learned step."""
    layer = QuantNonLinearActLayer(
        act_impl=nn.LayerNorm,
        passthrough_act=False,
        input_quant=None,
        act_quant=Int8ActPerTensorFloat,
        return_quant_tensor=True,
        normalized_shape=like.normalized_shape,
        eps=like.eps,
        elementwise_affine=False,
    )
    return _module(layer)


def unit() -> nn.Module:
    """Quantizes unit vectors to int8 in steps of 1/127."""
    return _module(qnn.QuantIdentity(act_quant=UnitInt8, return_quant_tensor=True))


def _module(layer: Any) -> nn.Module:
    if not isinstance(layer, nn.Module):
        raise TypeError("Brevitas made no module")
    return layer


def values(quantized: Any) -> Tensor:
    """The reals of a quantized tensor; a plain one, as during calibration and export, is itself."""
    plain = getattr(quantized, "value", quantized)
    if not isinstance(plain, Tensor):
        raise TypeError(f"expected a tensor, got {type(plain).__name__}")
    return plain
