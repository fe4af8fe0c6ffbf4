"""A lowered network beside the file that it came from: what onnxruntime makes of the same inputs.

Everything behind the lowering is held to the numpy interpreter, to the bit; this holds the
interpreter to an independent reading of the file. The two round differently, so outputs may differ
by a step here and there, and by a few where attention was quantized inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import dequantize
from entrain.deploy.errors import Mismatch, ModelError
from entrain.deploy.lowering.artifact import Agreement
from entrain.deploy.lowering.graph import Array, LoweredGraph, Value
from entrain.deploy.onnx_session import session_of

MOST_MEAN_STEPS = 4.0  # of 255: beyond it something was read wrongly


def compare_with_onnxruntime(
    onnx: Path, graph: LoweredGraph, golden: Mapping[str, Array]
) -> Agreement | None:
    """How far the outputs are from onnxruntime's.

    None where onnxruntime cannot run the file, or not on these inputs: random numbers may be no
    indices of an embedding.

    Args:
        onnx: the file.
        graph: what was made of it.
        golden: integers of the inputs and the outputs, [N, ...] by name.

    Raises:
        Mismatch: the outputs are more than four steps apart on average.
    """
    try:
        session = session_of(onnx, str(onnx))
        steps = np.concatenate(
            [
                _steps(session, graph, {name: values[index] for name, values in golden.items()})
                for index in range(len(golden[graph.inputs[0].name]))
            ]
        )
    except ModelError:
        return None
    if steps.mean() > MOST_MEAN_STEPS:
        raise Mismatch(
            f"the outputs are {steps.mean():.1f} steps from onnxruntime's on average, and at most "
            f"{steps.max()}",
            where=str(onnx),
            remedy="this is a fault of the lowering; please report it with the model",
        )
    return Agreement(
        elements=steps.size, differing=int((steps > 0).sum()), largest_steps=int(steps.max())
    )


def _steps(session: Any, graph: LoweredGraph, golden: Mapping[str, Array]) -> Array:
    """For each element of the outputs of one inference, how many steps it is apart."""
    given = {
        source.name: _given(value, golden[value.name], source.type)
        for source, value in zip(session.get_inputs(), graph.inputs, strict=True)
    }
    try:
        results = session.run(None, given)
    except Exception as error:  # onnxruntime's errors share no public base class
        raise ModelError("onnxruntime cannot run these inputs") from error
    return np.concatenate(
        [
            np.abs(golden[value.name].ravel().astype(np.int64) - _stored(value, theirs))
            for value, theirs in zip(graph.outputs, results, strict=True)
        ]
    )


def _given(value: Value, integers: Array, kind: str) -> Array:
    """An input as the file wants it: real, or integers as they are."""
    shaped = integers.reshape(value.shape)
    if kind == "tensor(float)":
        return dequantize(shaped, value.scale, value.zero_point).astype(np.float32)
    return shaped.astype(kind.removeprefix("tensor(").removesuffix(")"))


def _stored(value: Value, theirs: Array) -> Array:
    """An output of onnxruntime in the integers of the lowered network."""
    if theirs.dtype.kind in "iu":
        return theirs.ravel().astype(np.int64)
    return np.rint(theirs.ravel() / value.scale + value.zero_point).astype(np.int64)
