"""Training and judging character models."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import DataError, UsageError
from entrain.models.characters_task import (
    Windows,
    bits_per_character,
    epoch_norms,
    probe,
    random_windows,
    train_characters,
)
from entrain.models.data.characters import split_characters
from entrain.models.experiments.papers import published_figures
from entrain.models.experiments.specification import build_workload, find_experiment
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.characters import NETWORKS, Characters
from entrain.models.networks.kuramoto_language import KuramotoConfig
from entrain.models.networks.parameters import count_parameters
from entrain.models.networks.rotary_language import RotaryConfig
from entrain.models.training import EpochReport, TrainingConfig

WINDOWS = Windows(context=8, steps=5, validation=40)
TRAINING = TrainingConfig(epochs=4, warmup_epochs=1, peak_rate=0.01, batch=4, label_smoothing=0.0)
KURAMOTO = KuramotoConfig(phases=8, heads=2, layers=2, d_feed=8)
ROTARY = RotaryConfig(d_model=8, heads=2, layers=2, d_feed=8, context=8)
# A text with a rule to learn.
TEXT = np.frombuffer(b"abcabdabcabe" * 100, dtype=np.uint8)
DATA = split_characters(TEXT, "a rule")


class Counted(nn.Module):
    """Scores symbols by how often the window so far has had them, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, tokens: Tensor) -> Tensor:
        self.seen += list(tokens)
        return nn.functional.one_hot(tokens, 256).double().cumsum(dim=1)


def test_windows_are_pieces_of_the_text_and_what_follows() -> None:
    text = np.arange(200, dtype=np.uint8)
    batches = list(random_windows(text, WINDOWS, TRAINING)(0))
    assert len(batches) == WINDOWS.steps
    for inputs, targets in batches:
        assert inputs.shape == targets.shape == (4, 8)
        assert (targets == inputs + 1).all()
        assert (inputs[:, 1:] == inputs[:, :-1] + 1).all()


def test_windows_reach_both_ends_of_the_text() -> None:
    text = np.arange(11, dtype=np.uint8)
    windows = Windows(context=8, steps=50)
    batches = list(random_windows(text, windows, TRAINING)(0))
    assert {int(row[0]) for inputs, _ in batches for row in inputs} == {0, 1, 2}
    assert max(int(targets.max()) for _, targets in batches) == 10


def test_windows_depend_on_seed_and_epoch_only() -> None:
    def drawn(seed: int, epoch: int) -> Tensor:
        config = TrainingConfig(batch=4, seed=seed)
        return torch.stack([inputs for inputs, _ in random_windows(TEXT, WINDOWS, config)(epoch)])

    assert (drawn(0, 1) == drawn(0, 1)).all()
    assert not (drawn(0, 1) == drawn(0, 2)).all()
    assert not (drawn(0, 1) == drawn(1, 1)).all()


