"""The cocotb test that drives a simulated module's streams; ``icarus.py`` runs it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

Transfers = list[tuple[int, int]]  # data, and the cycle in which it was taken


@cocotb.test  # type: ignore[untyped-decorator]
async def streams(module: Any) -> None:
    """Feed all streams and gather the answers, with random pauses if there is a seed for them."""
    folder = Path(os.environ["ENTRAIN_STREAMS"])
    with np.load(folder / "streams.npz", allow_pickle=False) as given:
        most_cycles, seed = map(int, given["limits"])
        inputs = {name[3:]: _numbers(given[name]) for name in given if name.startswith("in ")}
        outputs = {name[4:]: given[name].tolist() for name in given if name.startswith("out ")}
    pause = _pauses(seed)
    Clock(module.clk, 10, "step").start(start_high=False)
    for name in inputs:
        getattr(module, f"{name}_valid").value = 0
    for name in outputs:
        getattr(module, f"{name}_ready").value = 0
    module.rst.value = 1
    for _ in range(3):
        await FallingEdge(module.clk)
    module.rst.value = 0
    feeders = [_Feeder(module, name, numbers, pause) for name, numbers in inputs.items()]
    gatherers = [_Gatherer(module, name, count, pause) for name, (count, _) in outputs.items()]
    ends: list[_Feeder | _Gatherer] = [*feeders, *gatherers]
    for cycle in range(most_cycles):
        for end in ends:
            end.offer()
        await ReadOnly()  # before the rising edge
        for end in ends:
            end.take(cycle)
        if all(gatherer.done for gatherer in gatherers):
            words = {name: words for name, (_, words) in outputs.items()}
            _write(folder / "answers.npz", gatherers, words, cycle + 1)
            return
        await FallingEdge(module.clk)
    raise AssertionError(f"no answer within {most_cycles} cycles")


class _Feeder:
    """One stream into the module: what was offered stays offered until it is taken."""

    def __init__(
        self, module: Any, name: str, numbers: Sequence[int], pause: Callable[[], bool]
    ) -> None:
        self._data, self._valid, self._ready = _signals(module, name)
        self._numbers, self._pause = numbers, pause
        self._next, self._offered = 0, False

    def offer(self) -> None:
        if self._offered:
            return
        self._offered = self._next < len(self._numbers) and not self._pause()
        self._valid.value = int(self._offered)
        if self._offered:
            self._data.value = self._numbers[self._next]

    def take(self, _cycle: int) -> None:
        if self._offered and self._ready.value == 1:
            self._next, self._offered = self._next + 1, False


class _Gatherer:
    """One stream out of the module."""

    def __init__(self, module: Any, name: str, count: int, pause: Callable[[], bool]) -> None:
        self.name = name
        self.transfers: Transfers = []
        self._data, self._valid, self._ready = _signals(module, name)
        self._count, self._pause, self._listens = count, pause, False

    @property
    def done(self) -> bool:
        return len(self.transfers) >= self._count

    def offer(self) -> None:
        self._listens = not self._pause()
        self._ready.value = int(self._listens)

    def take(self, cycle: int) -> None:
        if self._listens and not self.done and self._valid.value == 1:
            self.transfers.append((int(self._data.value), cycle))


def _signals(module: Any, name: str) -> tuple[Any, Any, Any]:
    data, valid, ready = (getattr(module, f"{name}_{end}") for end in ("data", "valid", "ready"))
    return data, valid, ready


def _pauses(seed: int) -> Callable[[], bool]:
    draw = random.Random(seed)
    return (lambda: draw.getrandbits(2) == 0) if seed else (lambda: False)


def _numbers(words: np.ndarray[Any, Any]) -> list[int]:
    """Rows of 32-bit words, the lowest first, each as one number."""
    return [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in words]


def _write(path: Path, gatherers: list[_Gatherer], words: dict[str, int], cycles: int) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {"cycles": np.array(cycles)}
    for gatherer in gatherers:
        name = gatherer.name
        octets = b"".join(
            data.to_bytes(4 * words[name], "little") for data, _ in gatherer.transfers
        )
        arrays[f"words {name}"] = np.frombuffer(octets, "<u4").reshape(-1, words[name])
        arrays[f"times {name}"] = np.array([time for _, time in gatherer.transfers], np.uint64)
    np.savez(path, allow_pickle=False, **arrays)
