"""Texts become words as their files and the paper's figures have them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import DataError, UsageError
from entrain.models.data.text import (
    BEGIN,
    CORPORA,
    END,
    PADDING,
    SPECIAL,
    UNKNOWN,
    TextData,
    chunks,
    load_text,
)


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def read_back(data: TextData, part: np.ndarray) -> list[str]:
    return [data.vocabulary[word] for word in part]


def test_the_official_layout_of_wikitext_gives_its_three_parts(tmp_path: Path) -> None:
    written(
        tmp_path,
        **{
            "wiki.train.tokens": " = The Cat = \n \n The cat sat , the <unk> cat .\n",
            "wiki.valid.tokens": "A cat sat .\n",
            "wiki.test.tokens": "The dog!\n",
        },
    )
    data = load_text(tmp_path, "wikitext-2", 100)
    assert read_back(data, data.train) == [
        "=",
        "the",
        "cat",
        "=",
        "the",
        "cat",
        "sat",
        ",",
        "the",
        "<unk>",
        "cat",
        ".",
    ]
    assert read_back(data, data.validation) == ["<unk>", "cat", "sat", "."]
    assert read_back(data, data.test) == ["the", "<unk>", "<unk>"]
    assert data.vocabulary[:4] == SPECIAL
    assert data.vocabulary[4:] == ("the", "cat", "=", "sat", ",", ".")
    assert data.source == "wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens"


def test_the_excerpt_of_wikitext_learns_from_the_validation_file(tmp_path: Path) -> None:
    words = [f"w{place}" for place in range(100)]
    written(tmp_path, **{"wikitext2_valid.txt": " ".join(words), "wikitext2_test.txt": "w5 w99"})
    # A whole corpus beside it changes nothing.
    written(tmp_path, **{"wiki.train.tokens": "much more"})
    data = load_text(tmp_path, "wikitext-2-excerpt", 200)
    assert read_back(data, data.train) == words[:90]
    assert len(data.validation) == 10
    assert read_back(data, data.test) == ["w5", "<unk>"]


def test_an_excerpt_is_never_taken_for_the_whole(tmp_path: Path) -> None:
    written(
        tmp_path,
        **{"wikitext2_valid.txt": "a", "wikitext2_test.txt": "b", "tinystories_slice.txt": "c"},
    )
    for corpus, missing in (
        ("wikitext-2", "wiki.train.tokens"),
        ("tinystories", "TinyStories-train.txt"),
    ):
        with pytest.raises(DataError, match=missing):
            load_text(tmp_path, corpus, 100)


def test_the_official_layout_of_tinystories_ends_stories_with_a_mark(tmp_path: Path) -> None:
    story = "One day, Lily's cat ran.\n<|endoftext|>\n"
    written(tmp_path, **{"TinyStories-train.txt": story * 10, "TinyStories-valid.txt": "A cat.\n"})
    # What else is in the folder changes nothing.
    written(tmp_path, **{"tinystories_slice.txt": "a dog"})
    data = load_text(tmp_path, "tinystories", 100)
    assert read_back(data, data.train)[:7] == ["one", "day", "lily", "s", "cat", "ran", "<end>"]
    assert len(data.train) == 70
    assert read_back(data, data.validation) == read_back(data, data.test) == ["<unk>", "cat"]


def test_what_looks_like_padding_in_a_text_is_an_unknown_word(tmp_path: Path) -> None:
    written(tmp_path, **{"tinystories_slice.txt": "a", "wiki.train.raw": "<pad> b <begin>"})
    written(tmp_path, **{"wiki.valid.raw": "b", "wiki.test.raw": "b"})
    data = load_text(tmp_path, "wikitext-2", 100)
    assert read_back(data, data.train) == ["<unk>", "b", "<unk>"]


def test_one_file_gives_all_three_parts(tmp_path: Path) -> None:
    written(tmp_path, **{"tinystories_slice.txt": "a b c d e f g h i j"})
    data = load_text(tmp_path, "tinystories-excerpt", 100)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [8, 1, 1]


def test_the_vocabulary_holds_the_most_frequent_words_of_the_training_part(
    tmp_path: Path,
) -> None:
    written(
        tmp_path,
        **{
            "wiki.train.raw": "c c c b b a\n",
            "wiki.valid.raw": "a a a a\n",
            "wiki.test.raw": "b\n",
        },
    )
    data = load_text(tmp_path, "wikitext-2", 6)
    assert data.vocabulary == (*SPECIAL, "c", "b")
    assert list(data.validation) == [UNKNOWN] * 4


def test_a_folder_without_a_corpus_says_which_file_and_where_to_get_it(tmp_path: Path) -> None:
    for name, corpus in CORPORA.items():
        with pytest.raises(DataError) as refusal:
            load_text(tmp_path, name, 100)
        assert corpus.files[0][0] in refusal.value.what
        assert refusal.value.where == str(tmp_path)
        assert corpus.address in str(refusal.value.remedy)


@pytest.mark.parametrize("content", [b"", b"  \n \n", b"\xff\xfe\x00"])
def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "wiki.train.tokens").write_bytes(content)
    written(tmp_path, **{"wiki.valid.tokens": "a", "wiki.test.tokens": "a"})
    with pytest.raises(DataError) as refusal:
        load_text(tmp_path, "wikitext-2", 100)
    assert refusal.value.where == str(tmp_path / "wiki.train.tokens")


def test_an_unknown_corpus_and_a_vocabulary_without_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        load_text(tmp_path, "penn", 100)
    assert "wikitext-2, " in str(refusal.value.remedy)
    with pytest.raises(UsageError, match="no room"):
        load_text(tmp_path, "wikitext-2", 4)


@given(st.lists(st.integers(4, 50), max_size=60), st.integers(3, 12))
def test_pieces_hold_the_text_once_between_begin_and_end(words: list[int], length: int) -> None:
    pieces = chunks(np.array(words, np.int64), length)
    inside: list[int] = []
    for row in pieces:
        assert row[0] == BEGIN
        assert np.count_nonzero(row == END) == 1
        end = int(np.flatnonzero(row == END)[0])
        assert (row[end + 1 :] == PADDING).all()
        inside += row[1:end].tolist()
    dropped = len(words) - len(inside)
    assert inside == words[: len(inside)]
    assert 0 <= dropped < 2


def test_a_piece_without_room_for_a_word_is_refused() -> None:
    with pytest.raises(UsageError, match="no room"):
        chunks(np.arange(4), 2)


def test_the_slices_at_hand_are_what_their_manifest_says(text_folder: Path) -> None:
    data = load_text(text_folder, "wikitext-2-excerpt", 10_000)
    raw = (text_folder / "wikitext2_test.txt").read_text(encoding="utf-8").lower()
    # Words that stand between spaces already are the same words.
    plain = Counter(word for word in raw.split() if word.isalpha())
    ours = Counter(read_back(data, data.test))
    for word in ("the", "of", "station", "<unk>"):
        assert word not in plain or ours[word] >= plain[word] * (word in data.vocabulary)
    assert ours["the"] == plain["the"]
    assert len(data.train) / len(data.validation) == pytest.approx(9, abs=0.01)
    stories = load_text(text_folder, "tinystories-excerpt", 1000)
    assert "lily" in stories.vocabulary
