"""Attention mechanisms, one a file, behind one forward contract.

``forward(x [B, T, d_model], *, padding: bool [B, T] | None, causal: bool) -> [B, T, d_model]``;
padding is true for real tokens. A token that sees no token reads out zero. `declarations.py` is
the registry; names are read and checked by it without importing torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.declarations import DECLARATIONS

if TYPE_CHECKING:
    from entrain.models.attention.mechanism import AttentionMechanism

__all__ = ["MECHANISMS", "AttentionConfig", "build_attention"]


class _Mechanisms(Mapping[str, "type[AttentionMechanism]"]):
    """The classes by name; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> type[AttentionMechanism]:
        return DECLARATIONS[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(DECLARATIONS)

    def __len__(self) -> int:
        return len(DECLARATIONS)


MECHANISMS = _Mechanisms()


def build_attention(
    config: AttentionConfig, d_model: int, heads: int, max_length: int
) -> AttentionMechanism:
    """The module of a mechanism, with random weights.

    Args:
        config: the mechanism and its settings.
        d_model: width of a token; a multiple of `heads`.
        heads: number of heads.
        max_length: longest sequence; learned anchors are one a position and head.

    Raises:
        UsageError: if the width cannot be divided among the heads.
    """
    return MECHANISMS[config.mechanism](config, d_model, heads, max_length)
