"""Time and energy modelled from counted instructions.

Cycles = instructions x cycles per instruction; latency = cycles / clock; energy = cycles x energy
per cycle. The coefficients and where they come from stand in the board file::

    [cost]
    volts = 1.8
    cycles_per_instruction = { value = 1.2, low = 1.0, high = 1.6, source = "..." }
    nanojoules_per_cycle = { value = 0.35, low = 0.3, high = 0.4, source = "..." }

``volts`` and ``nanojoules_per_cycle`` go together and may be left out: a core of which no power has
been published gets cycles and time and no joules. The bounds are those of the coefficients; they
are no confidence interval, for the model is deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from entrain.deploy.results import Figure

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Coefficient(BaseModel):
    """A coefficient with its bounds, 0 < low <= value <= high, and where it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: Positive
    low: Positive
    high: Positive
    source: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _bounds_hold_the_value(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} is not within [{self.low}, {self.high}]")
        return self


class CostCoefficients(BaseModel):
    """The [cost] table of a board file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cycles_per_instruction: Coefficient
    nanojoules_per_cycle: Coefficient | None = None
    volts: Positive | None = None

    @model_validator(mode="after")
    def _energy_has_volts(self) -> Self:
        if (self.nanojoules_per_cycle is None) != (self.volts is None):
            raise ValueError("nanojoules_per_cycle and volts go together")
        return self


@dataclass(frozen=True)
class CostModel:
    """Counts to cycles, time and energy on one board.

    Args:
        coefficients: the board's [cost] table.
        mhz: the core's clock in megahertz.
    """

    coefficients: CostCoefficients
    mhz: float

    def cycles(self, instructions: int) -> Figure:
        """Modelled cycles of so many instructions."""
        cost = self.coefficients.cycles_per_instruction
        return Figure(
            value=instructions * cost.value,
            kind="modelled",
            low=instructions * cost.low,
            high=instructions * cost.high,
            mhz=self.mhz,
            source=cost.source,
        )

    def latency_ms(self, instructions: int) -> Figure:
        """Modelled milliseconds of so many instructions at the board's clock."""
        return _scaled(self.cycles(instructions), 1e-3 / self.mhz)

    def energy_uj(self, instructions: int) -> Figure | None:
        """Modelled microjoules of so many instructions; None without published power."""
        energy = self.coefficients.nanojoules_per_cycle
        if energy is None:
            return None
        cycles = self.coefficients.cycles_per_instruction
        return Figure(
            value=instructions * cycles.value * energy.value * 1e-3,
            kind="modelled",
            low=instructions * cycles.low * energy.low * 1e-3,
            high=instructions * cycles.high * energy.high * 1e-3,
            volts=self.coefficients.volts,
            mhz=self.mhz,
            source=f"{cycles.source}; {energy.source}",
        )


def modelled_ratio(cycles: Figure, baseline: Figure) -> Figure:
    """The ratio of two programs' modelled cycles, and so of their time and energy, on one board.

    The power of a board at one voltage hardly depends on the program, so energy per cycle cancels.
    Cycles per instruction do not, because tables, divisions and convolutions differ: the bounds
    take the low end for one program and the high end for the other.

    Raises:
        ValueError: a figure carries no bounds.
    """
    ends = (cycles.low, cycles.high, baseline.low, baseline.high)
    if any(end is None for end in ends):
        raise ValueError("a ratio of modelled figures needs the bounds of both")
    low, high, baseline_low, baseline_high = (float(end) for end in ends if end is not None)
    return Figure(
        value=cycles.value / baseline.value,
        kind="modelled",
        low=low / baseline_high,
        high=high / baseline_low,
        source=cycles.source,
    )


def _scaled(figure: Figure, factor: float) -> Figure:
    """The figure times a positive factor, bounds and all."""
    low, high = figure.low, figure.high
    return figure.model_copy(
        update={
            "value": figure.value * factor,
            "low": None if low is None else low * factor,
            "high": None if high is None else high * factor,
        }
    )
