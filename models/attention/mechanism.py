"""What every attention mechanism is and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from entrain.models.attention.config import AttentionConfig


class AttentionMechanism(nn.Module, ABC):
    """The contract of a mechanism; all are built from the same four arguments.

    Args:
        config: the mechanism and its settings.
        d_model: width of a token.
        heads: number of heads.
        max_length: longest sequence.
    """

    @abstractmethod
    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, x: Tensor, *, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend.

        Args:
            x: tokens [B, T, d_model].
            padding: bool [B, T], true for real tokens; None if all are.
            causal: whether a token sees only itself and those before it.

        Returns:
            [B, T, d_model]; a token that sees none reads out zero.
        """

    @staticmethod
    @abstractmethod
    def multiply_adds(config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:
        """Multiply-adds of one sequence of `tokens`, without masks, its linear maps included.

        Counted are the products inside sums: of matrices, vectors and lengths. Scaling by a
        constant, division, exponentials and roots are not.
        """
