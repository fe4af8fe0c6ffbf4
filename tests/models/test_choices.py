"""Settings that choose by name refuse a name that does not exist, and show those that do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from entrain.deploy.errors import UsageError
from entrain.models.data.text import CORPORA, load_text
from entrain.models.experiments.workloads import agreement_probe, characters, flow, keyword
from entrain.models.networks.block import ACTIVATIONS, BlockStyle
from entrain.models.networks.kuramoto_language import FEEDS, KuramotoConfig
from entrain.models.networks.norm import NORMS


@pytest.mark.parametrize(
    ("kind", "known", "choose"),
    [
        ("norm", NORMS, lambda name: BlockStyle(norm=name)),
        ("activation", ACTIVATIONS, lambda name: BlockStyle(activation=name)),
        ("feed", FEEDS, lambda name: KuramotoConfig(feed=name)),
        ("corpus", CORPORA, lambda name: load_text(Path(), name, 10)),
        ("network", keyword.NETWORKS, lambda name: keyword.Keyword(network=name)),
        ("augmentation", keyword.AUGMENTATIONS, lambda name: keyword.Keyword(augmentation=name)),
        ("network", characters.NETWORKS, lambda name: characters.Characters(network=name)),
        ("fields", flow.FIELDS, lambda name: flow.Flow(fields=name)),
        ("probe", agreement_probe.PROBES, lambda name: agreement_probe.AgreementProbe(probe=name)),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_exist(
    kind: str, known: Collection[str], choose: Callable[[str], object]
) -> None:
    with pytest.raises(UsageError) as refusal:
        choose("nowhere")
    assert refusal.value.what == f"there is no {kind} 'nowhere'"
    assert refusal.value.remedy == f"Choose one of: {', '.join(known)}."
