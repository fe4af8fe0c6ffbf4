"""The classes that a trained network predicts."""

from __future__ import annotations

import torch
from torch import Tensor, nn


@torch.no_grad()
def predicted_classes(network: nn.Module, inputs: Tensor, batch: int) -> Tensor:
    """The class that the network, in evaluation mode, scores highest for each input.

    Args:
        network: from inputs [B, ...] to logits [B, classes].
        inputs: [N, ...].
        batch: how many are scored at a time.

    Returns:
        int64 [N].
    """
    network.eval()
    scores = [network(part) for part in torch.split(inputs, batch)]
    return torch.cat(scores).argmax(dim=1)
