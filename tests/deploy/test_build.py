from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from entrain.deploy.boards import boards, find_board
from entrain.deploy.build import PROGRAMS, build_firmware
from entrain.deploy.elf import firmware_report
from entrain.deploy.errors import DoesNotFit, ModelError, ToolError

MODELS = Path(__file__).parents[1] / "firmware" / "models"
BOARDS = sorted(boards())
needs_compiler = pytest.mark.skipif(
    any(shutil.which(program) is None for program in PROGRAMS),
    reason=f"needs {', '.join(PROGRAMS)}",
)


@pytest.fixture
def model(tmp_path):
    """A copy of the linear model, with text replaced in it."""

    def changed(file: str = "model.c", before: str = "", after: str = "") -> Path:
        folder = tmp_path / "lowered"
        shutil.copytree(MODELS / "linear", folder)
        text = (folder / file).read_text()
        (folder / file).write_text(text.replace(before, after, 1) if before else text)
        return folder

    return changed


@needs_compiler
@pytest.mark.parametrize("board", BOARDS)
def test_a_build_tells_what_the_image_needs(tmp_path, board):
    image = tmp_path / f"firmware-{board}.elf"
    firmware = build_firmware(find_board(board), MODELS / "linear", image)
    assert image.read_bytes()[:4] == b"\x7fELF"
    assert 4_000 < firmware.flash_bytes < 10_000
    # The receive buffer, the command's, and the model's input, output and arena at the least.
    assert 1024 + 80 + 32 + 4 + 16 < firmware.ram_bytes < 2_000
    assert 100 < firmware.stack_bytes < 1_000
    report = firmware_report(image)
    assert (report.flash_bytes, report.ram_bytes) == (firmware.flash_bytes, firmware.ram_bytes)
    names = {function.name for function in firmware.symbols.functions}
    assert {"layer_dense", "layer_requantize", "model_run"} <= names


@needs_compiler
def test_a_run_that_was_moved_builds_in_its_new_place(tmp_path):
    board = find_board("mps2-an386")
    build_firmware(board, MODELS / "linear", tmp_path / "before" / "firmware.elf")
    moved = (tmp_path / "before").rename(tmp_path / "after")
    build_firmware(board, MODELS / "linear", moved / "firmware.elf")
    assert (moved / "firmware.elf").is_file()


@needs_compiler
def test_building_again_compiles_nothing_that_is_unchanged(tmp_path):
    board, image = find_board("mps2-an386"), tmp_path / "firmware.elf"
    build_firmware(board, MODELS / "linear", image)
    objects = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.obj")}
    build_firmware(board, MODELS / "linear", image)
    assert objects
    assert objects == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.obj")}


@needs_compiler
def test_building_again_takes_the_changed_model(tmp_path, model):
    lowered = model()
    image = tmp_path / "firmware.elf"
    board = find_board("mps2-an386")
    build_firmware(board, lowered, image)
    first = image.read_bytes()
    build_firmware(board, lowered, image)
    assert image.read_bytes() == first
    weights = lowered / "weights.c"
    weights.write_text(weights.read_text().replace("{100,", "{101,"))
    build_firmware(board, lowered, image)
    assert image.read_bytes() != first


@needs_compiler
def test_constants_lie_in_flash_not_in_ram(tmp_path, model):
    board = find_board("mps2-an386")
    plain = build_firmware(board, MODELS / "linear", tmp_path / "plain.elf")
    lowered = model(
        "weights.c", "#include", "#include <stdint.h>\nconst int8_t more[5000];\n#include"
    )
    weights = lowered / "weights.c"
    weights.write_text(weights.read_text().replace("more[5000]", "more[5000] = {1}"))
    (lowered / "model.c").write_text(
        (lowered / "model.c")
        .read_text()
        .replace("int32_t sum = dense_bias[row]", "int32_t sum = dense_bias[row] + more[input[0]]")
        .replace('#include "model.h"', '#include "model.h"\nextern const int8_t more[5000];')
    )
    larger = build_firmware(board, lowered, tmp_path / "larger.elf")
    assert larger.flash_bytes - plain.flash_bytes >= 5000
    assert larger.ram_bytes == plain.ram_bytes


@needs_compiler
def test_too_little_ram_is_told_in_bytes(tmp_path, model):
    lowered = model("model.c", "arena[MODEL_OUTPUT_COUNT]", "arena[524288 / 4]")
    image = tmp_path / "firmware.elf"
    with pytest.raises(DoesNotFit, match=r"RAM: needs 53\d,\d{3} of 524,288 bytes") as error:
        build_firmware(find_board("mps3-an547"), lowered, image)
    assert error.value.exit_code == 1
    assert list(error.value.short) == ["ram"]
    assert f"bytes, {error.value.short['ram']:,} short" in error.value.what
    assert not image.exists()


@needs_compiler
def test_a_stack_that_cannot_suffice_is_told_before_anything_runs(tmp_path, model):
    lowered = model(
        "model.c",
        "layer_dense(input, arena);",
        "volatile int32_t large[3000];\n large[input[0] & 7] = 1;\n"
        "layer_dense(input, arena);\n arena[0] += large[1] & 1;\n",
    )
    with pytest.raises(DoesNotFit, match=r"stack: needs 12,\d{3} of 8,192 bytes") as error:
        build_firmware(find_board("mps2-an386"), lowered, tmp_path / "firmware.elf")
    assert 4000 <= error.value.short["stack"] < 5000
    assert f"bytes, {error.value.short['stack']:,} short" in error.value.what


@needs_compiler
def test_recursion_leaves_the_stack_unbounded(tmp_path):
    board = find_board("mps2-an386")
    firmware = build_firmware(board, MODELS / "faulty", tmp_path / "firmware.elf")
    assert firmware.stack_bytes is None


@needs_compiler
def test_a_model_that_does_not_compile_is_quoted(tmp_path, model):
    lowered = model("model.c", "int32_t sum = ", "int32_t sum = undeclared + ")
    with pytest.raises(ToolError, match="undeclared"):
        build_firmware(find_board("mps2-an386"), lowered, tmp_path / "firmware.elf")


@needs_compiler
def test_warnings_are_errors(tmp_path, model):
    lowered = model(
        "model.c", "int32_t sum = ", "int8_t narrow = (int32_t)row; int32_t sum = narrow + "
    )
    with pytest.raises(ToolError, match="Werror=conversion"):
        build_firmware(find_board("mps2-an386"), lowered, tmp_path / "firmware.elf")


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ModelError, match="no lowered model"):
        build_firmware(find_board("mps2-an386"), tmp_path, tmp_path / "firmware.elf")


def test_missing_programs_are_named_with_their_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="apt-get install cmake ninja-build gcc-arm-none-eabi"):
        build_firmware(find_board("mps2-an386"), MODELS / "linear", tmp_path / "firmware.elf")
