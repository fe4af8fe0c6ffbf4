"""The sentences are the paper's, one by one; a folder of sentences is read, or told why not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from entrain.deploy.errors import DataError
from entrain.models.data.agreement import (
    FILES,
    LENGTH,
    NOUNS,
    PADDING,
    PREPOSITIONS,
    VERB,
    VERBS,
    VOCABULARY,
    AgreementData,
    Sentences,
    encode,
    generate_agreement,
    load_agreement,
)

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "data" / "agreement" / "templates"
HEADER = "label\tverb_index\tdistractor\tsentence"
DIGEST = "bb50c0e18ecf5d53a7d91db3d63b390905b80e6e32e929e78ee3ff48ed50244a"


@pytest.fixture(scope="module")
def generated() -> AgreementData:
    return generate_agreement()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small data folder with two sentences in every part."""
    lines = [HEADER, "1\t2\tnone\tthe dogs play .", "0\t5\tattract\tthe cars by the ball plays ."]
    for name in FILES.values():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def parts(data: AgreementData) -> tuple[Sentences, Sentences, Sentences]:
    return data.train, data.validation, data.test


def test_the_word_lists_are_the_papers() -> None:
    assert (len(NOUNS), len(VERBS), len(PREPOSITIONS), len(VOCABULARY)) == (50, 30, 7, 169)
    assert ("child", "children") in NOUNS
    assert ("key", "keys") in NOUNS
    assert {one for one, many in NOUNS if one == many} == {"fish", "deer"}
    assert ("is", "are") in VERBS
    assert ("moves", "move") in VERBS
    assert len(set(VOCABULARY)) == len(VOCABULARY)


def test_the_sentences_and_labels_never_change(generated: AgreementData) -> None:
    digest = hashlib.sha256()
    for part in parts(generated):
        rows = zip(part.targets.tolist(), part.hard.tolist(), part.texts, strict=True)
        digest.update("\n".join(f"{target} {hard} {text}" for target, hard, text in rows).encode())
    assert digest.hexdigest() == DIGEST


def test_the_sentences_are_the_published_ones(generated: AgreementData) -> None:
    if not TEMPLATES.is_dir():
        pytest.skip(f"no sentences at {TEMPLATES}")
    for ours, theirs in zip(parts(generated), parts(load_agreement(TEMPLATES)), strict=True):
        assert ours.texts == theirs.texts
        assert torch.equal(ours.targets, theirs.targets)
        assert torch.equal(ours.hard, theirs.hard)
        assert torch.equal(ours.tokens, theirs.tokens)


def test_there_are_as_many_sentences_as_in_the_paper(generated: AgreementData) -> None:
    assert [len(part) for part in parts(generated)] == [40_000, 4_000, 4_000]
    assert [int(part.hard.sum()) for part in parts(generated)] == [11_970, 1_153, 1_150]
    assert generated.source == "templates"


def test_labels_and_hardness_follow_from_the_words(generated: AgreementData) -> None:
    """Read off again from the words alone, but for nouns of one form."""
    singular = {one for one, many in NOUNS if one != many}
    plural = {many for one, many in NOUNS if one != many}
    singular_verbs = {one for one, _ in VERBS}
    test = generated.test
    for text, target, hard in zip(
        test.texts, test.targets.tolist(), test.hard.tolist(), strict=True
    ):
        subject, *middle, verb, _ = text.split()[1:]
        if subject in singular | plural:
            assert target == ((subject in singular) == (verb in singular_verbs))
        if middle and {subject, middle[-1]} <= singular | plural:
            assert hard == ((subject in singular) != (middle[-1] in singular))
        assert bool(middle) or not hard


def test_every_sentence_has_its_verb_at_one_place(generated: AgreementData) -> None:
    verbs = {form for pair in VERBS for form in pair}
    for tokens, text in zip(generated.test.tokens.tolist(), generated.test.texts, strict=True):
        words = [VOCABULARY[token] for token in tokens]
        assert len(words) == LENGTH
        assert words[VERB] in verbs
        assert [word for word in words if word != PADDING] == text.split()
        assert words[: LENGTH - len(text.split())] == [PADDING] * (LENGTH - len(text.split()))


def test_select_keeps_the_order_asked_for(generated: AgreementData) -> None:
    some = generated.test.select([7, 3])
    assert some.texts == (generated.test.texts[7], generated.test.texts[3])
    assert torch.equal(some.tokens, generated.test.tokens[[7, 3]])
    assert torch.equal(some.targets, generated.test.targets[[7, 3]])
    assert torch.equal(some.hard, generated.test.hard[[7, 3]])
    assert len(some) == 2


def test_a_folder_is_read(folder: Path) -> None:
    data = load_agreement(folder)
    assert data.source == str(folder)
    assert data.test.texts == ("the dogs play .", "the cars by the ball plays .")
    assert data.test.targets.tolist() == [1, 0]
    assert data.test.hard.tolist() == [False, True]
    assert data.vocabulary == VOCABULARY


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "val.tsv").unlink()
    with pytest.raises(DataError, match="cannot be read") as caught:
        load_agreement(folder)
    assert caught.value.where == str(folder / "val.tsv")
    assert "--data-dir" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1\t2\tnone", "4 columns"),
        ("2\t2\tnone\tthe dogs play .", "label"),
        ("1\t2\tsome\tthe dogs play .", "distractor"),
        ("1\t1\tnone\tthe dogs play .", "last word but one"),
        ("1\t2\tnone\tthe dragons play .", "'dragons' is not in the vocabulary"),
        ("1\t6\tnone\tthe dogs by the cat by play .", "2 to 7 words"),
        ("1\t-1\tnone\tthe", "2 to 7 words"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(folder: Path, line: str, complaint: str) -> None:
    path = folder / "test.tsv"
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=complaint) as caught:
        load_agreement(folder)
    assert caught.value.where == f"{path}:4"
    assert "that line" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace("distractor", "attractor"), "must name the columns"),
        (lambda _: "", "must name the columns"),
        (lambda _: HEADER + "\n", "no sentences"),
    ],
)
def test_a_file_without_header_or_sentences_is_refused(
    folder: Path, change: Callable[[str], str], complaint: str
) -> None:
    path = folder / "train.tsv"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=complaint) as caught:
        load_agreement(folder)
    assert str(caught.value.where).startswith(str(path))


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "train.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read"):
        load_agreement(folder)


def test_encode_takes_both_templates() -> None:
    assert [VOCABULARY[token] for token in encode("the dogs play .")][:3] == [PADDING] * 3
    assert PADDING not in [VOCABULARY[token] for token in encode("the cars by the ball plays .")]


def test_data_can_be_cut_down(generated: AgreementData) -> None:
    small = replace(generated, test=generated.test.select(range(5)))
    assert len(small.test) == 5
