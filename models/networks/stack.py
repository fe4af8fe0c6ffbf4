"""What the networks of attention blocks share: the checks of their sizes, and the making of one."""

from __future__ import annotations

from typing import Protocol

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.networks.block import AttentionBlock, BlockStyle, check_dropout
from entrain.models.networks.positions import POSITIONS


class StackConfig(Protocol):
    """What the configuration of such a network answers, whatever goes in and comes out."""

    @property
    def attention(self) -> AttentionConfig:
        """The mechanism of every block."""

    @property
    def d_model(self) -> int:
        """Width of a token."""

    @property
    def heads(self) -> int:
        """Attention heads."""

    @property
    def d_feed(self) -> int:
        """Width of the feed-forward layers."""

    @property
    def positions(self) -> str:
        """A name of `POSITIONS`."""

    @property
    def dropout(self) -> float:
        """Probability after the positions, in training."""

    @property
    def style(self) -> BlockStyle:
        """Norm, activation and dropout of the blocks."""


def check_stack(config: StackConfig, network: str, *sizes: int) -> None:
    """Check the sizes of a network, its positions and its dropout.

    Args:
        config: the configuration.
        network: what it is, for people: ``every size of <network> must be positive``.
        sizes: those that only this network has.

    Raises:
        UsageError: if a size is not positive, a name unknown or the dropout not in [0, 1).
    """
    if min(*sizes, config.d_model, config.heads, config.d_feed) < 1:
        raise UsageError(f"every size of {network} must be positive: {config}")
    if config.positions not in POSITIONS:
        raise UsageError(
            f"there are no positions {config.positions!r}",
            remedy=f"Choose one of: {', '.join(POSITIONS)}.",
        )
    check_dropout(config.dropout)


def build_block(config: StackConfig, max_length: int) -> AttentionBlock:
    """One block, with random weights, for sequences of up to `max_length` tokens."""
    return AttentionBlock(
        config.attention, config.d_model, config.heads, config.d_feed, max_length, config.style
    )
