from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_log_mel import plain_log_mel

from entrain.models.features import BANDS, FRAMES, log_mel, mel_filters


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    random = np.random.default_rng(0)
    loudness = np.array([[3000.0], [30.0], [0.0]])
    return (loudness * random.standard_normal((3, 16_000))).astype(np.int16)


def test_features_are_those_of_the_definition(samples: np.ndarray) -> None:
    features = log_mel(samples)
    assert features.shape == (3, FRAMES, BANDS)
    assert features.dtype == np.float32
    for clip, feature in zip(samples, features, strict=True):
        np.testing.assert_allclose(feature, plain_log_mel(clip / 32_768), atol=2e-4)


def test_whole_numbers_fractions_numpy_and_torch_agree(samples: np.ndarray) -> None:
    expected = log_mel(samples)
    np.testing.assert_array_equal(log_mel(samples / np.float32(32_768)), expected)
    np.testing.assert_array_equal(log_mel(torch.from_numpy(samples)).numpy(), expected)


def test_a_clips_features_do_not_depend_on_its_company(samples: np.ndarray) -> None:
    many = np.tile(samples, (30, 1))
    np.testing.assert_allclose(log_mel(many)[-3:], log_mel(samples), atol=1e-5)


def test_silence_is_the_floor(samples: np.ndarray) -> None:
    np.testing.assert_allclose(log_mel(samples)[2], np.log(1e-4), rtol=1e-6)


def test_a_tone_lights_its_own_band() -> None:
    hertz = 1000.0
    tone = np.sin(2 * np.pi * hertz * np.arange(16_000) / 16_000)[None].astype(np.float32)
    band = log_mel(tone)[0].mean(axis=0).argmax()
    assert mel_filters()[round(hertz / 31.25), band] > 0.5


def test_clips_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[N, 16000\]"):
        log_mel(np.zeros((1, 8000), dtype=np.int16))
