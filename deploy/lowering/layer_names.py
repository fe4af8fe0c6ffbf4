"""Names for layers, from the names in the ONNX file."""

from __future__ import annotations

import re
from collections import Counter

# what Brevitas puts behind the name of the module that quantizes
_QUANTIZER_TAIL = re.compile(r"/act_quant/.*$|/export_handler/.*$|_output_\d+$")
# what onnxruntime's tool puts behind the name of an output that it quantizes
_ONNXRUNTIMES_TAIL = "_QuantizeLinear_Input"
_BLOCK = re.compile(r"blocks?(\.\d+)?")
_GENERIC = re.compile(r"^/?(QuantizeLinear|onnx)")


def layer_names(tensors: tuple[str, ...], producers: dict[str, str]) -> dict[str, str]:
    """A unique C identifier for each quantized tensor.

    A tensor that Brevitas named after a module is called as the module, without the modules in
    between where that is clear, so that twins with other insides share their layers' names. Any
    other tensor is called as the node that computes it.
    """
    stems = {tensor: _stem(tensor, producers[tensor]) for tensor in tensors}
    shortened = Counter(_shortened(stem) for stem in stems.values())
    names: dict[str, str] = {}
    taken: set[str] = set()
    for tensor, stem in stems.items():
        short = _shortened(stem)
        base = identifier(short if shortened[short] == 1 else stem)
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        names[tensor] = name
    return names


def _stem(tensor: str, producer: str) -> str:
    stem = _QUANTIZER_TAIL.sub("", tensor)
    computed_by = producer.removesuffix(_ONNXRUNTIMES_TAIL)
    return computed_by if stem == tensor or _GENERIC.match(stem) else stem


def _shortened(stem: str) -> str:
    """The outermost and the innermost name of a path, within its block where it is in one."""
    whole = stem.strip("/").split("/")
    parts = whole[1:] if len(whole) > 1 and _BLOCK.fullmatch(whole[0]) else whole
    return "/".join(parts if len(parts) < 3 else (parts[0], parts[-1]))


def identifier(text: str) -> str:
    """The text as a C identifier."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower() or "layer"
    return f"layer_{name}" if name[0].isdigit() else name
