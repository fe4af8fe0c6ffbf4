"""Activations in quantized form, by the names of `BlockStyle`."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from entrain.deploy.quantization.layers import gelu, rectified

# Each activation of `models.networks.block.ACTIVATIONS`, of a linear map's result.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": rectified, "gelu": gelu}
