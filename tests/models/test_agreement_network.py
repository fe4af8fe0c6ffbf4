"""The agreement network: sizes, where it reads, what padding is to it."""

from __future__ import annotations

import pytest
import torch

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig
from entrain.models.networks.agreement import AgreementConfig, AgreementNetwork
from entrain.models.networks.block import BlockStyle

WORDS = 11
LENGTH = 7
PAPER = BlockStyle("layer", "gelu", 0.1)
MECHANISMS = ["softmax", "uniform", "none", "oscillator-softplus", "oscillator-relu"]


def network(slug: str = "oscillator-relu", **sizes: object) -> AgreementNetwork:
    torch.manual_seed(0)
    config = AgreementConfig(AttentionConfig.parse(slug), WORDS, LENGTH, **sizes)  # type: ignore[arg-type]
    return config.build().eval()


def sentences(count: int = 5) -> torch.Tensor:
    return torch.randint(WORDS, (count, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("slug", MECHANISMS)
@pytest.mark.parametrize("style", [BlockStyle(), PAPER], ids=["device", "paper"])
def test_every_mechanism_scores_two_classes(slug: str, style: BlockStyle) -> None:
    logits = network(slug, style=style)(sentences())
    assert logits.shape == (5, 2)
    assert bool(logits.isfinite().all())


def test_the_defaults_are_the_papers_smallest_network() -> None:
    config = AgreementConfig(AttentionConfig(), 169, 7)
    assert (config.d_model, config.heads, config.layers, config.d_feed) == (32, 1, 1, 64)
    assert config.positions == "sinusoidal"
    assert config.verb == 5


def test_the_verb_is_read_and_what_it_sees() -> None:
    """Without attention only the word at the verb counts; with it, all words do."""
    tokens = sentences(1)
    changed = tokens.repeat(LENGTH, 1)
    changed[range(LENGTH), range(LENGTH)] = (changed.diagonal() + 1) % WORDS
    alone = network("none")
    reads = ((alone(changed) - alone(tokens)).abs() > 1e-4).any(dim=1)
    assert reads.tolist() == [place == alone.config.verb for place in range(LENGTH)]
    together = network("softmax")
    assert bool(((together(changed) - together(tokens)).abs() > 1e-4).any(dim=1).all())


def test_padding_is_a_word_of_its_own() -> None:
    model = network("softmax")
    padded = sentences(1)
    padded[0, :3] = 0
    before = model(padded)
    with torch.no_grad():
        model.embedding.weight[0] += 1
    assert not torch.equal(model(padded), before)
    model(padded).sum().backward()
    gradient = model.embedding.weight.grad
    assert gradient is not None
    assert bool(gradient[0].any())


def test_positions_tell_places_apart() -> None:
    swapped = sentences(1)
    swapped[0, 0], swapped[0, 1] = 3, 4
    tokens = swapped.clone()
    tokens[0, 0], tokens[0, 1] = 4, 3
    placed, unplaced = network("softmax"), network("softmax", positions="none")
    assert not torch.allclose(placed(tokens), placed(swapped), atol=1e-4)
    torch.testing.assert_close(unplaced(tokens), unplaced(swapped))


def test_layers_stack() -> None:
    assert len(network(layers=3).blocks) == 3


def test_dropout_is_for_training_only() -> None:
    model = network(style=PAPER, dropout=0.5)
    assert torch.equal(model(sentences()), model(sentences()))
    model.train()
    assert not torch.equal(model(sentences()), model(sentences()))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"layers": 0}, "positive"),
        ({"d_feed": -1}, "positive"),
        ({"positions": "spiral"}, "sinusoidal"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_impossible_sizes_are_refused(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        network(**wrong)


def test_a_sentence_needs_a_verb_and_a_full_stop() -> None:
    with pytest.raises(UsageError, match="positive"):
        AgreementConfig(AttentionConfig(), WORDS, 1)
