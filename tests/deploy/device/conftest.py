"""Images of the hand-made models in tests/firmware/models, built once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from entrain.deploy.boards import find_board
from entrain.deploy.build import PROGRAMS, build_firmware

MODELS = Path(__file__).parents[2] / "firmware" / "models"


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A function: board's name, model's name, trace -> the image."""
    missing = [name for name in [*PROGRAMS, "qemu-system-arm"] if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
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
