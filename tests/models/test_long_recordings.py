"""Long recordings: what is said, when, how loud above the noise, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.models.data.clips import Clips
from entrain.models.data.long_recordings import (
    LOUDNESS_DB,
    NOISE_LEVEL,
    SHORTEST_PAUSE,
    LongRecording,
)
from entrain.models.data.spoken import spoken_part

NOISE = tuple(
    np.random.default_rng(seed).normal(0, 300 * (seed + 1), 50_000).astype(np.int16)
    for seed in range(2)
)


def beeps(hertz, count):
    """Clips whose word is a tone from 0.3 to 0.7 seconds."""
    times = np.arange(16_000) / 16_000
    loudness = np.linspace(500, 9_000, count)[:, None]
    tone = np.where((times >= 0.3) & (times < 0.7), np.sin(2 * np.pi * hertz * times), 0)
    return Clips(
        np.rint(loudness * tone).astype(np.int16),
        np.arange(count) % 3,
        tuple("somebody" for _ in range(count)),
        tuple(f"{hertz}-{number}" for number in range(count)),
    )


NOBODY = beeps(1, 0)


def recording(seconds=60.0, keywords=None, others=None, snr_db=10.0, seed=0):
    keywords = beeps(1_000, 6) if keywords is None else keywords
    others = beeps(2_000, 4) if others is None else others
    return LongRecording(seconds, keywords, others, NOISE, snr_db, seed)


def sound(made, samples=16_000):
    return np.concatenate(list(made.blocks(samples)))


@settings(max_examples=10, deadline=None)
@given(st.integers(100, 200_000), st.integers(0, 1_000))
def test_the_sound_is_the_same_whatever_the_blocks_and_exactly_as_long(samples, seed):
    whole = sound(recording(20.0, seed=seed))
    assert len(whole) == 320_000
    blocks = list(recording(20.0, seed=seed).blocks(samples))
    assert all(len(block) == samples for block in blocks[:-1])
    assert np.array_equal(np.concatenate(blocks), whole)


def test_another_seed_is_another_recording():
    assert not np.array_equal(sound(recording()), sound(recording(seed=1)))
    assert recording().said != recording(seed=1).said


def test_words_come_one_after_the_other_with_a_pause_between_and_half_are_to_be_spotted():
    said = recording(2_000.0).said
    starts, ends = (np.array([getattr(word, name) for word in said]) for name in ("start", "end"))
    assert np.all(starts[1:] - ends[:-1] >= SHORTEST_PAUSE * 16_000)
    assert ends[-1] <= 2_000 * 16_000
    keywords = [word for word in said if word.word is not None]
    assert 0.4 < len(keywords) / len(said) < 0.6
    assert {word.word for word in keywords} == {0, 1, 2}
    assert all(word.name.startswith("1000-") for word in keywords)


@pytest.mark.parametrize("snr_db", [0.0, 10.0])
def test_each_word_stands_as_far_above_the_noise_as_asked_and_where_it_is_said(snr_db):
    made = recording(snr_db=snr_db)
    alone = sound(recording(keywords=NOBODY, others=NOBODY)).astype(np.float64)
    words = sound(made) - alone
    silent = np.ones(len(words), bool)
    for said in made.said:
        inside = slice(said.start, said.end)
        silent[inside] = False
        ratio = np.mean(words[inside] ** 2) / np.mean(alone[inside] ** 2)
        assert 10 * np.log10(ratio) == pytest.approx(snr_db, abs=2.0)
    assert np.all(words[silent] == 0)


def test_noise_alone_goes_on_without_a_break_at_its_level():
    noise = sound(recording(120.0, keywords=NOBODY, others=NOBODY)).astype(np.float64) / 32_768
    levels = np.sqrt(np.mean(noise.reshape(-1, 1_600) ** 2, axis=1))
    spread = 10 ** (LOUDNESS_DB / 20)
    assert np.all(levels > 0.5 * NOISE_LEVEL / spread)
    assert np.all(levels < 2 * NOISE_LEVEL * spread)
    assert recording(keywords=NOBODY, others=NOBODY).said == ()


def test_a_recording_without_noise_is_refused():
    with pytest.raises(UsageError, match="no noise"):
        LongRecording(1.0, NOBODY, NOBODY, (), 10.0, 0)


def test_the_spoken_part_of_a_clip_is_found():
    assert spoken_part(beeps(1_000, 2).samples[1]) == (4_800, 11_200)
