"""The most stack a firmware can use, from the compiler's call graph and the library's code.

gcc writes a call graph with every function's frame (``-fcallgraph-info=su``) for what it compiles.
Library functions come without one: their frames and calls are read from the disassembly. Assembly
statements that call or push are seen by neither, so model code has none.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# An exception stacks eight words of the core, sixteen floats, two status words and, to align, one
# word more. All our interrupts share a priority, so at most one is active.
EXCEPTION_FRAME_BYTES = 108
ENTRY = "reset_handler"
INTERRUPTS = ("systick_handler", "uart_receive_handler")
# The one call through a pointer is that of commands.c, whose table holds these.
INDIRECT_CALL = "__indirect_call"
INDIRECT_PREFIX = "command_"

_NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_FRAME = re.compile(r"\\n(\d+) bytes \((static|dynamic,bounded)\)")
_HEADER = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_CALL = re.compile(r"\t(?:bl|b\.w|b|b\.n)\t[0-9a-f]+ <([^>+]+)>")


@dataclass
class Routine:
    """A function: bytes of its frame (None if unbounded or unknown), and whom it calls."""

    frame: int | None
    calls: set[str] = field(default_factory=set)


def stack_bound(build_tree: Path, image: Path) -> int | None:
    """The most bytes of stack ever in use; None if recursion or a variable array leaves it open.

    A call through a pointer is bounded in our own code, where the compiler's call graph has it; in
    the C library's, which is read from its disassembly, it is not seen.

    Args:
        build_tree: where the compiler left its ``.ci`` files.
        image: the ELF file, for the library's functions.
    """
    routines = _disassembled(image)
    for graph in sorted(build_tree.rglob("*.ci")):
        routines.update(_compiled(graph.read_text(encoding="utf-8").splitlines()))
    routines[INDIRECT_CALL] = Routine(
        0, {name for name in routines if _plain(name).startswith(INDIRECT_PREFIX)}
    )
    application = _depth(ENTRY, routines, ())
    interrupts = [_depth(name, routines, ()) for name in INTERRUPTS if name in routines]
    if application is None or None in interrupts:
        return None
    deepest = max((depth for depth in interrupts if depth is not None), default=0)
    return application + EXCEPTION_FRAME_BYTES + deepest


def _depth(name: str, routines: dict[str, Routine], callers: tuple[str, ...]) -> int | None:
    """Frame of ``name`` plus the deepest of its calls."""
    routine = routines.get(name) or routines.get(_plain(name))
    if routine is None or routine.frame is None or name in callers:
        return None
    deepest = 0
    for callee in routine.calls:
        depth = _depth(callee, routines, (*callers, name))
        if depth is None:
            return None
        deepest = max(deepest, depth)
    return routine.frame + deepest


def _plain(name: str) -> str:
    """``dir/file.c:function`` without the file."""
    return name.rpartition(":")[2]


def _compiled(lines: Iterable[str]) -> dict[str, Routine]:
    routines: dict[str, Routine] = {}
    for line in lines:
        if node := _NODE.match(line):
            if "bytes (" in node[2]:  # otherwise it is declared here and defined elsewhere
                frame = _FRAME.search(node[2])
                routines[node[1]] = Routine(int(frame[1]) if frame else None)
        elif (edge := _EDGE.match(line)) and edge[1] in routines:
            routines[edge[1]].calls.add(edge[2])
    return routines


def _disassembled(image: Path) -> dict[str, Routine]:
    listing = subprocess.run(
        ["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", image],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    routines: dict[str, Routine] = {}
    current = Routine(0)
    name = ""
    for line in listing.splitlines():
        if header := _HEADER.match(line):
            name, current = header[1], Routine(0)
            routines[name] = current
        elif current.frame is not None:
            current.frame += _pushed(line)
            if (call := _CALL.search(line)) and call[1] != name:
                current.calls.add(call[1])
    for routine in routines.values():
        # A jump within a function is printed by any symbol whose value is that address, even one
        # that is a size (stack_bytes); functions are what the listing has.
        routine.calls &= set(routines)
    return routines


def _pushed(line: str) -> int:
    """Bytes by which one instruction lowers the stack pointer.

    All of a function's are added up, wherever they stand: never less than its frame.
    """
    if push := re.search(r"\t(?:push|stmdb|vpush)(?:\.w)?\t(?:sp!, )?\{([^}]+)\}", line):
        return sum(_register_bytes(part.strip()) for part in push[1].split(","))
    if lowered := re.search(r"\t(?:sub|subw)(?:\.w)?\tsp, (?:sp, )?#(\d+)", line):
        return int(lowered[1])
    if stored := re.search(r"\[sp, #-(\d+)\]!", line):
        return int(stored[1])
    return 0


def _register_bytes(part: str) -> int:
    first, _, last = part.partition("-")
    size = 8 if first.startswith("d") else 4
    count = int(last[1:]) - int(first[1:]) + 1 if last else 1
    return size * count
