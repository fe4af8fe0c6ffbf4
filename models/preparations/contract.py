"""How a preparation is written into a checkpoint and read from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from entrain.deploy.errors import CheckpointError, UsageError

RETRAIN = "Give a checkpoint written by `entrain train`, or train again."

Part = TypeVar("Part")


@dataclass(frozen=True)
class Preparation(Generic[Part]):
    """The two ways between a preparation and plain values.

    Args:
        kind: the preparation's type.
        write: gives plain values and tensors.
        read: of those and the network's configuration, which they must fit; raises CheckpointError.
    """

    kind: type[Part]
    write: Callable[[Part], dict[str, Any]]
    read: Callable[[Any, Any], Part]


def typed(kind: type[Part], value: Any, name: str) -> Part:
    """The value as a `kind`.

    Raises:
        CheckpointError: it is none.
    """
    try:
        return TypeAdapter(kind).validate_python(value)
    except (ValidationError, UsageError) as error:
        raise CheckpointError(
            f"the checkpoint's {name} cannot be used: {error}", remedy=RETRAIN
        ) from error


def tensors(value: Any, name: str) -> dict[str, Tensor]:
    """The value as tensors by name.

    Raises:
        CheckpointError: it is something else.
    """
    if not isinstance(value, Mapping) or not all(isinstance(v, Tensor) for v in value.values()):
        raise CheckpointError(f"the checkpoint's {name} are not tensors", remedy=RETRAIN)
    return {str(key): tensor for key, tensor in value.items()}
