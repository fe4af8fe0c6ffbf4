"""What a trained agreement network does inside: where the verb looks, and settling in finite time.

Pasqualetti and Guo's table 3 (attention of the verb) and table 9 (finite settling).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch

from entrain.deploy.errors import UsageError
from entrain.models.agreement_task import TrainedAgreement, accuracy, evaluate, hard_accuracy
from entrain.models.attention import MECHANISMS, AttentionConfig
from entrain.models.attention.mechanism import AttentionMechanism
from entrain.models.attention.oscillator import OscillatorAttention
from entrain.models.attention.projections import ProjectedAttention
from entrain.models.attention.settling import TimedSettling, with_settling
from entrain.models.attention.weights import attention_weights
from entrain.models.choices import check_choice
from entrain.models.data.agreement import VERB, AgreementData
from entrain.models.experiments.workload import Outcome, Place
from entrain.models.experiments.workloads.agreement import Agreement, outcome
from entrain.models.networks.block import AttentionBlock
from entrain.models.training import EpochReport

# In a sentence with a distractor: the N P the N V .
SUBJECT, DISTRACTOR = 1, 4
# Times to settle in, as in the paper, and random starts for each.
HORIZONS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
DRAWS = 3


@dataclass(frozen=True)
class Probe:
    """One way to look inside.

    Args:
        look: figures of a trained network, from it, its data and the seed.
        suits: whether it can look into attention of this class.
    """

    look: Callable[[TrainedAgreement, AgreementData, int], Mapping[str, float]]
    suits: Callable[[type[AttentionMechanism]], bool]


@dataclass(frozen=True)
class AgreementProbe(Agreement):
    """Train as `Agreement` does, and look inside.

    Args:
        probe: a name of `PROBES`; the other fields are those of `Agreement`.
    """

    probe: str = "verb-attention"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("probe", self.probe, PROBES)
        mechanism = MECHANISMS[AttentionConfig.parse(self.attention).mechanism]
        if not PROBES[self.probe].suits(mechanism):
            raise UsageError(f"{self.attention} attention has nothing for the probe {self.probe!r}")

    def measure(self, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]) -> Outcome:
        """As `Agreement.measure`, with the probe's figures beside those of the test sentences."""
        trained, data = self.train(seed, place, on_epoch)
        tested = outcome(trained, data)
        found = PROBES[self.probe].look(trained, data, seed)
        return Outcome({**tested.metrics, **found}, tested.curves)


@torch.no_grad()
def verb_attention(
    trained: TrainedAgreement, data: AgreementData, _seed: int
) -> Mapping[str, float]:
    """Mean weights of the verb on subject and distractor, over the first layer's heads.

    Over the hard test sentences that are answered right, and over those answered wrong; the latter
    are missing where there are none.
    """
    hard = data.test.hard
    tokens, targets = data.test.tokens[hard], data.test.targets[hard]
    network = trained.network
    block = cast("AttentionBlock", network.blocks[0])
    x = block.attention_norm(network.positions(network.embedding(tokens)))
    weights = attention_weights(cast("ProjectedAttention", block.attention), x)
    verb = weights[:, :, VERB].mean(dim=1)
    right = evaluate(network, tokens) == targets
    found = {}
    for name, chosen in (("right", right), ("wrong", ~right)):
        if chosen.any():
            found[f"subject_{name}"] = verb[chosen, SUBJECT].mean().item()
            found[f"distractor_{name}"] = verb[chosen, DISTRACTOR].mean().item()
    return found


def finite_settling(
    trained: TrainedAgreement, data: AgreementData, seed: int
) -> Mapping[str, float]:
    """Accuracies in per cent of oscillators read out at a time, from random starts.

    The flow is solved exactly at that time (`dynamics.state_after`), in place of the equilibrium.
    """
    found = {}
    for horizon in HORIZONS:
        every, hard = 0.0, 0.0
        for draw in range(DRAWS):
            with with_settling(trained.network, TimedSettling(horizon), seed=DRAWS * seed + draw):
                predictions = evaluate(trained.network, data.test.tokens)
            every += 100 * accuracy(predictions, data.test) / DRAWS
            hard += 100 * hard_accuracy(predictions, data.test) / DRAWS
        found[f"all_at_{horizon:g}"] = every
        found[f"hard_at_{horizon:g}"] = hard
    return found


PROBES: dict[str, Probe] = {
    "verb-attention": Probe(verb_attention, lambda kind: issubclass(kind, ProjectedAttention)),
    "settling": Probe(finite_settling, lambda kind: issubclass(kind, OscillatorAttention)),
}
