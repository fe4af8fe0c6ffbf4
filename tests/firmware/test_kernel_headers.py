"""A network may call every kernel: their headers stand beside each other on every core."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from programs import require_emulator

import entrain.deploy.lowering as lowering
from entrain.deploy.boards import boards
from entrain.deploy.lowering.host import KERNELS

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-fsyntax-only")
CORES = sorted({board.core for board in boards().values() if board.core})


def target(core):
    return f"-mcpu={core}", "-mthumb", "-mfloat-abi=soft"


def check(folder, *command):
    """All headers that generated C includes, in one file."""
    texts = [path.read_text() for path in Path(lowering.__path__[0]).rglob("*.py")]
    headers = sorted({name for text in texts for name in re.findall(r'"(entrain_\w+\.h)"', text)})
    assert len(headers) > 10
    (folder / "all.c").write_text("".join(f'#include "{header}"\n' for header in headers))
    done = subprocess.run(
        [*command, *WARNINGS, f"-I{KERNELS}", str(folder / "all.c")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", [(), ("-DENTRAIN_EMULATE_DSP",)], ids=["scalar", "dsp"])
def test_on_this_machine(tmp_path, options):
    check(tmp_path, "cc", *options)


@pytest.mark.parametrize("core", CORES)
def test_on_a_core(tmp_path, core):
    require_emulator()
    check(tmp_path, "arm-none-eabi-gcc", *target(core), "-O1")


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_without_optimisation_there_is_plain_c(tmp_path, core):
    require_emulator()
    with pytest.raises(
        AssertionError, match="need gcc and -O1 or more; or define ENTRAIN_PORTABLE"
    ):
        check(tmp_path, "arm-none-eabi-gcc", *target(core), "-O0")
    check(tmp_path, "arm-none-eabi-gcc", *target(core), "-O0", "-DENTRAIN_PORTABLE")
