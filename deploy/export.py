"""The stage ``export``: a quantized network becomes ordinary QCDQ ONNX."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from entrain.deploy.arrays import write_arrays
from entrain.deploy.files import writing_whole
from entrain.deploy.onnx_session import OnnxSession
from entrain.deploy.quantization.anchors import fix_anchors

OPSET = 17
GOLDEN_FEATURES = "features"


def export_onnx(network: nn.Module, example: Tensor, path: Path) -> None:
    """Write the network as QCDQ ONNX, opset 17, batch size 1.

    Args:
        network: quantized and calibrated; it is left as it is.
        example: one input, [1, ...].
        path: the file.
    """
    exported = copy.deepcopy(network).eval()
    fix_anchors(exported)
    with writing_whole(path) as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own deprecation, and of a kernel it lacks
        from brevitas.export import export_onnx_qcdq

        export_onnx_qcdq(
            exported,
            example,
            export_path=str(temporary),
            dynamo=False,  # the newer exporter refuses a quantized bias
            opset_version=OPSET,
            keep_initializers_as_inputs=False,
        )


def write_golden_onnx(onnx: Path, features: NDArray[Any], path: Path) -> None:
    """Write the values at every quantization boundary, from onnxruntime, for some inputs.

    Args:
        onnx: the exported file.
        features: inputs [N, ...].
        path: golden_onnx.npz: ``features`` and one array [N, ...] for each quantized tensor, by
            its ONNX name.
    """
    from entrain.deploy.lowering.onnx_file import read_onnx, with_boundaries_as_outputs

    whole, names = with_boundaries_as_outputs(read_onnx(onnx))
    session = OnnxSession(whole.SerializeToString(), str(onnx))
    each = [session.run(one[None]) for one in features]
    golden: dict[str, NDArray[Any]] = {GOLDEN_FEATURES: features}
    golden.update({name: np.stack([values[name][0] for values in each]) for name in names})
    write_arrays(path, golden)
