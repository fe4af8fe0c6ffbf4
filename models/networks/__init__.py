"""Networks, one a file; each takes any attention mechanism.

`TASKS` has one line a task: what it is called in checkpoints, and its network's configuration.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from torch import nn

from entrain.models.attention import AttentionConfig
from entrain.models.networks.agreement import AgreementConfig, AgreementNetwork
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork
from entrain.models.networks.linear_keyword import LinearKeywordConfig, LinearKeywordNetwork


class NetworkConfig(Protocol):
    """A network's configuration: a frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def attention(self) -> AttentionConfig:
        """The mechanism."""

    def build(self) -> nn.Module:
        """The network, with random weights; its last map is called ``classifier``."""


TASKS: dict[str, type[NetworkConfig]] = {
    "keyword": KeywordConfig,
    "keyword-stream": KeywordConfig,
    "keyword-linear": LinearKeywordConfig,
    "agreement": AgreementConfig,
}

__all__ = [
    "TASKS",
    "AgreementConfig",
    "AgreementNetwork",
    "KeywordConfig",
    "KeywordNetwork",
    "LinearKeywordConfig",
    "LinearKeywordNetwork",
    "NetworkConfig",
]
