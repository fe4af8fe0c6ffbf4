"""Recognising softmax attention, to base e or 2."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.fusion import formulas
from entrain.deploy.lowering.fusion.contract import Sample, Strides, likely_factors, matches
from entrain.deploy.lowering.fusion.region import Region
from entrain.deploy.lowering.graph import Node, Value
from entrain.deploy.lowering.operators.softmax_attention import softmax_attention
from entrain.deploy.lowering.views import View

_EXPONENTIALS = {"Softmax", "LogSoftmax", "Exp", "Pow"}


@dataclass(frozen=True)
class SoftmaxMechanism:
    """sum_j exp(scale q_i.k_j) v_j / sum_j exp(scale q_i.k_j)."""

    scale: float
    title: str = "softmax attention"

    def node(self, query: View, key: View, value: View, output: Value, strides: Strides) -> Node:
        """See ``Mechanism``."""
        return softmax_attention(
            query, key, value, score_scale=self.scale, output=output, output_strides=strides
        )


def recognise_softmax(region: Region, samples: tuple[Sample, ...]) -> SoftmaxMechanism | None:
    """Softmax attention of whatever score scale."""
    if not region.operators & _EXPONENTIALS:
        return None
    d_head = samples[0].queries.shape[-1]
    for scale in likely_factors(region, d_head):

        def formula(s: Sample, scale: float = scale) -> formulas.Reals:
            return formulas.softmax(s.queries, s.keys, s.values, scale)

        if matches(samples, formula):
            return SoftmaxMechanism(scale)
    return None
