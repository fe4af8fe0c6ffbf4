"""How far a window moves over the edges, in numbers: no automatic padding and no ceil_mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.onnx_rewrites.editing import (
    Namer,
    add_constant,
    attributes,
    describe_node,
    producers,
    replace_nodes,
    shapes,
    with_attributes,
)

_WINDOWED = {"Conv", "MaxPool", "AveragePool"}


@dataclass(frozen=True)
class _Axis:
    """A window along one axis: extents of image and window, stride, dilation and padding."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def span(self) -> int:
        """From the window's first element to its last one."""
        return self.dilation * (self.kernel - 1) + 1

    def automatic(self, how: bytes) -> tuple[int, int]:
        """Padding before and behind that makes the result as long as the image over the stride."""
        if how == b"VALID":
            return 0, 0
        total = max((-(-self.size // self.stride) - 1) * self.stride + self.span - self.size, 0)
        less, more = total // 2, total - total // 2
        return (less, more) if how == b"SAME_UPPER" else (more, less)

    def extension(self) -> int:
        """How far a last window reaches that ceil_mode adds; none begins behind the image."""
        free = self.size + self.before + self.after - self.span
        last = -(-free // self.stride)
        if last * self.stride >= self.size + self.before:
            last -= 1
        return max(last * self.stride - free, 0)


def make_windows_explicit(model: Any) -> None:
    """Automatic padding and ceil_mode become ``pads``, which need the image's extents."""
    found = [n.output[0] for n in model.graph.node if n.op_type in _WINDOWED and _implicit(n)]
    for output in found:
        # one after the other: ONNX's shape inference knows ceil_mode in another way
        node = producers(model)[output]
        axes = _axes(node, shapes(model))
        if axes is not None:  # otherwise refused later, by TVM's operator
            replace_nodes(model, [(node, _explicit(model, node, axes, Namer(model)))])


def _implicit(node: Any) -> bool:
    given = attributes(node)
    if len(node.output) > 1 and node.output[1]:
        raise UnsupportedOperator(
            f"node {describe_node(node)} asks MaxPool for indices", remedy="export it without"
        )
    return given.get("auto_pad", b"NOTSET") != b"NOTSET" or bool(given.get("ceil_mode"))


def _axes(node: Any, known: dict[str, tuple[int, ...]]) -> list[_Axis] | None:
    given = attributes(node)
    image = known.get(node.input[0], ())[2:]
    if node.op_type == "Conv":
        kernel = known.get(node.input[1], ())[2:]
    else:
        kernel = tuple(given["kernel_shape"])
    if not image or len(image) != len(kernel):
        return None
    ones, zeros = [1] * len(image), [0] * 2 * len(image)
    pads = given.get("pads", zeros)
    columns = zip(
        *(image, kernel, given.get("strides", ones), given.get("dilations", ones)),
        *(pads[: len(image)], pads[len(image) :]),
        strict=True,
    )
    return [_Axis(*column) for column in columns]


def _explicit(model: Any, node: Any, axes: list[_Axis], names: Namer) -> list[Any]:
    from onnx import helper

    given = attributes(node)
    how = given.get("auto_pad", b"NOTSET")
    before, after = [axis.before for axis in axes], [axis.after for axis in axes]
    if how != b"NOTSET":
        sides = [axis.automatic(how) for axis in axes]
        with_attributes(
            node, auto_pad=None, ceil_mode=None, pads=[side[k] for k in (0, 1) for side in sides]
        )
        return [node]
    more = [axis.extension() for axis in axes]
    if not any(more) or not given.get("count_include_pad"):
        pads = [*before, *(a + m for a, m in zip(after, more, strict=True))]
        with_attributes(node, ceil_mode=None, pads=pads)
        return [node]
    # its own padding counts, what lies behind that does not
    padded = names(f"{node.input[0]}_padded")
    around = np.asarray([0, 0, *before, 0, 0, *after], np.int64)
    sides_name = add_constant(model, around, names(f"{node.output[0]}_pads"))
    pad = helper.make_node("Pad", [node.input[0], sides_name], [padded], name=node.name)
    node.input[0] = padded
    with_attributes(node, ceil_mode=None, count_include_pad=None, pads=[*[0] * len(more), *more])
    return [pad, node]
