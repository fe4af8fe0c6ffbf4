from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from entrain.deploy.errors import CheckpointError
from entrain.models.attention import AttentionConfig
from entrain.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from entrain.models.keyword_task import FeatureStatistics, TrainedKeyword
from entrain.models.networks.agreement import AgreementConfig
from entrain.models.networks.block import BlockStyle
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork
from entrain.models.networks.linear_keyword import LinearKeywordConfig
from entrain.models.preparations import Vocabulary
from entrain.models.training import EpochReport, TrainingConfig

LABELS = ("down", "left", "up")


@pytest.fixture
def trained() -> TrainedKeyword:
    config = KeywordConfig(AttentionConfig("oscillator", "separable", d_osc=3), classes=3)
    torch.manual_seed(0)
    network = KeywordNetwork(config)
    # Norms with a past.
    network(3 * torch.randn(8, 1, 49, 40))
    return TrainedKeyword(
        network=network.eval(),
        config=config,
        training=TrainingConfig(epochs=3, seed=5),
        statistics=FeatureStatistics(
            np.linspace(-9, -1, 40).astype(np.float32), np.linspace(1, 2, 40).astype(np.float32)
        ),
        labels=LABELS,
        source="synthetic",
        history=(EpochReport(1, 3, 1.5, 0.1, 0.7), EpochReport(2, 3, 1.2, 0.1, 0.75)),
        validation_accuracy=0.75,
        interrupted=True,
    )


@pytest.fixture
def path(tmp_path: Path, trained: TrainedKeyword) -> Path:
    file = tmp_path / "run" / "model.pt"
    save_checkpoint(file, Checkpoint.of("keyword", trained, trained.statistics))
    return file


def test_a_network_comes_back_with_all_that_belongs_to_it(
    path: Path, trained: TrainedKeyword
) -> None:
    checkpoint = load_checkpoint(path)
    assert (checkpoint.task, checkpoint.config) == ("keyword", trained.config)
    assert checkpoint.training == trained.training
    assert (checkpoint.labels, checkpoint.source) == (LABELS, "synthetic")
    assert (checkpoint.validation_accuracy, checkpoint.epochs) == (0.75, 2)
    np.testing.assert_array_equal(checkpoint.preparation.mean, trained.statistics.mean)
    np.testing.assert_array_equal(checkpoint.preparation.deviation, trained.statistics.deviation)
    network = checkpoint.build_network()
    features = torch.randn(4, 1, 49, 40)
    assert not network.training
    assert torch.equal(network(features), trained.network(features))


def test_a_built_network_can_be_trained_without_touching_the_checkpoint(path: Path) -> None:
    checkpoint = load_checkpoint(path)
    network = checkpoint.build_network()
    assert all(parameter.requires_grad for parameter in network.parameters())
    with torch.no_grad():
        network.positions.zero_()
    assert checkpoint.build_network().positions.any()


