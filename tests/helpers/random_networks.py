"""Networks that nobody thought of: a chain of operators drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from random_steps import LARGEST, STEPS, quantize, start

LARGEST_STARTS = {2: (70,), 3: (12, 40), 4: (12, 8, 8)}  # by rank, without the batch


def network(data: Any, model: Any, most_steps: int = 8) -> None:
    """A whole network with one or two inputs, quantized at its end."""
    largest = LARGEST_STARTS[data.draw(st.integers(2, 4))]
    shape = (1, *(data.draw(st.integers(1, most)) for most in largest))
    chain = start(data, model, *shape)
    if data.draw(st.integers(0, 3)) == 0:
        other = start(data, model, *shape, name="more")
        tensor = model.node("Add", chain.tensor, other.tensor)
        chain = quantize(data, chain.then(tensor, shape, chain.reach + other.reach))
    for _ in range(data.draw(st.integers(1, most_steps))):
        grown = data.draw(st.sampled_from(STEPS))(data, chain)
        if grown is None or prod(grown.shape) > LARGEST:
            continue
        chain = grown
        if not chain.quantized and data.draw(st.integers(0, 3)):
            chain = quantize(data, chain)
    final = chain.model.node("Mul", chain.tensor, chain.model.constant(0.731))
    model.output(quantize(data, chain.then(final, chain.shape)).tensor)


@contextmanager
def without_constants_of_the_code() -> Iterator[None]:
    """What hypothesis draws depends on nothing but the seed.

    It likes to draw numbers that stand in the code of the modules at hand, which are others in each
    process and after each change. Its version is pinned, so its inner names may be used.
    """
    none = providers.Constants(
        integers=providers.SortedSet(),
        floats=providers.SortedSet(key=providers.float_to_int),
        bytes=providers.SortedSet(),
        strings=providers.SortedSet(),
    )
    providers.CONSTANTS_CACHE.cache.clear()
    with patch.object(providers, "_get_local_constants", lambda: none):
        yield
    providers.CONSTANTS_CACHE.cache.clear()


def networks(new_model: Callable[[], Any], count: int, number: int) -> list[Any]:
    """So many networks, no two of the same operators; the same ones for the same number.

    Hypothesis varies an example several times and begins with small ones: of many, some are taken.
    """
    found: dict[tuple[str, ...], Any] = {}

    @seed(number)
    @settings(max_examples=10 * count, phases=[Phase.generate], database=None, deadline=None)
    @given(st.data())
    def draw(data: Any) -> None:
        model = new_model()
        network(data, model)
        found.setdefault(tuple(node.op_type for node in model.nodes), model)

    with without_constants_of_the_code():
        draw()
    return Random(number).sample(list(found.values()), count)