@pytest.mark.parametrize("length", [9, 10, 13, 17, 64, 65])
def test_bits_count_every_character_once_in_the_first_window_that_has_it(length: int) -> None:
    context = 8
    text = np.random.default_rng(0).integers(0, 5, length).astype(np.uint8)
    total = 0.0
    scored = 0
    last = length - 1 - context
    for start in [*range(0, last, context // 2), last]:
        window = torch.from_numpy(text[start : start + context].astype(np.int64))[None]
        chances = Counted()(window)[0].log_softmax(dim=-1)
        for place in range(context):
            target = start + place + 1
            if target > scored:
                total -= chances[place, text[target]].item() / math.log(2)
                scored = target
    assert scored == length - 1
    assert bits_per_character(Counted(), text, context) == pytest.approx(total / (length - 1))


def test_all_symbols_alike_cost_eight_bits() -> None:
    class Alike(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            return torch.zeros(*tokens.shape, 256)

    assert bits_per_character(Alike(), TEXT, 8) == pytest.approx(8)


def test_a_text_shorter_than_a_window_is_told() -> None:
    short = TEXT[:8]
    with pytest.raises(DataError, match="8 characters"):
        bits_per_character(Counted(), short, 8)
    with pytest.raises(DataError, match="need 9"):
        random_windows(short, WINDOWS, TRAINING)
    with pytest.raises(DataError, match="need 9"):
        probe(short, 8)


@pytest.mark.parametrize("config", [KURAMOTO, ROTARY])
def test_the_gradients_length_is_that_of_all_parameters_together(
    config: KuramotoConfig | RotaryConfig,
) -> None:
    torch.manual_seed(0)
    network = config.build()
    inputs, targets = probe(TEXT, 8)
    norms = epoch_norms(network, inputs, targets)
    nn.functional.cross_entropy(network(inputs).transpose(1, 2), targets).backward()
    squares = sum(parameter.grad.square().sum().item() for parameter in network.parameters())
    assert norms.gradient == pytest.approx(math.sqrt(squares), rel=1e-4)


@pytest.mark.parametrize("config", [KURAMOTO, ROTARY])
def test_a_rule_is_learned(config: KuramotoConfig | RotaryConfig) -> None:
    training = TrainingConfig(
        epochs=3, warmup_epochs=1, peak_rate=0.03, batch=8, label_smoothing=0.0
    )
    windows = Windows(context=8, steps=60, validation=40)
    trained = train_characters(DATA, config, windows, training, lambda _: None)
    known_from_the_character_before = 0.5
    assert bits_per_character(trained.network, DATA.test, 8) < known_from_the_character_before


@pytest.mark.parametrize("config", [KURAMOTO, ROTARY])
def test_a_training_that_goes_on_equals_the_whole(
    tmp_path: Path, config: KuramotoConfig | RotaryConfig
) -> None:
    snapshot = tmp_path / "snapshot.pt"

    class Stopped(Exception):
        pass

    def stop(report: EpochReport) -> None:
        if report.epoch == 2:
            raise Stopped

    whole = train_characters(DATA, config, WINDOWS, TRAINING, lambda _: None)
    with pytest.raises(Stopped):
        train_characters(DATA, config, WINDOWS, TRAINING, stop, snapshot)
    resumed = train_characters(DATA, config, WINDOWS, TRAINING, lambda _: None, snapshot)
    assert resumed.history == whole.history
    assert resumed.norms == whole.norms
    assert len(whole.norms) == TRAINING.epochs
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name


@pytest.fixture
def text_folder(tmp_path: Path) -> Path:
    (tmp_path / "enwik8_prefix_1200.bin").write_bytes(TEXT.tobytes())
    return tmp_path


def measured(folder: Path, **settings: str) -> Outcome:
    workload = Characters(
        width=8, heads=2, layers=2, d_feed=8, context=8, steps=4, epochs=2,
        validation_characters=40, batch=4, **settings,
    )  # fmt: skip
    return workload.measure(0, Place(folder), lambda _: None)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_is_measured(text_folder: Path, network: str) -> None:
    outcome = measured(text_folder, network=network)
    assert 0 < outcome.metrics["bits"] < 9
    assert len(outcome.curves["gradient_norm"]) == 2
    assert ("local_order" in outcome.curves) == network.startswith("kuramoto")


@pytest.mark.parametrize("attention", ["oscillator-relu", "oscillator-separable", "uniform"])
def test_the_transformer_takes_any_mechanism(text_folder: Path, attention: str) -> None:
    outcome = measured(text_folder, network="transformer", attention=attention)
    assert 0 < outcome.metrics["bits"] < 9


def test_the_same_seed_the_same_outcome(text_folder: Path) -> None:
    assert measured(text_folder) == measured(text_folder)


def test_without_a_folder_it_is_told_where_to_get_the_text() -> None:
    with pytest.raises(DataError, match=r"enwik8\.zip"):
        Characters().measure(0, Place(None), lambda _: None)


def test_settings_that_make_no_sense_are_told_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="nand"):
        Characters(network="nand")
    with pytest.raises(UsageError, match="own attention"):
        Characters(network="kuramoto", attention="uniform")
    with pytest.raises(UsageError, match="heads"):
        Characters(width=127)


@pytest.mark.parametrize("table", ["enwik8-1m", "enwik8-5m", "enwik8-mechanisms"])
def test_every_variant_of_every_budget_can_be_built(table: str) -> None:
    experiment = find_experiment(table)
    published_figures(experiment)
    for budget in ("small", "paper"):
        for variant in experiment.variants.values():
            workload = build_workload(experiment, experiment.budget(budget), variant)
            assert isinstance(workload, Characters)
            assert count_parameters(workload.settings().build()) > 0


@pytest.mark.parametrize("table", ["enwik8-1m", "enwik8-5m"])
def test_kuramoto_and_transformer_have_equally_many_parameters(table: str) -> None:
    experiment = find_experiment(table)
    counts = {}
    for name in ("kuramoto", "rotary"):
        variant = experiment.variants[name]
        workload = build_workload(experiment, experiment.budget("paper"), variant)
        assert isinstance(workload, Characters)
        counts[name] = count_parameters(workload.settings().build())
    stated = {"enwik8-1m": 1e6, "enwik8-5m": 5e6}[table]
    assert counts["rotary"] == pytest.approx(counts["kuramoto"], rel=0.01)
    assert counts["kuramoto"] == pytest.approx(stated, rel=0.02)