def test_only_the_finished_file_is_left_and_a_failed_write_loses_nothing(
    path: Path, trained: TrainedKeyword, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    write = Path.write_bytes

    def full_disk(file: Path, _: bytes) -> None:
        write(file, b"half")
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(path, Checkpoint.of("keyword", trained, trained.statistics))
    assert [file.name for file in path.parent.iterdir()] == ["model.pt"]
    assert path.read_bytes() == before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such checkpoint") as caught:
        load_checkpoint(tmp_path / "model.pt")
    assert caught.value.where == str(tmp_path / "model.pt")


@pytest.mark.parametrize("keep", [0, 10, 1000, -1000, -1])
def test_a_damaged_file_is_refused(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path)


def test_a_changed_byte_is_noticed_or_changes_nothing(path: Path) -> None:
    written = path.read_bytes()
    before = load_checkpoint(path)
    positions = np.random.default_rng(0).integers(len(written), size=60).tolist()
    noticed = 0
    for position in [*positions, *range(0, 400, 7), *range(len(written) - 300, len(written), 7)]:
        changed = bytearray(written)
        changed[position] ^= 0x41
        path.write_bytes(changed)
        try:
            after = load_checkpoint(path)
        except CheckpointError:
            noticed += 1
        else:
            assert after.config == before.config
            assert all(torch.equal(after.state[name], before.state[name]) for name in before.state)
    assert noticed > 60


@pytest.mark.parametrize("content", [[1, 2], {"weights": torch.ones(2)}, torch.ones(3)])
def test_a_file_of_somebody_else_is_refused(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match="not a checkpoint of Entrain"):
        load_checkpoint(tmp_path / "model.pt")


class Code:
    """What runs when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("write", [torch.save, pickle.dump])
def test_no_code_in_a_file_is_run(tmp_path: Path, write: Callable[..., None]) -> None:
    victim = tmp_path / "victim"
    with (tmp_path / "model.pt").open("wb") as file:
        write({"format": "entrain checkpoint", "state": Code(victim)}, file)
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path / "model.pt")
    assert not victim.exists()


def other_version(content: dict[str, Any]) -> None:
    content["version"] = 99


def first_version(content: dict[str, Any]) -> None:
    content["version"] = 1
    content["statistics"] = content.pop("preparation")


def other_task(content: dict[str, Any]) -> None:
    content["task"] = "poetry"


def other_mechanism(content: dict[str, Any]) -> None:
    content["config"]["attention"] = dataclasses.asdict(AttentionConfig())


def other_width(content: dict[str, Any]) -> None:
    content["config"]["d_model"] = 64


def boundless_width(content: dict[str, Any]) -> None:
    content["config"]["d_feed"] = 10**12


def unknown_setting(content: dict[str, Any]) -> None:
    content["config"]["attention"]["temperature"] = 2.0


def no_such_mechanism(content: dict[str, Any]) -> None:
    content["config"]["attention"]["mechanism"] = "magic"


def fewer_labels(content: dict[str, Any]) -> None:
    content["labels"] = ["one"]


def missing_weight(content: dict[str, Any]) -> None:
    del content["state"]["block.attention.anchors.vectors"]


def other_type(content: dict[str, Any]) -> None:
    content["state"]["embed.weight"] = content["state"]["embed.weight"].double()


def not_a_number(content: dict[str, Any]) -> None:
    content["state"]["embed.weight"][0, 0] = float("nan")


def no_tensors(content: dict[str, Any]) -> None:
    content["state"] = ["a", "b"]


def other_bands(content: dict[str, Any]) -> None:
    content["preparation"]["mean"] = torch.zeros(3)


def no_deviation(content: dict[str, Any]) -> None:
    content["preparation"]["deviation"] = torch.zeros(40)


def no_source(content: dict[str, Any]) -> None:
    del content["source"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_version, "version 99, expected 2"),
        (first_version, "version 1, expected 2"),
        (
            other_task,
            "'poetry', expected one of: keyword, keyword-stream, keyword-linear, agreement",
        ),
        (other_mechanism, r"holds block\.attention\.anchors\.vectors.*softmax"),
        (other_width, r"is \[25, 48\] torch.float32 in the checkpoint, expected \[25, 64\]"),
        (boundless_width, "expected"),
        (unknown_setting, "temperature"),
        (no_such_mechanism, "magic"),
        (fewer_labels, "1 labels, expected 3"),
        (missing_weight, r"lacks block\.attention\.anchors\.vectors"),
        (other_type, "torch.float64"),
        (not_a_number, r"embed\.weight holds values that are not numbers"),
        (no_tensors, "state are not tensors"),
        (other_bands, r"\[3\]"),
        (no_deviation, "positive"),
        (no_source, "source"),
    ],
)
def test_a_checkpoint_of_another_network_says_what_was_expected_and_found(
    path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(path)
    assert caught.value.where == str(path)
    assert caught.value.remedy


WORDS = ("<PAD>", "the", "dog", "barks", ".")


def agreement_checkpoint(**settings: Any) -> Checkpoint:
    config = AgreementConfig(AttentionConfig(), vocabulary=5, length=4, **settings)
    torch.manual_seed(1)
    network = config.build().eval()
    return Checkpoint(
        task="agreement",
        config=config,
        training=TrainingConfig(epochs=3),
        labels=("disagrees", "agrees"),
        preparation=Vocabulary(WORDS),
        state=network.state_dict(),
        source="templates",
        validation_accuracy=0.5,
        epochs=3,
    )


def test_an_agreement_network_comes_back_with_its_words_and_its_computed_positions(
    tmp_path: Path,
) -> None:
    checkpoint = agreement_checkpoint(style=BlockStyle(norm="layer", activation="gelu"))
    save_checkpoint(tmp_path / "model.pt", checkpoint)
    found = load_checkpoint(tmp_path / "model.pt")
    assert (found.config, found.preparation) == (checkpoint.config, Vocabulary(WORDS))
    tokens = torch.randint(0, 5, (6, 4))
    assert torch.equal(found.build_network()(tokens), checkpoint.build_network()(tokens))
    torch.manual_seed(1)
    network = checkpoint.config.build().eval()
    assert torch.equal(found.build_network()(tokens), network(tokens))


def test_a_linear_keyword_network_comes_back_with_its_style_and_positions(
    tmp_path: Path, trained: TrainedKeyword
) -> None:
    config = LinearKeywordConfig(
        AttentionConfig.parse("oscillator-relu"), 3, positions="sinusoidal"
    )
    network = config.build().eval()
    linear = dataclasses.replace(trained, network=network, config=config)
    save_checkpoint(
        tmp_path / "model.pt", Checkpoint.of("keyword-linear", linear, trained.statistics)
    )
    checkpoint = load_checkpoint(tmp_path / "model.pt")
    assert (checkpoint.task, checkpoint.config) == ("keyword-linear", config)
    np.testing.assert_array_equal(checkpoint.preparation.mean, trained.statistics.mean)
    features = torch.randn(4, 1, 49, 40)
    assert torch.equal(checkpoint.build_network()(features), network(features))


def test_building_a_network_leaves_the_random_numbers_alone() -> None:
    checkpoint = agreement_checkpoint()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    checkpoint.build_network()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    "words", [["the", "dog"], ["a", "b", "c", "d", "a"], [1, 2, 3, 4, 5], None]
)
def test_a_vocabulary_of_another_network_is_refused(tmp_path: Path, words: object) -> None:
    path = tmp_path / "model.pt"
    save_checkpoint(path, agreement_checkpoint())
    content = torch.load(path, weights_only=True)
    content["preparation"] = {"words": words}
    torch.save(content, path)
    with pytest.raises(CheckpointError, match="vocabulary"):
        load_checkpoint(path)


def test_tables_that_are_not_in_the_file_may_not_grow_without_bounds(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    save_checkpoint(path, agreement_checkpoint())
    content = torch.load(path, weights_only=True)
    content["config"]["length"] = 10**12
    torch.save(content, path)
    with pytest.raises(CheckpointError, match="tables of 32,000,000,000,000 numbers"):
        load_checkpoint(path)
