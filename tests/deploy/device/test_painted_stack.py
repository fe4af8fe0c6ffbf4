"""The stack that a device really used, by its paint, against the bound from compiler and linker."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from entrain.deploy.boards import boards, find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.errors import DeviceRefused
from entrain.deploy.stack import stack_bound

BOARDS = [board.name for board in boards().values() if board.emulator]
LINEAR = Path(__file__).parents[2] / "firmware" / "models" / "linear"
INPUT_BYTES = 32
# What an interrupt may add, if none came at the deepest moment: its frame and the handlers'.
INTERRUPT = 108 + 32

# A layer as kernels may be: assembly, a copy and divisions by the library, an array on the stack.
DEEP_LAYER = """
static __attribute__((noinline)) void layer_deep(const int8_t *input, int8_t *output) {
    int32_t sums[100];
    const int32_t n = (int32_t)MODEL_INPUT_BYTES / 2 + input[0] % 2;
    __asm volatile("" : : "r"(sums) : "memory", "r4", "r5", "r6");
    for (int32_t i = 0; i < 100; i++) {
        sums[i] = input[i % n] + (1 << (i % 20));
    }
    __builtin_memcpy(output, &sums[n], (size_t)(input[1] & 3));
    int64_t quotient = ((int64_t)sums[n] << 32) / (sums[n + 1] | 1);
    output[0] = (int8_t)(quotient + sums[99] / (sums[n + 2] | 1));
}

void model_run"""


def use_everything(client):
    """Each command, its errors too, and bytes that arrive while others are answered."""
    values = random.Random(1).randbytes(INPUT_BYTES)
    with pytest.raises(DeviceRefused):
        client.load(values * 3)
    client.load_hex(values)
    client.buffer()
    client.infer(2, 2)
    client.classify(values)
    client.raw()
    client.results()
    client.profile()
    client.help()
    client.timestamp()
    client._transport.write(b"infer 200 0%" + b"help%" * 50)
    for _ in range(51):
        client._ask(b"")


@pytest.mark.parametrize("board", BOARDS)
def test_the_stack_in_use_stays_within_its_bound_and_not_far_below(images, board):
    image = images(board, "linear")
    bound = stack_bound(image.parent / "build" / board, image)
    with connect(QemuAddress(board), image) as client:
        start = client.stack()
        use_everything(client)
        end = client.stack()
    assert start.reserved == end.reserved == 8192
    assert 0 < start.used < end.used
    assert end.used <= bound <= end.used + INTERRUPT


@pytest.mark.parametrize("board", BOARDS)
def test_what_layers_have_of_the_library_and_of_their_own_is_within_the_bound(tmp_path, board):
    lowered = tmp_path / "lowered"
    shutil.copytree(LINEAR, lowered)
    text = (LINEAR / "model.c").read_text()
    text = text.replace('#include "model.h"', '#include <stddef.h>\n#include "model.h"', 1)
    text = text.replace("\nvoid model_run", DEEP_LAYER, 1)
    end = "layer_requantize(arena, output);"
    (lowered / "model.c").write_text(text.replace(end, f"{end}\n    layer_deep(input, output);", 1))
    firmware = build_firmware(find_board(board), lowered, tmp_path / "firmware.elf")
    with connect(QemuAddress(board), firmware.image) as client:
        use_everything(client)
        used = client.stack().used
    assert {"memcpy", "__aeabi_ldivmod"} <= set(firmware.symbols.addresses)
    assert used > 400  # the array, at the least
    assert used <= firmware.stack_bytes <= used + INTERRUPT
