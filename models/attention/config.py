"""Which attention mechanism, and with which settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from entrain.deploy.errors import UsageError
from entrain.models.attention.declarations import ANCHORS, DECLARATIONS

_SETTINGS = re.compile(
    r"(?:-(?P<coupling>[a-z]+))?"
    r"(?:-d(?P<d_osc>\d+))?"
    r"(?:-p(?P<exponent>[\d.]+(?:e[+-]?\d+)?))?"
    r"(?:-eps(?P<epsilon>[\d.]+(?:e[+-]?\d+)?))?"
    rf"(?:-(?P<anchors>{'|'.join(ANCHORS)}))?"
)

# How the settings are spelt in a name, in their order there.
_SPELLINGS = {"d_osc": "-dN", "exponent": "-pN", "epsilon": "-epsX", "anchors": f"-{ANCHORS[1]}"}


@dataclass(frozen=True)
class AttentionConfig:
    """An attention mechanism and its settings; `declarations.py` says which takes which.

    Args:
        mechanism: a name of `DECLARATIONS`, such as ``softmax`` or ``oscillator``.
        coupling: how a query and a key become a strength: ``softplus``, ``relu`` or ``separable``
            for the oscillator; the features ``relu`` or ``elu`` for linear and lowrank attention;
            None for the others.
        d_osc: dimension of an oscillator, at least 2 (the sphere it moves on has one less);
            lowrank attention has d_osc + 1 features a head, as many as the oscillator's read-out.
        exponent: p of the read-out (1 + z.r)^p, positive.
        epsilon: what is added so that no weight is zero; positive.
        anchors: ``learned``, one vector a position, or ``rotation``, which has no end to length.

    Raises:
        UsageError: for anything else, and for a setting that the mechanism does not take.
    """

    mechanism: str = "softmax"
    coupling: str | None = None
    d_osc: int = 2
    exponent: float = 1.0
    epsilon: float = 1 / 64
    anchors: str = ANCHORS[0]

    def __post_init__(self) -> None:
        if self.mechanism not in DECLARATIONS:
            raise UsageError(
                f"there is no attention mechanism {self.mechanism!r}",
                remedy=f"Choose one of: {', '.join(DECLARATIONS)}.",
            )
        if self.coupling not in DECLARATIONS[self.mechanism].takes:
            raise self._no_such_coupling()
        for name in _SPELLINGS:
            if getattr(self, name) != getattr(type(self), name):
                self._check_taken(name, self.settings)
        if self.d_osc < 2:
            raise UsageError(f"d_osc must be at least 2, not {self.d_osc}")
        for name in ("exponent", "epsilon"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} must be positive, not {value}")
        if self.anchors not in ANCHORS:
            raise UsageError(
                f"there are no anchors {self.anchors!r}",
                remedy=f"Choose one of: {', '.join(ANCHORS)}.",
            )

    def _no_such_coupling(self) -> UsageError:
        choices = [coupling for coupling in DECLARATIONS[self.mechanism].takes if coupling]
        if not choices:
            return UsageError(f"{self.mechanism} attention takes no coupling {self.coupling!r}")
        remedy = f"Choose one of: {', '.join(f'{self.mechanism}-{name}' for name in choices)}."
        if self.coupling is None:
            return UsageError(f"{self.mechanism} attention needs a coupling", remedy=remedy)
        return UsageError(
            f"{self.mechanism} attention has no coupling {self.coupling!r}", remedy=remedy
        )

    def _check_taken(self, name: str, taken: tuple[str, ...]) -> None:
        if name not in taken:
            full_name = "-".join(filter(None, (self.mechanism, self.coupling)))
            raise UsageError(
                f"{full_name} attention takes no {name}",
                remedy=f"It takes {', '.join(taken)}." if taken else "It takes no setting.",
            )

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that this mechanism takes; the others say nothing."""
        return DECLARATIONS[self.mechanism].takes[self.coupling]

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
        if self.anchors != type(self).anchors:
            parts.append(self.anchors)
        return parts

    @classmethod
    def parse(cls, slug: str) -> Self:
        """Read ``softmax``, ``linear-elu``, ``oscillator-relu-d4-p2-rotation`` and so on.

        Raises:
            UsageError: if the text names no mechanism; the remedy lists those there are.
        """
        text = slug.strip().lower().replace(" ", "-")
        # The longest name first: softmax-base2 is not softmax with the coupling base2.
        names = sorted(DECLARATIONS, key=len, reverse=True)
        name = next((name for name in names if f"{text}-".startswith(f"{name}-")), None)
        match = _SETTINGS.fullmatch(text.removeprefix(name)) if name else None
        if name is None or match is None:
            raise UsageError(
                f"{slug!r} is not the name of an attention mechanism",
                remedy=f"Choose one of: {', '.join(_names_with_settings())}.",
            )
        d_osc, exponent, epsilon = match["d_osc"], match["exponent"], match["epsilon"]
        return cls(
            mechanism=name,
            coupling=match["coupling"],
            d_osc=int(d_osc) if d_osc else cls.d_osc,
            exponent=_number(exponent, slug) if exponent else cls.exponent,
            epsilon=_number(epsilon, slug) if epsilon else cls.epsilon,
            anchors=match["anchors"] or cls.anchors,
        )


def _names_with_settings() -> Iterator[str]:
    """Every name with the settings that may follow, such as ``lowrank-elu[-dN]``."""
    for name, declaration in DECLARATIONS.items():
        for coupling, taken in declaration.takes.items():
            options = "".join(f"[{_SPELLINGS[setting]}]" for setting in taken)
            yield (f"{name}-{coupling}" if coupling else name) + options


def _shortest(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _number(text: str, slug: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{text!r} in {slug!r} is not a number") from error
