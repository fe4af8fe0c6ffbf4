"""The most stack a firmware can use, from the compiler's call graph and from the linked code.

gcc writes a call graph with every function's frame (``-fcallgraph-info=su``) for what it compiles.
Library functions (memory copies, divisions) come without one: their frames are read from the
disassembly. Calls are read from both, since the compiler's graph leaves out some that it makes up
itself, and the disassembly those through a register. Assembly statements may call, and are seen;
what they push is not, so there must be none that does.
"""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from entrain.deploy.elf import read_symbols

# An exception stacks eight words of the core and, to align, one word more; where instructions of
# the coprocessor run, also sixteen floats and two status words. All our interrupts share a
# priority, so at most one is active.
EXCEPTION_FRAME_BYTES = 36
COPROCESSOR_FRAME_BYTES = 72
ENTRY = "reset_handler"
INTERRUPTS = ("systick_handler", "uart_receive_handler")
# The one call through a pointer is that of commands.c, whose table holds these.
INDIRECT_CALL = "__indirect_call"
INDIRECT_PREFIX = "command_"
LINKER_MAP = "firmware.map"

_NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"]*)"')
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')
_FRAME = re.compile(r"\\n(\d+) bytes \((static|dynamic,bounded)\)")
_LINKED = re.compile(r"^LOAD (\S.*)\.obj$", re.MULTILINE)  # in the linker's map

_CONDITION = "(?:eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"
_HEADER = re.compile(r"^([0-9a-f]+) <([^>]+)>:$", re.MULTILINE)
_JUMP = re.compile(
    rf"\t(?:b|bl|blx|cbn?z){_CONDITION}(?:\.[nw])?\t(?:r\d+, |ip, |lr, )?([0-9a-f]+) <[^>]+>"
)
_CALLS_THROUGH_REGISTER = re.compile(rf"\tblx{_CONDITION}\t(?:r\d|ip|lr)")
_VARIABLE_FRAME = re.compile(r"\t(?:sub|add)(?:\.w)?\tsp, (?:sp, )?(?:r\d|ip)")
_INSTRUCTION = re.compile(r"^ +[0-9a-f]+:\t(?!nop|\.|movs\tr0, r0$)", re.MULTILINE)
_COPROCESSOR = re.compile(r"^ +[0-9a-f]+:\tv", re.MULTILINE)
_ENDS = re.compile(
    r"\t(?:b(?:\.[nw])?\t|bx\t|udf|(?:pop|ldmia)(?:\.w)?\t.*\bpc\b|(?:ldr(?:\.w)?|mov)\tpc,)"
)


@dataclass(frozen=True)
class Compiled:
    """A function by its compiler: bytes of its frame (None if unbounded), and names it calls."""

    frame: int | None
    calls: frozenset[str]


@dataclass
class Routine:
    """The code from one symbol of an image to the next.

    Attributes:
        names: of the symbols at its address.
        frame: bytes of its frame; None if unbounded or unknown.
        calls: addresses of the routines that it calls or jumps into, never its own.
        next: the routine into which it runs, where it does not end in a jump.
    """

    names: set[str]
    frame: int | None = 0
    calls: set[int] = field(default_factory=set)
    next: int | None = None


def stack_bound(build_tree: Path, image: Path) -> int | None:
    """The most bytes of stack ever in use; None if the code leaves it open.

    That is so with recursion, with arrays of variable length, and with library functions that call
    through a pointer.

    Args:
        build_tree: where the compiler left its ``.ci`` files, and the linker its map.
        image: the ELF file.
    """
    listing = _listing(image)
    routines = _disassembled(listing, read_symbols(image).addresses)
    places = _with_compiled(routines, _compiled(_call_graphs(build_tree)))
    application = _deepest(places[ENTRY], routines)
    interrupts = _deepest({at for name in INTERRUPTS for at in places.get(name, ())}, routines)
    if application is None or interrupts is None:
        return None
    floats = COPROCESSOR_FRAME_BYTES if _COPROCESSOR.search(listing) else 0
    return application + EXCEPTION_FRAME_BYTES + floats + interrupts


