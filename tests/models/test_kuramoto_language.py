"""The character model on the torus."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from entrain.deploy.errors import UsageError
from entrain.models.attention.kuramoto import RADIUS
from entrain.models.networks.kuramoto_language import KuramotoConfig, KuramotoLanguage
from entrain.models.order import frequencies_by_depth, norms_by_depth, order_by_depth

CONFIG = KuramotoConfig(symbols=11, phases=12, heads=3, layers=2, d_feed=10)
TURN = 2 * math.pi


def network(config: KuramotoConfig = CONFIG) -> KuramotoLanguage:
    torch.manual_seed(0)
    return config.build().double()


def tokens(seed: int = 1, length: int = 8) -> Tensor:
    return torch.randint(0, 11, (3, length), generator=torch.Generator().manual_seed(seed))


def whole_turns(like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return TURN * torch.randint(-2, 3, like.shape, generator=generator).to(like.dtype)


def test_scores_are_the_alignment_with_each_symbols_prototype() -> None:
    made = network()
    theta = made.embed(tokens())
    flat = theta.flatten(2)
    for symbol in range(CONFIG.symbols):
        cosines = torch.cos(flat - made.read_out.prototypes[symbol]).sum(dim=-1)
        torch.testing.assert_close(
            made.score(theta)[..., symbol], made.read_out.scale * cosines / math.sqrt(12)
        )


def test_whole_turns_change_nothing_in_the_read_out() -> None:
    made = network()
    theta = made.embed(tokens())
    before = made.score(theta)
    torch.testing.assert_close(made.score(theta + whole_turns(theta)), before)
    made.read_out.prototypes.data += whole_turns(made.read_out.prototypes)
    torch.testing.assert_close(made.score(theta), before)


def test_without_the_feed_whole_turns_change_nothing_at_all() -> None:
    made = network(KuramotoConfig(11, 12, 3, 2, 10, feed="none"))
    before = made(tokens())
    made.phases.data += whole_turns(made.phases)
    torch.testing.assert_close(made(tokens()), before, rtol=0, atol=1e-11)


def test_the_raw_angle_feed_is_the_one_place_that_knows_whole_turns() -> None:
    made = network()
    theta = made.embed(tokens())
    turned = theta + whole_turns(theta)
    layer = made.stack()[0]
    attended, fed = layer.increments(theta)
    attended_turned, fed_turned = layer.increments(turned)
    torch.testing.assert_close(attended_turned, attended, rtol=0, atol=1e-12)
    assert (fed_turned - fed).abs().max() > 1e-3


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_place_sees_no_symbol_after_it(place: int) -> None:
    made, text = network(), tokens()
    other = text.clone()
    other[:, place + 1 :] = (other[:, place + 1 :] + 1) % CONFIG.symbols
    torch.testing.assert_close(made(other)[:, : place + 1], made(text)[:, : place + 1])
    assert not torch.allclose(made(other)[:, place + 1], made(text)[:, place + 1])


def test_every_increment_of_every_layer_stays_within_the_radius() -> None:
    made = network()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(100)
    norms = norms_by_depth(made, tokens())
    assert max(*norms.attention, *norms.feed) <= RADIUS * (1 + 1e-12)
    assert max(norms.feed) > 0.9 * RADIUS, "the bound is at work"
    first = made.embed(tokens()).flatten(2).square().mean(dim=-1).sqrt().max().item()
    assert max(norms.state) <= first + 2 * CONFIG.layers * RADIUS


def test_there_is_no_normalisation_layer() -> None:
    kinds = {type(part).__name__ for part in network().modules()}
    assert not [kind for kind in kinds if "Norm" in kind]


def test_ablations_replace_one_part_each() -> None:
    whole = set(dict(network().named_parameters()))

    def without(**parts: str) -> tuple[set[str], set[str]]:
        ablated = KuramotoConfig(11, 12, 3, 2, 10, **parts).build()
        names = set(dict(ablated.named_parameters()))
        return (
            {name.split(".", 2)[2].split(".")[0] for name in whole - names},
            {name.split(".", 2)[2].split(".")[0] for name in names - whole},
        )

    assert without(feed="none") == ({"feed"}, set())
    assert without(gates="none") == ({"attention"}, set())
    assert without(values="linear") == ({"attention"}, {"attention"})


def test_the_value_ablation_has_as_many_parameters() -> None:
    linear = KuramotoConfig(11, 12, 3, 2, 10, values="linear").build()
    counts = [sum(p.numel() for p in made.parameters()) for made in (network(), linear)]
    assert counts[0] == counts[1]


def test_equal_phases_are_in_order_one() -> None:
    made = network(KuramotoConfig(11, 12, 3, 2, 10, feed="none"))
    made.phases.data[:] = made.phases.data[0]
    order = order_by_depth(made, tokens())
    assert order.local == pytest.approx([1.0] * 2)
    assert order.whole == pytest.approx([1.0] * 3)


def test_scattered_phases_are_in_low_global_order() -> None:
    made = network()
    made.phases.data.uniform_(-math.pi, math.pi)
    order = order_by_depth(made, torch.arange(11).repeat(4, 1))
    assert order.whole[0] < 0.5
    assert len(order.whole) == CONFIG.layers + 1


def test_frequencies_by_depth_are_those_of_each_layer() -> None:
    made = network()
    for depth, attention in enumerate(made.attentions(), start=1):
        attention.frequencies.data[:] = -0.5 * depth
    assert frequencies_by_depth(made) == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"phases": 13}, "13 phases"),
        ({"layers": 0}, "positive"),
        ({"feed": "nand"}, "nand"),
    ],
)
def test_impossible_sizes_are_told(settings: dict[str, int], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        KuramotoConfig(**settings)  # type: ignore[arg-type]
