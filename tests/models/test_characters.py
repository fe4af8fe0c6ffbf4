"""Reading enwik8, or its beginning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_data import TEXT

from entrain.deploy.errors import DataError
from entrain.models.data import characters
from entrain.models.data.characters import load_characters, split_characters


@pytest.fixture
def text_folder() -> Path:
    """The folder with the beginning of the real text."""
    if not any(TEXT.glob("enwik8*")):
        pytest.skip(f"no text of enwik8 at {TEXT}")
    return TEXT


def write(folder: Path, name: str, length: int) -> bytes:
    content = np.random.default_rng(length).integers(0, 256, length).astype(np.uint8).tobytes()
    (folder / name).write_bytes(content)
    return content


def test_parts_follow_each_other_in_the_proportions_of_enwik8() -> None:
    text = np.arange(200, dtype=np.uint8)
    data = split_characters(text, "here")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [180, 10, 10]
    assert (np.concatenate([data.train, data.validation, data.test]) == text).all()


def test_the_whole_has_its_official_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(characters, "FILE_BYTES", 1000)
    content = write(tmp_path, "enwik8", 1000)
    write(tmp_path, "enwik8_prefix_2000.bin", 2000)
    data = load_characters(tmp_path)
    assert data.source == str(tmp_path / "enwik8")
    assert data.train.tobytes() == content[:900]
    assert data.validation.tobytes() == content[900:950]
    assert data.test.tobytes() == content[950:]


def test_official_sizes_are_90_5_and_5_million() -> None:
    sizes = [characters.FILE_BYTES * share // 100 for share in (90, 95, 100)]
    assert sizes == [90_000_000, 95_000_000, 100_000_000]


def test_of_several_beginnings_the_longest_is_read(tmp_path: Path) -> None:
    write(tmp_path, "enwik8_prefix_900.bin", 900)
    content = write(tmp_path, "enwik8_prefix_1000.bin", 1000)
    assert load_characters(tmp_path).train.tobytes() == content[:900]


def test_a_file_cut_short_is_told_with_both_lengths(tmp_path: Path) -> None:
    write(tmp_path, "enwik8", 1000)
    with pytest.raises(DataError, match="1,000 bytes, expected 100,000,000"):
        load_characters(tmp_path)
    (tmp_path / "enwik8").rename(tmp_path / "enwik8_prefix_1200.bin")
    with pytest.raises(DataError, match="1,000 bytes, expected 1,200"):
        load_characters(tmp_path)


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_a_missing_text_is_told_with_where_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"enwik8\.zip"):
        load_characters(tmp_path / name)


def test_the_real_beginning_reads_as_a_dump_of_wikipedia(text_folder: Path) -> None:
    data = load_characters(text_folder)
    assert data.train[:10].tobytes() == b"<mediawiki"
    assert len(data.test) >= 200_000
