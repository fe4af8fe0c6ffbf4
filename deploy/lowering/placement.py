"""Offsets for blocks of bytes that live for a while: blocks alive together must not overlap.

The smallest arena is the problem of dynamic storage allocation, which is NP-hard. Each means is
tried where those before it left a gap above the bound: the lowest free offset in several orders, a
quick exact search, the orders again with the highest block moved forward time after time, and a
longer search. All of them are deterministic, and the work of each is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

REPAIR_WORK = 300_000  # neighbours looked at, for each order
QUICK_SEARCH_WORK = 50_000  # blocks times steps looked at
SEARCH_WORK = 500_000

Order = list[int]
Offsets = tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """``size`` bytes, in use from step ``first`` to step ``last``, both included.

    ``given_back``: from a step on, only so many bytes, the lowest, are in use; fewer every time.
    """

    size: int
    first: int
    last: int
    given_back: tuple[tuple[int, int], ...] = ()

    def meets(self, other: Block) -> bool:
        """Whether both are in use at some step."""
        return self.first <= other.last and other.first <= self.last

    def lives_at(self, step: int) -> bool:
        """Whether it is in use at the step."""
        return self.first <= step <= self.last

    def size_at(self, step: int) -> int:
        """How many bytes are in use at a step of its life."""
        return min((size for since, size in self.given_back if since <= step), default=self.size)

    def size_beside(self, other: Block) -> int:
        """The most bytes in use while another block is: those at the first such step."""
        return self.size_at(max(self.first, other.first))


def most_alive(blocks: Sequence[Block]) -> int:
    """The most bytes in use at any step: what no offsets can undercut."""
    return max((_alive(blocks, step) for step in {block.first for block in blocks}), default=0)


def height(blocks: Sequence[Block], offsets: Offsets) -> int:
    """Bytes from 0 to the end of the highest block."""
    ends = (block.size + offset for block, offset in zip(blocks, offsets, strict=True))
    return max(ends, default=0)


def place(blocks: Sequence[Block]) -> Offsets:
    """An offset for each block, so that those alive together lie apart and the height is small."""
    best, proved = _quickly(blocks)
    if proved:
        return best
    bound, neighbours = most_alive(blocks), _neighbours(blocks)
    placed = [(_first_fit(blocks, neighbours, order), order) for order in _orders(blocks)]
    placed.sort(key=lambda each: height(blocks, each[0]))
    for _, order in placed:
        if height(blocks, best) > bound:
            repaired = _repaired(blocks, neighbours, order, bound)
            best = min(best, repaired, key=lambda offsets: height(blocks, offsets))
    return _lowest(blocks, best, SEARCH_WORK)[0]


def place_quickly(blocks: Sequence[Block]) -> Offsets:
    """The same by the first two means only."""
    return _quickly(blocks)[0]


def _quickly(blocks: Sequence[Block]) -> tuple[Offsets, bool]:
    """What the first two means find; and whether nothing can be lower."""
    neighbours = _neighbours(blocks)
    fits = (_first_fit(blocks, neighbours, order) for order in _orders(blocks))
    best = min(fits, key=lambda offsets: height(blocks, offsets))
    return _lowest(blocks, best, QUICK_SEARCH_WORK)


def _alive(blocks: Sequence[Block], step: int) -> int:
    return sum(block.size_at(step) for block in blocks if block.lives_at(step))


# Of each block those in use together with it: number, own bytes beside it, its bytes.
Neighbours = list[list[tuple[int, int, int]]]


def _neighbours(blocks: Sequence[Block]) -> Neighbours:
    return [
        [
            (k, one.size_beside(other), other.size_beside(one))
            for k, other in enumerate(blocks)
            if other.meets(one)
        ]
        for one in blocks
    ]


def _orders(blocks: Sequence[Block]) -> Iterator[Order]:
    """By size, lifetime, their product, the fullest step, conflicts, and as time goes."""
    starts = {block.first for block in blocks}
    fullest = [
        max(_alive(blocks, step) for step in starts if block.lives_at(step)) for block in blocks
    ]
    conflicts = [sum(block.meets(other) for other in blocks) for block in blocks]
    size = [block.size for block in blocks]
    life = [block.last - block.first + 1 for block in blocks]
    keys: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda k: (-size[k], -life[k]),
        lambda k: (-life[k], -size[k]),
        lambda k: (-size[k] * life[k],),
        lambda k: (-fullest[k], -size[k]),
        lambda k: (-fullest[k], -life[k], -size[k]),
        lambda k: (-conflicts[k], -size[k]),
        lambda k: (blocks[k].first, -size[k]),
    )
    return (sorted(range(len(blocks)), key=key) for key in keys)


def _first_fit(blocks: Sequence[Block], neighbours: Neighbours, order: Order) -> Offsets:
    """Each block, in this order, at the lowest offset that is free during its life."""
    offsets: dict[int, int] = {}
    for k in order:
        # it would be in the way of a neighbour anywhere between these two
        taken = sorted(
            (offsets[j] - own, offsets[j] + other)
            for j, own, other in neighbours[k]
            if j in offsets
        )
        offset = 0
        for low, high in taken:
            if offset <= low:
                break
            offset = max(offset, high)
        offsets[k] = offset
    return tuple(offsets[k] for k in range(len(blocks)))


def _repaired(blocks: Sequence[Block], neighbours: Neighbours, order: Order, bound: int) -> Offsets:
    """First fit again and again, the block that ends highest moved half-way to the front."""
    order, best = list(order), _first_fit(blocks, neighbours, order)
    offsets = best
    for _ in range(REPAIR_WORK // sum(map(len, neighbours))):
        if height(blocks, best) == bound:
            break
        place = max(range(len(order)), key=lambda p: blocks[order[p]].size + offsets[order[p]])
        order.insert(place // 2, order.pop(place))
        offsets = _first_fit(blocks, neighbours, order)
        best = min(best, offsets, key=lambda each: height(blocks, each))
    return best


# Of each block the steps of its life, by number, and its bytes in them.
Steps = list[list[tuple[int, int]]]


@dataclass(frozen=True)
class _Partial:
    """The lowest blocks of a plan, upwards by offset.

    Attributes:
        floors: for each step, the first byte above what is placed.
        waiting: blocks without an offset yet.
        placed: blocks and their offsets.
        last: offset and number of the block placed last; those to come lie above it.
    """

    floors: tuple[int, ...]
    waiting: tuple[int, ...]
    placed: tuple[tuple[int, int], ...]
    last: tuple[int, int]


def _lowest(blocks: Sequence[Block], best: Offsets, work: int) -> tuple[Offsets, bool]:
    """The best that searches find, first at the bound; and whether nothing can be lower."""
    impossible = most_alive(blocks) - 1
    limit = impossible + 1
    while height(blocks, best) > impossible + 1:
        found, finished = _searched(blocks, limit, work)
        if found is None and not finished:
            return best, False
        best, impossible = (best, limit) if found is None else (found, impossible)
        limit = (impossible + height(blocks, best)) // 2
    return best, True


def _searched(blocks: Sequence[Block], limit: int, work: int) -> tuple[Offsets | None, bool]:
    """Offsets of at most this height, or None; and whether all plans were looked at.

    Every plan sinks to one in which each block lies on the floor or on another block. Depth first,
    such plans are built upwards, a block at a time, leaving those that cannot stay below the limit.
    """
    starts = sorted({block.first for block in blocks})
    steps = [
        [(s, b.size_at(start)) for s, start in enumerate(starts) if b.lives_at(start)]
        for b in blocks
    ]
    everything = tuple(range(len(blocks)))
    open_plans = [_Partial((0,) * len(starts), everything, (), (0, -1))]
    for _ in range(work // sum(map(len, steps))):
        if not open_plans:
            return None, True
        plan = open_plans.pop()
        if not plan.waiting:
            offsets = dict(plan.placed)
            return tuple(offsets[k] for k in everything), False
        open_plans.extend(_continued(plan, blocks, steps, limit))
    return None, False


def _continued(
    plan: _Partial, blocks: Sequence[Block], steps: Steps, limit: int
) -> Iterator[_Partial]:
    """The plan with one block more, the most promising one last."""
    at = {k: max(plan.floors[s] for s, _ in steps[k]) for k in plan.waiting}
    reach = _least_heights(plan, steps, at)
    # A block that fits below this would have to be placed later, and lies in its way for nothing.
    ceiling = min(at[k] + blocks[k].size for k in plan.waiting)
    if max(reach) > limit or ceiling <= plan.last[0]:
        return
    choices = [k for k in plan.waiting if plan.last < (at[k], k) and at[k] < ceiling]
    choices.sort(key=lambda k: (-at[k], max(reach[s] for s, _ in steps[k]), blocks[k].size))
    for k in choices:
        floors = list(plan.floors)
        for s, size in steps[k]:
            floors[s] = at[k] + size
        waiting = tuple(j for j in plan.waiting if j != k)
        yield _Partial(tuple(floors), waiting, (*plan.placed, (k, at[k])), (at[k], k))


def _least_heights(plan: _Partial, steps: Steps, at: dict[int, int]) -> list[int]:
    """For each step the least height: all that waits there, upwards from its lowest start."""
    lowest = [-1] * len(plan.floors)
    waiting = [0] * len(plan.floors)
    for k in plan.waiting:
        start = max(at[k], plan.last[0])
        for s, size in steps[k]:
            waiting[s] += size
            lowest[s] = start if lowest[s] < 0 else min(lowest[s], start)
    return [
        floor if start < 0 else start + size
        for floor, start, size in zip(plan.floors, lowest, waiting, strict=True)
    ]
