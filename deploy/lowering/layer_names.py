"""Names for layers, from the names in the ONNX file."""

from __future__ import annotations

import re

# what Brevitas puts behind the name of the module that quantizes
_QUANTIZER_TAIL = re.compile(r"/act_quant/.*$|/export_handler/.*$|_output_\d+$")
_GENERIC = re.compile(r"^/?(QuantizeLinear|onnx)")


def layer_names(tensors: tuple[str, ...], producers: dict[str, str]) -> dict[str, str]:
    """A unique C identifier for each quantized tensor.

    A tensor that Brevitas named after a module is called as the module; any other is called as
    the node that computes it.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for tensor in tensors:
        stem = _QUANTIZER_TAIL.sub("", tensor)
        if stem == tensor or _GENERIC.match(stem):
            stem = producers[tensor]
        base = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower() or "layer"
        if base[0].isdigit():
            base = f"layer_{base}"
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        names[tensor] = name
    return names
