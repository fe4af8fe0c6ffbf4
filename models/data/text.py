"""Texts as words: WikiText-2 and TinyStories, in the layouts in which they are given out."""

from __future__ import annotations

import re
import string
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.errors import DataError, UsageError
from entrain.models.choices import check_choice

Words = NDArray[np.int64]

PADDING, BEGIN, END, UNKNOWN = range(4)
SPECIAL = ("<pad>", "<begin>", "<end>", "<unk>")

# Of a hundred parts of a text that has to give two or three parts.
HELD_OUT = 10

_PUNCTUATION = re.compile(r"([.,!?;:()\[\]{}\"'])")
_WITHOUT_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))


@dataclass(frozen=True, eq=False)
class TextData:
    """A text in three parts, as words of one vocabulary.

    Args:
        vocabulary: the special words of `SPECIAL`, then the most frequent ones of `train`.
        train: int64 [N].
        validation: int64 [N].
        test: int64 [N].
        source: the files it came from.
    """

    vocabulary: tuple[str, ...]
    train: Words
    validation: Words
    test: Words
    source: str


Split = Callable[[list[Words]], tuple[Words, Words, Words]]
"""Makes training, validation and test part of the texts of a corpus."""


@dataclass(frozen=True)
class Corpus:
    """What is read of a text, and how it is given out.

    Args:
        files: of each file, the names that it may have.
        split: from the files' words to the three parts.
        words: of a line of it.
        address: where it can be had.
    """

    files: tuple[Sequence[str], ...]
    split: Split
    words: Callable[[str], list[str]]
    address: str


def _wikitext_words(line: str) -> list[str]:
    """In lower case, with punctuation marks as words: what the paper's figures are of."""
    return _PUNCTUATION.sub(r" \1 ", line.lower()).split()


def _story_words(line: str) -> list[str]:
    """In lower case and without punctuation marks, as in the paper; a story ends with its mark."""
    if line.strip() == "<|endoftext|>":
        return [SPECIAL[END]]
    return line.lower().translate(_WITHOUT_PUNCTUATION).split()


def _as_given(texts: list[Words]) -> tuple[Words, Words, Words]:
    train, validation, test = texts
    return train, validation, test


def _judged_twice(texts: list[Words]) -> tuple[Words, Words, Words]:
    """One text is validation and test: nothing is chosen by the validation of a whole training."""
    train, validation = texts
    return train, validation, validation


def _held_out(texts: list[Words]) -> tuple[Words, Words, Words]:
    """The last tenth of the first text is for validation."""
    learned, test = texts
    last = len(learned) - len(learned) * HELD_OUT // 100
    return learned[:last], learned[last:], test


def _held_out_twice(texts: list[Words]) -> tuple[Words, Words, Words]:
    """Of the one text, the last tenth is the test part and the tenth before it validation."""
    (text,) = texts
    last = len(text) - len(text) * HELD_OUT // 100
    before = len(text) - 2 * len(text) * HELD_OUT // 100
    return text[:before], text[before:last], text[last:]


_WIKITEXT = "https://huggingface.co/datasets/Salesforce/wikitext"
_STORIES = "https://huggingface.co/datasets/roneneldan/TinyStories"
_WIKITEXT_TRAIN = ("wiki.train.tokens", "wiki.train.raw", "wikitext2_train.txt")
_WIKITEXT_VALID = ("wiki.valid.tokens", "wiki.valid.raw", "wikitext2_valid.txt")
_WIKITEXT_TEST = ("wiki.test.tokens", "wiki.test.raw", "wikitext2_test.txt")

# An excerpt is a corpus of its own: figures of it are never taken for those of the whole.
CORPORA: dict[str, Corpus] = {
    "wikitext-2": Corpus(
        (_WIKITEXT_TRAIN, _WIKITEXT_VALID, _WIKITEXT_TEST), _as_given, _wikitext_words, _WIKITEXT
    ),
    "wikitext-2-excerpt": Corpus(
        (_WIKITEXT_VALID, _WIKITEXT_TEST), _held_out, _wikitext_words, _WIKITEXT
    ),
    "tinystories": Corpus(
        (
            ("TinyStories-train.txt", "TinyStoriesV2-GPT4-train.txt"),
            ("TinyStories-valid.txt", "TinyStoriesV2-GPT4-valid.txt"),
        ),
        _judged_twice,
        _story_words,
        _STORIES,
    ),
    "tinystories-excerpt": Corpus(
        (("tinystories_slice.txt", "TinyStories-valid.txt", "TinyStoriesV2-GPT4-valid.txt"),),
        _held_out_twice,
        _story_words,
        _STORIES,
    ),
}


