"""Networks, one a file; each takes any attention mechanism.

`TASKS` has one line a task: what it is called in checkpoints, and its configuration and network.
"""

from __future__ import annotations

from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork

TASKS: dict[str, tuple[type[KeywordConfig], type[KeywordNetwork]]] = {
    "keyword": (KeywordConfig, KeywordNetwork),
}

__all__ = ["TASKS", "KeywordConfig", "KeywordNetwork"]
