"""Others' figures for the same operators, on the same emulated boards."""

from __future__ import annotations

from pathlib import Path

from entrain.deploy.toml import read_toml

FILE = Path(__file__).with_name("published.toml")


def cmsis_nn(board: str) -> dict[str, int]:
    """Instructions of CMSIS-NN's kernels by case; empty for a board it was not counted on."""
    figures = read_toml(FILE).get(board)
    return dict(figures) if isinstance(figures, dict) else {}


def source() -> str:
    """What was counted, and how."""
    return str(read_toml(FILE)["source"])
