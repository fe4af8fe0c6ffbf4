"""Subject-verb agreement: the sentences of two templates, generated or read from a folder.

``the NOUN VERB .`` (40 %) and ``the NOUN PREPOSITION the NOUN VERB .`` (60 %). Half of the verbs
agree with the subject, the first noun. A sentence is hard if its second noun is of the other
number: who looks at the nearest noun is then wrong. Words, shares and seeds are those of
Pasqualetti and Guo (arXiv 2606.12059), so the sentences are theirs, one by one. No model gets all
of them right: fish and deer have one form for both numbers, about two sentences in a hundred.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from entrain.deploy.errors import DataError, concerning

# One form is both; a slash separates singular and plural; otherwise the plural adds an s.
_NOUNS = """
    key book cat dog child/children box/boxes plant lamp table chair map cup bag ball coin door bird
    fish/fish tree car star ring shoe hat pen rock leaf/leaves wall flag seed duck fox/foxes frog
    mouse/mice horse goat wolf/wolves bear deer/deer owl ant bee fly/flies crab boat ship tank van
    bus/buses jet
"""
# Here the singular adds an s to the plural.
_VERBS = """
    is/are has/have was/were sits runs falls works stands flies/fly swims waits plays stays eats
    sleeps moves looks grows lives walks rests talks stops drops rolls spins hops digs pulls bites
"""
PREPOSITIONS = ("on", "under", "near", "beside", "above", "with", "by")
NOUNS = tuple(
    (one, many or f"{one}s") for one, _, many in (w.partition("/") for w in _NOUNS.split())
)
VERBS = tuple(
    (one, many or one.removesuffix("s"))
    for one, _, many in (w.partition("/") for w in _VERBS.split())
)

PADDING = "<PAD>"
# The paper's special words; a sentence here begins and ends without <BOS> and <EOS>.
SPECIAL = (PADDING, "<BOS>", "<EOS>", "<UNK>")
VOCABULARY = SPECIAL + tuple(
    sorted({"the", ".", *PREPOSITIONS, *(form for pair in NOUNS + VERBS for form in pair)})
)
LABELS = ("disagrees", "agrees")
# Words of the longer template, and where the verb is in a sentence aligned on the right.
LENGTH = 7
VERB = LENGTH - 2

FILES = {"train": "train.tsv", "validation": "val.tsv", "test": "test.tsv"}
# Sentences and seed of each part.
_PARTS = {"train": (40_000, 0), "validation": (4_000, 1), "test": (4_000, 2)}
_TWO_NOUNS = 0.6
_HEADER = ("label", "verb_index", "distractor", "sentence")
_DISTRACTORS = ("none", "agree", "attract")
_REMEDY = "Give --data-dir the folder with train.tsv, val.tsv and test.tsv, or leave it out."
_MEND = "Mend or remove that line: label, verb_index, distractor and sentence, separated by tabs."


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences aligned on the right, so that the verb is always at `VERB`.

    Args:
        tokens: int64 [N, LENGTH], places in `VOCABULARY`, with `PADDING` in front.
        targets: int64 [N], 1 where the verb agrees with the subject, otherwise 0.
        hard: bool [N], true where the second noun is of the other number than the subject.
        texts: the sentences, words separated by spaces.
    """

    tokens: Tensor
    targets: Tensor
    hard: Tensor
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, indices: Sequence[int]) -> Sentences:
        """These sentences, in this order."""
        places = torch.as_tensor(indices, dtype=torch.int64)
        return Sentences(
            tokens=self.tokens[places],
            targets=self.targets[places],
            hard=self.hard[places],
            texts=tuple(self.texts[place] for place in places.tolist()),
        )


@dataclass(frozen=True, eq=False)
class AgreementData:
    """Three parts of sentences.

    Args:
        vocabulary: the words, in the order of the tokens.
        labels: of the targets 0 and 1.
        train, validation, test: the parts.
        source: ``templates``, or the folder.
    """

    vocabulary: tuple[str, ...]
    labels: tuple[str, ...]
    train: Sentences
    validation: Sentences
    test: Sentences
    source: str


@dataclass(frozen=True)
class _Sentence:
    """One sentence: its words, whether the verb agrees, whether the second noun misleads."""

    text: str
    agrees: bool
    hard: bool


