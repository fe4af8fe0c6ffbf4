"""Exact instruction counts of one inference, from the emulator's plugin through the ELF's symbols.

What counts is what runs inside ``model_run``: not interrupt handlers, not the marks, not their
caller. Instructions of the functions ``layer_*`` and of ``model_run`` itself stand under their
names; whatever else they call (memcpy, division) stands under ``library``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from entrain.deploy.elf import Symbols, read_symbols
from entrain.deploy.errors import ProtocolError

BEGIN_MARK = "inference_begin"
END_MARK = "inference_end"
LIBRARY = "library"
_NOT_COUNTED = {BEGIN_MARK, END_MARK, "inference_run"}


@dataclass(frozen=True)
class InstructionCounts:
    """Instructions executed in one inference.

    Attributes:
        total: the sum of ``by_function``.
        by_function: ``layer_*``, ``model_run`` and ``library`` to their instructions.
    """

    total: int
    by_function: dict[str, int]


class InstructionCounter:
    """Reads what the plugin wrote about the latest window.

    Args:
        image: the ELF file that runs.
        output: the file that the plugin writes at the end of every window.

    Raises:
        ModelError: the image has no symbols, or not those that are needed.
    """

    def __init__(self, image: Path, output: Path) -> None:
        self.output = output
        self._symbols = read_symbols(image)
        self.begin = self._symbols.address(BEGIN_MARK, image)
        self.end = self._symbols.address(END_MARK, image)
        self._interrupts = (
            self._symbols.address("interrupt_code_start", image),
            self._symbols.address("interrupt_code_end", image),
        )

    def latest(self) -> InstructionCounts:
        """The counts of the inference that ended last.

        Raises:
            ProtocolError: there was none yet.
        """
        if not self.output.exists():
            raise ProtocolError("no inference has been counted yet")
        pairs = np.fromfile(self.output, dtype=np.uint64).reshape(-1, 2)
        addresses, executions = pairs[1:, 0], pairs[1:, 1]
        is_handler = (addresses >= self._interrupts[0]) & (addresses < self._interrupts[1])
        return attribute(addresses[~is_handler], executions[~is_handler], self._symbols)


def attribute(
    addresses: npt.NDArray[np.uint64], executions: npt.NDArray[np.uint64], symbols: Symbols
) -> InstructionCounts:
    """Counts per address as counts per function.

    Args:
        addresses: of instructions, each once.
        executions: how often each was executed; as long as ``addresses``.
        symbols: of the image.
    """
    starts = np.array([function.address for function in symbols.functions], dtype=np.uint64)
    indices = np.searchsorted(starts, addresses, side="right") - 1
    by_function: Counter[str] = Counter()
    for index, address, count in zip(
        indices.tolist(), addresses.tolist(), executions.tolist(), strict=True
    ):
        name = _name(symbols, index, address)
        if name not in _NOT_COUNTED:
            by_function[name] += count
    return InstructionCounts(by_function.total(), dict(by_function))


def _name(symbols: Symbols, index: int, address: int) -> str:
    if index < 0:
        return LIBRARY
    function = symbols.functions[index]
    if address >= function.address + function.size:
        return LIBRARY
    is_ours = function.name.startswith("layer_") or function.name == "model_run"
    return function.name if is_ours or function.name in _NOT_COUNTED else LIBRARY
