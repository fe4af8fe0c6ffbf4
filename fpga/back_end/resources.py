"""What a design needs of an FPGA, and what an FPGA has."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Resources:
    """Cells by kind; what counts as one of a kind, each family's file says.

    Attributes:
        luts: look-up tables of four inputs.
        ffs: flip-flops.
        dsps: multipliers of 16x16 or 18x18.
        brams: block RAMs.
    """

    luts: Count
    ffs: Count
    dsps: Count
    brams: Count