def generate_agreement() -> AgreementData:
    """The paper's 40,000 training, 4,000 validation and 4,000 test sentences."""
    return _data(
        {
            part: _encode([_draw(source) for _ in range(count)])
            for part, (count, seed) in _PARTS.items()
            for source in (random.Random(seed),)
        },
        "templates",
    )


def load_agreement(folder: Path) -> AgreementData:
    """Read train.tsv, val.tsv and test.tsv: label, verb_index, distractor, sentence.

    The label is 1 where the verb agrees; the distractor is ``none``, ``agree`` or ``attract``,
    and the last makes a sentence hard. Words must be of the vocabulary, the verb last but one.

    Raises:
        DataError: if a file is missing or a line is not so, with file and line.
    """
    return _data({part: _read(folder / name) for part, name in FILES.items()}, str(folder))


def encode(text: str) -> list[int]:
    """The `LENGTH` tokens of a sentence, aligned on the right.

    Raises:
        DataError: if it is too long or too short, or a word is unknown.
    """
    words = text.split()
    if not 2 <= len(words) <= LENGTH:
        raise DataError(f"a sentence has 2 to {LENGTH} words, this one {len(words)}: {text!r}")
    for word in words:
        if word not in _TOKENS:
            raise DataError(f"the word {word!r} is not in the vocabulary of {len(VOCABULARY)}")
    padding = [PADDING] * (LENGTH - len(words))
    return [_TOKENS[word] for word in (*padding, *words)]


_TOKENS = {word: token for token, word in enumerate(VOCABULARY)}


def _data(parts: dict[str, Sentences], source: str) -> AgreementData:
    return AgreementData(vocabulary=VOCABULARY, labels=LABELS, source=source, **parts)


def _draw(source: random.Random) -> _Sentence:
    """One sentence. The order of the draws is the published one, or the sentences would differ."""
    two_nouns = source.random() < _TWO_NOUNS
    number = 0 if source.random() < 0.5 else 1  # 0 is singular
    subject = source.choice(NOUNS)[number]
    agrees = source.random() < 0.5
    verb = source.choice(VERBS)[number if agrees else 1 - number]
    if not two_nouns:
        return _Sentence(f"the {subject} {verb} .", agrees, hard=False)
    preposition = source.choice(PREPOSITIONS)
    alike = source.random() < 0.5
    second = source.choice(NOUNS)[number if alike else 1 - number]
    return _Sentence(f"the {subject} {preposition} the {second} {verb} .", agrees, hard=not alike)


def _encode(sentences: Sequence[_Sentence]) -> Sentences:
    return Sentences(
        tokens=torch.tensor([encode(sentence.text) for sentence in sentences]),
        targets=torch.tensor([int(sentence.agrees) for sentence in sentences]),
        hard=torch.tensor([sentence.hard for sentence in sentences]),
        texts=tuple(sentence.text for sentence in sentences),
    )


def _read(path: Path) -> Sentences:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise DataError(
            f"the sentences cannot be read: {reason}", where=str(path), remedy=_REMEDY
        ) from error
    if not lines or tuple(lines[0].split("\t")) != _HEADER:
        raise DataError(
            f"the first line must name the columns {', '.join(_HEADER)}, separated by tabs",
            where=f"{path}:1",
            remedy=_REMEDY,
        )
    if len(lines) < 2:
        raise DataError("there are no sentences", where=str(path), remedy=_REMEDY)
    sentences = []
    for number, line in enumerate(lines[1:], start=2):
        with concerning(f"{path}:{number}", _MEND):
            sentences.append(_parse(line))
    return _encode(sentences)


def _parse(line: str) -> _Sentence:
    columns = line.split("\t")
    if len(columns) != len(_HEADER):
        raise DataError(f"{len(_HEADER)} columns separated by tabs are needed, not {len(columns)}")
    label, verb_index, distractor, text = columns
    if label not in ("0", "1"):
        raise DataError(f"the label must be 0 or 1, not {label!r}")
    if distractor not in _DISTRACTORS:
        raise DataError(
            f"the distractor must be one of {', '.join(_DISTRACTORS)}, not {distractor!r}"
        )
    encode(text)
    if verb_index != str(len(text.split()) - 2):
        raise DataError(
            f"the verb must be the last word but one, not word {verb_index!r} (from 0) of {text!r}"
        )
    return _Sentence(text, label == "1", hard=distractor == "attract")
