"""Blocks that live for a while: never in each other's way, and as low as they can be."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.lowering import placement
from entrain.deploy.lowering.placement import Block, height, most_alive, place


def blocks(most: int, steps: int, largest: int) -> st.SearchStrategy[list[Block]]:
    lives = st.tuples(st.integers(0, steps), st.integers(0, steps)).map(sorted)
    block = st.builds(lambda size, life: Block(size, *life), st.integers(1, largest), lives)
    return st.lists(block, max_size=most)


def apart(these, offsets):
    """Whether all blocks that are in use at the same time lie apart."""
    return all(
        b + other.size <= a or a + one.size <= b
        for (one, a), (other, b) in combinations(zip(these, offsets, strict=True), 2)
        if max(one.first, other.first) <= min(one.last, other.last)
    )


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


def test_where_every_order_leaves_a_gap_the_search_finds_the_bound():
    lives = [(3, 0, 4), (2, 3, 4), (4, 0, 3), (8, 0, 5), (3, 2, 5)]
    lives += [(1, 0, 5), (3, 3, 6), (8, 5, 6), (4, 0, 1), (4, 2, 2)]
    these = [Block(*life) for life in lives]
    neighbours = [[k for k, other in enumerate(these) if other.meets(one)] for one in these]
    for order in placement._orders(these):
        assert height(these, placement._first_fit(these, neighbours, order)) > most_alive(these)
    assert height(these, place(these)) == most_alive(these)


def test_placing_depends_on_nothing_but_the_blocks():
    these = [Block((37 * k) % 101 + 1, k % 7, k % 7 + k % 5) for k in range(40)]
    assert place(these) == place(list(these))
