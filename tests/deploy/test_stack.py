"""The stack bound from the compiler's call graphs and the disassembly of what is linked."""

from __future__ import annotations

import pytest

from entrain.deploy import stack
from entrain.deploy.stack import Compiled, Routine

NODE = 'node: {{ title: "{}" label: "{}\\nfile.c:1:2\\n{}" }}\n'
EDGE = 'edge: {{ sourcename: "{}" targetname: "{}" }}\n'


def listing(**routines):
    """What objdump prints: a routine every 0x1000 bytes, an instruction every four."""
    lines = []
    for place, (name, instructions) in enumerate(routines.items(), 1):
        lines.append(f"\n{place * 0x1000:08x} <{name}>:")
        lines += [f"    {place * 0x1000 + 4 * k:x}:\t{text}" for k, text in enumerate(instructions)]
    return "\n".join(lines) + "\n"


def disassembled(symbols=None, **routines):
    """By name; the places that each calls by name too."""
    found = stack._disassembled(listing(**routines), symbols or {})
    names = {at: min(routine.names & set(routines)) for at, routine in found.items()}
    return {
        names[at]: Routine(
            routine.names,
            routine.frame,
            {names[callee] for callee in routine.calls},
            names.get(routine.next),
        )
        for at, routine in found.items()
    }


def test_a_call_goes_where_the_address_says_whatever_name_is_printed():
    found = disassembled(
        memcpy=["push\t{r4, lr}", "bl\t2000 <stack_bytes>", "b.n\t1000 <memcpy>"],
        helper=["bl\t1004 <memcpy+0x4>", "pop\t{r3, pc}"],
    )
    assert found["memcpy"].calls == {"helper"}
    assert found["helper"].calls == {"memcpy"}


@pytest.mark.parametrize(
    "jump",
    [
        *("b.n\t2008 <f+0x8>", "b.w\t2008 <f+0x8>", "beq.n\t2008 <f+0x8>", "bne.w\t2000 <f>"),
        *("bl\t2000 <f>", "blx\t2000 <f>", "blne\t2000 <f>", "cbz\tr3, 2004 <f+0x4>"),
        *("cbnz\tr0, 2004 <f+0x4>", "bls.n\t2004 <f+0x4>", "ble\t2004 <f+0x4>"),
    ],
)
def test_every_jump_into_another_routine_is_a_call(jump):
    found = disassembled(caller=[jump, "bx\tlr"], f=["bx\tlr"])
    assert found["caller"].calls == {"f"}


def test_a_jump_within_a_routine_is_none_and_data_are_no_jumps():
    body = ["bne.n\t1004 <x+0x4>", "bic.w\tr2, r2, #4096", "ldr\tr0, [pc, #8]\t@ (2000 <f>)"]
    found = disassembled(x=[*body, "bx\tlr", ".word\t0x00002000"], f=["bx\tlr"])
    assert found["x"].calls == set()
    assert found["x"].next is None


def test_a_name_that_objdump_does_not_print_counts_as_well():
    found = disassembled({"__aeabi_fadd": 0x1000, "far": 0x9000}, __addsf3=["bx\tlr"])
    assert found["__addsf3"].names == {"__addsf3", "__aeabi_fadd"}


@pytest.mark.parametrize(
    ("instruction", "size"),
    [
        ("push\t{r4, r5, lr}", 12),
        ("push\t{r0-r3, lr}", 20),
        ("stmdb\tsp!, {r4, r5, r6, r7, r8, lr}", 24),
        ("vpush\t{d8-d15}", 64),
        ("vpush\t{s16}", 4),
        ("sub\tsp, #16", 16),
        ("sub.w\tsp, sp, #272\t@ 0x110", 272),
        ("str.w\tlr, [sp, #-4]!", 4),
        ("strd\tr4, r5, [sp, #-16]!", 16),
        ("add\tsp, #16", 0),
        ("sub\tsp, r3", None),
        ("sub.w\tsp, sp, r3", None),
        ("add\tsp, r4", None),
        ("blx\tr3", None),
    ],
)
def test_the_frame_of_a_library_function_is_what_it_pushes(instruction, size):
    assert disassembled(f=[instruction, "bx\tlr"])["f"].frame == size


@pytest.mark.parametrize(
    "last",
    [
        *("bx\tlr", "pop\t{r4, pc}", "b.n\t1000 <f>", "ldr.w\tpc, [sp], #4", "udf\t#0"),
        *("ldmia.w\tsp!, {r4, r5, pc}", "mov\tpc, lr", "b.w\t2000 <g>"),
    ],
)
def test_a_routine_ends_with_a_jump_and_padding(last):
    found = disassembled(f=[last, "nop", "movs\tr0, r0", ".word\t0x12345678"], g=["bx\tlr"])
    assert found["f"].next is None


