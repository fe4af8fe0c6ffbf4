"""The data of a spotter: what is learned, tuned with and tested on is kept apart."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from entrain.deploy.errors import DataError
from entrain.models.data import stream_words
from entrain.models.data.spoken_words import WORDS
from entrain.models.data.stream_words import (
    KEYWORDS,
    TEST_WORDS,
    load_stream_words,
    synthetic_stream_words,
)
from entrain.models.data.synthetic_speech import PartSizes

CLIPS = {"train": 3, "validation": 2, "test": 2}


@pytest.fixture(autouse=True)
def few_voices(monkeypatch):
    monkeypatch.setattr(stream_words, "_SPOKEN_KEYWORDS", 10)
    monkeypatch.setattr(stream_words, "_SPOKEN_OTHERS", 20)


def write_word(folder, word, parts):
    lists = {"validation": [], "test": []}
    (folder / word).mkdir(parents=True)
    for part in parts:
        for number in range(CLIPS[part]):
            name = f"{part}{number}_nohash_0.wav"
            random = np.random.default_rng([len(word), number])
            sound = np.zeros(16_000, np.int16)
            sound[5_000:9_000] = random.integers(-5_000, 5_000, 4_000)
            soundfile.write(folder / word / name, sound, 16_000)
            if part in lists:
                lists[part].append(f"{word}/{name}\n")
    return lists


@pytest.fixture
def folder(tmp_path):
    """Two keywords, a word that is learned as unknown, one that the test keeps, three noises."""
    lists = [
        write_word(tmp_path, word, parts)
        for word, parts in (
            ("go", CLIPS),
            ("left", CLIPS),
            ("zero", CLIPS),
            ("wow", ("test",)),
        )
    ]
    for part, name in (("validation", "validation_list.txt"), ("test", "testing_list.txt")):
        (tmp_path / name).write_text("".join(line for each in lists for line in each[part]))
    noises = tmp_path / "_background_noise_"
    noises.mkdir()
    for number, name in enumerate(("a", "b", "c")):
        noise = np.full(32_000, 100 * (number + 1), np.int16)
        soundfile.write(noises / f"{name}.wav", noise, 16_000)
    return tmp_path


def words_of(clips):
    return {name.split("/")[0] for name in clips.names}


def test_labels_are_the_keywords_unknown_and_silence(folder):
    data = load_stream_words(folder, ("go", "left"))
    assert data.clips.labels == ("go", "left", "unknown", "silence")
    assert set(data.clips.train.targets.tolist()) == {0, 1, 2, 3}


def test_other_words_with_clips_in_every_part_are_learned_as_unknown(folder):
    clips = load_stream_words(folder, ("go", "left")).clips
    unknown = clips.validation.select(np.flatnonzero(clips.validation.targets == 2))
    assert words_of(unknown) == {"zero"}


def test_the_test_hears_other_words_than_were_learned_or_tuned_with(folder):
    data = load_stream_words(folder, ("go", "left"))
    assert words_of(data.test.others) == {"wow"}
    assert words_of(data.tuning.others) == {"zero", "scrambled"}
    assert "wow" not in words_of(data.clips.train)


def test_speakers_and_noises_of_tuning_and_test_have_nothing_in_common(folder):
    data = load_stream_words(folder, ("go", "left"))
    assert not set(data.tuning.keywords.speakers) & set(data.test.keywords.speakers)
    levels = [{int(noise[0]) for noise in part.noise} for part in (data.tuning, data.test)]
    assert levels == [{100, 300}, {200}]
    learned = {int(noise[0]) for noise in data.clips.background[:2]}
    assert learned == {100, 300}


def test_what_is_learned_of_a_noise_is_not_tuned_with(folder):
    data = load_stream_words(folder, ("go", "left"))
    assert [len(noise) for noise in data.clips.background[:2]] == [25_600, 25_600]
    assert [len(noise) for noise in data.tuning.noise] == [6_400, 6_400]


def test_synthetic_voices_say_the_keywords_and_others_for_learning_alone(folder):
    clips = load_stream_words(folder, ("go", "left")).clips
    added = set(words_of(clips.train)) - {"go", "left", "zero", "_background_noise_"}
    assert added
    assert added <= set(WORDS)
    assert not added & words_of(clips.validation)


def test_a_keyword_that_is_not_there_is_named(folder):
    with pytest.raises(DataError, match=r"of go, stop"):
        load_stream_words(folder, ("go", "stop"))


def test_one_noise_is_too_few(folder):
    for name in ("b", "c"):
        (folder / "_background_noise_" / f"{name}.wav").unlink()
    with pytest.raises(DataError, match="two noise recordings"):
        load_stream_words(folder, ("go", "left"))


def test_without_words_for_the_test_alone_there_is_no_test(folder):
    for path in (folder / "wow").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="test part alone"):
        load_stream_words(folder, ("go", "left"))


def test_synthetic_words_are_kept_apart_too():
    data = synthetic_stream_words(PartSizes(90, 18, 18))
    assert data.clips.labels[: len(KEYWORDS)] == KEYWORDS
    assert words_of(data.test.others) <= set(TEST_WORDS)
    assert not set(TEST_WORDS) & set(WORDS)
    assert not set(data.tuning.keywords.speakers) & set(data.test.keywords.speakers)