def _deepest(
    among: set[int], routines: Mapping[int, Routine], callers: tuple[int, ...] = ()
) -> int | None:
    """The most that any of these routines and what they call takes; None if it has no bound."""
    deepest = 0
    for at in among:
        routine = routines[at]
        if routine.frame is None or at in callers:
            return None
        below = _deepest(routine.calls, routines, (*callers, at))
        if below is None:
            return None
        deepest = max(deepest, routine.frame + below)
    return deepest


def _with_compiled(
    routines: Mapping[int, Routine], compiled: Mapping[str, Compiled]
) -> dict[str, set[int]]:
    """Add to the routines what the compiler knows of them by name; returns the names' places."""
    places: dict[str, set[int]] = {}
    for at, routine in routines.items():
        for name in routine.names:
            places.setdefault(name, set()).add(at)
    commands = {at for name in places if name.startswith(INDIRECT_PREFIX) for at in places[name]}
    places[INDIRECT_CALL] = commands
    for routine in routines.values():
        known = [compiled[name] for name in routine.names if name in compiled]
        for function in known:
            routine.frame = function.frame
            routine.calls.update(*(places.get(name, ()) for name in function.calls))
        if not known and routine.next is not None:
            routine.calls.add(routine.next)
    return places


def _call_graphs(build_tree: Path) -> list[str]:
    """The compiler's call graphs of what is linked; files of earlier builds may lie beside them."""
    linked = _LINKED.findall((build_tree / LINKER_MAP).read_text(encoding="utf-8"))
    graphs = [build_tree / f"{name}.ci" for name in linked]
    return [path.read_text(encoding="utf-8") for path in graphs if path.is_file()]


def _compiled(graphs: Iterable[str]) -> dict[str, Compiled]:
    """What the graphs say of each function; of one name in two files, the worse of both."""
    functions: dict[str, Compiled] = {}
    for line in (line for graph in graphs for line in graph.splitlines()):
        if node := _NODE.match(line):
            if "bytes (" in node[2]:  # otherwise it is declared here and defined elsewhere
                frame = _FRAME.search(node[2])
                before = functions.get(_plain(node[1]), Compiled(0, frozenset()))
                both = None if frame is None or before.frame is None else int(frame[1])
                both = None if both is None else max(both, before.frame or 0)
                functions[_plain(node[1])] = replace(before, frame=both)
        elif (edge := _EDGE.match(line)) and (caller := functions.get(_plain(edge[1]))):
            calls = caller.calls | {_plain(edge[2])}
            functions[_plain(edge[1])] = replace(caller, calls=calls)
    return functions


def _plain(name: str) -> str:
    """``dir/file.c:function`` without the file."""
    return name.rpartition(":")[2]


def _listing(image: Path) -> str:
    return subprocess.run(
        ["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", image],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _disassembled(listing: str, symbols: Mapping[str, int]) -> dict[int, Routine]:
    """The routines of a listing by address.

    Args:
        listing: what objdump prints.
        symbols: addresses by name, since objdump prints only one name of an address.
    """
    routines = {int(at, 16): Routine({name}) for at, name in _HEADER.findall(listing)}
    for name, at in symbols.items():
        if at in routines:
            routines[at].names.add(name)
    order = sorted(routines)
    _, *parts = _HEADER.split(listing)
    for at, body in zip((int(text, 16) for text in parts[::3]), parts[2::3], strict=True):
        routine = routines[at]
        targets = {order[bisect_right(order, int(t, 16)) - 1] for t in _JUMP.findall(body)}
        routine.calls = targets - {at}
        routine.frame = _frame(body)
        instructions = [line for line in body.splitlines() if _INSTRUCTION.search(line)]
        after = order[bisect_right(order, at) :]
        if instructions and after and not _ENDS.search(instructions[-1]):
            routine.next = after[0]
    return routines


def _frame(body: str) -> int | None:
    """Bytes that the instructions push, wherever they stand: never less than the frame."""
    if _CALLS_THROUGH_REGISTER.search(body) or _VARIABLE_FRAME.search(body):
        return None
    return sum(map(_pushed, body.splitlines()))


def _pushed(line: str) -> int:
    """Bytes by which one instruction lowers the stack pointer."""
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
