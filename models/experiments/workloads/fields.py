"""Where the fields of the flow experiments come from: drawn, or those of a trained network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from entrain.models.agreement_task import evaluate, train_agreement
from entrain.models.attention.settling import recorded_fields
from entrain.models.dynamics import random_states
from entrain.models.experiments.workload import Place
from entrain.models.experiments.workloads.agreement import Agreement, read_sentences
from entrain.models.training import EpochReport

if TYPE_CHECKING:
    from entrain.models.experiments.workloads.flow import Flow

Source = Callable[["Flow", int, Place, Callable[[EpochReport], None]], Tensor]
"""From settings, seed, place and what is called after an epoch to h [sequences, T, d_osc]."""


def coupled_fields(flow: Flow, seed: int, *_: object) -> Tensor:
    """As in a causal network before training: softplus couplings of Gaussian scores to anchors.

    Token t has t + 1 anchors that pull, so that the first fields are the weakest.
    """
    generator = torch.Generator().manual_seed(2 * seed)
    shape = (flow.sequences, flow.tokens, flow.tokens)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    anchors = random_states((flow.tokens, flow.d_osc), generator)
    return F.softplus(scores).tril() @ anchors


def fields_of_lengths(flow: Flow, seed: int, *_: object) -> Tensor:
    """Any direction, and log-normal lengths: a trained network's are spread over decades."""
    generator = torch.Generator().manual_seed(2 * seed)
    shape = (flow.sequences, flow.tokens)
    logarithms = flow.spread * torch.randn(shape, generator=generator, dtype=torch.float64)
    directions = random_states((*shape, flow.d_osc), generator)
    return flow.median * logarithms.exp().unsqueeze(-1) * directions


def trained_fields(
    flow: Flow, seed: int, place: Place, on_epoch: Callable[[EpochReport], None]
) -> Tensor:
    """Those of an agreement network, trained here, on the first hard test sentences.

    Raises:
        DataError: the folder of sentences is not as it should be.
        TrainingDiverged: the loss is no longer a number.
        KeyboardInterrupt: interrupted; the snapshot has what was done.
    """
    task = Agreement(attention=f"oscillator-softplus-d{flow.d_osc}", epochs=flow.epochs)
    data = read_sentences(place.data)
    trained = train_agreement(data, task.network(), task.training(seed), on_epoch, place.snapshot)
    if trained.interrupted:
        raise KeyboardInterrupt
    # Hard sentences are of the longer template: they have no padding.
    tokens = data.test.tokens[data.test.hard][: flow.sequences]
    with recorded_fields(trained.network) as fields:
        evaluate(trained.network, tokens)
    # All heads of all batches, one sequence each.
    return torch.cat([part.flatten(0, 1) for part in fields]).double()


FIELDS: Mapping[str, Source] = {
    "couplings": coupled_fields,
    "lengths": fields_of_lengths,
    "trained": trained_fields,
}
