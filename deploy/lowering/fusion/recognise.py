"""What a region computes: every way to read its tensors is tried on random inputs.

No pattern of operators is looked for. A region counts as a mechanism when it computes what the
mechanism's formula does, whoever exported it and in whichever operators he said it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.fusion.contract import Mechanism, Reals, Recogniser, Sample
from entrain.deploy.lowering.fusion.forms import Form, forms, packed_forms
from entrain.deploy.lowering.fusion.region import Region
from entrain.deploy.lowering.graph import Node, Value
from entrain.deploy.lowering.views import View

# of the whole range of a tensor: scores between nearly equal and one that dominates
AMPLITUDES = (1.0, 0.25, 0.05)


@dataclass(frozen=True)
class Roles:
    """Which tensor holds queries, keys, values and the context, and how."""

    query: tuple[Value, Form]
    key: tuple[Value, Form]
    value: tuple[Value, Form]
    context: tuple[Value, Form]


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
    for roles in _possible_roles(region, inputs, output):
        samples = tuple(
            _sample(roles, dict(zip(inputs, each, strict=True)), context)
            for each, context in zip(known, contexts, strict=True)
        )
        for recogniser in recognisers:
            mechanism = recogniser(region, samples)
            if mechanism is not None:
                return Attention(roles, mechanism)
    return None


def _inputs(inputs: tuple[Value, ...], amplitude: float) -> list[Reals]:
    random = np.random.default_rng(0)
    tensors = []
    for value in inputs:
        low, high = (end - value.zero_point for end in integer_range(value.dtype))
        tensors.append(random.uniform(low, high, value.shape) * value.scale * amplitude)
    return tensors


def _sample(roles: Roles, tensors: dict[Value, Reals], context: Reals) -> Sample:
    queries, keys, values = (
        form.read(tensors[tensor]) for tensor, form in (roles.query, roles.key, roles.value)
    )
    return Sample(queries, keys, values, roles.context[1].read(context))


def _possible_roles(region: Region, inputs: tuple[Value, ...], output: Value) -> Iterator[Roles]:
    for context in forms(output.shape):
        heads, queries, width = context.shape
        for (q, query), (k, key), (v, value) in _assignments(region, inputs):
            tokens = key.shape[1]
            if (
                query.shape[:2] == (heads, queries)
                and key.shape == (heads, tokens, query.shape[2])
                and value.shape == (heads, tokens, width)
            ):
                yield Roles((q, query), (k, key), (v, value), (output, context))


def _assignments(
    region: Region, inputs: tuple[Value, ...]
) -> Iterator[tuple[tuple[Value, Form], tuple[Value, Form], tuple[Value, Form]]]:
    if len(inputs) == 1:
        (packed,) = inputs
        for query, key, value in packed_forms(packed.shape):
            yield (packed, query), (packed, key), (packed, value)
    if len(inputs) == 3:
        carried = _linear_in(region, inputs)
        for q, k, v in permutations(inputs):
            if v in carried:
                yield from (
                    ((q, query), (k, key), (v, value))
                    for query in forms(q.shape)
                    for key in forms(k.shape)
                    for value in forms(v.shape)
                    if query.shape[0] == key.shape[0] == value.shape[0]
                )


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
