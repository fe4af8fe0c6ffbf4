"""Word-level language models: causal, learning, going on, and decoding in constant memory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.data.text import PADDING, SPECIAL, TextData, chunks
from entrain.models.experiments.workload import Place
from entrain.models.experiments.workloads.words import Words
from entrain.models.language_task import (
    mean_loss,
    perplexity,
    train_language,
)
from entrain.models.networks.language import LanguageConfig, LanguageNetwork
from entrain.models.training import EpochReport, TrainingConfig

MECHANISMS = [
    "softmax",
    "uniform",
    "linear-elu",
    "oscillator-softplus-d8",
    "oscillator-separable-rotation",
]
TRAINING = TrainingConfig(epochs=5, warmup_epochs=1, peak_rate=0.01, batch=8, label_smoothing=0.0)


def config(slug: str = "softmax", vocabulary: int = 10, **changes: object) -> LanguageConfig:
    sizes = {"context": 8, "d_model": 16, "heads": 2, "layers": 2, "d_feed": 32, **changes}
    return LanguageConfig(AttentionConfig.parse(slug), vocabulary, **sizes)


def network(of: LanguageConfig) -> LanguageNetwork:
    torch.manual_seed(0)
    return of.build().double().eval()


def text(length: int = 600) -> TextData:
    """Words that count up to six and begin again: each foretells the next."""
    words = 4 + np.arange(length) % 6
    vocabulary = (*SPECIAL, *"abcdef")
    return TextData(vocabulary, words, words[:60], words[:60], "counting")


@pytest.mark.parametrize("slug", MECHANISMS)
@settings(max_examples=20, deadline=None)
@given(words=st.lists(st.integers(0, 9), min_size=8, max_size=8), cut=st.integers(1, 7))
@torch.no_grad()
def test_what_comes_later_changes_nothing(slug: str, words: list[int], cut: int) -> None:
    model = network(config(slug))
    changed = words[:cut] + [9 - word for word in words[cut:]]
    before, after = model(torch.tensor([words, changed]))[:, :cut]
    assert torch.allclose(before, after, rtol=0, atol=1e-12)


def decoded(model: LanguageNetwork, words: Tensor) -> tuple[Tensor, set[int]]:
    """The scores word by word, and the sizes that the states had."""
    states = model.start(len(words))
    scores, sizes = [], set()
    for column in words.T:
        row, states = model.step(column, states)
        scores.append(row)
        sizes.add(sum(state.numbers for state in states))
    return torch.stack(scores, dim=1), sizes


@pytest.mark.parametrize("slug", ["oscillator-separable-d8-rotation", "linear-elu"])
@torch.no_grad()
def test_a_thousand_words_decoded_in_constant_memory_equal_the_whole(slug: str) -> None:
    model = network(config(slug, positions="none"))
    words = torch.randint(0, 10, (2, 1000), generator=torch.Generator().manual_seed(1))
    scores, sizes = decoded(model, words)
    assert torch.allclose(scores, model(words), rtol=0, atol=1e-10)
    assert len(sizes) == 1


def test_what_needs_all_keys_or_has_an_end_is_not_decoded() -> None:
    with pytest.raises(UsageError, match="pair by pair"):
        network(config("softmax", positions="none")).start(1)
    with pytest.raises(UsageError, match="sinusoidal positions"):
        network(config("linear-elu")).start(1)


class Known(nn.Module):
    """Gives every word the probabilities it was told."""

    def __init__(self, probabilities: list[float]) -> None:
        super().__init__()
        self.logits = torch.tensor(probabilities).log()

    def forward(self, words: Tensor) -> Tensor:
        return self.logits.expand(*words.shape, -1)


def test_perplexity_counts_words_and_no_padding() -> None:
    probabilities = [0.05, 0.05, 0.2, 0.1, 0.35, 0.25]
    pieces = chunks(np.array([4, 5, 5, 4, 5]), 5)
    assert (pieces == PADDING).any()
    # Words 4 5 5, 4 5, and the mark for the end of each of the two pieces.
    losses = [-math.log(probabilities[word]) for word in (4, 5, 5, 2, 4, 5, 2)]
    model = Known(probabilities)
    assert mean_loss(model, pieces) == pytest.approx(sum(losses) / 7, rel=1e-6)
    assert perplexity(model, pieces) == pytest.approx(math.exp(sum(losses) / 7), rel=1e-6)


@pytest.mark.parametrize("slug", MECHANISMS)
def test_counting_is_learned(slug: str) -> None:
    data = text()
    training = TrainingConfig(
        epochs=20, warmup_epochs=1, peak_rate=0.01, batch=8, label_smoothing=0.0
    )
    trained = train_language(data, config(slug, dropout=0.0), training, lambda _: None)
    # The first word of a piece cannot be known: six choices of seven words to foretell.
    assert perplexity(trained.network, chunks(data.test, 8)) < 1.6


class Killed(BaseException):
    """As if the process had gone away."""


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = train_language(text(), config(), TRAINING, lambda _: None)

    def kill(report: EpochReport) -> None:
        if report.epoch == 3:
            raise Killed

    snapshot = tmp_path / "training.pt"
    with pytest.raises(Killed):
        train_language(text(), config(), TRAINING, kill, snapshot)
    resumed = train_language(text(), config(), TRAINING, lambda _: None, snapshot)
    assert resumed.history == whole.history
    states = resumed.network.state_dict(), whole.network.state_dict()
    assert all(map(torch.equal, *(state.values() for state in states)))


def test_a_network_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(UsageError, match="12 words, the data has 10"):
        train_language(text(), config(vocabulary=12), TRAINING, lambda _: None)


@pytest.mark.parametrize(
    "changes", [{"d_model": 0}, {"positions": "rotary"}, {"dropout": 1.0}, {"context": 0}]
)
def test_sizes_that_make_no_sense_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        config(**changes)


def test_the_workload_measures_words_it_did_not_learn_from(tmp_path: Path) -> None:
    for name, line in (("train", "a b c d e f " * 100), ("valid", "a b c " * 9), ("test", "f e ")):
        (tmp_path / f"wiki.{name}.tokens").write_text(line)
    workload = Words(vocabulary=10, context=8, d_model=16, heads=2, d_feed=32, epochs=8, batch=8)
    reports: list[EpochReport] = []
    outcome = workload.measure(0, Place(tmp_path), reports.append)
    assert outcome.metrics["perplexity"] > outcome.metrics["validation"] > 1
    assert outcome.metrics["best_validation"] == min(outcome.curves["validation"])
    assert len(reports) == len(outcome.curves["loss"]) == 8
    again = workload.measure(0, Place(tmp_path), lambda _: None)
    assert again == outcome
