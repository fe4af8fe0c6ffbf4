"""What the figures were made with: versions, platform, command and time."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from entrain.deploy.results import Environment

# Distributions whose version changes a figure, by the name they are reported under.
DISTRIBUTIONS = {
    "entrain": "entrain-edge",
    "torch": "torch",
    "brevitas": "brevitas",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "tvm": "apache-tvm",
    "numpy": "numpy",
}
# Programs, by the name they are reported under; the version is their first line of --version.
PROGRAMS = {"qemu": "qemu-system-arm", "gcc": "arm-none-eabi-gcc"}


def environment() -> Environment:
    """The environment of this process; imports none of the packages it names.

    A package or program that is not installed has the version null.
    """
    versions = {"python": platform.python_version()}
    packages = {name: _distribution_version(key) for name, key in DISTRIBUTIONS.items()}
    programs = {name: _program_version(program) for name, program in PROGRAMS.items()}
    return Environment(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        platform=f"{platform.system()} {platform.machine()}",
        versions={**versions, **packages, **programs},
    )


def _distribution_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _program_version(program: str) -> str | None:
    found = shutil.which(program)
    if found is None:
        return None
    try:
        answer = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.splitlines()
    return lines[0].strip() if lines else None
