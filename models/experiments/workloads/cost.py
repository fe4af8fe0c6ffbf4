"""What attention costs: the first paper's own count of operations, and ours beside it.

Counted from sizes alone, nothing is trained or measured. The paper (tables 7 and 10) counts only
the step in which the mechanisms differ: an exponential is 10 multiply-adds, every other operation
one. It takes the scores and the product of weights and values to cost the same for all. With the
exponent 1 they do not: the factorised read-out never forms the weights, and the separable coupling
no scores. `AttentionMechanism.multiply_adds` counts them all.

Counted is what a mechanism needs. In a causal layer that is the pairs that are seen and, of what is
linear in the length, a running sum from token to token. The modules here compute causal layers in
another way, with more products: softmax all pairs, of which half are then hidden, and linear forms
in chunks of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from entrain.deploy.errors import UsageError
from entrain.models.attention import MECHANISMS, AttentionConfig
from entrain.models.attention.linear import LinearAttention
from entrain.models.attention.lowrank import LowrankAttention
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.training import EpochReport

# Multiply-adds that the paper charges for one exponential, as of a Taylor series.
EXPONENTIAL = 10
# What a coupling's function is charged for each pair: a softplus as an exponential.
COUPLING_CHARGES = {"softplus": EXPONENTIAL, "relu": 1}


@dataclass(frozen=True)
class Layer:
    """The attention layer of one of the paper's networks.

    Args:
        tokens: length of the sequence.
        heads: attention heads.
        d_model: width of a token.
        causal: whether a token sees only itself and those before it.
    """

    tokens: int
    heads: int
    d_model: int
    causal: bool

    @property
    def pairs(self) -> int:
        """Pairs of tokens that see each other, in all heads."""
        seen = self.tokens * (self.tokens + 1) // 2 if self.causal else self.tokens**2
        return self.heads * seen

    @property
    def rows(self) -> int:
        """Tokens in all heads: each has one sum and one division."""
        return self.heads * self.tokens


LAYERS: dict[str, Layer] = {
    "keyword": Layer(tokens=49, heads=2, d_model=32, causal=False),
    "agreement": Layer(tokens=9, heads=1, d_model=32, causal=False),
    "tinystories": Layer(tokens=128, heads=4, d_model=128, causal=True),
}


@dataclass(frozen=True)
class Cost:
    """The operations of one attention layer; data and seed do not matter.

    Args:
        layer: a name of `LAYERS`.
        attention: slug of the mechanism.
    """

    version: ClassVar[int] = 2

    layer: str = "keyword"
    attention: str = "softmax"

    def __post_init__(self) -> None:
        if self.layer not in LAYERS:
            raise UsageError(
                f"there is no layer {self.layer!r}",
                remedy=f"Choose one of: {', '.join(LAYERS)}.",
            )
        AttentionConfig.parse(self.attention)

    def measure(
        self,
        seed: int,  # noqa: ARG002
        place: Place,  # noqa: ARG002
        on_epoch: Callable[[EpochReport], None],  # noqa: ARG002
    ) -> Outcome:
        """Count; see `paper_counts` and `our_counts`."""
        config, layer = AttentionConfig.parse(self.attention), LAYERS[self.layer]
        counts = {**paper_counts(config, layer), **our_counts(config, layer)}
        return Outcome({name: float(count) for name, count in counts.items()})


def paper_counts(config: AttentionConfig, layer: Layer) -> dict[str, int]:
    """The paper's counts, in multiply-adds.

    Returns:
        ``paper_digital``: all in digital arithmetic; for the oscillator also
        ``paper_settling_physical``: the oscillators find their equilibrium by themselves, and
        ``paper_read_out_physical``: their closeness to the anchors is measured too, so that the
        coupling's function, one sum and one division remain. Nothing for other mechanisms.
    """
    ends = 2 * layer.rows
    if config.mechanism == "softmax":
        return {"paper_digital": EXPONENTIAL * layer.pairs + ends}
    charge = COUPLING_CHARGES.get(str(config.coupling))
    if config.mechanism != "oscillator" or charge is None:
        return {}
    coupling = charge * layer.pairs
    products = config.d_osc * layer.pairs
    return {
        # Fields and read-out; lengths and the read-out's sums are each summed and divided by.
        "paper_digital": coupling + 2 * products + 2 * ends,
        "paper_settling_physical": coupling + products + ends,
        "paper_read_out_physical": coupling + ends,
    }


def our_counts(config: AttentionConfig, layer: Layer) -> dict[str, int]:
    """Our count, of what the mechanism needs.

    Returns:
        ``multiply_adds``: of the whole layer, its linear maps included; ``exponentials``: those of
        base 2 too, though a device may have them for a shift; for features elu + 1, which take one
        where they are below zero, as if all were: an upper bound; ``weighted``: both, an
        exponential as the paper weighs it.
    """
    products = _products(config, layer)
    count = EXPONENTIALS.get((config.mechanism, config.coupling), _none)
    exponentials = count(config, layer)
    return {
        "multiply_adds": products,
        "exponentials": exponentials,
        "weighted": products + EXPONENTIAL * exponentials,
    }


def _none(config: AttentionConfig, layer: Layer) -> int:  # noqa: ARG001
    return 0


def _one_a_pair(config: AttentionConfig, layer: Layer) -> int:  # noqa: ARG001
    return layer.pairs


def _one_a_feature(kind: type[LinearAttention]) -> Callable[[AttentionConfig, Layer], int]:
    """Of queries and keys."""

    def count(config: AttentionConfig, layer: Layer) -> int:
        return 2 * layer.rows * kind.d_key(config, layer.d_model // layer.heads)

    return count


# By mechanism and coupling.
EXPONENTIALS: Mapping[tuple[str, str | None], Callable[[AttentionConfig, Layer], int]] = {
    ("softmax", None): _one_a_pair,
    ("softmax-base2", None): _one_a_pair,
    ("oscillator", "softplus"): _one_a_pair,
    ("linear", "elu"): _one_a_feature(LinearAttention),
    ("lowrank", "elu"): _one_a_feature(LowrankAttention),
}


def _products(config: AttentionConfig, layer: Layer) -> int:
    """Multiply-adds of the layer; a causal one has no products for pairs that it hides.

    The mechanisms count all pairs. The share of one pair is half the second difference of a count
    over the number of tokens, in which it is a polynomial.
    """
    count = MECHANISMS[config.mechanism].multiply_adds

    def products(tokens: int) -> int:
        return count(config, layer.d_model, layer.heads, tokens)

    tokens = layer.tokens
    if not layer.causal:
        return products(tokens)
    if config.mechanism == "uniform":  # each token has a mean of its own, mapped for it alone
        return tokens * products(1)
    a_pair = (products(tokens + 1) - 2 * products(tokens) + products(tokens - 1)) // 2
    return products(tokens) - a_pair * (tokens * (tokens - 1) // 2)
