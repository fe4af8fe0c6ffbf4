"""From a lowered model to the firmware of one board."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.boards import Board, firmware_folder
from entrain.deploy.elf import Symbols, firmware_report, read_symbols
from entrain.deploy.errors import DoesNotFit, ModelError, ToolError
from entrain.deploy.files import writing_whole
from entrain.deploy.stack import stack_bound

# Programs that a build needs, and the Debian package of each.
PROGRAMS = {
    "cmake": "cmake",
    "ninja": "ninja-build",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
}
_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes")
_PROGRESS = re.compile(r"\[\d+/\d+\]|FAILED: |\S*arm-none-eabi-gcc |ninja: ")
_PLACES = re.compile(r"^(CMAKE_CACHEFILE_DIR|CMAKE_HOME_DIRECTORY):INTERNAL=(.*)$", re.MULTILINE)
_LINES_OF_A_FAILURE = 30


@dataclass(frozen=True)
class Firmware:
    """A built image.

    Attributes:
        board: what it is built for.
        image: the ELF file.
        flash_bytes: code, constants and initial values.
        ram_bytes: variables, the arena among them; without the stack.
        stack_bytes: the most stack it can use; None where that cannot be bounded.
        symbols: its functions and where they lie.
    """

    board: Board
    image: Path
    flash_bytes: int
    ram_bytes: int
    stack_bytes: int | None
    symbols: Symbols


@dataclass(frozen=True)
class Audio:
    """What firmware needs in order to hear.

    Args:
        cmsis_dsp: the folder of CMSIS-DSP's sources, for the front end.
        spotter: the folder of a spotter's settings in C, absolute; None for the front end alone.
    """

    cmsis_dsp: Path
    spotter: Path | None = None


def build_firmware(
    board: Board,
    lowered: Path,
    image: Path,
    *,
    trace: bool = False,
    audio: Audio | None = None,
) -> Firmware:
    """Compile the model in the folder ``lowered`` with the application, for ``board``.

    The build tree stands beside the image, in ``build/``, so that building again is quick.

    Args:
        board: what to build for.
        lowered: holds model.h, model.c and weights.c.
        image: the ELF file to write.
        trace: send every layer's values over the serial line (for ``Client.trace``).
        audio: what it needs in order to hear, if it is to.

    Raises:
        ModelError: the folder holds no lowered model.
        ToolError: a program is not installed, or the compiler refuses the model.
        DoesNotFit: the board's flash, RAM or stack is too small, by how many bytes.
    """
    if not (lowered / "model.h").is_file():
        raise ModelError(
            "no lowered model is in this folder", where=str(lowered), remedy="run entrain lower"
        )
    require_programs()
    tree = image.resolve().parent / "build" / (f"{board.name}-trace" if trace else board.name)
    _configure(board, lowered, tree, trace, audio)
    _run(["cmake", "--build", str(tree)], board)
    linked = tree / "firmware.elf"
    firmware = _described(board, linked, image, tree)
    with writing_whole(image) as temporary:
        shutil.copyfile(linked, temporary)
    return firmware


def require_programs() -> None:
    """Make sure that everything a build calls is installed.

    Raises:
        ToolError: something is not.
    """
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        packages = " ".join(PROGRAMS[program] for program in missing)
        raise ToolError(
            f"not installed: {', '.join(missing)}", remedy=f"sudo apt-get install {packages}"
        )


def _configure(board: Board, lowered: Path, tree: Path, trace: bool, audio: Audio | None) -> None:
    sources = firmware_folder()
    _forget_moved_tree(tree, sources)
    command = ["cmake", "-S", str(sources), "-B", str(tree), "-G", "Ninja"]
    command += [f"-DCMAKE_TOOLCHAIN_FILE={sources / 'cmake' / 'arm-none-eabi.cmake'}"]
    command += [f"-DBOARD={board.name}", f"-DMODEL_DIR={lowered.resolve()}"]
    command += [f"-DTRACE={'ON' if trace else 'OFF'}"]
    command += [f"-DCMSIS_DSP_DIR={audio.cmsis_dsp if audio else ''}"]
    command += [f"-DLISTENING_DIR={(audio and audio.spotter) or ''}"]
    _run(command, board)


def _forget_moved_tree(tree: Path, sources: Path) -> None:
    """Remove a build tree that was moved or whose sources were: CMake refuses to go on in it."""
    cache = tree / "CMakeCache.txt"
    if not cache.is_file():
        return
    text = cache.read_text(encoding="utf-8", errors="replace")
    places = dict(_PLACES.findall(text))
    expected = {"CMAKE_CACHEFILE_DIR": tree, "CMAKE_HOME_DIRECTORY": sources}
    if any(
        Path(places.get(name, "")).resolve() != path.resolve() for name, path in expected.items()
    ):
        shutil.rmtree(tree)


def _run(command: list[str], board: Board) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return
    output = result.stdout + result.stderr
    overflows = {region: int(count) for region, count in _OVERFLOW.findall(output)}
    if overflows:
        raise _does_not_fit(board, overflows)
    said = [line for line in output.splitlines() if not _PROGRESS.match(line)]
    last = "\n  ".join(said[-_LINES_OF_A_FAILURE:])
    raise ToolError(f"the firmware for {board.name} does not build:\n  {last}")


def _does_not_fit(board: Board, overflows: dict[str, int]) -> DoesNotFit:
    sizes = {"FLASH": ("flash", board.flash_bytes), "RAM": ("RAM", board.ram_bytes)}
    parts = [
        _shortfall(*sizes[region], count) if region in sizes else f"{region}: {count:,} bytes short"
        for region, count in overflows.items()
    ]
    return DoesNotFit(
        f"the model does not fit: {'; '.join(parts)}",
        where=board.name,
        remedy="choose a smaller model, or a board with more memory",
        short={region.lower(): count for region, count in overflows.items()},
    )


def _shortfall(memory: str, size: int, short: int) -> str:
    return f"{memory}: needs {size + short:,} of {size:,} bytes, {short:,} short"


def _described(board: Board, linked: Path, image: Path, tree: Path) -> Firmware:
    symbols = read_symbols(linked)
    reserved = symbols.address("stack_bytes", linked)
    bound = stack_bound(tree, linked)
    if bound is not None and bound > reserved:
        raise DoesNotFit(
            f"the model does not fit: {_shortfall('stack', reserved, bound - reserved)}",
            where=board.name,
            remedy="move large local arrays into the arena, or raise stack_bytes in link.ld",
            short={"stack": bound - reserved},
        )
    use = firmware_report(linked)
    return Firmware(board, image, use.flash_bytes, use.ram_bytes, bound, symbols)
