"""Recorded words in the layout of Google Speech Commands (Warden 2018, arXiv:1804.03209).

``<word>/<speaker>_nohash_<n>.wav`` (or .flac), ``validation_list.txt`` and ``testing_list.txt``
with one ``<word>/<name>.wav`` a line, noise recordings in ``_background_noise_``. What neither
list names is for training. A part of the archive will do: listed clips that are not there are
not missed, except by `load_standard_12`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from entrain.deploy.errors import DataError
from entrain.models.data.clips import CLIP_SAMPLES, Clips, KeywordData, Samples, concatenate
from entrain.models.data.recordings import decode_clips, read_recording

STANDARD_WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
UNKNOWN = "unknown"
SILENCE = "silence"
PARTS = ("train", "validation", "test")
LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}
BACKGROUND = "_background_noise_"
SUFFIXES = (".wav", ".flac")
# How much of each noise recording belongs to each part, in order.
NOISE_SHARES = {"train": (0.0, 0.8), "validation": (0.8, 0.9), "test": (0.9, 1.0)}

_SEED = 59_185_301
_DOWNLOAD = (
    "Give --data-dir a folder in the layout of Speech Commands, or fetch it with --download."
)


@dataclass(frozen=True)
class _Recording:
    """One clip of the folder: the word spoken and the file."""

    word: str
    path: Path

    @property
    def name(self) -> str:
        return f"{self.word}/{self.path.stem}"

    @property
    def speaker(self) -> str:
        return self.path.stem.split("_nohash_")[0]


_Index = dict[str, dict[str, list[_Recording]]]


def load_speech_commands(
    folder: Path,
    words: Sequence[str] | None = None,
    *,
    unknown: bool = False,
    silence: bool = False,
) -> KeywordData:
    """Read a folder of recorded words, split by its own lists.

    Args:
        folder: the unpacked archive, or a part of it.
        words: the words to tell apart; None for all that have clips in every part.
        unknown: add a class of other words, in each part as many clips as a word has on average.
        silence: add a class of background noise at random loudness, as many clips likewise; each
            part takes its noise from a stretch of the recordings of its own.

    Returns:
        Clips of 16,000 samples: shorter recordings are followed by zeros, longer ones cut.

    Raises:
        DataError: if the folder, a list, a word or a clip is missing or unreadable.
    """
    index = _index_folder(folder)
    chosen = _choose_words(folder, index, words)
    background = load_background(folder)
    parts = {part: _load_words(index[part], chosen) for part in PARTS}
    labels = list(chosen)
    if unknown:
        labels.append(UNKNOWN)
        for part in PARTS:
            others = _sample_others(folder, index, part, chosen, _clips_a_word(parts[part], chosen))
            parts[part] = _join(parts[part], others, len(labels) - 1)
    if silence:
        labels.append(SILENCE)
        for part in PARTS:
            quiet = _silent_clips(folder, background, part, _clips_a_word(parts[part], chosen))
            parts[part] = _join(parts[part], quiet, len(labels) - 1)
    return KeywordData(
        labels=tuple(labels),
        train=parts["train"],
        validation=parts["validation"],
        test=parts["test"],
        background=tuple(_stretch(noise, "train") for _, noise in background),
        source=str(folder),
    )


def load_standard_12(folder: Path) -> KeywordData:
    """The standard set of twelve: ten words, unknown and silence; the archive must be complete.

    Raises:
        DataError: if words or listed clips are missing; and as `load_speech_commands`.
    """
    index = _index_folder(folder)
    missing = [word for word in STANDARD_WORDS if not all(index[part].get(word) for part in PARTS)]
    if missing:
        raise DataError(
            f"the standard twelve classes need words that are not complete here: "
            f"{', '.join(missing)}",
            where=str(folder),
            remedy="Fetch the whole archive with --download, or train on the words at hand.",
        )
    for part, list_name in LISTS.items():
        absent = _absent_clips(folder, part)
        if absent:
            raise DataError(
                f"{len(absent)} clips that the list names are missing, the first: {absent[0]}",
                where=str(folder / list_name),
                remedy="Fetch the whole archive with --download.",
            )
    return load_speech_commands(folder, STANDARD_WORDS, unknown=True, silence=True)


def _index_folder(folder: Path) -> _Index:
    """Every clip of the folder by part and word, in the order of their names."""
    if not folder.is_dir():
        raise DataError("there is no such data folder", where=str(folder), remedy=_DOWNLOAD)
    part_of = {name: part for part in LISTS for name in _read_list(folder, part)}
    index: _Index = {part: {} for part in PARTS}
    for word_folder in sorted(path for path in folder.iterdir() if path.is_dir()):
        if word_folder.name.startswith(("_", ".")):
            continue
        for path in sorted(word_folder.iterdir()):
            if path.suffix.lower() in SUFFIXES:
                recording = _Recording(word_folder.name, path)
                part = part_of.get(recording.name, "train")
                index[part].setdefault(recording.word, []).append(recording)
    if not any(index.values()):
        raise DataError("the data folder holds no clips", where=str(folder), remedy=_DOWNLOAD)
    return index


def _read_list(folder: Path, part: str) -> list[str]:
    """The clips that a list names, without their suffix."""
    path = folder / LISTS[part]
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"the list of the {part} clips cannot be read ({error})",
            where=str(path),
            remedy="Without the official lists the parts would share speakers. " + _DOWNLOAD,
        ) from error
    return [line.strip().rpartition(".")[0] for line in lines if line.strip()]


def _absent_clips(folder: Path, part: str) -> list[str]:
    return [
        name
        for name in _read_list(folder, part)
        if not any((folder / f"{name}{suffix}").is_file() for suffix in SUFFIXES)
    ]


def _choose_words(folder: Path, index: _Index, words: Sequence[str] | None) -> tuple[str, ...]:
    complete = sorted(set.intersection(*(set(index[part]) for part in PARTS)))
    chosen = tuple(complete if words is None else words)
    missing = [word for word in chosen if word not in complete]
    if missing:
        raise DataError(
            f"no training, validation or test clips of: {', '.join(missing)}",
            where=str(folder),
            remedy=f"Words with clips in every part: {', '.join(complete) or 'none'}.",
        )
    if len(set(chosen)) != len(chosen) or len(chosen) < 2:
        raise DataError(
            "at least two different words with clips in every part are needed, "
            f"not: {', '.join(chosen) or 'none'}",
            where=str(folder),
        )
    return chosen


def _load_words(words: dict[str, list[_Recording]], chosen: tuple[str, ...]) -> Clips:
    parts = [_decode(words[word], target) for target, word in enumerate(chosen)]
    return concatenate(parts)


def _decode(recordings: Sequence[_Recording], target: int) -> Clips:
    return Clips(
        samples=decode_clips([recording.path for recording in recordings]),
        targets=np.full(len(recordings), target, dtype=np.int64),
        speakers=tuple(recording.speaker for recording in recordings),
        names=tuple(recording.name for recording in recordings),
    )


def _clips_a_word(clips: Clips, chosen: tuple[str, ...]) -> int:
    of_words = int((clips.targets < len(chosen)).sum())
    return max(1, round(of_words / len(chosen)))


def _join(clips: Clips, more: Clips, target: int) -> Clips:
    labelled = Clips(
        more.samples, np.full(len(more), target, dtype=np.int64), more.speakers, more.names
    )
    return concatenate([clips, labelled])


def _sample_others(
    folder: Path, index: _Index, part: str, chosen: tuple[str, ...], count: int
) -> Clips:
    others = [
        recording
        for word in sorted(index[part])
        if word not in chosen
        for recording in index[part][word]
    ]
    if not others:
        raise DataError(
            f"no {part} clips of other words for the class {UNKNOWN!r}",
            where=str(folder),
            remedy="Leave some words out of the list of words, or the class of unknown words.",
        )
    order = np.random.default_rng((_SEED, PARTS.index(part))).permutation(len(others))
    return _decode([others[i] for i in sorted(order[:count])], target=0)


def load_test_only(folder: Path) -> Clips:
    """The clips of all words that are in the test part alone; their targets are all 0.

    Raises:
        DataError: there are none, or the folder, a list or a clip is unreadable.
    """
    index = _index_folder(folder)
    words = sorted(set(index["test"]) - set(index["train"]) - set(index["validation"]))
    if not words:
        raise DataError(
            "no words are in the test part alone, to see whether unknown words are taken for known",
            where=str(folder),
            remedy=f"list all clips of some words in {LISTS['test']}",
        )
    return _decode([each for word in words for each in index["test"][word]], target=0)


def load_background(folder: Path) -> list[tuple[str, Samples]]:
    """The noise recordings of a second or more, with their names.

    Raises:
        DataError: one is unreadable.
    """
    paths = sorted((folder / BACKGROUND).glob("*"))
    return [
        (path.stem, noise)
        for path in paths
        if path.suffix.lower() in SUFFIXES and len(noise := read_recording(path)) >= CLIP_SAMPLES
    ]


def _stretch(noise: Samples, part: str) -> Samples:
    """A part's own stretch of a noise recording, the whole of one too short to be divided."""
    start, stop = (round(share * len(noise)) for share in NOISE_SHARES[part])
    return noise[start:stop] if stop - start >= CLIP_SAMPLES else noise[:]


def _silent_clips(
    folder: Path, background: Sequence[tuple[str, Samples]], part: str, count: int
) -> Clips:
    if not background:
        raise DataError(
            f"no noise recordings for the class {SILENCE!r}",
            where=str(folder / BACKGROUND),
            remedy="Add recordings of a second or more, or leave that class out.",
        )
    random = np.random.default_rng((_SEED, PARTS.index(part), 1))
    samples = np.empty((count, CLIP_SAMPLES), dtype=np.int16)
    names = []
    for clip in samples:
        name, noise = background[int(random.integers(len(background)))]
        stretch = _stretch(noise, part)
        start = int(random.integers(len(stretch) - CLIP_SAMPLES + 1))
        clip[:] = np.rint(stretch[start : start + CLIP_SAMPLES] * random.uniform())
        names.append(f"{BACKGROUND}/{name}@{part}+{start}")
    speakers = tuple(name.partition("+")[0] for name in names)
    return Clips(samples, np.zeros(count, dtype=np.int64), speakers, tuple(names))
