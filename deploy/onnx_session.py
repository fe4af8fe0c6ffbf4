"""Running a QCDQ ONNX file with onnxruntime: the oracle of the lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import ModelError

Inputs = NDArray[Any]  # float32, or int64


def session_of(model: Path | bytes, name: str) -> Any:
    """Onnxruntime's own session, one thread, unoptimised.

    Raises:
        ModelError: onnxruntime refuses the model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised; it warns of every constant that it folds
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model),
            options,
            providers=["CPUExecutionProvider"],
        )
    except Exception as error:  # onnxruntime's errors share no public base class
        raise ModelError(
            f"onnxruntime cannot run it: {str(error).splitlines()[0]}",
            where=name,
            remedy="export the model again",
        ) from error


class OnnxSession:
    """A model in onnxruntime, one thread, unoptimised: each node computed as it is written.

    Args:
        model: the file's path, or a serialized model.
        name: what errors call it.

    Raises:
        ModelError: onnxruntime refuses the model.
    """

    def __init__(self, model: Path | bytes, name: str) -> None:
        self._session = session_of(model, name)
        self.inputs: tuple[str, ...] = tuple(i.name for i in self._session.get_inputs())
        self.outputs: tuple[str, ...] = tuple(o.name for o in self._session.get_outputs())

    def run(self, features: Inputs | Mapping[str, Inputs]) -> dict[str, NDArray[Any]]:
        """Every output by name, for the first input [1, ...] or several by name."""
        given = features if isinstance(features, Mapping) else {self.inputs[0]: features}
        results: Sequence[Any] = self._session.run(None, dict(given))
        return dict(zip(self.outputs, results, strict=True))

    def predict(self, features: Inputs) -> NDArray[np.int64]:
        """The index of the largest first output for each of [N, ...]."""
        first = self.outputs[0]
        classes = [int(self.run(one[None])[first].argmax()) for one in features]
        return np.asarray(classes, np.int64)
