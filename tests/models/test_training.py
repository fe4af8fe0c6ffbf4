from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import CheckpointError, TrainingDiverged, UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.networks.keyword import KeywordConfig, KeywordNetwork
from entrain.models.training import EpochReport, FitResult, TrainingConfig, fit

CONFIG = TrainingConfig(epochs=6, warmup_epochs=2, peak_rate=0.05, batch=16)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))


def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Points that are told apart by the sign of the product of their coordinates."""
    generator = torch.Generator().manual_seed(epoch)
    for _ in range(8):
        points = torch.randn(32, 2, generator=generator)
        yield points, (points.prod(dim=1) > 0).long()


def accuracy(model: nn.Module) -> float:
    assert not model.training
    points, targets = next(batches(1000))
    return float((model(points).argmax(dim=1) == targets).float().mean())


def train(config: TrainingConfig = CONFIG) -> tuple[nn.Module, FitResult, list[EpochReport]]:
    reports: list[EpochReport] = []
    model = network()
    return model, fit(model, batches, accuracy, config, reports.append), reports


def test_training_learns_and_reports_every_epoch() -> None:
    model, result, reports = train(TrainingConfig(epochs=30, warmup_epochs=2, peak_rate=0.05))
    assert accuracy(model) > 0.9
    assert [report.epoch for report in reports] == list(range(1, 31))
    assert tuple(reports) == result.history
    assert reports[-1].loss < reports[0].loss
    assert not result.interrupted


def test_the_same_seed_gives_the_same_weights_to_the_bit() -> None:
    results = [train(config)[1].state for config in (CONFIG, CONFIG, TrainingConfig(6, 2, seed=1))]
    first, again, other = (list(state.values()) for state in results)
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_training_leaves_torchs_generator_and_threads_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    threads = torch.get_num_threads()
    model = network()
    torch.set_rng_state(before)
    fit(model, batches, accuracy, CONFIG, lambda _: None)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_the_learning_rate_rises_and_falls_along_a_half_cosine() -> None:
    config = TrainingConfig(epochs=10, warmup_epochs=2, peak_rate=1.0)
    rates = [config.rate(epoch) for epoch in (0, 1, 2, 4, 6, 8, 10)]
    expected = [0, 0.5, 1, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5, 0]
    assert rates == pytest.approx(expected, abs=1e-12)
    _, _, reports = train()
    assert [report.rate for report in reports] == pytest.approx(
        [CONFIG.rate(epoch) for epoch in range(1, 7)]
    )


def test_only_matrices_and_kernels_decay() -> None:
    model = KeywordNetwork(KeywordConfig(AttentionConfig("oscillator", "relu")))
    before = {name: value.clone() for name, value in model.named_parameters()}

    class Unmoved(nn.Module):
        """The network's parameters without any gradient but zero."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> Tensor:
            return sum(p.sum() * 0 for p in self.inner.parameters()) + x

    once = [(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long))]
    config = TrainingConfig(epochs=1, warmup_epochs=1, peak_rate=0.1, weight_decay=0.5)
    fit(Unmoved(), lambda _: once, lambda _: 0.0, config, lambda _: None)
    decayed = {
        name for name, value in model.named_parameters() if not torch.equal(value, before[name])
    }
    linear = ["embed", "classifier", "block.expand", "block.contract"]
    linear += [f"block.attention.{name}" for name in ("query", "key", "value", "output")]
    kernels = [f"{unit}.convolution" for unit in ("stem", "depthwise", "pointwise")]
    assert decayed == {f"{name}.weight" for name in linear + kernels}


def test_the_loss_is_the_cross_entropy_with_smoothed_targets() -> None:
    model = nn.Linear(2, 3)
    points, targets = torch.randn(5, 2), torch.tensor([0, 1, 2, 1, 0])
    logs = model(points).log_softmax(dim=1)
    expected = -(0.7 * logs[torch.arange(5), targets] + 0.3 * logs.mean(dim=1)).mean()
    config = TrainingConfig(epochs=1, label_smoothing=0.3)
    result = fit(model, lambda _: [(points, targets)], lambda _: 0.0, config, lambda _: None)
    assert result.history[0].loss == pytest.approx(expected.item(), rel=1e-6)


def test_the_gradient_is_clipped() -> None:
    # AdamW divides by the gradient's size unless that is below its 1e-8.
    tiny = TrainingConfig(epochs=2, warmup_epochs=1, peak_rate=0.05, weight_decay=0, clip=1e-12)
    before = network().state_dict()["0.weight"]
    moved = train(tiny)[1].state["0.weight"] - before
    assert 0 < moved.abs().max() < 1e-4


def test_the_last_epoch_is_kept_even_if_it_is_not_the_best() -> None:
    model = network()
    falling = iter([0.9, 0.8, 0.7])
    seen: list[Tensor] = []

    def validate(trained: nn.Module) -> float:
        seen.append(trained.state_dict()["0.weight"].clone())
        return next(falling)

    result = fit(model, batches, validate, TrainingConfig(3, 1), lambda _: None)
    assert torch.equal(result.state["0.weight"], seen[-1])
    assert torch.equal(model.state_dict()["0.weight"], seen[-1])


