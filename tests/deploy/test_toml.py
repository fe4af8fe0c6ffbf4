"""TOML: what is written is what is read, and errors name file and line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.deploy.toml import line_of, place, read_toml, toml_text

texts = st.text(st.characters(exclude_categories=("Cs",)))
values = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), texts, st.lists(st.integers())
)
tables = st.dictionaries(texts, st.one_of(values, st.dictionaries(texts, values)))


@given(tables)
def test_any_table_comes_back_as_it_was_written(table: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(table)) == table


def test_values_that_do_not_apply_are_left_out() -> None:
    assert toml_text({"task": "keyword", "coupling": None}) == 'task = "keyword"\n'


def test_a_syntax_error_is_reported_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("good = 1\nbad = \n")
    with pytest.raises(UsageError) as caught:
        read_toml(path)
    assert caught.value.where == f"{path}:2"


def test_the_line_of_a_key_is_found_in_its_own_table() -> None:
    text = "size = 1\n\n[cost]\nvolts = 1.8\nsize = 2\n\n[cost.deep]\nsize = 3\n"
    assert line_of(text, ["size"]) == 1
    assert line_of(text, ["cost"]) == 3
    assert line_of(text, ["cost", "size"]) == 5
    assert line_of(text, ["cost", "deep", "size"]) == 8
    assert line_of(text, ["absent"]) is None


def test_the_place_is_that_of_the_innermost_key_there_is(tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text("size = 1\n\n[cost]\nvolts = 1.8\n")
    assert place(path, ["cost", "volts"]) == f"{path}:4"
    assert place(path, ["cost", "amperes", "most"]) == f"{path}:3"
    assert place(path, ["absent"]) == place(path, []) == str(path)
