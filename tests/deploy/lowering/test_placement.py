"""Blocks that live for a while: never in each other's way, and as low as they can be."""

from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.lowering import placement
from entrain.deploy.lowering.placement import Block, height, most_alive, place


def blocks(most: int, steps: int, largest: int) -> st.SearchStrategy[list[Block]]:
    """Some blocks; bytes of every other one are given back while it lives."""

    @st.composite
    def block(draw):
        first, last = sorted((draw(st.integers(0, steps)), draw(st.integers(0, steps))))
        size = draw(st.integers(1, largest))
        if draw(st.booleans()):
            return Block(size, first, last)
        times = draw(st.lists(st.integers(first + 1, last + 2), max_size=2, unique=True))
        sizes = draw(st.lists(st.integers(1, size), min_size=2, max_size=2))
        given_back = zip(sorted(times), sorted(sizes, reverse=True), strict=False)
        return Block(size, first, last, tuple(given_back))

    return st.lists(block(), max_size=most)


def bytes_in_use(block, step):
    """How many there are, looked up in the list of all that has been given back."""
    size = block.size
    for since, smaller in block.given_back:
        size = smaller if since <= step else size
    return size if block.first <= step <= block.last else 0


def apart(these, offsets):
    """Whether no byte is in use by two blocks at any step."""
    for step in range(max((block.last for block in these), default=0) + 1):
        used = [(a, a + bytes_in_use(block, step)) for block, a in zip(these, offsets, strict=True)]
        used = sorted(each for each in used if each[0] < each[1])
        if any(end > start for (_, end), (start, _) in pairwise(used)):
            return False
    return True


def lowest_by_trying_everything(these):
    """Some order of placing each block as low as it goes gives the least height."""
    heights = []
    for order in permutations(range(len(these))):
        offsets = {}
        for k in order:
            offsets[k] = next(
                offset
                for offset in range(1_000)
                if apart([these[j] for j in (*offsets, k)], [*offsets.values(), offset])
            )
        heights.append(max((these[k].size + offsets[k] for k in order), default=0))
    return min(heights)


@given(blocks(most=20, steps=12, largest=60))
@settings(deadline=None)
def test_blocks_in_use_at_the_same_time_lie_apart(these):
    offsets = place(these)
    assert len(offsets) == len(these)
    assert all(offset >= 0 for offset in offsets)
    assert apart(these, offsets)
    assert most_alive(these) <= height(these, offsets)


@given(blocks(most=5, steps=5, largest=6))
@settings(max_examples=40, deadline=None)
def test_a_few_blocks_lie_as_low_as_any_order_of_placing_can_put_them(these):
    assert height(these, place(these)) == lowest_by_trying_everything(these)


@given(blocks(most=7, steps=6, largest=40))
@settings(deadline=None)
def test_the_search_finds_what_is_there_and_nothing_else(these):
    if not these:
        return
    found = height(these, place(these))
    offsets, _ = placement._searched(these, found, placement.SEARCH_WORK)
    assert offsets is not None
    assert apart(these, offsets)
    assert height(these, offsets) <= found
    nothing = placement._searched(these, most_alive(these) - 1, placement.SEARCH_WORK)
    assert nothing == (None, True)


def test_the_most_in_use_is_by_steps_not_by_neighbours():
    assert most_alive([]) == 0
    assert most_alive([Block(5, 0, 1), Block(7, 1, 2), Block(9, 2, 3)]) == 16


def test_what_is_given_back_has_room_for_others():
    these = [Block(80, 0, 3, ((2, 10),)), Block(70, 2, 3), Block(5, 0, 1)]
    assert most_alive(these) == 85
    offsets = place(these)
    assert height(these, offsets) == 85
    assert apart(these, offsets)


def test_where_every_order_leaves_a_gap_the_search_finds_the_bound():
    lives = [(3, 0, 4), (2, 3, 4), (4, 0, 3), (8, 0, 5), (3, 2, 5)]
    lives += [(1, 0, 5), (3, 3, 6), (8, 5, 6), (4, 0, 1), (4, 2, 2)]
    these = [Block(*life) for life in lives]
    neighbours = placement._neighbours(these)
    for order in placement._orders(these):
        assert height(these, placement._first_fit(these, neighbours, order)) > most_alive(these)
    assert height(these, place(these)) == most_alive(these)


def test_placing_depends_on_nothing_but_the_blocks():
    these = [Block((37 * k) % 101 + 1, k % 7, k % 7 + k % 5) for k in range(40)]
    assert place(these) == place(list(these))
