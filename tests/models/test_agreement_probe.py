"""Looking inside a trained agreement network: where the verb looks, and settling in time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from entrain.deploy.errors import UsageError
from entrain.models.agreement_task import RECIPE, TrainedAgreement, accuracy, evaluate
from entrain.models.agreement_task import train_agreement as train
from entrain.models.attention import AttentionConfig
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.data.agreement import (
    LENGTH,
    VERB,
    VOCABULARY,
    AgreementData,
    generate_agreement,
)
from entrain.models.experiments.workloads.agreement_probe import (
    DISTRACTOR,
    HORIZONS,
    SUBJECT,
    AgreementProbe,
    finite_settling,
    verb_attention,
)
from entrain.models.networks.agreement import AgreementConfig
from entrain.models.networks.block import BlockStyle


@pytest.fixture(scope="module")
def data() -> AgreementData:
    every = generate_agreement()
    few = range(400)
    return replace(
        every, train=every.train.select(few), validation=every.validation.select(few),
        test=every.test.select(few),
    )  # fmt: skip


def trained(data: AgreementData, slug: str) -> TrainedAgreement:
    config = AgreementConfig(
        AttentionConfig.parse(slug), len(VOCABULARY), LENGTH, style=BlockStyle("layer", "gelu")
    )
    return train(data, config, replace(RECIPE, epochs=1), lambda _: None)


def test_hard_sentences_have_their_nouns_where_the_probe_looks(data: AgreementData) -> None:
    for text, hard in zip(data.test.texts, data.test.hard, strict=True):
        words = text.split()
        if hard:
            assert len(words) == LENGTH
            assert words[0] == words[DISTRACTOR - 1] == "the"
            assert words[SUBJECT + 1] in {"on", "under", "near", "beside", "above", "with", "by"}
            assert words[VERB + 1] == "."


class Places(nn.Module):
    """Tells a token by its place alone: feature j of token j is one."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.eye(x.shape[1], x.shape[2]).expand_as(x)


@pytest.mark.parametrize("strength", [0.0, 100.0])
def test_where_a_verb_looks_is_found_out(data: AgreementData, strength: float) -> None:
    result = trained(data, "softmax")
    network = result.network
    block, attention = network.blocks[0], network.blocks[0].attention
    network.positions, block.attention_norm = Places(), nn.Identity()
    with torch.no_grad():
        for module in (attention.query, attention.key):
            module.weight.zero_()
            module.bias.zero_()
        attention.query.bias[0] = attention.key.weight[0, SUBJECT] = strength
    found = verb_attention(result, data, 0)
    subject, distractor = (1 / LENGTH, 1 / LENGTH) if strength == 0 else (1, 0)
    for name, share in found.items():
        expected = subject if name.startswith("subject") else distractor
        assert share == pytest.approx(expected, abs=1e-6)


def test_the_two_groups_make_up_all_hard_sentences(data: AgreementData) -> None:
    result = trained(data, "oscillator-softplus")
    found = verb_attention(result, data, 0)
    hard = data.test.hard
    right = (evaluate(result.network, data.test.tokens) == data.test.targets)[hard]
    share = right.double().mean().item()
    whole = share * found["subject_right"] + (1 - share) * found["subject_wrong"]
    everything = replace(data, test=data.test.select(torch.nonzero(hard).flatten().tolist()))
    targets = everything.test.targets.clone()
    targets[:] = evaluate(result.network, everything.test.tokens)
    all_right = replace(everything, test=replace(everything.test, targets=targets))
    alone = verb_attention(result, all_right, 0)
    assert alone["subject_right"] == pytest.approx(whole, abs=1e-6)
    assert "subject_wrong" not in alone


def test_settling_long_enough_answers_as_the_equilibrium(data: AgreementData) -> None:
    result = trained(data, "oscillator-softplus")
    oscillator = result.network.blocks[0].attention
    assert isinstance(oscillator, OscillatorAttention)
    before = oscillator.settling
    found = finite_settling(result, data, seed=0)
    at_rest = 100 * accuracy(evaluate(result.network, data.test.tokens), data.test)
    assert found["all_at_30"] == pytest.approx(at_rest, abs=0.5)
    assert set(found) == {f"{part}_at_{time:g}" for part in ("all", "hard") for time in HORIZONS}
    assert oscillator.settling is before
    assert finite_settling(result, data, seed=0) == found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probe": "dreams"}, "verb-attention, settling"),
        ({"probe": "settling", "attention": "softmax"}, "nothing for the probe 'settling'"),
        ({"probe": "verb-attention", "attention": "uniform"}, "nothing for the probe"),
    ],
)
def test_a_probe_that_finds_nothing_is_refused_before_training(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        AgreementProbe(**settings)
    assert message in f"{refusal.value.what} {refusal.value.remedy}"
