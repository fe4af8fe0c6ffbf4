"""Recognising linear attention: features relu + epsilon, or elu + 1."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.fusion import formulas
from entrain.deploy.lowering.fusion.contract import Sample, Strides, matches
from entrain.deploy.lowering.fusion.region import Region
from entrain.deploy.lowering.graph import Node, Value
from entrain.deploy.lowering.operators.linear_attention import linear_attention
from entrain.deploy.lowering.views import View


@dataclass(frozen=True)
class LinearMechanism:
    """sum_j (f(q_i).f(k_j)) v_j / sum_j f(q_i).f(k_j)."""

    feature: str
    epsilon: float
    title: str = "linear attention"

    def node(self, query: View, key: View, value: View, output: Value, strides: Strides) -> Node:
        """See ``Mechanism``."""
        return linear_attention(
            query,
            key,
            value,
            feature=self.feature,
            epsilon=self.epsilon,
            output=output,
            output_strides=strides,
        )


def recognise_linear(region: Region, samples: tuple[Sample, ...]) -> LinearMechanism | None:
    """Linear attention of either feature."""
    if "Div" not in region.operators:
        return None
    epsilons = {0.0, *(number for number in region.numbers if 0.0 < number < 1.0)}
    candidates = [("elu", 0.0), *(("relu", epsilon) for epsilon in sorted(epsilons))]
    for feature, epsilon in candidates:

        def formula(s: Sample, feature: str = feature, epsilon: float = epsilon) -> formulas.Reals:
            return formulas.linear(s.queries, s.keys, s.values, feature, epsilon)

        if matches(samples, formula):
            return LinearMechanism(feature, epsilon)
    return None
