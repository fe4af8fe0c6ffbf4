"""Stored bytes that lie in the order in which an expression has them."""

from __future__ import annotations

from entrain.deploy.lowering.graph import BYTES, Node
from entrain.deploy.lowering.views import View, view_of


def bytes_in_order(node: Node) -> View | None:
    """The node as bytes of one value, one behind the other; None if it is anything else.

    Their zero point may have been taken off; it is the view's.
    """
    view = view_of(node)
    if view is None or view.value.dtype not in BYTES or not _is_dense(view):
        return None
    return view


def _is_dense(view: View) -> bool:
    """Whether elements lie one behind the other."""
    step = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True
