"""Decoding token by token in constant memory: running sums, and no key or value is kept.

A mechanism that asks `Visible` for sums only, never for a mask of pairs, streams as it is: the
sums of a token are those of the token before it and its own terms. `AttentionMechanism.start` and
`AttentionMechanism.step` are the way in.

Katharopoulos et al., "Transformers are RNNs", 2020, for linear attention; the oscillator with the
separable coupling and p = 1 has the same form, with d_osc + 1 features to read out.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.attention.visibility import Visible


@dataclass(frozen=True)
class DecoderState:
    """What a causal decoder keeps of all tokens so far.

    Args:
        position: number of tokens so far, which is the position of the next one.
        sums: the mechanism's running sums, [B or 1, H, F, C] or [B or 1, H, 1, C] each, in the
            order in which it takes them; their sizes do not depend on the position.
    """

    position: int
    sums: tuple[Tensor, ...]

    @property
    def numbers(self) -> int:
        """How many numbers the state holds."""
        return sum(total.numel() for total in self.sums)


class RunningSums(Visible):
    """What the last token of a sequence sees: the sums so far, and itself.

    Args:
        state: the sums so far; without sums, they begin at zero.
    """

    def __init__(self, state: DecoderState) -> None:
        self._position = state.position
        self._before = list(state.sums)
        self._after: list[Tensor] = []

    @property
    def first(self) -> int:
        """Position of the one token at hand."""
        return self._position

    def mask(self, length: int, like: Tensor) -> Tensor:  # noqa: ARG002
        """There is none.

        Raises:
            UsageError: always; the mechanism cannot be streamed.
        """
        raise UsageError(
            "the weights are made pair by pair, which needs the keys of all earlier tokens: "
            "running sums are not enough to decode with",
            remedy="Decode with linear-relu, linear-elu, lowrank-relu, lowrank-elu, uniform, or "
            "oscillator-separable with p = 1 and any d_osc.",
        )

    def total(self, terms: Tensor) -> Tensor:
        """See `Visible`; T is 1."""
        return self._add(terms)

    def weigh(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """See `Visible`; T is 1."""
        return queries @ self._add(keys.transpose(-1, -2) @ values)

    def _add(self, own: Tensor) -> Tensor:
        before = self._before[len(self._after)] if self._before else own.new_zeros(own.shape)
        self._after.append(before + own)
        return self._after[-1]

    def state(self) -> DecoderState:
        """The state behind this token."""
        return DecoderState(self._position + 1, tuple(self._after))
