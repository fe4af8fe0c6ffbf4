"""What every attention mechanism is and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from entrain.deploy.errors import concerning
from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.streaming import DecoderState, RunningSums
from entrain.models.attention.visibility import Visibility, Visible


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
        self.config = config
        self.d_model = d_model

    def forward(self, x: Tensor, *, padding: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend.

        Args:
            x: tokens [B, T, d_model].
            padding: bool [B, T], true for real tokens; None if all are.
            causal: whether a token sees only itself and those before it.

        Returns:
            [B, T, d_model]; a token that sees none reads out zero.

        Raises:
            UsageError: if there are more tokens than learned anchors.
        """
        return self.attend(x, Visibility(padding, causal))

    @abstractmethod
    def attend(self, x: Tensor, visible: Visible) -> Tensor:
        """`forward` on tokens [B, T, d_model] that see each other as `visible` says."""

    def start(self, batch: int) -> DecoderState:
        """A causal decoder's state before the first token, for `batch` sequences side by side.

        Raises:
            UsageError: if the mechanism cannot be decoded from running sums.
        """
        like = next(self.parameters(), torch.empty(0))
        nothing = RunningSums(DecoderState(0, ()))
        # One token shows which sums there are; none of it is kept.
        with concerning(f"{self.config.slug} attention"), torch.no_grad():
            self.attend(like.new_zeros(batch, 1, self.d_model), nothing)
        return DecoderState(0, tuple(torch.zeros_like(total) for total in nothing.state().sums))

    def step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Decode one token a sequence: the next column of `forward` with `causal`.

        Args:
            x: the tokens at `state.position`, [B, d_model].
            state: from `start`, or from the step before.

        Returns:
            [B, d_model], and the state for the next step.
        """
        sums = RunningSums(state)
        return self.attend(x.unsqueeze(1), sums).squeeze(1), sums.state()

    @classmethod
    @abstractmethod
    def multiply_adds(cls, config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:
        """Multiply-adds of one sequence of `tokens`, without masks, its linear maps included.

        Counted are the products inside sums: of matrices, vectors and lengths. Scaling by a
        constant, division, exponentials and roots are not.
        """
