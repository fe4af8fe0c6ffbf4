"""listening.toml, and what the C has of it."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_spotter import BANDS, settings
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import ModelError, UsageError
from entrain.deploy.listening.bands import band_maps
from entrain.deploy.listening.c_sources import write_sources
from entrain.deploy.listening.settings import (
    SpotterSettings,
    read_settings,
    untuned,
    write_settings,
)
from entrain.deploy.lowering.artifact import TensorRecord
from entrain.deploy.runs import Run
from entrain.models.front_end import STEP
from entrain.models.keyword_task import FeatureStatistics


def record(**changes):
    whole = {"name": "features", "shape": (1, 49, 40), "dtype": "int8", "scale": 0.03}
    return TensorRecord(**{**whole, "zero_point": 5, "onnx_outputs": (), **changes})


def statistics(mean=-3.0, deviation=1.7):
    spread = np.linspace(0.8, 1.2, 40, dtype=np.float32)
    return FeatureStatistics(np.float32(mean) * spread, np.float32(deviation) * spread)


def test_settings_survive_their_file(tmp_path):
    written = settings((0.83, 0.4), (0.7, 1.2), gate_decibels=-55.5)
    write_settings(Run(tmp_path), written)
    assert read_settings(Run(tmp_path), ("low", "high")) == written


def test_without_a_file_nothing_was_tuned(tmp_path):
    assert read_settings(Run(tmp_path), ("a", "b")) == untuned(("a", "b"))


def test_settings_of_other_words_are_refused(tmp_path):
    write_settings(Run(tmp_path), settings())
    with pytest.raises(UsageError, match="it is of low, high, and the network spots a, b"):
        read_settings(Run(tmp_path), ("a", "b"))


def test_thresholds_and_refractory_times_of_different_words_make_no_sense():
    with pytest.raises(ValueError, match="different words"):
        SpotterSettings(thresholds={"a": 0.5}, refractory_seconds={"b": 1.0})


def test_the_c_counts_in_millionths_hops_and_mean_squares():
    chosen = settings((0.83, 0.4), (0.7, 1.2), gate_decibels=-40.0)
    assert chosen.threshold_millionths == (830_000, 400_000)
    assert chosen.refractory_hops == (7, 12)
    assert chosen.gate == round(327.68**2)


def test_a_word_of_any_letters_is_harmless_in_c_and_on_the_line(tmp_path):
    chosen = SpotterSettings(
        thresholds={'a"],\\%\n': 0.5, "voilà": 0.5}, refractory_seconds={'a"],\\%\n': 0, "voilà": 0}
    )
    write_sources(tmp_path, chosen, BANDS, 4)
    text = (tmp_path / "spotter_settings.c").read_text()
    assert '{"a______", "voil_"}' in text


@given(st.integers(-18_900, 22_000), st.integers(0, 39))
def test_a_band_map_is_to_normalise_and_to_quantize(value, band):
    maps = band_maps(statistics(), record())
    given_values = np.full(40, value, np.int16)
    real = (value * STEP - statistics().mean[band]) / statistics().deviation[band]
    exact = real / 0.03 + 5
    found = int(maps.apply(given_values)[band])
    assert abs(found - np.clip(exact, -128, 127)) <= 0.51


@pytest.mark.parametrize(
    "wrong", [{"dtype": "uint8"}, {"shape": (1, 40, 49)}, {"shape": (1, 48), "dtype": "int8"}]
)
def test_a_network_that_reads_something_else_is_refused(wrong):
    with pytest.raises(ModelError, match="no int8 rows of 40 bands"):
        band_maps(statistics(), record(**wrong))


def test_a_band_that_never_changed_is_refused():
    with pytest.raises(ModelError, match="hardly ever changes"):
        band_maps(statistics(deviation=1e-7), record())
