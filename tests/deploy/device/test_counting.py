from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.device.counting import attribute
from entrain.deploy.device.plugin import plugin_api
from entrain.deploy.elf import Function, Symbols
from entrain.deploy.errors import ToolError

SYMBOLS = Symbols(
    functions=(
        Function(0x100, 0x10, "layer_dense"),
        Function(0x110, 0x10, "model_run"),
        Function(0x120, 0x10, "inference_run"),
        Function(0x140, 0x10, "memcpy"),
    ),
    addresses={},
)


def counts(pairs: dict[int, int]):
    addresses = np.array(list(pairs), dtype=np.uint64)
    return attribute(addresses, np.array(list(pairs.values()), dtype=np.uint64), SYMBOLS)


def test_instructions_are_charged_to_the_function_they_lie_in():
    found = counts({0x100: 1, 0x10E: 10, 0x110: 100})
    assert found.by_function == {"layer_dense": 11, "model_run": 100}
    assert found.total == 111


def test_what_layers_call_is_the_library_and_what_calls_the_model_is_left_out():
    # 0x130 lies behind inference_run's end and 0x90 before everything: code without a symbol.
    found = counts({0x120: 7, 0x130: 1, 0x140: 2, 0x90: 4})
    assert found.by_function == {"library": 7}


def test_counts_beyond_32_bits_are_exact():
    assert counts({0x100: 2**53 + 1}).total == 2**53 + 1


@pytest.mark.parametrize(
    ("line", "api"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", 1),
        ("QEMU emulator version 8.2.2", 1),
        ("QEMU emulator version 9.0.0", 2),
        ("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)", 2),
    ],
)
def test_the_plugins_interface_follows_the_emulators_version(line, api):
    assert plugin_api(line) == api


def test_an_emulator_without_a_version_is_refused():
    with pytest.raises(ToolError):
        plugin_api("something else")
