"""Kernels: layers that hand-written C computes faster than generated loops. One kind a file.

``KERNELS`` is the registry, the most special first. A layer that none of them knows becomes
generated TensorIR.
"""

from __future__ import annotations

from entrain.deploy.lowering.graph import Layer
from entrain.deploy.lowering.kernels.add import match_add
from entrain.deploy.lowering.kernels.average_pool import match_average_pool
from entrain.deploy.lowering.kernels.contract import Kernel, Matcher
from entrain.deploy.lowering.kernels.convolution import match_convolution
from entrain.deploy.lowering.kernels.depthwise import match_depthwise
from entrain.deploy.lowering.kernels.fully_connected import match_fully_connected
from entrain.deploy.lowering.kernels.layer_norm import match_layer_norm
from entrain.deploy.lowering.kernels.linear_attention import match_linear_attention
from entrain.deploy.lowering.kernels.lookup import match_lookup
from entrain.deploy.lowering.kernels.oscillator_attention import match_oscillator_attention
from entrain.deploy.lowering.kernels.softmax_attention import match_softmax_attention

KERNELS: tuple[Matcher, ...] = (
    match_softmax_attention,
    match_linear_attention,
    match_oscillator_attention,
    match_depthwise,
    match_convolution,
    match_fully_connected,
    match_average_pool,
    match_add,
    match_layer_norm,
    match_lookup,
)


def find_kernel(layer: Layer) -> Kernel | None:
    """The first kernel that computes the layer; None if there is none."""
    return next(filter(None, (matches(layer) for matches in KERNELS)), None)
