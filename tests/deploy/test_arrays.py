"""Arrays are stored under any name, and whole."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.arrays import write_arrays
from entrain.deploy.errors import UsageError

NAMES = ["file", "allow_pickle", "args", "/stem/QuantizeLinear_output_0", "onnx::Add_7", "Größe"]


def test_any_name_will_do(tmp_path):
    arrays = {name: np.full((2, k + 1), k, np.int8) for k, name in enumerate(NAMES)}
    write_arrays(tmp_path / "golden.npz", arrays)
    with np.load(tmp_path / "golden.npz") as stored:
        assert sorted(stored) == sorted(NAMES)
        for name, array in arrays.items():
            np.testing.assert_array_equal(stored[name], array)
            assert stored[name].dtype == array.dtype


def test_a_single_number_and_a_transposed_array_keep_their_shapes(tmp_path):
    arrays = {"number": np.asarray(3.5), "transposed": np.arange(6).reshape(2, 3).T}
    write_arrays(tmp_path / "golden.npz", arrays)
    with np.load(tmp_path / "golden.npz") as stored:
        assert stored["number"].shape == ()
        np.testing.assert_array_equal(stored["transposed"], arrays["transposed"])


def test_objects_are_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "golden.npz"
    write_arrays(path, {"a": np.zeros(3)})
    with pytest.raises(ValueError, match=r"pickle|Object"):
        write_arrays(path, {"a": np.array([{}], object)})
    with np.load(path) as stored:
        assert sorted(stored) == ["a"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "occupied").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        write_arrays(tmp_path / "occupied" / "golden.npz", {"a": np.zeros(3)})
