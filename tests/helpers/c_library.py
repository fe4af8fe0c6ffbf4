"""C around the headers of firmware/kernels, compiled for this machine and called by ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import entrain.firmware

KERNELS = Path(entrain.firmware.__file__).parent / "kernels"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion")


def compile_c(folder: Path, text: str, *options: str) -> ctypes.CDLL:
    """A shared library of one C file, with the project's warnings as errors.

    Args:
        folder: an empty folder, for the source and the library.
        text: the C.
        options: further options of the compiler, such as ``-DENTRAIN_EMULATE_DSP``.
    """
    source, library = folder / "library.c", folder / "library.so"
    source.write_text(text)
    command = ["cc", *FLAGS, *options, "-shared", "-fPIC", f"-I{KERNELS}"]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))
