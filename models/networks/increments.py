"""What both character networks are: layers of two increments each on a state that runs through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn


class IncrementLayer(nn.Module, ABC):
    """state + attention, then + feed-forward."""

    @abstractmethod
    def increments(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """What attention adds to a state [B, T, ...], and what the feed-forward layer then adds."""

    def forward(self, state: Tensor) -> Tensor:
        """The state after both increments, [B, T, ...]."""
        attended, fed = self.increments(state)
        return state + attended + fed


class CharacterNetwork(nn.Module, ABC):
    """Scores for the next symbol at every place of a text. A place sees itself and those before.

    Args:
        layers: in the order in which they come.
    """

    def __init__(self, layers: Sequence[IncrementLayer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def stack(self) -> tuple[IncrementLayer, ...]:
        """The layers, in the order in which they come."""
        return tuple(layer for layer in self.layers if isinstance(layer, IncrementLayer))

    @abstractmethod
    def embed(self, tokens: Tensor) -> Tensor:
        """The state [B, T, ...] that symbols int64 [B, T] start with."""

    @abstractmethod
    def score(self, state: Tensor) -> Tensor:
        """From the last state [B, T, ...] to scores [B, T, symbols]."""

    def forward(self, tokens: Tensor) -> Tensor:
        """From symbols int64 [B, T] to scores [B, T, symbols]."""
        state = self.embed(tokens)
        for layer in self.layers:
            state = layer(state)
        return self.score(state)
