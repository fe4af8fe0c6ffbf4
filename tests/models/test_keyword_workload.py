from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.data import KeywordData
from entrain.models.experiments.papers import published_figures
from entrain.models.experiments.specification import build_workload, find_experiment
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads import keyword
from entrain.models.experiments.workloads.keyword import (
    Keyword,
    noisy_accuracies,
    shuffled_accuracy,
)
from entrain.models.keyword_task import train_keyword
from entrain.models.networks.linear_keyword import LinearKeywordConfig
from entrain.models.training import EpochReport, TrainingConfig

TABLES = ["kws-mechanisms", "kws-positions", "kws-exponent", "cost"]
BASE = {"accuracy", "balanced_accuracy", "validation", "validation_best", "frames_shuffled"}
NOISE = {"coupling_noise_20", "coupling_noise_50", "state_noise_20", "state_noise_50"}


@pytest.fixture(autouse=True)
def tones_for_words(tone_data: KeywordData, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tones in place of the words."""
    monkeypatch.setattr(keyword, "load_words", lambda *_: tone_data)


def short(**settings: object) -> Keyword:
    defaults: dict[str, object] = {"words": ("low", "high"), "epochs": 3, "warmup_epochs": 1}
    return Keyword(**{**defaults, "batch": 16, **settings})  # type: ignore[arg-type]


def measure(workload: Keyword, seed: int = 0, snapshot: Path | None = None) -> Outcome:
    return workload.measure(seed, Place(None, snapshot), lambda _: None)


@pytest.mark.parametrize("network", ["convolutional", "linear"])
@pytest.mark.parametrize("attention", ["oscillator-relu", "none"])
def test_both_networks_are_trained_tested_and_probed(network: str, attention: str) -> None:
    outcome = measure(short(network=network, attention=attention, epochs=4))
    assert set(outcome.metrics) == (BASE | NOISE if attention == "oscillator-relu" else BASE)
    assert outcome.metrics["accuracy"] > 90
    assert outcome.metrics["balanced_accuracy"] > 90
    assert len(outcome.curves["loss"]) == len(outcome.curves["validation"]) == 4
    assert outcome.metrics["validation"] == outcome.curves["validation"][-1]
    assert outcome.metrics["validation_best"] == max(outcome.curves["validation"])


def test_the_same_seed_gives_the_same_outcome() -> None:
    workload = short(network="linear", attention="oscillator-softplus", epochs=2)
    assert measure(workload) == measure(workload)
    assert measure(workload).curves != measure(workload, seed=1).curves


def test_a_training_that_was_stopped_goes_on_to_the_same_outcome(tmp_path: Path) -> None:
    workload, snapshot = short(network="linear"), tmp_path / "training.pt"

    def interrupt(report: EpochReport) -> None:
        if report.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workload.measure(0, Place(None, snapshot), interrupt)
    assert measure(workload, snapshot=snapshot) == measure(workload)


def test_frozen_values_stay_where_they_started(tone_data: KeywordData) -> None:
    config = LinearKeywordConfig(AttentionConfig.parse("oscillator-relu"), classes=2)
    training = TrainingConfig(epochs=2, warmup_epochs=0, batch=16, seed=5)
    trained = train_keyword(tone_data, config, training, lambda _: None, frozen_values=True)
    torch.manual_seed(5)
    start = config.build().block.attention
    end = trained.network.get_submodule("block.attention")
    for name, before in start.named_parameters():
        assert torch.equal(before, end.get_parameter(name)) == name.startswith("value.")


def test_only_values_that_are_there_can_be_frozen() -> None:
    with pytest.raises(UsageError, match="no value map"):
        measure(short(attention="none", frozen_values=True))


class LooksAtFrames(nn.Module):
    """Scores class 1 by the frame at one place, or by any frame."""

    def __init__(self, place: int | None) -> None:
        super().__init__()
        self.place = place

    def forward(self, features: Tensor) -> Tensor:
        frames = features[:, 0, :, 0]
        found = frames.amax(1) if self.place is None else frames[:, self.place]
        return torch.stack([torch.full_like(found, 0.5), found], dim=1)


@pytest.mark.parametrize(("place", "expected"), [(None, 100.0), (3, 50.0)])
def test_shuffling_costs_only_what_knows_the_order(place: int | None, expected: float) -> None:
    features = torch.zeros(6, 1, 49, 40)
    features[::2, :, 3] = 1.0
    targets = np.array([1, 0] * 3)
    assert shuffled_accuracy(LooksAtFrames(place), features, targets) == expected


def test_noise_is_put_on_couplings_and_states_and_taken_off_again() -> None:
    torch.manual_seed(0)
    config = LinearKeywordConfig(AttentionConfig.parse("oscillator-relu"), classes=50)
    network = config.build().eval()
    features = torch.randn(200, 1, 49, 40)
    targets = network(features).argmax(1).numpy()
    found = noisy_accuracies(network, features, targets)
    assert set(found) == NOISE
    # The network's own answers are the targets: only noise can make it miss them.
    assert 0 < found["state_noise_50"] < found["state_noise_20"] < 100
    assert 0 < found["coupling_noise_50"] < found["coupling_noise_20"] < 100
    assert np.array_equal(network(features).argmax(1).numpy(), targets)


@pytest.mark.parametrize(
    "settings",
    [
        {"network": "recurrent"},
        {"augmentation": "some"},
        {"attention": "dense"},
        {"positions": "sinusoidal"},
        {"network": "linear", "positions": "odd"},
        {"epochs": 0},
        {"width": 33, "network": "linear"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        measure(short(**settings))


def test_a_width_is_that_of_a_token() -> None:
    network = short(network="linear", width=16).settings(2).build()
    assert network.get_submodule("embed").get_parameter("weight").shape == (16, 40)
    assert network.get_submodule("block.expand").get_parameter("weight").shape == (64, 16)


@pytest.mark.parametrize("name", TABLES)
def test_every_variant_of_the_tables_can_be_built(name: str) -> None:
    experiment = find_experiment(name)
    for budget in experiment.budgets.values():
        for variant in experiment.variants.values():
            build_workload(experiment, budget, variant)
    assert set(published_figures(experiment).figures) <= set(experiment.variants)


def test_both_networks_have_the_same_rows_and_their_own_baseline() -> None:
    experiment = find_experiment("kws-mechanisms")
    rows: dict[str, set[str]] = {"linear": set(), "convolutional": set()}
    for variant in experiment.variants.values():
        network, _, row = variant.name.partition("-")
        rows[network].add(row)
        assert variant.baseline == f"{network}-softmax"
    assert rows["linear"] == rows["convolutional"]