@pytest.mark.parametrize("where", ["batches", "validate", "on_epoch"])
def test_ctrl_c_keeps_the_best_epoch_so_far(where: str) -> None:
    model = network()
    scores = iter([0.5, 0.9, 0.7, 0.6])
    seen: list[Tensor] = []

    def interrupted_batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        if where == "batches" and epoch == 3:
            raise KeyboardInterrupt
        yield from batches(epoch)

    def validate(trained: nn.Module) -> float:
        if where == "validate" and len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(trained.state_dict()["0.weight"].clone())
        return next(scores)

    def on_epoch(report: EpochReport) -> None:
        if where == "on_epoch" and report.epoch == 3:
            raise KeyboardInterrupt

    result = fit(model, interrupted_batches, validate, CONFIG, on_epoch)
    assert result.interrupted
    assert [report.validation for report in result.history] == [0.5, 0.9, 0.7]
    assert torch.equal(result.state["0.weight"], seen[1])
    assert torch.equal(model.state_dict()["0.weight"], seen[1])
    assert not model.training


def test_ctrl_c_keeps_the_first_epoch_if_that_was_the_best() -> None:
    model = network()
    scores = iter([0.9, 0.5])
    seen: list[Tensor] = []

    def validate(trained: nn.Module) -> float:
        seen.append(trained.state_dict()["0.weight"].clone())
        return next(scores)

    def on_epoch(report: EpochReport) -> None:
        if report.epoch == 2:
            raise KeyboardInterrupt

    result = fit(model, batches, validate, CONFIG, on_epoch)
    assert torch.equal(result.state["0.weight"], seen[0])


def test_ctrl_c_before_anything_was_learned_stops() -> None:
    def interrupted_batches(_: int) -> Iterator[tuple[Tensor, Tensor]]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        fit(network(), interrupted_batches, accuracy, CONFIG, lambda _: None)


def test_a_loss_that_is_no_number_stops_with_a_remedy() -> None:
    def broken(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        for points, targets in batches(epoch):
            yield points * float("nan"), targets

    with pytest.raises(TrainingDiverged, match="epoch 1") as caught:
        fit(network(), broken, accuracy, CONFIG, lambda _: None)
    assert "0.05" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epochs": 0},
        {"batch": 0},
        {"warmup_epochs": -1},
        {"seed": -1},
        {"peak_rate": 0.0},
        {"peak_rate": float("nan")},
        {"clip": 0.0},
        {"weight_decay": -1.0},
        {"label_smoothing": 1.0},
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        TrainingConfig(**arguments)  # type: ignore[arg-type]


class Killed(BaseException):
    """As if the process had gone away."""


@pytest.mark.parametrize("killed_after", [1, 3, 5])
def test_a_training_that_was_killed_goes_on_to_the_same_bits(
    tmp_path: Path, killed_after: int
) -> None:
    _, whole, whole_reports = train()
    snapshot = tmp_path / "training.pt"

    def kill(report: EpochReport) -> None:
        if report.epoch == killed_after:
            raise Killed

    with pytest.raises(Killed):
        fit(network(), batches, accuracy, CONFIG, kill, snapshot)
    # Another start: everything comes from the snapshot.
    rest: list[EpochReport] = []
    resumed = fit(network(seed=7), batches, accuracy, CONFIG, rest.append, snapshot)
    assert all(map(torch.equal, resumed.state.values(), whole.state.values()))
    assert resumed.history == whole.history
    assert rest == whole_reports[killed_after:]


def test_the_best_epoch_is_known_after_going_on(tmp_path: Path) -> None:
    snapshot = tmp_path / "training.pt"
    scores = iter([0.9, 0.1, 0.2])

    def judge(_: nn.Module) -> float:
        score = next(scores, None)
        if score is None:
            raise KeyboardInterrupt
        return score

    def kill(report: EpochReport) -> None:
        if report.epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        fit(network(), batches, judge, CONFIG, kill, snapshot)
    after_one = fit(network(), batches, accuracy, CONFIG, _stop_at(1))
    result = fit(network(), batches, judge, CONFIG, lambda _: None, snapshot)
    assert result.interrupted
    assert all(map(torch.equal, result.state.values(), after_one.state.values()))


def _stop_at(epoch: int):
    def stop(report: EpochReport) -> None:
        if report.epoch == epoch:
            raise KeyboardInterrupt

    return stop


def test_a_snapshot_of_another_training_is_refused(tmp_path: Path) -> None:
    snapshot = tmp_path / "training.pt"
    fit(network(), batches, accuracy, CONFIG, lambda _: None, snapshot)
    with pytest.raises(CheckpointError, match="another training") as refusal:
        fit(network(), batches, accuracy, TrainingConfig(epochs=9), lambda _: None, snapshot)
    assert str(snapshot) in str(refusal.value.remedy)


def test_a_damaged_snapshot_is_told_and_left(tmp_path: Path) -> None:
    snapshot = tmp_path / "training.pt"
    snapshot.write_bytes(b"half a file")
    with pytest.raises(CheckpointError, match="cannot be read"):
        fit(network(), batches, accuracy, CONFIG, lambda _: None, snapshot)
    assert snapshot.read_bytes() == b"half a file"


def test_every_token_of_a_sequence_is_a_target_unless_it_is_marked() -> None:
    tokens, targets = torch.randn(4, 5, 2), torch.randint(0, 2, (4, 5))
    targets[:, 3:] = -100
    model = nn.Linear(2, 2)
    expected = nn.functional.cross_entropy(
        model(tokens[:, :3]).flatten(0, 1), targets[:, :3].flatten()
    )
    config = TrainingConfig(epochs=1, label_smoothing=0.0)
    result = fit(model, lambda _: [(tokens, targets)], lambda _: 0.0, config, lambda _: None)
    assert result.history[0].loss == pytest.approx(expected.item(), abs=1e-6)
