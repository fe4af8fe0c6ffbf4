"""Agreement: the words, each by its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from entrain.deploy.errors import CheckpointError
from entrain.models.preparations.contract import RETRAIN, Preparation, typed


@dataclass(frozen=True)
class Vocabulary:
    """The words that a network knows.

    Args:
        words: in the order of their numbers.
    """

    words: tuple[str, ...]


class _Worded(Protocol):
    @property
    def vocabulary(self) -> int:
        """How many words the network knows."""


def _write(vocabulary: Vocabulary) -> dict[str, Any]:
    return {"words": list(vocabulary.words)}


def _read(value: Any, config: _Worded) -> Vocabulary:
    words = value.get("words") if isinstance(value, dict) else value
    known = typed(tuple[str, ...], words, "vocabulary")
    if len(known) != config.vocabulary or len(set(known)) != len(known):
        raise CheckpointError(
            f"the checkpoint's vocabulary has {len(set(known))} words, expected "
            f"{config.vocabulary}",
            remedy=RETRAIN,
        )
    return Vocabulary(known)


VOCABULARY = Preparation(Vocabulary, _write, _read)
