"""The keyword spotter: a small convolutional front, one attention block, a linear classifier."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import MECHANISMS, AttentionConfig
from entrain.models.networks.block import AttentionBlock, check_dropout
from entrain.models.networks.norm import FeatureNorm
from entrain.models.networks.positions import POSITION_DEVIATION

KERNEL = 3


@dataclass(frozen=True)
class KeywordConfig:
    """The keyword network's sizes.

    Args:
        attention: the mechanism.
        classes: number of words.
        frames: time steps of the features.
        bands: mel bands of the features.
        channels: of the first and of the pointwise convolution.
        d_model: width of a token.
        heads: attention heads.
        d_feed: width of the feed-forward layer.
        dropout: probability after the positions, in training.

    Raises:
        UsageError: if a size is not positive or the dropout is not in [0, 1).
    """

    attention: AttentionConfig
    classes: int = 9
    frames: int = 49
    bands: int = 40
    channels: tuple[int, int] = (16, 32)
    d_model: int = 48
    heads: int = 2
    d_feed: int = 192
    dropout: float = 0.05

    def __post_init__(self) -> None:
        sizes = (self.classes, self.frames, self.bands, *self.channels)
        if min(*sizes, self.d_model, self.heads, self.d_feed) < 1:
            raise UsageError(f"every size of a keyword network must be positive: {self}")
        check_dropout(self.dropout)

    @property
    def tokens(self) -> int:
        """Length of the sequence that attention sees: the first convolution halves the frames."""
        return _halved(self.frames)

    @property
    def map_bands(self) -> int:
        """Width of the feature map before it is flattened: the bands halved twice."""
        return _halved(_halved(self.bands))

    def build(self) -> KeywordNetwork:
        """The network, with random weights."""
        return KeywordNetwork(self)


def _halved(size: int) -> int:
    # A 3-wide kernel with stride 2 and padding 1.
    return (size + 1) // 2


class ConvolutionUnit(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        *,
        kernel: int,
        stride: tuple[int, int],
        groups: int = 1,
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            channels_in,
            channels_out,
            kernel,
            stride=stride,
            padding=kernel // 2,
            groups=groups,
            bias=False,
        )
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        """[B, channels_in, T, F] to [B, channels_out, T / stride, F / stride], not negative."""
        return torch.relu(self.norm(self.convolution(x)))


class KeywordNetwork(nn.Module):
    """Log-mel features of one second to a score for each word.

    Convolution 3x3 with stride 2, depthwise 3x3 with stride (1, 2), pointwise; the map of each
    frame becomes one token; learned positions; one attention block; the mean over time; a linear
    classifier. Every norm folds into a linear layer.
    """

    def __init__(self, config: KeywordConfig) -> None:
        super().__init__()
        self.config = config
        first, second = config.channels
        self.stem = ConvolutionUnit(1, first, kernel=KERNEL, stride=(2, 2))
        self.depthwise = ConvolutionUnit(first, first, kernel=KERNEL, stride=(1, 2), groups=first)
        self.pointwise = ConvolutionUnit(first, second, kernel=1, stride=(1, 1))
        self.embed = nn.Linear(second * config.map_bands, config.d_model, bias=False)
        self.embed_norm = FeatureNorm(config.d_model)
        self.positions = nn.Parameter(
            POSITION_DEVIATION * torch.randn(config.tokens, config.d_model)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.block = AttentionBlock(
            config.attention, config.d_model, config.heads, config.d_feed, config.tokens
        )
        self.head_norm = FeatureNorm(config.d_model)
        self.classifier = nn.Linear(config.d_model, config.classes)
        # The order in memory in which convolutions of few channels are fastest; shapes are as ever.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, features: Tensor) -> Tensor:
        """Score words.

        Args:
            features: normalised log-mel features [B, 1, frames, bands].

        Returns:
            Logits [B, classes].
        """
        maps = self.pointwise(self.depthwise(self.stem(features)))
        frames = maps.permute(0, 2, 1, 3).flatten(2)
        tokens = self.embed_norm(self.embed(frames)) + self.positions
        tokens = self.block(self.dropout(tokens))
        logits: Tensor = self.classifier(self.head_norm(tokens).mean(dim=1))
        return logits


def count_multiply_adds(config: KeywordConfig) -> int:
    """Multiply-adds of one inference with the norms folded.

    The products inside sums of convolutions (borders counted as if whole), linear maps and
    attention; see `AttentionMechanism.multiply_adds`.
    """
    first, second = config.channels
    tokens, bands, width = config.tokens, config.map_bands, config.d_model
    stem = tokens * _halved(config.bands) * KERNEL**2 * first
    depthwise = tokens * bands * KERNEL**2 * first
    pointwise = tokens * bands * first * second
    embed = tokens * second * bands * width
    mechanism = MECHANISMS[config.attention.mechanism]
    attention = mechanism.multiply_adds(config.attention, width, config.heads, tokens)
    feed = 2 * tokens * width * config.d_feed
    classifier = width * config.classes
    return stem + depthwise + pointwise + embed + attention + feed + classifier
