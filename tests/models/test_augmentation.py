from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from entrain.models.augmentation import (
    Augmentation,
    mask_features,
    shuffled_batches,
    vary_sound,
)
from entrain.models.data import Clips, KeywordData
from entrain.models.data.clips import CLIP_SAMPLES
from entrain.models.placing import Centred

NOTHING = Augmentation(
    speed=(1.0, 1.0),
    placing=Centred(0.0),
    gain=(0.0, 0.0),
    noise_probability=0.0,
    noise_decibels=(0.0, 0.0),
    masked_bands=0,
    masked_frames=0,
)
NOISE = np.random.default_rng(5).integers(-3000, 3000, 3 * CLIP_SAMPLES).astype(np.int16)


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def varied(
    clips: np.ndarray,
    background: Sequence[np.ndarray],
    augmentation: Augmentation,
    random: np.random.Generator | None = None,
) -> np.ndarray:
    return vary_sound(clips, background, augmentation, random or draws()).samples


def tone(hertz: float) -> np.ndarray:
    time = np.arange(CLIP_SAMPLES) / CLIP_SAMPLES
    return np.rint(8000 * np.sin(2 * np.pi * hertz * time)).astype(np.int16)[None]


def click(at: int) -> np.ndarray:
    samples = np.zeros((1, CLIP_SAMPLES), dtype=np.int16)
    samples[0, at] = 16_384
    return samples


def test_without_any_variation_the_sound_is_as_it_was() -> None:
    np.testing.assert_array_equal(varied(tone(440), [NOISE], NOTHING), tone(440))


@pytest.mark.parametrize("speed", [0.88, 1.12])
def test_a_faster_clip_is_shorter_and_higher(speed: float) -> None:
    faster = replace(NOTHING, speed=(speed, speed))
    spectrum = np.abs(np.fft.rfft(varied(tone(1000), [], faster)[0]))
    assert spectrum.argmax() == pytest.approx(1000 * speed, abs=2)
    ends = [1000, CLIP_SAMPLES - 1000]
    marks = click(ends[0]) + click(ends[1])
    heard = varied(marks, [], faster)[0].nonzero()[0]
    length = (ends[1] - ends[0]) / speed
    assert int(heard.max() - heard.min()) == pytest.approx(length, abs=3)
    # It plays about the middle of the clip.
    assert int(heard.max() + heard.min()) / 2 == pytest.approx(CLIP_SAMPLES / 2, abs=3)


def test_a_shift_is_at_most_a_tenth_of_a_second_to_either_side() -> None:
    shifted = replace(NOTHING, placing=Centred(0.1))
    clicks = np.repeat(click(8000), 300, axis=0)
    moves = varied(clicks, [], shifted).argmax(axis=1) - 8000
    assert int(moves.min()) in range(-1600, -1400)
    assert int(moves.max()) in range(1401, 1601)


def test_a_gain_scales() -> None:
    louder = replace(NOTHING, gain=(0.25, 0.25))
    assert varied(click(5), [], louder).max() == round(16_384 * 10**0.25)


def test_what_becomes_too_loud_is_cut():
    louder = replace(NOTHING, gain=(1.0, 1.0))
    sound = varied(tone(440), [], louder)
    assert (sound.min(), sound.max()) == (-32_768, 32_767)


def test_noise_has_the_asked_for_ratio_to_the_sound() -> None:
    noisy = replace(NOTHING, noise_probability=1.0, noise_decibels=(12.0, 12.0))
    sound = tone(440).astype(float)
    noise = varied(tone(440), [NOISE], noisy) - sound
    ratio = 10 * np.log10(np.square(sound).mean() / np.square(noise).mean())
    assert ratio == pytest.approx(12.0, abs=0.01)


def test_noise_comes_as_often_as_asked_for() -> None:
    sometimes = replace(NOTHING, noise_probability=0.8, noise_decibels=(20.0, 20.0))
    clips = np.repeat(tone(440), 400, axis=0)
    clean = varied(clips, [], sometimes)
    noisy = (varied(clips, [NOISE], sometimes) != clean).any(axis=1)
    assert noisy.mean() == pytest.approx(0.8, abs=0.06)


def test_a_room_comes_as_often_as_asked_for_and_answers_after_the_sound() -> None:
    sometimes = replace(NOTHING, room_probability=0.5)
    heard = varied(np.repeat(click(5), 400, axis=0), [], sometimes)
    answered = (heard[:, 6:] != 0).any(axis=1)
    assert answered.mean() == pytest.approx(0.5, abs=0.1)
    np.testing.assert_array_equal(heard[:, 5], 16_384)
    assert not heard[:, :5].any()


def test_silence_stays_silent_and_finite() -> None:
    silence = np.zeros((2, CLIP_SAMPLES), dtype=np.int16)
    assert not varied(silence, [silence[0]], Augmentation()).any()


@given(st.integers(0, 10_000))
def test_masks_hide_one_stretch_of_frames_and_one_of_bands(seed: int) -> None:
    augmentation = Augmentation()
    masked = mask_features(torch.ones(8, 49, 40), augmentation, draws(seed)) == 0
    for clip in masked:
        frames, bands = clip.all(dim=1).nonzero().flatten(), clip.all(dim=0).nonzero().flatten()
        assert len(frames) <= augmentation.masked_frames
        assert len(bands) <= augmentation.masked_bands
        for stretch in (frames, bands):
            assert torch.equal(stretch, torch.arange(len(stretch)) + stretch[:1].sum())
        expected = torch.zeros(49, 40, dtype=torch.bool)
        expected[frames] = True
        expected[:, bands] = True
        assert torch.equal(clip, expected)


def test_masks_use_their_whole_range() -> None:
    masked = mask_features(torch.ones(500, 49, 40), Augmentation(), draws()) == 0
    assert set(masked.all(dim=2).sum(dim=1).tolist()) == set(range(7))
    assert set(masked.all(dim=1).sum(dim=1).tolist()) == set(range(6))


@given(count=st.integers(1, 300), batch=st.integers(1, 64))
def test_batches_hold_every_clip_once_and_are_about_equal(count: int, batch: int) -> None:
    clips = Clips(np.zeros((count, 1), np.int16), np.zeros(count, np.int64), ("",), ("",) * count)
    batches = shuffled_batches(clips, batch, draws())
    sizes = [len(indices) for indices in batches]
    assert sorted(np.concatenate(batches)) == list(range(count))
    assert max(sizes) <= batch
    assert max(sizes) - min(sizes) <= 1


def test_the_same_draws_give_the_same_sound(tone_data: KeywordData) -> None:
    first, again, other = (
        varied(tone_data.train.samples, tone_data.background, Augmentation(), draws(seed))
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
