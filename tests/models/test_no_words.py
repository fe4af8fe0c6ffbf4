"""What a spotter has to keep out: words in pieces, noises, rooms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from entrain.models.data.noises import babble, coloured_noises
from entrain.models.data.spoken import spoken_part
from entrain.models.rooms import LONGEST, reverberated
from entrain.models.scrambling import REVERSED, scramble


def clips(*loudness):
    """A word a clip from 0.26 to 0.64 seconds, rising, each with a level of its own."""
    made = np.zeros((len(loudness), 16_000), np.int16)
    rise = np.linspace(0.5, 1.0, 6_080)
    for clip, level in zip(made, loudness, strict=True):
        clip[4_160:10_240] = np.rint(level * rise)
    return made


def scrambled(samples, targets, share=1.0):
    return scramble(samples, np.array(targets), share, np.random.default_rng(0))


def test_nothing_is_scrambled_unless_asked():
    samples = clips(1_000, 2_000)
    found = scrambled(samples, [0, 1], share=0.0)
    assert np.array_equal(found.samples, samples)
    assert not found.is_scrambled.any()


def test_words_of_one_target_are_played_backwards_since_their_halves_would_make_the_word():
    samples = clips(1_000, 2_000)
    found = scrambled(samples, [3, 3])
    assert found.is_scrambled.all()
    np.testing.assert_array_equal(found.samples[:, 4_160:10_240], samples[:, 10_239:4_159:-1])


def test_some_are_played_backwards_and_the_others_joined_of_two_halves():
    samples = clips(*[1_000] * 300)
    found = scrambled(samples, [0, 1] * 150)
    backwards = (found.samples[:, 4_160:10_240] == samples[:, 10_239:4_159:-1]).all(axis=1)
    assert backwards.mean() == pytest.approx(REVERSED, abs=0.1)
    joined = found.samples[~backwards]
    lengths = [spoken_part(clip)[1] - spoken_part(clip)[0] for clip in joined]
    assert min(lengths) >= 5_700  # two halves, less the seam
    assert len(joined) > 150


def test_the_second_half_is_as_loud_as_the_first():
    found = scrambled(clips(400, 8_000, *[400] * 60), [0, 1, *[0] * 60]).samples
    assert np.abs(found[2:]).max() <= 401 * 1.5


def test_the_clips_that_were_given_stay_as_they_are():
    samples = clips(1_000, 2_000)
    before = samples.copy()
    scrambled(samples, [0, 1])
    np.testing.assert_array_equal(samples, before)


def test_noise_that_fills_its_second_is_left_alone():
    noise = np.random.default_rng(1).integers(-999, 999, (4, 16_000)).astype(np.int16)
    assert not scrambled(noise, [0, 1, 2, 3]).is_scrambled.any()


def test_noises_are_loud_unlike_and_the_same_for_the_same_seed():
    once, again = (coloured_noises(4, np.random.default_rng(7)) for _ in range(2))
    for noise, same in zip(once, again, strict=True):
        np.testing.assert_array_equal(noise, same)
        assert np.abs(noise).max() == pytest.approx(0.9 * 32_768, abs=2)
        assert len(noise) == 160_000
    spectra = [np.abs(np.fft.rfft(noise.astype(float))) for noise in once]
    tilt = [spectrum[80_000 * 3 // 4 :].mean() / spectrum[:20_000].mean() for spectrum in spectra]
    assert max(tilt) > 2 * min(tilt)


def test_every_second_noise_swells():
    steady, swelling = coloured_noises(2, np.random.default_rng(3))
    levels = [
        np.square(noise.astype(float)).reshape(-1, 800).mean(axis=1) for noise in (steady, swelling)
    ]
    assert levels[0].std() / levels[0].mean() < levels[1].std() / levels[1].mean()


def test_many_talk_at_once():
    (noise,) = babble(clips(500, 3_000, 9_000), 1, np.random.default_rng(0))
    assert len(noise) == 160_000
    quiet = (np.square(noise.astype(float)).reshape(-1, 320).mean(axis=1) == 0).mean()
    assert quiet < 0.6  # one talker alone is silent for 62 % of the time


def test_a_room_answers_later_and_fainter():
    click = torch.zeros(50, 16_080)
    click[:, 100] = 1.0
    heard = reverberated(click, np.random.default_rng(0))
    torch.testing.assert_close(heard[:, 100], torch.ones(50), atol=1e-4, rtol=0)
    assert float(heard[:, :100].abs().max()) < 1e-4
    assert float(heard[:, 100 + LONGEST :].abs().max()) < 1e-4
    echo = heard[:, 101:].square().sum(dim=1)
    assert float(echo.max()) <= 1.01
    early, late = heard[:, 101:900].square().mean(), heard[:, 2_000:2_800].square().mean()
    assert float(early) > 4 * float(late)
