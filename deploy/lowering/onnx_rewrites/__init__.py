"""An ONNX model in simpler terms, with the same results: what Relax or the lowering cannot take.

One kind of rewriting a file; ``REWRITES`` is the registry, in the order in which they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from entrain.deploy.lowering.onnx_rewrites import (
    attention,
    clips,
    domains,
    early_quantizers,
    einsum,
    ends,
    folding,
    integers,
    late_transposes,
    pads,
    parameters,
    simpler,
    windows,
)
from entrain.deploy.lowering.onnx_rewrites.editing import (
    computed_inputs,
    constants,
    describe_node,
)

__all__ = ["REWRITES", "REWRITTEN", "computed_inputs", "constants", "describe_node", "rewrite"]

# each changes the model in place; raises UnsupportedOperator
REWRITES: tuple[Callable[[Any], None], ...] = (
    domains.take_quantizers_for_onnxs_own,
    integers.widen_narrow_integers,
    folding.fold_constants,
    parameters.check_parameters,
    clips.clip_before_quantizing,
    attention.spell_out_attention,
    einsum.spell_out_einsum,
    simpler.simplify,
    windows.make_windows_explicit,
    pads.pad_by_joining,
    early_quantizers.quantize_early,
    ends.quantize_the_ends,
    late_transposes.transpose_keys_late,
)

# operators that never reach Relax
REWRITTEN = frozenset().union(
    attention.REWRITTEN, einsum.REWRITTEN, simpler.REWRITTEN, pads.REWRITTEN
)


def rewrite(model: Any) -> None:
    """Rewrite in place.

    Raises:
        UnsupportedOperator: something has no simpler form; the node is named.
    """
    for change in REWRITES:
        change(model)
    _name_apart(model)


def _name_apart(model: Any) -> None:
    """Nodes that share a name get numbers, since onnxruntime refuses twins."""
    seen: Counter[str] = Counter()
    for node in model.graph.node:
        if node.name:
            seen[node.name] += 1
            if seen[node.name] > 1:
                node.name = f"{node.name}_{seen[node.name]}"
