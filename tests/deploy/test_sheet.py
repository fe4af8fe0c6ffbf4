"""Tables of commands: numbers and headings are never cut, names give way in their middles."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from entrain.deploy.cli.sheet import ELLIPSIS, Column, Name, Number, Sheet, Words

COLUMNS = (Name("layer"), Words("does"), Column("shape"), Column("type"), Number("MACs"))
LONG = "model_backbone_stage1_block_2_conv_conv_output_0"
ROW = (LONG, "depthwise convolution", "1x16x112x112", "uint8", "12,345,678")


def shown(sheet, width, *, terminal=True):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    console.print(sheet, crop=False)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_in_a_pipe_nothing_is_cut_however_long():
    head, line = shown(Sheet(COLUMNS, [ROW]), 40, terminal=False)
    assert line.split("  ") == list(ROW)
    assert head.split() == [column.title for column in COLUMNS]


def test_a_name_loses_its_middle_and_keeps_both_ends():
    head, line = shown(Sheet(COLUMNS, [ROW]), 80)
    name = line.split()[0]
    start, end = name.split(ELLIPSIS)
    assert LONG.startswith(start)
    assert LONG.endswith(end)
    assert abs(len(start) - len(end)) <= 1
    assert len(line) == len(head) == 80


def test_words_go_on_below_where_the_names_have_no_more_to_give():
    head, first, second = shown(Sheet(COLUMNS, [ROW]), 62)
    assert first.split()[1:] == ["depthwise", *ROW[2:]]
    assert second.split() == ["convolution"]
    assert head.split() == [column.title for column in COLUMNS]


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=4),
    st.text("abc_", min_size=1, max_size=60),
    st.integers(10, 120),
)
def test_numbers_and_headings_are_whole_in_any_terminal(numbers, name, width):
    columns = (Name("layer"), *(Number(f"number_{place}") for place in range(len(numbers))))
    cells = (name, *(f"{number:,}" for number in numbers))
    head, line = shown(Sheet(columns, [cells]), width)
    assert head.split() == [column.title for column in columns]
    assert line.split()[1:] == list(cells[1:])
    assert len(line) <= width or len(line.split()[0]) <= 12


def test_a_short_name_is_not_stretched():
    assert shown(Sheet((Name("case"), Number("n")), [("a", "1")]), 80) == ["case  n", "a     1"]


@pytest.mark.parametrize("text", ["[red]x[/red]", ":smile:"])
def test_a_cell_is_plain_text(text):
    assert shown(Sheet((Name("case"),), [(text,)]), 80)[1] == text


def test_a_sheet_may_have_a_title():
    assert shown(Sheet((Name("case"),), [("a",)], title="mps2-an386"), 80)[0] == "mps2-an386"