def load_text(folder: Path, corpus: str, vocabulary: int) -> TextData:
    """Read a corpus.

    WikiText-2 has its three parts, TinyStories two: its validation file is validation and test. The
    excerpts learn from what the whole is judged by: that of WikiText-2 from nine tenths of the
    validation file, with the last tenth for validation and the test file for the test; that of
    TinyStories from eight tenths of one short file, with a tenth each for validation and test.

    Args:
        folder: where its files are.
        corpus: a name of `CORPORA`.
        vocabulary: how many words are kept apart, the four special ones included.

    Raises:
        UsageError: there is no such corpus, or the vocabulary is too small.
        DataError: one of its files is not there, is empty or no text.
    """
    check_choice("corpus", corpus, CORPORA)
    if vocabulary <= len(SPECIAL):
        raise UsageError(f"a vocabulary of {vocabulary} has no room for a word")
    layout = CORPORA[corpus]
    paths = [_file(folder, names, layout) for names in layout.files]
    index = {word: number for number, word in enumerate(SPECIAL)}
    texts = [_read(path, layout, index) for path in paths]
    train, validation, test = layout.split(texts)
    kept = _most_frequent(train, len(index), vocabulary)
    places = np.full(len(index), UNKNOWN)
    places[END] = END
    places[kept] = np.arange(len(SPECIAL), len(SPECIAL) + len(kept))
    words = tuple(index)
    return TextData(
        vocabulary=(*SPECIAL, *(words[number] for number in kept)),
        train=places[train],
        validation=places[validation],
        test=places[test],
        source=", ".join(path.name for path in paths),
    )


def chunks(words: Words, length: int) -> Words:
    """Pieces of a text, each between the words for begin and end: int64 [N, length].

    The paper's form. What is left over at the end of the text is padded; less than two words are
    dropped.

    Raises:
        UsageError: the length leaves no room for a word.
    """
    inside = length - 2
    if inside < 1:
        raise UsageError(f"a piece of {length} words has no room between begin and end")
    count = -(-len(words) // inside)
    pieces = np.full((count, length), PADDING, np.int64)
    for row, start in enumerate(range(0, len(words), inside)):
        piece = words[start : start + inside]
        pieces[row, : len(piece) + 2] = [BEGIN, *piece, END]
    too_short = len(words) - (count - 1) * inside < 2
    return pieces[:-1] if too_short else pieces


def _file(folder: Path, names: Sequence[str], layout: Corpus) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(
        f"the text {names[0]} is missing (or {', '.join(names[1:])})",
        where=str(folder),
        remedy=f"Get it from {layout.address} and name its folder with --data-dir.",
    )


def _read(path: Path, layout: Corpus, index: dict[str, int]) -> Words:
    """The words as numbers of `index`, which takes in the new ones: int32, for long texts."""
    numbers = array("i")
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                numbers.extend(index.setdefault(word, len(index)) for word in layout.words(line))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"the text cannot be read: {error}",
            where=str(path),
            remedy=f"Get it again from {layout.address}.",
        ) from error
    if not numbers:
        raise DataError(
            "the text is empty", where=str(path), remedy=f"Get it again from {layout.address}."
        )
    return np.frombuffer(numbers, np.intc)


def _most_frequent(words: Words, known: int, size: int) -> Words:
    """Numbers of the words to keep; of equally frequent ones, those that come first in the text."""
    counts = np.bincount(words, minlength=known)[len(SPECIAL) :]
    order = np.argsort(-counts, kind="stable")[: size - len(SPECIAL)]
    return len(SPECIAL) + order[counts[order] > 0]
