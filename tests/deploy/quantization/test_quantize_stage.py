"""The stage quantize: accuracy is judged, the state is kept, other networks are told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from entrain.deploy.errors import CheckpointError
from entrain.deploy.quantize import (
    QuantizationConfig,
    load_quantized,
    quantize_network,
    save_quantized,
)
from entrain.models.attention import AttentionConfig
from entrain.models.checkpoint import Checkpoint
from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE, Clips, KeywordData
from entrain.models.keyword_task import FeatureStatistics, prepare
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork
from entrain.models.training import TrainingConfig


def tones(count, seed):
    """Two classes: a low and a high tone in noise."""
    random = np.random.default_rng(seed)
    targets = np.arange(count) % 2
    pitch = np.where(targets == 0, 300.0, 2500.0) * random.uniform(0.9, 1.1, count)
    time = np.arange(CLIP_SAMPLES) / SAMPLE_RATE
    sound = np.sin(2 * np.pi * pitch[:, None] * time) + 0.1 * random.normal(size=(count, len(time)))
    return Clips(
        samples=np.rint(6000 * sound).astype(np.int16),
        targets=targets.astype(np.int64),
        speakers=tuple(f"speaker{seed}" for _ in targets),
        names=tuple(f"tone{seed}-{number}" for number in range(count)),
    )


@pytest.fixture(scope="module")
def data():
    noise = np.random.default_rng(9).integers(-900, 900, 2 * CLIP_SAMPLES).astype(np.int16)
    return KeywordData(("low", "high"), tones(32, 1), tones(16, 2), tones(16, 3), (noise,), "tones")


def checkpoint_of(attention):
    torch.manual_seed(0)
    config = KeywordConfig(attention, classes=2)
    return Checkpoint(
        task="keyword",
        config=config,
        training=TrainingConfig(),
        labels=("low", "high"),
        preparation=FeatureStatistics(np.zeros(40, np.float32), np.ones(40, np.float32)),
        state=KeywordNetwork(config).state_dict(),
        source="tones",
        validation_accuracy=0.5,
        epochs=1,
    )


@pytest.fixture(scope="module")
def checkpoint():
    return checkpoint_of(AttentionConfig("oscillator", "relu"))


@pytest.fixture(scope="module")
def quantized(checkpoint, data):
    reports = []
    config = QuantizationConfig(epochs=1)
    return quantize_network(checkpoint, data, config, reports.append), reports


def test_fine_tuning_reports_each_epoch_and_the_accuracy_of_what_is_kept(quantized):
    result, reports = quantized
    assert len(reports) == 1
    assert result.validation_accuracy == reports[0].validation
    assert not result.interrupted


def test_without_epochs_it_is_calibration_alone_and_repeatable(checkpoint, data):
    config = QuantizationConfig(epochs=0)
    first, second = (quantize_network(checkpoint, data, config, print) for _ in range(2))
    assert 0.0 <= first.validation_accuracy <= 1.0
    states = first.network.state_dict(), second.network.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_other_words_are_refused(checkpoint, data):
    with pytest.raises(CheckpointError, match="low, high") as caught:
        quantize_network(
            replace(checkpoint, labels=("up", "down")), data, QuantizationConfig(epochs=0), print
        )
    assert "--data-dir" in caught.value.remedy


def test_a_saved_network_computes_the_same_when_it_is_loaded(quantized, checkpoint, data, tmp_path):
    result, _ = quantized
    path = tmp_path / "quantized.pt"
    save_quantized(path, result.network)
    features = prepare(data.test, checkpoint.preparation)
    with torch.no_grad():
        before = result.network.eval()(features)
        after = load_quantized(path, checkpoint)(features)
    assert torch.equal(before, after)


def test_the_state_of_another_network_is_refused(quantized, tmp_path):
    path = tmp_path / "quantized.pt"
    save_quantized(path, quantized[0].network)
    other = checkpoint_of(AttentionConfig("softmax"))
    with pytest.raises(CheckpointError, match="another network") as caught:
        load_quantized(path, other)
    assert caught.value.where == str(path)


def test_a_network_that_was_not_quantized_says_what_to_run(checkpoint, tmp_path):
    with pytest.raises(CheckpointError, match="entrain quantize"):
        load_quantized(tmp_path / "absent.pt", checkpoint)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 but then nothing"])
def test_a_damaged_file_is_refused(checkpoint, tmp_path, content):
    path = tmp_path / "quantized.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        load_quantized(path, checkpoint)


def test_a_file_that_would_run_code_is_refused(checkpoint, tmp_path):
    path = tmp_path / "quantized.pt"
    torch.save({"weight": print}, path)
    with pytest.raises(CheckpointError, match="damaged"):
        load_quantized(path, checkpoint)


def test_a_list_instead_of_a_state_is_refused(checkpoint, tmp_path):
    path = tmp_path / "quantized.pt"
    torch.save([1, 2, 3], path)
    with pytest.raises(CheckpointError, match="damaged"):
        load_quantized(path, checkpoint)
