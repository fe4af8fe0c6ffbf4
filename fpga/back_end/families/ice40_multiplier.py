"""How long an SB_MAC16 of the iCE40 takes, by its parameters.

The delays are Project IceStorm's (icefuzz/timings_up5k.txt), the worst over the pins, rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# In picoseconds.
MULTIPLY_16X16 = 8_900.0  # from A or B to O
MULTIPLY_8X8 = 4_600.0
ADD = 4_200.0  # from C or D to O
CLOCK_TO_OUTPUT = 1_500.0
SETUP = 400.0
CONTROL_SETUP = 2_000.0  # of what holds, loads, resets, and chooses between sum and difference

_PIPELINES = (
    "TOP_8x8_MULT_REG",
    "BOT_8x8_MULT_REG",
    "PIPELINE_16x16_MULT_REG1",
    "PIPELINE_16x16_MULT_REG2",
)
_ADDED = ("A", "B", "C", "D", "CI")  # the operands


@dataclass(frozen=True)
class Multiplier:
    """One SB_MAC16 as it is configured.

    Attributes:
        multiply: from A or B to O, or to the register behind, in picoseconds.
        add: from C, D or CI likewise; 0 without the adder.
        dual: the halves work by themselves, as two of 8x8.
        registered: those of the operands that have a register.
        pipelined: there are registers in the middle.
        registered_output: O comes from a register.
    """

    multiply: float
    add: float
    dual: bool
    registered: frozenset[str]
    pipelined: bool
    registered_output: bool

    def through(self, port: str) -> float | None:
        """From ``port`` to O within the cycle, in picoseconds; None if no way leads there."""
        if port in self.registered or port not in _ADDED or self.registered_output:
            return None
        if self.pipelined and port in {"A", "B"}:
            return None
        return self._delay(port)

    def before(self, port: str) -> float | None:
        """How long before the clock ``port`` must be there, in picoseconds; None if it need not."""
        if port not in _ADDED:
            return CONTROL_SETUP
        if port in self.registered:
            return SETUP
        return None if self.through(port) is not None else self._delay(port) + SETUP

    @property
    def after(self) -> float | None:
        """How long after the clock O is there, in picoseconds; None if no register leads to it."""
        if self.registered_output:
            return CLOCK_TO_OUTPUT
        operands = {"A", "B"} | self.registered if self.pipelined else self.registered
        return max((CLOCK_TO_OUTPUT + self._delay(port) for port in operands), default=None)

    def _delay(self, port: str) -> float:
        return self.multiply + self.add if port in {"A", "B"} else self.add


def multiplier(parameters: Mapping[str, str]) -> Multiplier:
    """The SB_MAC16 with the ``parameters`` of a netlist: strings of binary digits."""
    eights = parameters["MODE_8x8"].endswith("1")
    selections = [parameters[half + "OUTPUT_SELECT"][-2:] for half in ("TOP", "BOT")]
    # 0 is the adder, 1 its register, 2 the 8x8 products, 3 the 16x16 product. A sum may carry from
    # the lower half into the upper.
    adds = any(selection in {"00", "01"} for selection in selections)
    return Multiplier(
        multiply=MULTIPLY_8X8 if eights else MULTIPLY_16X16,
        add=ADD if adds else 0.0,
        dual=eights and not adds,
        registered=frozenset(port for port in "ABCD" if parameters[f"{port}_REG"].endswith("1")),
        pipelined=any(parameters[name].endswith("1") for name in _PIPELINES),
        registered_output=selections == ["01", "01"],
    )
