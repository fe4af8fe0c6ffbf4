"""Training on agreement: it learns, it repeats itself, it goes on where it was stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from entrain.deploy.errors import UsageError
from entrain.models.agreement_task import (
    RECIPE,
    TrainedAgreement,
    accuracy,
    evaluate,
    hard_accuracy,
    shuffled_sentences,
    train_agreement,
)
from entrain.models.attention import AttentionConfig
from entrain.models.data.agreement import (
    LENGTH,
    VOCABULARY,
    AgreementData,
    Sentences,
    generate_agreement,
)
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads import agreement as workload_file
from entrain.models.experiments.workloads.agreement import Agreement
from entrain.models.networks.agreement import AgreementConfig
from entrain.models.training import EpochReport, TrainingConfig

QUICK = replace(RECIPE, epochs=10, peak_rate=1e-2, batch=32)
VERBS = {"is", "are", "was", "were"}


def short_sentences(sentences: Sentences) -> Sentences:
    """Those of one noun and one of a few verbs: agreement that is learned in seconds."""
    words = [text.split() for text in sentences.texts]
    return sentences.select(
        [place for place, (*rest, verb, _) in enumerate(words) if len(rest) == 2 and verb in VERBS]
    )


@pytest.fixture(scope="module")
def data() -> AgreementData:
    whole = generate_agreement()
    return replace(
        whole,
        train=short_sentences(whole.train),
        validation=short_sentences(whole.validation),
        test=whole.test.select(range(500)),
    )


def config(slug: str = "oscillator-softplus") -> AgreementConfig:
    return AgreementConfig(AttentionConfig.parse(slug), len(VOCABULARY), LENGTH, dropout=0.02)


def train(
    data: AgreementData,
    training: TrainingConfig = QUICK,
    snapshot: Path | None = None,
    *,
    stop_after: int | None = None,
    frozen_values: bool = False,
) -> TrainedAgreement:
    def on_epoch(report: EpochReport) -> None:
        if report.epoch == stop_after:
            raise KeyboardInterrupt

    return train_agreement(
        data, config(), training, on_epoch, snapshot, frozen_values=frozen_values
    )


def same_weights(one: TrainedAgreement, other: TrainedAgreement) -> bool:
    states = one.network.state_dict(), other.network.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.fixture(scope="module")
def trained(data: AgreementData) -> TrainedAgreement:
    return train(data)


def test_it_learns(trained: TrainedAgreement) -> None:
    short = short_sentences(generate_agreement().test)
    assert accuracy(evaluate(trained.network, short.tokens), short) > 0.85
    assert trained.validation_accuracy == trained.history[-1].validation
    assert trained.history[-1].loss < trained.history[0].loss
    assert not trained.interrupted
    assert (trained.labels, trained.source) == (("disagrees", "agrees"), "templates")


def test_the_same_seed_gives_the_same_weights(
    data: AgreementData, trained: TrainedAgreement
) -> None:
    assert same_weights(train(data), trained)
    assert not same_weights(train(data, replace(QUICK, seed=1)), trained)


def test_stopped_and_resumed_equals_whole(
    data: AgreementData, trained: TrainedAgreement, tmp_path: Path
) -> None:
    snapshot = tmp_path / "snapshot.pt"
    assert train(data, snapshot=snapshot, stop_after=2).interrupted
    resumed = train(data, snapshot=snapshot)
    assert same_weights(resumed, trained)
    assert resumed.history == trained.history


def test_frozen_values_stay_as_they_were_drawn(data: AgreementData) -> None:
    short = replace(QUICK, epochs=1)
    torch.manual_seed(short.seed)
    start = config().build().state_dict()
    end = train(data, short, frozen_values=True).network.state_dict()
    moved = {name for name in start if not torch.equal(start[name], end[name])}
    values = {name for name in start if ".attention.value." in name}
    assert values
    assert not moved & values
    assert {name.replace("value", "query") for name in values} <= moved


def test_what_has_no_values_cannot_freeze_them(data: AgreementData) -> None:
    with pytest.raises(UsageError, match="no value map"):
        train_agreement(data, config("none"), QUICK, lambda _: None, frozen_values=True)


def test_an_epoch_has_every_sentence_once_in_an_order_of_its_own(data: AgreementData) -> None:
    batches = shuffled_sentences(data.train, QUICK)

    def epoch(number: int) -> torch.Tensor:
        steps = list(batches(number))
        assert all(len(tokens) == len(targets) <= QUICK.batch for tokens, targets in steps)
        return torch.cat([torch.column_stack(step) for step in steps])

    def in_order(rows: torch.Tensor) -> list[list[int]]:
        return sorted(rows.tolist())

    whole = torch.column_stack([data.train.tokens, data.train.targets])
    assert in_order(epoch(0)) == in_order(whole)
    assert torch.equal(epoch(1), epoch(1))
    assert not torch.equal(epoch(0), epoch(1))
    other = shuffled_sentences(data.train, replace(QUICK, seed=1))
    assert not torch.equal(next(iter(other(0)))[0], epoch(0)[: QUICK.batch, :-1])


def test_accuracies_count_what_they_say(data: AgreementData) -> None:
    wrong_where_hard = torch.where(data.test.hard, 1 - data.test.targets, data.test.targets)
    assert hard_accuracy(wrong_where_hard, data.test) == 0
    easy = 1 - float(data.test.hard.double().mean())
    assert accuracy(wrong_where_hard, data.test) == pytest.approx(easy)
    assert hard_accuracy(data.test.targets, data.test) == 1
    simple = data.test.select([i for i, hard in enumerate(data.test.hard.tolist()) if not hard])
    with pytest.raises(UsageError, match="hard"):
        hard_accuracy(simple.targets, simple)


def test_a_network_of_other_sizes_is_refused(data: AgreementData) -> None:
    other = AgreementConfig(AttentionConfig(), len(VOCABULARY) + 1, LENGTH)
    with pytest.raises(UsageError, match="169"):
        train_agreement(data, other, QUICK, lambda _: None)


def test_the_workload_measures_the_test_sentences(
    data: AgreementData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_file, "read_sentences", lambda _folder: data)
    workload = Agreement(attention="softmax", epochs=2)
    reports: list[EpochReport] = []
    outcome: Outcome = workload.measure(3, Place(None), reports.append)
    again = train_agreement(data, workload.network(), workload.training(3), lambda _: None)
    predictions = evaluate(again.network, data.test.tokens)
    assert outcome.metrics == {
        "hard": 100 * hard_accuracy(predictions, data.test),
        "all": 100 * accuracy(predictions, data.test),
        "validation": 100 * again.validation_accuracy,
    }
    assert outcome.curves["loss"] == tuple(report.loss for report in reports)
    assert len(outcome.curves["validation"]) == 2


def test_the_workload_trains_the_papers_network_by_its_recipe() -> None:
    workload = Agreement()
    style = workload.network().style
    assert (style.norm, style.activation, style.dropout) == ("layer", "gelu", 0.1)
    assert workload.training(0) == RECIPE
    assert (RECIPE.epochs, RECIPE.peak_rate, RECIPE.batch) == (20, 5e-4, 64)


def test_impossible_settings_are_told_at_once() -> None:
    with pytest.raises(UsageError, match="mechanism"):
        Agreement(attention="magic")
    with pytest.raises(UsageError, match="heads"):
        Agreement(heads=3).network().build()
