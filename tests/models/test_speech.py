from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from entrain.deploy.errors import DataError
from entrain.models.data.clips import CLIP_SAMPLES, Clips
from entrain.models.data.recordings import decode_clips, read_recording
from entrain.models.data.speech import (
    NOISE_SHARES,
    STANDARD_WORDS,
    load_speech_commands,
    load_standard_12,
)

NOISE_SAMPLES = 20 * CLIP_SAMPLES


def write_clip(path: Path, samples: np.ndarray, rate: int = 16_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, subtype="PCM_16")


def make_archive(folder: Path, words: tuple[str, ...], suffix: str = ".wav") -> Path:
    """Four training, two validation and two test clips a word, each of constant value."""
    listed: dict[str, list[str]] = {"validation": [], "testing": []}
    for number, word in enumerate(words):
        for take in range(8):
            name = f"speaker{take}_nohash_0"
            samples = np.full(CLIP_SAMPLES, 100 * number + take, dtype=np.int16)
            write_clip(folder / word / f"{name}{suffix}", samples)
            if take >= 4:
                listed["validation" if take < 6 else "testing"].append(f"{word}/{name}.wav")
    for kind, names in listed.items():
        (folder / f"{kind}_list.txt").write_text("\n".join(names) + "\n")
    # A noise whose value says where in the recording a sample was.
    ramp = (np.arange(NOISE_SAMPLES) // 16 + 1).astype(np.int16)
    write_clip(folder / "_background_noise_" / f"hum{suffix}", ramp)
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return make_archive(tmp_path / "archive", ("cat", "dog", "yes"))


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_clips_are_split_by_the_lists_and_labelled_by_folder(tmp_path: Path, suffix: str) -> None:
    data = load_speech_commands(make_archive(tmp_path, ("cat", "dog"), suffix))
    assert data.labels == ("cat", "dog")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [8, 4, 4]
    assert data.test.names == tuple(
        f"{word}/speaker{take}_nohash_0" for word in ("cat", "dog") for take in (6, 7)
    )
    assert data.test.speakers == ("speaker6", "speaker7") * 2
    assert data.test.targets.tolist() == [0, 0, 1, 1]
    assert data.test.samples[:, 0].tolist() == [6, 7, 106, 107]
    assert data.source == str(tmp_path)


def test_words_can_be_chosen_and_keep_their_order(archive: Path) -> None:
    assert load_speech_commands(archive, ["yes", "cat"]).labels == ("yes", "cat")


def test_a_word_without_training_clips_is_left_out_unless_asked_for(archive: Path) -> None:
    for take in range(4):
        (archive / "dog" / f"speaker{take}_nohash_0.wav").unlink()
    assert load_speech_commands(archive).labels == ("cat", "yes")
    with pytest.raises(DataError, match="of: dog") as caught:
        load_speech_commands(archive, ["cat", "dog"])
    assert "cat, yes" in str(caught.value.remedy)


def test_short_clips_are_followed_by_zeros_and_long_ones_are_cut(tmp_path: Path) -> None:
    short, long = tmp_path / "short.wav", tmp_path / "long.flac"
    write_clip(short, np.full(9000, 5, dtype=np.int16))
    write_clip(long, np.arange(20_000, dtype=np.int16))
    clips = decode_clips([short, long])
    assert clips.shape == (2, CLIP_SAMPLES)
    assert clips[0, 8999] == 5
    assert not clips[0, 9000:].any()
    np.testing.assert_array_equal(clips[1], np.arange(CLIP_SAMPLES))


def of_class(part: Clips, target: int) -> Clips:
    return part.select(np.flatnonzero(part.targets == target))


def test_unknown_words_are_a_class_of_average_size(archive: Path) -> None:
    data = load_speech_commands(archive, ["cat", "dog"], unknown=True)
    assert data.labels == ("cat", "dog", "unknown")
    for part, size in ((data.train, 4), (data.validation, 2), (data.test, 2)):
        unknown = of_class(part, 2)
        assert len(unknown) == size
        assert all(name.startswith("yes/") for name in unknown.names)
    again = load_speech_commands(archive, ["cat", "dog"], unknown=True)
    assert again.train.names == data.train.names


def test_silence_comes_from_a_stretch_of_noise_of_the_parts_own(archive: Path) -> None:
    data = load_speech_commands(archive, silence=True)
    assert data.labels[-1] == "silence"
    ramp = np.arange(NOISE_SAMPLES) // 16 + 1
    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    for name, part in parts.items():
        silent = of_class(part, 3)
        assert len(silent) == len(part) // 4
        first, last = (round(share * NOISE_SAMPLES) for share in NOISE_SHARES[name])
        for clip, called in zip(silent.samples, silent.names, strict=True):
            start = first + int(called.rpartition("+")[2])
            assert start <= last - CLIP_SAMPLES
            noise = ramp[start : start + CLIP_SAMPLES]
            loudness = clip.max() / noise.max()
            assert 0 <= loudness <= 1
            np.testing.assert_allclose(clip, loudness * noise, atol=1.5)
    assert len(data.background[0]) == 0.8 * NOISE_SAMPLES


@pytest.mark.parametrize("option", ["unknown", "silence"])
def test_a_class_that_cannot_be_made_is_refused(tmp_path: Path, option: str) -> None:
    folder = make_archive(tmp_path, ("cat", "dog"))
    (folder / "_background_noise_" / "hum.wav").unlink()
    with pytest.raises(DataError, match=option):
        load_speech_commands(folder, **{option: True})


def test_the_standard_twelve_classes(tmp_path: Path) -> None:
    folder = make_archive(tmp_path, (*STANDARD_WORDS, "cat", "dog"))
    data = load_standard_12(folder)
    assert data.labels == (*STANDARD_WORDS, "unknown", "silence")
    assert set(data.test.targets.tolist()) == set(range(12))


def test_the_standard_twelve_classes_need_the_whole_archive(tmp_path: Path) -> None:
    folder = make_archive(tmp_path, (*STANDARD_WORDS[:-2], "cat"))
    with pytest.raises(DataError, match="stop, go"):
        load_standard_12(folder)
    folder = make_archive(tmp_path, (*STANDARD_WORDS, "cat"))
    (folder / "cat" / "speaker6_nohash_0.wav").unlink()
    with pytest.raises(DataError, match=r"1 clips .* cat/speaker6_nohash_0"):
        load_standard_12(folder)


def remove_list(folder: Path) -> None:
    (folder / "testing_list.txt").unlink()


def remove_clips(folder: Path) -> None:
    for path in folder.glob("*/*.wav"):
        path.unlink()


def make_binary_list(folder: Path) -> None:
    (folder / "testing_list.txt").write_bytes(b"\xff\xfe\x00")


def one_word_only(folder: Path) -> None:
    for word in ("dog", "yes"):
        for path in (folder / word).iterdir():
            path.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_list, "list of the test clips"),
        (make_binary_list, "list of the test clips"),
        (remove_clips, "holds no clips"),
        (one_word_only, "at least two"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named_with_a_remedy(
    archive: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(archive)
    with pytest.raises(DataError, match=message) as caught:
        load_speech_commands(archive)
    assert str(archive) in str(caught.value.where)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such data folder") as caught:
        load_speech_commands(tmp_path / "nowhere")
    assert "--download" in str(caught.value.remedy)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    path.write_text("not a recording")


def no_samples(path: Path) -> None:
    write_clip(path, np.zeros(0, dtype=np.int16))


def stereo(path: Path) -> None:
    write_clip(path, np.zeros((CLIP_SAMPLES, 2), dtype=np.int16))


def slow(path: Path) -> None:
    write_clip(path, np.zeros(8000, dtype=np.int16), rate=8000)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
@pytest.mark.parametrize("damage", [cut, overwrite, no_samples, stereo, slow])
def test_a_clip_that_cannot_be_used_is_named(
    tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / f"clip{suffix}"
    write_clip(path, np.random.default_rng(0).integers(-99, 99, CLIP_SAMPLES).astype(np.int16))
    damage(path)
    with pytest.raises(DataError) as caught:
        read_recording(path)
    assert caught.value.where == str(path)
    assert caught.value.remedy


def test_decoded_clips_are_kept_until_a_file_changes(tmp_path: Path, cache_home: Path) -> None:
    path = tmp_path / "clip.wav"
    write_clip(path, np.full(CLIP_SAMPLES, 1, dtype=np.int16))
    assert decode_clips([path])[0, 0] == 1
    (kept,) = (cache_home / "entrain" / "speech").iterdir()
    np.save(kept, np.full((1, CLIP_SAMPLES), 7, dtype=np.int16))
    assert decode_clips([path])[0, 0] == 7
    write_clip(path, np.full(CLIP_SAMPLES - 1, 2, dtype=np.int16))
    assert decode_clips([path])[0, 0] == 2


def test_a_damaged_cache_is_made_anew(tmp_path: Path, cache_home: Path) -> None:
    path = tmp_path / "clip.wav"
    write_clip(path, np.full(CLIP_SAMPLES, 1, dtype=np.int16))
    decode_clips([path])
    (kept,) = (cache_home / "entrain" / "speech").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert decode_clips([path])[0, 0] == 1
    assert np.load(kept)[0, 0] == 1


def test_without_a_writable_cache_clips_are_decoded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clip.wav"
    write_clip(path, np.full(CLIP_SAMPLES, 3, dtype=np.int16))
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    assert decode_clips([path])[0, 0] == 3


def test_the_real_recordings_have_nine_words_and_share_no_speaker(speech_commands: Path) -> None:
    data = load_speech_commands(speech_commands)
    assert data.labels == ("down", "eight", "five", "go", "left", "one", "right", "up", "zero")
    parts = (data.train, data.validation, data.test)
    assert [len(part) for part in parts] == [4500, 500, 1809]
    speakers = [set(part.speakers) for part in parts]
    assert not speakers[0] & speakers[1]
    assert not speakers[0] & speakers[2]
    assert not speakers[1] & speakers[2]
    assert len(data.background) == 6


def test_clips_are_selected_with_all_that_belongs_to_them() -> None:
    clips = Clips(
        samples=np.arange(3, dtype=np.int16)[:, None] * np.ones(4, dtype=np.int16),
        targets=np.array([0, 1, 2]),
        speakers=("a", "b", "c"),
        names=("x", "y", "z"),
    )
    chosen = clips.select([2, 0])
    assert (chosen.names, chosen.speakers) == (("z", "x"), ("c", "a"))
    assert chosen.samples[:, 0].tolist() == chosen.targets.tolist() == [2, 0]
