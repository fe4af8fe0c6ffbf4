"""The front of cycles x cells: which widths are built, and which rows no other beats."""

from __future__ import annotations

from entrain.fpga.back_end.resources import Resources
from entrain.fpga.measurement.blocks import Sizes, block_named
from entrain.fpga.measurement.comparison import Compared
from entrain.fpga.measurement.front import TOKENS, front, unbeaten
from entrain.fpga.verification.implementations import block_of


def widths(name):
    """Products of scores, and of weights and values, a cycle: of the first length."""
    sizes = [size for _, size in front([name], Sizes())]
    assert len(sizes) % len(TOKENS) == 0
    assert {size.tokens for size in sizes} == set(TOKENS)
    return [(size.lanes, size.value_lanes) for size in sizes if size.tokens == TOKENS[0]]


def test_what_scores_keys_comes_in_three_widths():
    assert [lanes for lanes, _ in widths("oscillator relu")] == [2, 4, 8]


def test_every_size_of_a_front_can_be_built():
    for name, sizes in front(["oscillator relu", "softmax", "softmax 8 bit"], Sizes()):
        block_of(block_named(name, sizes))  # or it is refused


def test_what_scores_none_comes_once():
    assert len(widths("oscillator separable")) == len(widths("settle")) == 1


def test_softmax_gives_as_many_dsp_blocks_to_its_values_as_to_its_scores():
    assert widths("softmax") == [(2, 1), (4, 2), (8, 4)]
    assert widths("softmax 8 bit") == [(2, 2), (4, 4)]  # eight would read a sum too soon


def row(cycles, luts, board="icebreaker", tokens=64, whole=True):
    cells = Resources(luts=luts, ffs=1, dsps=1, brams=1)
    return Compared("a", board, whole, Sizes(tokens=tokens), cycles, 1, 0.0, 0.0, cells, {}, None)


def test_a_row_is_beaten_by_one_that_is_better_in_one_way_and_no_worse_in_the_other():
    assert unbeaten([row(100, 50), row(50, 100), row(100, 51), row(101, 50)]) == [
        True,
        True,
        False,
        False,
    ]


def test_rows_of_one_cost_do_not_beat_each_other():
    assert unbeaten([row(100, 50), row(100, 50)]) == [True, True]


def test_rows_of_other_boards_and_lengths_do_not_compete():
    assert all(unbeaten([row(100, 50), row(200, 90, "ulx3s"), row(200, 90, tokens=25)]))


def test_a_part_of_an_operator_does_not_compete_with_a_whole_one():
    assert all(unbeaten([row(200, 90), row(100, 50, whole=False)]))
