"""Kernels: layers that hand-written C computes faster than generated loops. One kind a file.

``KERNELS`` is the registry, the most special first. A layer that none of them knows becomes
generated TensorIR.
"""

from __future__ import annotations

from entrain.deploy.lowering.graph import Layer
from entrain.deploy.lowering.kernels.contract import Kernel, Matcher

KERNELS: tuple[Matcher, ...] = ()


def find_kernel(layer: Layer) -> Kernel | None:
    """The first kernel that computes the layer; None if there is none."""
    return next(filter(None, (matches(layer) for matches in KERNELS)), None)
