"""How far the phases of a Kuramoto network agree, by depth, and how large increments become."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from entrain.models.dynamics.order import global_order, weighted_order
from entrain.models.networks.increments import CharacterNetwork
from entrain.models.networks.kuramoto_language import KuramotoLanguage


@dataclass(frozen=True)
class OrderByDepth:
    """Order parameters in 0..1, means over sequences, heads and coordinates.

    Args:
        local: of each layer, R of what a token attends to, |sum_u A_tu e^(i theta_u)|, over tokens.
        whole: R over all tokens of a sequence, of the phases that enter each layer and of those
            that leave the last: one more than there are layers.
    """

    local: tuple[float, ...]
    whole: tuple[float, ...]


@torch.no_grad()
def order_by_depth(network: KuramotoLanguage, tokens: Tensor) -> OrderByDepth:
    """The order parameters of symbols int64 [B, T]."""
    theta = network.embed(tokens)
    local: list[float] = []
    whole = [_mean_global_order(theta)]
    for layer, attention in zip(network.stack(), network.attentions(), strict=True):
        order = weighted_order(theta.transpose(1, 2), attention.weights(theta))
        local.append(order.mean().item())
        theta = layer(theta)
        whole.append(_mean_global_order(theta))
    return OrderByDepth(tuple(local), tuple(whole))


def _mean_global_order(theta: Tensor) -> float:
    return global_order(theta.transpose(1, 2)).mean().item()


@torch.no_grad()
def frequencies_by_depth(network: KuramotoLanguage) -> tuple[float, ...]:
    """The mean size of each layer's learned frequencies, in radians a token."""
    return tuple(attention.frequencies.abs().mean().item() for attention in network.attentions())


@dataclass(frozen=True)
class NormsByDepth:
    """How large a network's values become: of each layer, the largest over all tokens.

    A norm is the root mean square over a token's coordinates, so that widths compare.

    Args:
        attention: of the increments by attention.
        feed: of the increments by feed-forward layers.
        state: of the states that leave the layers.
    """

    attention: tuple[float, ...]
    feed: tuple[float, ...]
    state: tuple[float, ...]


@torch.no_grad()
def norms_by_depth(network: CharacterNetwork, tokens: Tensor) -> NormsByDepth:
    """The largest norms that symbols int64 [B, T] give rise to."""
    state = network.embed(tokens)
    rows: list[tuple[float, float, float]] = []
    for layer in network.stack():
        attended, fed = layer.increments(state)
        state = state + attended + fed
        rows.append((_largest(attended), _largest(fed), _largest(state)))
    attention, feed, states = zip(*rows, strict=True)
    return NormsByDepth(attention, feed, states)


def _largest(values: Tensor) -> float:
    return values.flatten(2).square().mean(dim=-1).sqrt().max().item()
