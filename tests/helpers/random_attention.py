"""Attention that nobody thought of: heads, sizes, steps and a mechanism drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Pair:
    """Queries and keys [1, H, T, D] of a model; ``reach`` is about their largest product."""

    model: Any
    queries: str
    keys: str
    heads: int
    tokens: int
    reach: float

    def products(self, queries: str | None = None, keys: str | None = None) -> str:
        """Of every query with every key."""
        turned = self.model.node("Transpose", keys or self.keys, perm=[0, 1, 3, 2])
        return self.model.node("MatMul", queries or self.queries, turned)

    def scores(self, data: Any) -> str:
        """Products, scaled to between nearly equal and one that dominates."""
        scale = data.draw(st.floats(1.0, 20.0)) / self.reach
        return self.model.node("Mul", self.products(), self.model.constant(scale))

    def positive(self, tensor: str, least: float) -> str:
        """Relu and a little more."""
        above = self.model.node("Relu", tensor)
        return self.model.node("Add", above, self.model.constant(least)) if least else above

    def shares(self, tensor: str) -> str:
        """Divided by the sums of the rows."""
        return self.model.node("Div", tensor, self.total(tensor))

    def total(self, tensor: str) -> str:
        """The sums of the rows."""
        last = self.model.constant([-1], "int64")
        return self.model.node("ReduceSum", tensor, last, keepdims=1)


def softmax(data: Any, pair: Pair) -> str:
    """Exponentials of the scores, by their sum."""
    return pair.model.node("Softmax", pair.scores(data), axis=-1)


def linear(data: Any, pair: Pair) -> str:
    """Products of features that are never negative, by their sum."""
    least = data.draw(st.sampled_from([1 / 16, 1 / 64]))
    features = [pair.positive(each, least) for each in (pair.queries, pair.keys)]
    return pair.shares(pair.products(*features))


def oscillator(data: Any, pair: Pair) -> str:
    """States that settle among anchors, coupled by relu, and read out in the plain form."""
    model, d_osc = pair.model, data.draw(st.integers(2, 4))
    random = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    vectors = random.normal(size=(1, pair.heads, pair.tokens, d_osc))
    codes = np.rint(vectors * 126 / np.linalg.norm(vectors, axis=-1, keepdims=True))
    anchors = model.weights(codes.astype("int8"), 1 / 127)
    field = model.node("MatMul", pair.positive(pair.scores(data), 1 / 64), anchors)
    length = model.node("Sqrt", pair.total(model.node("Mul", field, field)))
    state = model.node("Div", field, length)
    turned = model.node("Transpose", anchors, perm=[0, 1, 3, 2])
    near = model.node("Add", model.node("MatMul", state, turned), model.constant(1.0))
    exponent = data.draw(st.integers(1, 3))
    return pair.shares(model.node("Pow", near, model.constant(float(exponent))))


MECHANISMS: tuple[Callable[[Any, Pair], str], ...] = (softmax, linear, oscillator)
