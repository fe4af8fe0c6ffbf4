"""What users run into with the memory of small cores; each test is called as its complaint is."""

from __future__ import annotations

import re
import subprocess

import pytest
from drawn_integers import RANDOM, integers
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.errors import DoesNotFit
from entrain.deploy.lowering.host import KERNELS

RUN = """#include "model.h"
static int8_t input[MODEL_INPUT_BYTES], output[MODEL_OUTPUT_BYTES];
int main(void) {
    model_run(input, output);
    return 0;
}
"""


def reports_of_a_sanitizer(folder, arena_bytes):
    """What the sanitizer of addresses says of the model with an arena of so many bytes."""
    header = folder / "model.h"
    sized = f"#define MODEL_ARENA_BYTES {arena_bytes}u"
    header.write_text(re.sub(r"#define MODEL_ARENA_BYTES \d+u", sized, header.read_text()))
    (folder / "main.c").write_text(RUN)
    program = folder / "program"
    sources = [folder / name for name in ("main.c", "model.c", "weights.c")]
    options = ["-std=c11", "-g", "-fsanitize=address", f"-I{KERNELS}", f"-I{folder}"]
    subprocess.run(["cc", *options, *sources, "-o", program], check=True)
    return subprocess.run([program], capture_output=True, text=True, check=False).stderr


def test_memory_an_arena_of_a_byte_less_is_too_small_and_as_it_is_it_is_not(model, lower, tmp_path):
    x = model.quantized(model.input(1, 37), 0.05)
    y = model.node("Concat", x, model.node("Neg", x), axis=1)
    y = model.quantized(y, 0.06)
    y = model.node("Gather", y, model.constant(RANDOM.permutation(74)[:61], "int64"), axis=1)
    y = model.quantized(model.node("Abs", y), 0.061)
    y = model.quantized(model.node("Tile", y, model.constant([1, 2], "int64")), 0.062, 5)
    lowered = lower(model, model.quantized(model.node("Neg", y), 0.07))
    ends = [each.offset + each.size for each in lowered.record.layers[:-1]]
    assert 0 <= lowered.record.arena_bytes - max(ends) < 8
    folder = tmp_path / "lowered"
    assert reports_of_a_sanitizer(folder, max(ends)) == ""
    assert "global-buffer-overflow" in reports_of_a_sanitizer(folder, max(ends) - 1)


def test_memory_flash_that_overflows_is_told_in_bytes(model, lower, tmp_path):
    require_emulator()
    x = model.quantized(model.input(1, 700), 0.05)
    y = model.node("MatMul", x, model.weights(integers(700, 760), 0.001))
    lower(model, model.quantized(y, 0.1))
    board = find_board("mps3-an547")
    with pytest.raises(DoesNotFit, match=r"flash: needs [\d,]+ of 524,288 bytes") as error:
        build_firmware(board, tmp_path / "lowered", tmp_path / "firmware.elf")
    short = error.value.short["flash"]
    assert 700 * 760 < board.flash_bytes + short < 700 * 760 + 40_000
