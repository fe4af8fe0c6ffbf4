"""Which attention mechanism, and with which settings."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Self

from entrain.deploy.errors import UsageError
from entrain.models.attention.couplings import COUPLINGS

_SLUG = re.compile(
    r"(?P<mechanism>[a-z]+)"
    r"(?:-(?P<coupling>[a-z]+))?"
    r"(?:-d(?P<d_osc>\d+))?"
    r"(?:-p(?P<exponent>[\d.]+(?:e[+-]?\d+)?))?"
    r"(?:-eps(?P<epsilon>[\d.]+(?:e[+-]?\d+)?))?"
)


@dataclass(frozen=True)
class AttentionConfig:
    """An attention mechanism and its settings.

    Args:
        mechanism: ``softmax``, ``oscillator`` or ``uniform``.
        coupling: how strongly two tokens' oscillators are coupled: ``softplus``, ``relu`` or
            ``separable``. Required for the oscillator, None for the others.
        d_osc: dimension of an oscillator, at least 2 (the sphere it moves on has one less).
        exponent: p of the read-out (1 + z.r)^p, positive.
        epsilon: what the relu and separable couplings add, so that no coupling is zero; positive.

    The last three are settings of the oscillator only; the others keep their defaults.

    Raises:
        UsageError: for anything else.
    """

    mechanism: str = "softmax"
    coupling: str | None = None
    d_osc: int = 2
    exponent: float = 1.0
    epsilon: float = 1 / 64

    def __post_init__(self) -> None:
        # Imported late: the mechanisms of the registry import this file.
        from entrain.models.attention import MECHANISMS

        if self.mechanism not in MECHANISMS:
            raise UsageError(
                f"there is no attention mechanism {self.mechanism!r}",
                remedy=f"Choose one of: {', '.join(MECHANISMS)}.",
            )
        if self.mechanism == "oscillator":
            self._check_oscillator()
        elif not self._has_default_settings():
            raise UsageError(
                "coupling, d_osc, exponent and epsilon are settings of the oscillator; "
                f"{self.mechanism} attention has none of them"
            )

    def _has_default_settings(self) -> bool:
        return all(
            getattr(self, field.name) == field.default
            for field in fields(self)
            if field.name != "mechanism"
        )

    def _check_oscillator(self) -> None:
        if self.coupling not in COUPLINGS:
            raise UsageError(
                f"the oscillator has no coupling {self.coupling!r}",
                remedy=f"Choose one of: {', '.join(COUPLINGS)}.",
            )
        if self.d_osc < 2:
            raise UsageError(f"an oscillator needs at least 2 dimensions, not {self.d_osc}")
        for name in ("exponent", "epsilon"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"the oscillator's {name} must be positive, not {value}")
        if self.coupling == "softplus" and self.epsilon != type(self).epsilon:
            raise UsageError("the softplus coupling is positive by itself and takes no epsilon")

    @property
    def title(self) -> str:
        """The name for people, such as ``oscillator relu`` or ``oscillator relu d8 p2``."""
        return " ".join(self._parts())

    @property
    def slug(self) -> str:
        """The name for folders and the command line; `parse` reads it back."""
        return "-".join(self._parts())

    def _parts(self) -> list[str]:
        parts = [self.mechanism]
        if self.coupling is not None:
            parts.append(self.coupling)
        if self.d_osc != type(self).d_osc:
            parts.append(f"d{self.d_osc}")
        if self.exponent != type(self).exponent:
            parts.append(f"p{_shortest(self.exponent)}")
        if self.epsilon != type(self).epsilon:
            parts.append(f"eps{_shortest(self.epsilon)}")
        return parts

    @classmethod
    def parse(cls, slug: str) -> Self:
        """Read ``softmax``, ``uniform``, ``oscillator-relu``, ``oscillator-relu-d4-p2`` and so on.

        Raises:
            UsageError: if the text names no mechanism.
        """
        match = _SLUG.fullmatch(slug.strip().lower().replace(" ", "-"))
        if match is None:
            raise UsageError(
                f"{slug!r} is not the name of an attention mechanism",
                remedy="Write softmax, uniform or oscillator-COUPLING[-dN][-pN], "
                f"with COUPLING one of {', '.join(COUPLINGS)}.",
            )
        d_osc, exponent, epsilon = match["d_osc"], match["exponent"], match["epsilon"]
        return cls(
            mechanism=match["mechanism"],
            coupling=match["coupling"],
            d_osc=int(d_osc) if d_osc else cls.d_osc,
            exponent=_number(exponent, slug) if exponent else cls.exponent,
            epsilon=_number(epsilon, slug) if epsilon else cls.epsilon,
        )


def _shortest(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _number(text: str, slug: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{text!r} in {slug!r} is not a number") from error
