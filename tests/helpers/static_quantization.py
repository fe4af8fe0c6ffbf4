"""Float files quantized by onnxruntime's static tool, in each of its common ways."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

SIGNED = "int8 for each channel"
# settings of the tool by what they make of a file
WAYS: dict[str, dict[str, Any]] = {
    SIGNED: {
        "per_channel": True,
        "weight_type": QuantType.QInt8,
        "activation_type": QuantType.QInt8,
    },
    "uint8 throughout": {
        "weight_type": QuantType.QUInt8,
        "activation_type": QuantType.QUInt8,
    },
    "symmetric activations": {
        "activation_type": QuantType.QInt8,
        "extra_options": {"ActivationSymmetric": True},
    },
    "a quantizer pair for each reader": {"extra_options": {"DedicatedQDQPair": True}},
}


class _Calibration(CalibrationDataReader):  # type: ignore[misc]
    """Inputs, one at a time."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        self._inputs = iter([{"x": one} for one in inputs])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._inputs, None)


def quantized_statically(
    source: Path, path: Path, shape: tuple[int, ...], count: int, **way: Any
) -> Path:
    """The float file ``source`` as one with quantizers.

    Args:
        source: a file with one input ``x`` [1, *shape].
        path: where the result is written.
        shape: of one sample.
        count: how many random samples calibrate it.
        way: settings of the tool, as in ``WAYS``; without any, the tool's own.
    """
    inputs = np.random.default_rng(0).normal(size=(count, 1, *shape)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = _Calibration(inputs)
        quantize_static(source, path, reader, quant_format=QuantFormat.QDQ, **way)
    return path
