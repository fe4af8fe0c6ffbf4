"""Images of the hand-made models in tests/firmware/models, built once."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware

MODELS = Path(__file__).parents[2] / "firmware" / "models"


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A function: board's name, model's name, trace -> the image."""
    require_emulator()
    folder = tmp_path_factory.mktemp("images")
    built: dict[tuple[str, str, bool], Path] = {}

    def image(board: str, model: str, trace: bool = False) -> Path:
        key = (board, model, trace)
        if key not in built:
            path = folder / f"{model}-{trace}" / f"firmware-{board}.elf"
            build_firmware(find_board(board), MODELS / model, path, trace=trace)
            built[key] = path
        return built[key]

    return image
