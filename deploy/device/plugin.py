"""Compiles the emulator's counting plugin, once for each version of QEMU and of its source."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from entrain.deploy.boards import firmware_folder
from entrain.deploy.cache import cache_folder
from entrain.deploy.errors import ToolError
from entrain.deploy.files import writing_whole

_FIRST_QEMU_OF_API_2 = 9


def counting_plugin(emulator: Path) -> Path:
    """The plugin, as a shared library that this QEMU loads; compiled if there is none yet.

    Raises:
        ToolError: there is no C compiler, or it failed.
    """
    source = firmware_folder() / "emulator" / "count_instructions.c"
    api = plugin_api(_version_line(emulator))
    key = hashlib.sha256(source.read_bytes() + bytes([api])).hexdigest()[:16]
    plugin = cache_folder() / "emulator" / f"count_instructions-{key}.so"
    if not plugin.exists():
        with writing_whole(plugin) as temporary:
            _compile(source, temporary, api)
    return plugin


def plugin_api(version_line: str) -> int:
    """The version of QEMU's plugin interface to ask for.

    Raises:
        ToolError: ``version_line`` (the first line of ``--version``) names no version.
    """
    version = re.search(r"version (\d+)\.", version_line)
    if not version:
        raise ToolError(f"QEMU tells no version: {version_line!r}")
    return 2 if int(version[1]) >= _FIRST_QEMU_OF_API_2 else 1


def _version_line(emulator: Path) -> str:
    answer = subprocess.run(
        [emulator, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    return answer.stdout.partition("\n")[0]


def _compile(source: Path, plugin: Path, api: int) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise ToolError(
            "no C compiler for this machine is installed",
            remedy="sudo apt-get install build-essential",
        )
    options = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    command = [compiler, *options, f"-DPLUGIN_API_VERSION={api}", str(source), "-o", str(plugin)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolError(f"the emulator's plugin does not compile:\n{result.stderr}")
