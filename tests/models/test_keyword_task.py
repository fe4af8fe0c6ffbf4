from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.data import KeywordData
from entrain.models.data.speech import load_speech_commands
from entrain.models.experiments.workloads.keyword import AUGMENTATIONS
from entrain.models.front_end import log_mel
from entrain.models.keyword_task import (
    TrainedKeyword,
    accuracy,
    augmented_batches,
    evaluate,
    feature_statistics,
    prepare,
    train_keyword,
)
from entrain.models.networks.keyword import KeywordConfig
from entrain.models.training import EpochReport, TrainingConfig

SHORT = TrainingConfig(epochs=4, warmup_epochs=1, batch=16)


def train(
    data: KeywordData, slug: str = "softmax", training: TrainingConfig = SHORT
) -> TrainedKeyword:
    config = KeywordConfig(AttentionConfig.parse(slug), classes=len(data.labels))
    return train_keyword(data, config, training, lambda _: None)


def weights(trained: TrainedKeyword) -> list[Tensor]:
    return list(trained.network.state_dict().values())


def test_clean_training_features_have_mean_0_and_deviation_1(tone_data: KeywordData) -> None:
    statistics = feature_statistics(tone_data.train)
    features = prepare(tone_data.train, statistics)
    assert features.shape == (64, 1, 49, 40)
    assert features.dtype == torch.float32
    bands = features.double().flatten(0, 2)
    torch.testing.assert_close(bands.mean(0), torch.zeros(40).double(), atol=1e-4, rtol=0)
    torch.testing.assert_close(
        bands.std(0, correction=0), torch.ones(40).double(), rtol=1e-4, atol=0
    )
    raw = log_mel(tone_data.train.samples)
    expected = (raw - statistics.mean) / statistics.deviation
    np.testing.assert_allclose(features[:, 0].numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("slug", ["softmax", "oscillator-separable"])
def test_a_network_learns_to_tell_two_tones_apart(tone_data: KeywordData, slug: str) -> None:
    trained = train(tone_data, slug)
    predictions = evaluate(trained.network, prepare(tone_data.test, trained.statistics))
    assert accuracy(predictions, tone_data.test.targets) == 1.0
    assert trained.validation_accuracy == trained.history[-1].validation
    assert (trained.labels, trained.source) == (("low", "high"), "tones")
    assert not trained.network.training


def test_the_same_seed_gives_the_same_network_to_the_bit(tone_data: KeywordData) -> None:
    once = TrainingConfig(epochs=2, warmup_epochs=1, batch=16, seed=7)
    first = train(tone_data, "oscillator-relu", once)
    torch.manual_seed(99)
    again = train(tone_data, "oscillator-relu", once)
    other = train(tone_data, "oscillator-relu", dataclasses.replace(once, seed=8))
    assert all(map(torch.equal, weights(first), weights(again)))
    assert first.history == again.history
    assert not all(map(torch.equal, weights(first), weights(other)))


def test_every_epoch_varies_every_clip_afresh(tone_data: KeywordData) -> None:
    statistics = feature_statistics(tone_data.train)
    epochs = augmented_batches(tone_data, statistics, SHORT)
    first, again, second = list(epochs(0)), list(epochs(0)), list(epochs(1))
    assert [features.shape for features, _ in first] == [(16, 1, 49, 40)] * 4
    assert sorted(torch.cat([targets for _, targets in first]).tolist()) == [0] * 32 + [1] * 32
    assert all(torch.equal(one[0], two[0]) for one, two in zip(first, again, strict=True))
    assert not torch.equal(first[0][0], second[0][0])


def test_without_variations_batches_are_the_prepared_clips(tone_data: KeywordData) -> None:
    statistics = feature_statistics(tone_data.train)
    nothing = AUGMENTATIONS["none"]
    prepared = prepare(tone_data.train, statistics)
    for features, targets in augmented_batches(tone_data, statistics, SHORT, nothing)(0):
        for feature, target in zip(features, targets, strict=True):
            distances = (prepared - feature).abs().flatten(1).amax(dim=1)
            assert distances.min() < 1e-3
            assert tone_data.train.targets[distances.argmin()] == target


def test_an_interrupted_training_says_so_and_keeps_the_best(tone_data: KeywordData) -> None:
    def interrupt(report: EpochReport) -> None:
        if report.epoch == 2:
            raise KeyboardInterrupt

    config = KeywordConfig(AttentionConfig(), classes=2)
    trained = train_keyword(tone_data, config, SHORT, interrupt)
    assert trained.interrupted
    assert len(trained.history) == 2
    validation = prepare(tone_data.validation, trained.statistics)
    found = accuracy(evaluate(trained.network, validation), tone_data.validation.targets)
    assert found == trained.validation_accuracy == max(r.validation for r in trained.history)


def test_a_band_that_never_changes_is_not_divided_by_zero(tone_data: KeywordData) -> None:
    silent = dataclasses.replace(tone_data.train, samples=np.zeros_like(tone_data.train.samples))
    assert prepare(silent, feature_statistics(silent)).isfinite().all()


@pytest.mark.parametrize("arguments", [{"classes": 3}, {"classes": 2, "bands": 30}])
def test_a_network_for_other_data_is_refused(
    tone_data: KeywordData, arguments: dict[str, int]
) -> None:
    config = KeywordConfig(AttentionConfig(), **arguments)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        train_keyword(tone_data, config, SHORT, lambda _: None)


@pytest.mark.long
@pytest.mark.parametrize("slug", ["softmax", "oscillator-relu", "oscillator-separable", "uniform"])
def test_real_words_are_recognised(speech_commands: Path, slug: str) -> None:
    data = load_speech_commands(speech_commands)
    config = KeywordConfig(AttentionConfig.parse(slug))
    trained = train_keyword(data, config, TrainingConfig(epochs=20), lambda _: None)
    predictions = evaluate(trained.network, prepare(data.test, trained.statistics))
    assert accuracy(predictions, data.test.targets) > 0.88
