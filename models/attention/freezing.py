"""Training without value maps: the first paper's ablation."""

from __future__ import annotations

from torch import nn

from entrain.deploy.errors import UsageError
from entrain.models.attention.mechanism import AttentionMechanism


def freeze_values(network: nn.Module) -> None:
    """Take the attention's value maps out of the training.

    What such a network learns of other tokens, it learns through the attention's weights.

    Raises:
        UsageError: if the attention has no value map.
    """
    for mechanism in network.modules():
        if isinstance(mechanism, AttentionMechanism):
            values = getattr(mechanism, "value", None)
            if not isinstance(values, nn.Module):
                raise UsageError(f"{mechanism.config.title} attention has no value map to freeze")
            values.requires_grad_(requires_grad=False)
