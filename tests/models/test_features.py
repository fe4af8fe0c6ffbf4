from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.signal
import torch

from entrain.models.features import BANDS, FRAMES, log_mel, mel_filters


def plain_log_mel(samples: np.ndarray) -> np.ndarray:
    """One clip in [-1, 1], in float64, by scipy and loops."""
    window = scipy.signal.get_window("hann", 400, fftbins=True)
    lowest, highest = 2595 * np.log10(1 + np.array([20, 7600]) / 700)
    edges = 700 * (10 ** (np.linspace(lowest, highest, 42) / 2595) - 1)
    features = np.zeros((49, 40))
    for frame in range(49):
        cut = samples[320 * frame : 320 * frame + 400] * window
        power = np.abs(scipy.fft.fft(cut, 512)[:257]) ** 2
        for band in range(40):
            triangle = np.interp(
                np.arange(257) * 31.25, edges[band : band + 3], [0, 1, 0], left=0, right=0
            )
            features[frame, band] = np.log(triangle @ power + 1e-4)
    return features


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