@pytest.mark.parametrize("last", ["beq.n\t1000 <f>", "adds\tr0, r0, r1", "bl\t1000 <f>"])
def test_a_routine_that_does_not_end_runs_into_the_next(last):
    assert disassembled(f=[last], g=["bx\tlr"])["f"].next == "g"


def bound(routines, compiled, entry="main"):
    """The depth of ``entry``."""
    found = stack._disassembled(listing(**routines), {})
    places = stack._with_compiled(found, compiled)
    return stack._deepest(places[entry], found)


def compiled(frame, *calls):
    return Compiled(frame, frozenset(calls))


def test_the_deepest_way_counts():
    routines = {
        "main": ["push\t{r4, r5, r6, lr}", "bl\t2000 <a>", "bl\t3000 <b>", "pop\t{r4, r5, r6, pc}"],
        "a": ["push\t{r4, lr}", "bl\t3000 <b>", "pop\t{r4, pc}"],
        "b": ["sub\tsp, #100", "bx\tlr"],
    }
    assert bound(routines, {}) == 16 + 8 + 100
    assert bound(routines, {"a": compiled(40), "b": compiled(4)}) == 16 + 40 + 4


def test_running_into_the_next_routine_is_a_call_of_library_functions_alone():
    routines = {"main": ["adds\tr0, r0, r1"], "next": ["sub\tsp, #100", "bx\tlr"]}
    assert bound(routines, {}) == 100
    assert bound(routines, {"main": compiled(8)}) == 8


def test_calls_through_a_pointer_reach_every_command():
    routines = {
        "main": ["blx\tr3", "b.n\t1000 <main>"],
        "command_help": ["bx\tlr"],
        "command_deep": ["bx\tlr"],
        "elsewhere": ["bx\tlr"],
    }
    frames = {"main": compiled(8, stack.INDIRECT_CALL), "elsewhere": compiled(999)}
    frames |= {"command_help": compiled(16), "command_deep": compiled(160)}
    assert bound(routines, frames) == 168
    assert bound(routines, {}) is None


def test_a_call_that_only_the_compiler_knows_counts_and_one_that_is_not_linked_does_not():
    routines = {"main": ["bx\tr3"], "far": ["bx\tlr"]}
    assert bound(routines, {"main": compiled(8, "far", "gone"), "far": compiled(32)}) == 40


def test_what_has_no_bound_leaves_none():
    routines = {"main": ["bl\t2000 <f>", "bx\tlr"], "f": ["bl\t1000 <main>", "bx\tlr"]}
    assert bound(routines, {}) is None
    assert bound({"main": ["bl\t1000 <main>", "bx\tlr"]}, {"main": compiled(8, "main")}) is None
    assert bound({"main": ["bx\tlr"]}, {"main": compiled(None)}) is None


def test_the_compilers_graph_is_read():
    graph = NODE.format("dir/file.c:inner", "inner", "24 bytes (static)")
    graph += NODE.format("outer", "outer", "8 bytes (dynamic,bounded)")
    graph += NODE.format("memcpy", "memcpy", "<built-in>")
    graph += NODE.format("open", "open", "16 bytes (dynamic)")
    graph += EDGE.format("outer", "dir/file.c:inner") + EDGE.format("outer", "memcpy")
    assert stack._compiled([graph]) == {
        "inner": compiled(24),
        "outer": compiled(8, "inner", "memcpy"),
        "open": compiled(None),
    }


def test_of_two_functions_with_one_name_the_worse_counts():
    first = NODE.format("a.c:f", "f", "24 bytes (static)") + EDGE.format("a.c:f", "x")
    second = NODE.format("b.c:f", "f", "8 bytes (static)") + EDGE.format("b.c:f", "y")
    assert stack._compiled([first, second]) == {"f": compiled(24, "x", "y")}
    unbounded = NODE.format("c.c:f", "f", "8 bytes (dynamic)")
    assert stack._compiled([first, unbounded])["f"].frame is None
    assert stack._compiled([unbounded, first])["f"].frame is None


def test_graphs_of_objects_that_are_no_longer_linked_are_not_read(tmp_path):
    (tmp_path / "app").mkdir()
    for name in ("main.c", "removed.c"):
        (tmp_path / "app" / f"{name}.ci").write_text(name)
    (tmp_path / stack.LINKER_MAP).write_text(
        "Memory map\n\nLOAD app/main.c.obj\nLOAD assembled.s.obj\nLOAD /usr/lib/libgcc.a\n"
    )
    assert stack._call_graphs(tmp_path) == ["main.c"]
