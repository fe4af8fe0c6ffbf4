"""Functions of one 8-bit tensor become a table of 256 entries.

Whatever a network does element by element between two boundaries, an 8-bit input has only 256
values: sigmoid, softplus, GELU and hard-swish alike cost one load.
"""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic import quantize
from entrain.deploy.lowering.composites.function import narrow_index
from entrain.deploy.lowering.graph import Node, Value
from entrain.deploy.lowering.one_source import function_of_one
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.quantity import Affine


def tabulated(quantity: Affine, value: Value) -> Node | None:
    """The table look-up that computes ``value``, if one narrow tensor decides each element."""
    found = function_of_one(quantity) if quantity.parts else None
    narrow = None if found is None else narrow_index(found[0])
    if found is None or narrow is None or narrow.node.shape != value.shape:
        return None
    _, formula = found
    with np.errstate(all="ignore"):
        reals = np.nan_to_num(formula(narrow.values), nan=0.0)
    bound = np.finfo(np.float32).max
    table = quantize(np.clip(reals, -bound, bound), value.scale, value.zero_point, value.dtype)
    return apply(Lookup(), narrow.node, constant(table))
