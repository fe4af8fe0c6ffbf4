from __future__ import annotations

import numpy as np

from entrain.models.features import BANDS, FRAMES, mel_filters
from entrain.models.front_end import STEP, log_mel, log_mel_steps


def test_features_are_the_front_ends_steps_in_their_unit() -> None:
    samples = np.random.default_rng(0).integers(-9_000, 9_000, (3, 16_000)).astype(np.int16)
    features = log_mel(samples)
    assert features.shape == (3, FRAMES, BANDS)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, log_mel_steps(samples) * STEP)


def test_a_tone_lights_its_own_band() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000)[None]
    band = log_mel(np.rint(20_000 * tone).astype(np.int16))[0].mean(axis=0).argmax()
    assert mel_filters()[round(1000 / 31.25), band] > 0.5
