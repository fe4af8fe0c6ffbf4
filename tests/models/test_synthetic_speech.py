from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from entrain.deploy.errors import DataError, ToolError
from entrain.models.data import KeywordData
from entrain.models.data.espeak import Utterance, speak
from entrain.models.data.synthetic_speech import VOICES, PartSizes, synthetic_speech

SIZES = PartSizes(train=60, validation=18, test=24)
WORDS = ("left", "right", "zero")


def parts(data: KeywordData) -> list[np.ndarray]:
    return [data.train.samples, data.validation.samples, data.test.samples, *data.background]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> KeywordData:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("made")))
        return synthetic_speech(WORDS, SIZES)


def test_each_part_has_its_size_its_own_voices_and_every_word(data: KeywordData) -> None:
    assert data.labels == WORDS
    assert data.source == "synthetic"
    split = (data.train, data.validation, data.test)
    assert [part.samples.shape for part in split] == [(60, 16_000), (18, 16_000), (24, 16_000)]
    for part in split:
        counts = np.bincount(part.targets)
        assert counts.min() == counts.max()
        named = [WORDS[target] for target in part.targets]
        assert [name.split("/")[0] for name in part.names] == named
    speakers = [set(part.speakers) for part in split]
    assert not speakers[0] & speakers[1]
    assert not speakers[0] & speakers[2]
    assert not speakers[1] & speakers[2]
    assert all(len(who) > 1 for who in speakers)


def test_every_clip_is_heard_and_none_is_like_another(data: KeywordData) -> None:
    samples = np.concatenate([data.train.samples, data.validation.samples, data.test.samples])
    assert np.abs(samples.astype(int)).max(axis=1).min() > 1000
    assert len(np.unique(samples, axis=0)) == len(samples)
    # The word lies about the middle, the ends hold little but noise.
    power = samples.astype(float) ** 2
    assert (power[:, 4000:12_000].mean(axis=1) > 10 * power[:, -800:].mean(axis=1)).mean() > 0.95


def test_another_process_makes_the_same_clips_to_the_bit(data: KeywordData, tmp_path: Path) -> None:
    script = (
        "from entrain.models.data.synthetic_speech import *\n"
        f"data = synthetic_speech({WORDS!r}, {SIZES!r})\n"
        "np.save('train.npy', data.train.samples)\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "train.npy"), data.train.samples)


def test_another_seed_makes_other_clips(data: KeywordData) -> None:
    other = synthetic_speech(WORDS, SIZES, seed=1)
    assert not np.array_equal(other.train.samples, data.train.samples)
    assert other.train.speakers != data.train.speakers


def test_clips_are_made_once_and_then_read(
    cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = PartSizes(4, 2, 2)
    made = synthetic_speech(("up", "go"), sizes)
    assert len(list((cache_home / "entrain" / "synthetic-speech").iterdir())) == 1

    def never(*_: object) -> None:
        pytest.fail("the synthesizer was asked again")

    monkeypatch.setattr("entrain.models.data.synthetic_speech._speak_all", never)
    for before, after in zip(
        parts(made), parts(synthetic_speech(("up", "go"), sizes)), strict=True
    ):
        np.testing.assert_array_equal(before, after)


def test_what_was_said_before_does_not_change_a_word() -> None:
    word = Utterance("zero", "m3", "en-us", 160, 50, 50)
    (alone,) = speak((word,))
    speak(tuple(Utterance("left", voice, "en", 200, 40, 60) for voice in VOICES[:5]))
    np.testing.assert_array_equal(speak((word,))[0], alone)


@pytest.mark.long
def test_every_voice_speaks_every_accent_the_same_way_twice() -> None:
    from entrain.models.data.synthetic_speech import ACCENTS

    for voice in VOICES:
        group = tuple(Utterance("seven", voice, accent, 170, 50, 50) for accent in ACCENTS)
        for first, second in zip(speak(group), speak(group), strict=True):
            np.testing.assert_array_equal(first, second)
            assert np.abs(first).max() > 1000


def test_a_voice_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolError, match="no such voice") as caught:
        speak((Utterance("zero", "m1", "xx", 160, 50, 50),))
    assert caught.value.where == "xx+m1"


def test_a_missing_synthesizer_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(ToolError, match="not installed") as caught:
        synthetic_speech(WORDS, SIZES)
    assert "pip install espeakng-loader" in str(caught.value.remedy)


def test_a_library_that_does_not_load_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libespeak-ng.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr("espeakng_loader.get_library_path", lambda: str(broken))
    with pytest.raises(ToolError, match="cannot be loaded") as caught:
        speak((Utterance("zero", "m1", "en", 160, 50, 50),))
    assert caught.value.where == str(broken)


@pytest.mark.parametrize("words", [(), ("one",), ("one", "one"), ("one", " ")])
def test_two_different_words_are_needed(words: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="two or more different words"):
        synthetic_speech(words, SIZES)


def test_no_part_may_be_empty() -> None:
    with pytest.raises(DataError, match="at least one clip"):
        PartSizes(train=0)
