"""Keyword networks with random weights, quantized and exported once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from entrain.deploy.export import export_onnx
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.network import read_network
from entrain.deploy.quantization.keyword import QuantizedKeyword, new_quantized_keyword
from entrain.deploy.quantize import calibrate
from entrain.models.attention import AttentionConfig
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork

VARIANTS = {
    "softmax": AttentionConfig("softmax"),
    "softmax to base 2": AttentionConfig("softmax-base2"),
    "linear relu": AttentionConfig("linear", "relu"),
    "linear elu": AttentionConfig("linear", "elu"),
    "uniform": AttentionConfig("uniform"),
    "softplus": AttentionConfig("oscillator", "softplus"),
    "relu": AttentionConfig("oscillator", "relu"),
    "separable": AttentionConfig("oscillator", "separable"),
    "relu in four dimensions": AttentionConfig("oscillator", "relu", d_osc=4),
    "relu squared": AttentionConfig("oscillator", "relu", exponent=2.0),
}
FEATURES = (1, 49, 40)


@dataclass(frozen=True)
class Exported:
    """A network in every form, with inputs like those it was calibrated on."""

    network: KeywordNetwork
    quantized: QuantizedKeyword
    onnx: Path
    graph: LoweredGraph
    features: Any


def spoken(count: int, seed: int) -> torch.Tensor:
    """Inputs [count, 1, 49, 40] that differ from each other as words do: a shape, and noise."""
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.randn(9, *FEATURES, generator=torch.Generator().manual_seed(99))
    words = torch.randint(0, 9, (count,), generator=generator)
    return shapes[words] + 0.25 * torch.randn(count, *FEATURES, generator=generator)


def random_network(attention: AttentionConfig) -> KeywordNetwork:
    """Random weights, statistics of the norms that fit them, and classes that all occur."""
    torch.manual_seed(0)
    network = KeywordNetwork(KeywordConfig(attention)).train()
    with torch.no_grad():
        for seed in range(8):
            network(spoken(64, seed))
        network.eval()
        network.classifier.bias -= network(spoken(256, 49)).mean(dim=0)
    return network


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """The network of a variant, made when first asked for."""
    torch.set_num_threads(1)
    made: dict[str, Exported] = {}

    def make(variant: str) -> Exported:
        if variant not in made:
            network = random_network(VARIANTS[variant])
            quantized = new_quantized_keyword(network)
            calibrate(quantized, spoken(128, 50))
            path = tmp_path_factory.mktemp("exported") / "model.onnx"
            export_onnx(quantized, spoken(1, 51), path)
            graph = read_network(path, "keyword")
            made[variant] = Exported(network, quantized, path, graph, spoken(400, 52).numpy())
        return made[variant]

    return make


@pytest.fixture(params=sorted(VARIANTS))
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["softmax", "relu"])
def some_variant(request: pytest.FixtureRequest) -> str:
    """Where one with and one without an oscillator is enough."""
    return str(request.param)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)
