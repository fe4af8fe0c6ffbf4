"""The stack bound of library functions, from their disassembly."""

from __future__ import annotations

import subprocess
from pathlib import Path

from entrain.deploy import stack

LISTING = """
00001ff0 <memcpy>:
    1ff0:\tpush\t{r4, lr}
    1ff4:\tb.n\t2000 <stack_bytes>
    2000:\tbl\t3000 <helper>
00003000 <helper>:
    3000:\tsub\tsp, #16
"""


def test_a_jump_to_an_address_that_is_also_some_symbols_value_is_no_call(monkeypatch):
    printed = subprocess.CompletedProcess([], 0, stdout=LISTING)
    monkeypatch.setattr(stack.subprocess, "run", lambda *_, **__: printed)
    routines = stack._disassembled(Path("firmware.elf"))
    assert routines["memcpy"].calls == {"helper"}
    assert (routines["memcpy"].frame, routines["helper"].frame) == (8, 16)
