"""What a region computes: every way to read its tensors is tried on random inputs.

No pattern of operators is looked for. A region counts as a mechanism when it computes what the
mechanism's formula does, whoever exported it and in whichever operators he said it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import permutations, product

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.fusion.contract import (
    TOLERANCE,
    Mechanism,
    Reals,
    Recogniser,
    Sample,
)
from entrain.deploy.lowering.fusion.forms import Form, forms, packed_forms
from entrain.deploy.lowering.fusion.region import Region
from entrain.deploy.lowering.graph import Node, Shape, Value
from entrain.deploy.lowering.views import View

# of the whole range of a tensor: scores between nearly equal and one that dominates
AMPLITUDES = (1.0, 0.25, 0.05)
ROLES = ("query", "key", "value")

_Role = tuple[Value, Form]


@dataclass(frozen=True)
class Roles:
    """Which tensor holds queries, keys, values and the context, and how."""

    query: _Role
    key: _Role
    value: _Role
    context: _Role


@dataclass(frozen=True)
class Attention:
    """A region that is a known mechanism."""

    roles: Roles
    mechanism: Mechanism

    def node(self) -> Node:
        """The integer operator."""
        query, key, value = (
            View(tensor, tensor.zero_point, form.offset, form.strides, form.shape)
            for tensor, form in (self.roles.query, self.roles.key, self.roles.value)
        )
        output, form = self.roles.context
        return self.mechanism.node(query, key, value, output, form.strides)


def recognise(
    region: Region,
    inputs: tuple[Value, ...],
    output: Value,
    recognisers: tuple[Recogniser, ...],
) -> Attention | None:
    """The mechanism that a region computes; None if it is none that we know."""
    known = [_inputs(inputs, amplitude) for amplitude in AMPLITUDES]
    contexts = [region.evaluate(each) for each in known]
    if not all(np.isfinite(context).all() for context in contexts):
        return None
    tensors = [dict(zip(inputs, each, strict=True)) for each in known]

    @cache
    def are_queries(query: _Role, context: Form) -> bool:
        return _are_queries(region, tensors[-1], contexts[-1], query, context)

    for roles in _possible_roles(region, inputs, output):
        if not are_queries(roles.query, roles.context[1]):
            continue
        samples = tuple(map(partial(_sample, roles), tensors, contexts))
        for recogniser in recognisers:
            mechanism = recogniser(region, samples)
            if mechanism is not None:
                return Attention(roles, mechanism)
    return None


def _inputs(inputs: tuple[Value, ...], amplitude: float) -> list[Reals]:
    """Random values that the tensors can hold, other ones for each amplitude.

    Either sign is as likely as the other, wherever the zero point lies: of scores that are all
    negative a relu leaves nothing to recognise queries, keys and scale by.
    """
    random = np.random.default_rng(round(1.0 / amplitude))
    tensors = []
    for value in inputs:
        ends = [end - value.zero_point for end in integer_range(value.dtype)]
        reach = random.choice(ends, value.shape) * value.scale * amplitude
        tensors.append(reach * random.uniform(size=value.shape))
    return tensors


def _sample(roles: Roles, tensors: dict[Value, Reals], context: Reals) -> Sample:
    queries, keys, values = (
        form.read(tensors[tensor]) for tensor, form in (roles.query, roles.key, roles.value)
    )
    return Sample(queries, keys, values, roles.context[1].read(context))


def _are_queries(
    region: Region, tensors: dict[Value, Reals], context: Reals, query: _Role, form: Form
) -> bool:
    """Whether queries may lie so: no more than its own context changes with the first of them."""
    tensor, places = query
    changed = tensors[tensor].copy()
    changed.reshape(-1)[places.first] *= -1.0
    after = region.evaluate(list({**tensors, tensor: changed}.values()))
    change = np.abs(after - context).reshape(-1)
    change[form.first] = 0.0
    return not (change > TOLERANCE * np.abs(context).max(initial=0.0)).any()


def _possible_roles(region: Region, inputs: tuple[Value, ...], output: Value) -> Iterator[Roles]:
    of_shape: dict[tuple[int, int, int], list[tuple[_Role, ...]]] = {}
    for roles in _assignments(region, inputs, output):
        (_, query), (_, key), (_, value) = roles
        if _agree(query.shape, key.shape, value.shape):
            shape = (*query.shape[:2], value.shape[2])
            of_shape.setdefault(shape, []).append(_spread(roles))
    for context in forms(output.shape):
        for query_role, key_role, value_role in of_shape.get(context.shape, ()):
            yield Roles(query_role, key_role, value_role, (output, context))


def _agree(query: Shape, key: Shape, value: Shape) -> bool:
    """Whether shapes [H, Q, D], [H or 1, T, D] and [H or 1, T, V] belong together."""
    heads = (query[0], 1)
    return query[2] == key[2] and key[1] == value[1] and key[0] in heads and value[0] in heads


def _spread(roles: tuple[_Role, ...]) -> tuple[_Role, ...]:
    """Keys and values of one head serve all heads of the queries."""
    (query, form), *others = roles
    return (query, form), *((value, other.shared(form.shape[0])) for value, other in others)


def _assignments(
    region: Region, inputs: tuple[Value, ...], output: Value
) -> Iterator[tuple[_Role, ...]]:
    """Every choice of queries, keys and values; most do not fit each other."""
    if len(inputs) < len(ROLES):
        for parts in product(range(1, len(ROLES) + 1), repeat=len(inputs)):
            if sum(parts) == len(ROLES):
                packings = [_packings(*each) for each in zip(inputs, parts, strict=True)]
                for chosen in product(*packings):
                    yield from permutations(role for packing in chosen for role in packing)
        return
    carried = _linear_in(region, inputs)
    for order in permutations(inputs):
        if order[-1] in carried:
            for parts in product(range(1, len(ROLES) + 1), repeat=len(ROLES)):
                if _fit(order, parts, output):
                    packings = [_packings(*each) for each in zip(order, parts, strict=True)]
                    for chosen in product(*packings):
                        yield from product(*chosen)


def _packings(value: Value, parts: int) -> list[list[_Role]]:
    """Every way in which a tensor may hold so many of queries, keys and values."""
    packings = packed_forms(value.shape, parts) if parts > 1 else ((f,) for f in forms(value.shape))
    return [[(value, form) for form in packing] for packing in packings]


def _fit(order: tuple[Value, ...], parts: tuple[int, ...], output: Value) -> bool:
    """Whether so many parts of queries, keys and values are as large as they have to be.

    Heads x queries x channels, and so on: the one product of sizes is the other. All heads may
    share one key and one value of each token.
    """
    query, key, value = (each.size / count for each, count in zip(order, parts, strict=True))
    return query * value == key * output.size


def _linear_in(region: Region, inputs: tuple[Value, ...]) -> list[Value]:
    """The inputs that the output is proportional to: values are, queries and keys are not."""
    tensors = _inputs(inputs, AMPLITUDES[0])
    context = region.evaluate(tensors)
    found = []
    for index, value in enumerate(inputs):
        doubled = [2.0 * t if i == index else t for i, t in enumerate(tensors)]
        if np.allclose(region.evaluate(doubled), 2.0 * context, rtol=1e-3, atol=1e-6):
            found.append(value)
    return found
