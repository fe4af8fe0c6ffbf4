"""Named arrays in one .npz file, whatever they are called."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.files import writing_whole


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an .npz, whole; ``numpy.load`` reads it.

    ``numpy.savez`` takes the names as keyword arguments, so a tensor called ``file`` breaks it.

    Raises:
        UsageError: the file cannot be written there.
    """
    with (
        writing_whole(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, array in arrays.items():
            # the slash of ONNX names would make folders; numpy.load takes the name as it stands
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
