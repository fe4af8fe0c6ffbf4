"""What is done to an imported network before C is made of it, in this order.

A pass takes a network and returns one that computes the same, or says in what it differs.
"""

from __future__ import annotations

from collections.abc import Callable

from entrain.deploy.lowering.channels_last import channels_last
from entrain.deploy.lowering.graph import LoweredGraph

Pass = Callable[[LoweredGraph], LoweredGraph]

PASSES: tuple[Pass, ...] = (channels_last,)
