"""The mechanisms by name, and what each can be told: the registry, without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from entrain.models.attention.mechanism import AttentionMechanism

ANCHORS = ("learned", "rotation")
"""How an oscillator's anchors are made, the default first; see `anchors.py`."""


@dataclass(frozen=True)
class Declaration:
    """One mechanism.

    Args:
        place: module of this package, and the class in it.
        takes: the couplings to choose from, each with the settings that it takes; the coupling is
            None where there is nothing to choose.
    """

    place: str
    takes: Mapping[str | None, tuple[str, ...]] = field(default_factory=lambda: {None: ()})

    def load(self) -> type[AttentionMechanism]:
        """The class; its module, and torch with it, is imported now."""
        module, _, name = self.place.partition(".")
        loaded = getattr(import_module(f"entrain.models.attention.{module}"), name)
        return cast("type[AttentionMechanism]", loaded)


_SOFTPLUS = ("d_osc", "exponent", "anchors")
_RECTIFIED = ("d_osc", "exponent", "epsilon", "anchors")

DECLARATIONS: dict[str, Declaration] = {
    "softmax": Declaration("softmax.SoftmaxAttention"),
    "softmax-base2": Declaration("softmax_base2.Base2SoftmaxAttention"),
    "relu-normalised": Declaration("relu_normalised.ReluNormalisedAttention", {None: ("epsilon",)}),
    "linear": Declaration("linear.LinearAttention", {"relu": ("epsilon",), "elu": ()}),
    "lowrank": Declaration(
        "lowrank.LowrankAttention", {"relu": ("d_osc", "epsilon"), "elu": ("d_osc",)}
    ),
    "oscillator": Declaration(
        "oscillator.OscillatorAttention",
        {"softplus": _SOFTPLUS, "relu": _RECTIFIED, "separable": _RECTIFIED},
    ),
    "uniform": Declaration("uniform.UniformAttention"),
    "none": Declaration("none.NoAttention"),
}
