"""Files are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from entrain.deploy.errors import UsageError
from entrain.deploy.files import folder_if_whole, replacing_folder, write_whole, writing_whole


def test_text_and_bytes_are_written_and_folders_made(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b" / "text.txt", "grün\n")
    write_whole(tmp_path / "raw.bin", b"\x00\xff")
    assert (tmp_path / "a" / "b" / "text.txt").read_bytes() == "grün\n".encode()
    assert (tmp_path / "raw.bin").read_bytes() == b"\x00\xff"


def test_a_failure_in_the_middle_keeps_the_old_file_and_leaves_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, "old")

    def fail_half_way() -> None:
        with writing_whole(path) as temporary:
            temporary.write_text("half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_temporary_name_keeps_the_suffix_that_writers_go_by(tmp_path: Path) -> None:
    with writing_whole(tmp_path / "golden.npz") as temporary:
        np.savez(temporary, layer=np.arange(3))
    assert np.load(tmp_path / "golden.npz")["layer"].tolist() == [0, 1, 2]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write") as caught:
        write_whole(tmp_path / "file" / "below", "text")
    assert caught.value.where == str(tmp_path / "file" / "below")


def test_a_folder_is_replaced_when_all_of_it_is_there(tmp_path):
    folder = tmp_path / "lowered"
    folder.mkdir()
    (folder / "old").write_text("before")
    with replacing_folder(folder) as made:
        (made / "new").write_text("after")
        assert (folder / "old").read_text() == "before"
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["lowered"]


def test_a_folder_stays_as_it_was_if_filling_its_successor_fails(tmp_path):
    folder = tmp_path / "lowered"
    folder.mkdir()
    (folder / "old").write_text("before")

    def fill():
        with replacing_folder(folder) as made:
            (made / "new").write_text("after")
            raise LookupError

    with pytest.raises(LookupError):
        fill()
    assert (folder / "old").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["lowered"]


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_files_name_is_refused(path):
    with pytest.raises(UsageError, match="not a file to write"):
        write_whole(Path(path), "text")


@pytest.mark.parametrize("there", ["", "a", "a/b"])
def test_folders_that_were_made_for_nothing_are_gone_and_others_stay(
    tmp_path: Path, there: str
) -> None:
    (tmp_path / there).mkdir(parents=True, exist_ok=True)

    def fail() -> None:
        with folder_if_whole(tmp_path / "a" / "b"):
            (tmp_path / "a" / "b" / "c").mkdir(parents=True)
            (tmp_path / "a" / "b" / "c").rmdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / there).is_dir()
    assert (tmp_path / "a").exists() == (there != "")
    assert (tmp_path / "a" / "b").exists() == (there == "a/b")


def test_a_folder_with_something_in_it_stays_though_the_work_failed(tmp_path: Path) -> None:
    def fail() -> None:
        with folder_if_whole(tmp_path / "a"):
            write_whole(tmp_path / "a" / "text.txt", "somebody else's")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "a" / "text.txt").is_file()
