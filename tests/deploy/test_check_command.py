"""What a model needs of a board, told before anything is flashed."""

from __future__ import annotations

import json

import pytest

from entrain.deploy.boards import boards
from entrain.deploy.check import ERROR, expected_instructions
from entrain.deploy.device.emulated_flash import emulated_flash
from entrain.deploy.elf import instruction_set
from entrain.deploy.lowering.artifact import read_lowered

MECHANISMS = ("softmax", "oscillator-separable")
INSTRUCTIONS = {"scalar": 4000, "dsp": 2000, "mve": 1000}  # made up, to see whose is taken


@pytest.fixture
def checked(road, entrain_here):
    """A function: board, more arguments -> how `entrain check` of the softmax run ended."""

    def check(board, *more):
        run = road.run("softmax")
        where = ("--run", run.name, "--runs-dir", road.runs_dir)
        return entrain_here("check", *where, "--board", board, *more)

    return check


def expect_something(run, factor=1):
    """A schedule in which one layer, the one with most multiply-adds, has blocks to choose from."""
    layer = max(read_lowered(run.lowered).layers, key=lambda layer: layer.macs)
    blocks = {
        name: [
            {"rows": 2, "columns": 2, "instructions": count * factor},
            {"rows": 1, "columns": 4, "instructions": count + 9},
        ]
        for name, count in INSTRUCTIONS.items()
    }
    schedule = {
        other.name: {"blocks": blocks if other == layer else {name: [] for name in blocks}}
        for other in read_lowered(run.lowered).layers
    }
    (run.lowered / "schedule.json").write_text(json.dumps(schedule))
    return layer


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an385-m0"])
def test_the_needs_are_those_of_the_firmware_and_the_lowered_model(
    checked, road, entrain_here, board
):
    run = road.run("softmax")
    ended = checked(board, "--json")
    assert ended.code == 0, ended.err
    model, found = read_lowered(run.lowered), ended.value
    assert (found["run"], found["board"], found["fits"]) == (run.name, board, True)
    assert (found["macs"], found["arena_bytes"]) == (model.macs, model.arena_bytes)
    assert found["arena_bound"] <= found["arena_bytes"] < found["ram_bytes"]
    assert 0 < found["stack_bytes"] < found["stack_reserved_bytes"]
    where = ("--run", run.name, "--runs-dir", road.runs_dir, "--board", board, "--json")
    built = entrain_here("build", *where).value
    for memory in ("flash_bytes", "ram_bytes", "stack_bytes"):
        assert found[memory] == built[memory]


def test_nothing_is_flashed(checked):
    flash = emulated_flash("mps2-an385")
    before = flash.read_bytes() if flash.exists() else None
    ended = checked("mps2-an385")
    assert ended.code == 0
    assert "nothing was flashed" in ended.err
    assert before == (flash.read_bytes() if flash.exists() else None)


def test_a_person_reads_what_is_needed_and_what_there_is(checked):
    shown = checked("mps3-an547").out
    for name in ("flash, bytes", "variables, bytes", "the arena", "worst stack", "multiply-adds"):
        assert name in shown
    assert f"{boards()['mps3-an547'].flash_bytes:,}" in shown


@pytest.mark.parametrize(
    ("board", "expected"), [("mps2-an385", 4000), ("mps2-an386", 2000), ("mps3-an547", 1000)]
)
def test_what_the_schedule_expects_is_told_as_modelled(checked, road, board, expected):
    layer = expect_something(road.run("softmax"))
    predicted = checked(board, "--json").value["predicted"]
    assert (predicted["layers"], predicted["macs"]) == ([layer.name], layer.macs)
    instructions, latency = predicted["instructions"], predicted["latency_ms"]
    assert (instructions["kind"], latency["kind"]) == ("modelled", "modelled")
    assert instructions["value"] == expected
    assert instructions["low"] == pytest.approx(expected * (1 - ERROR))
    cost, mhz = boards()[board].cost.cycles_per_instruction, boards()[board].mhz
    assert latency["value"] == pytest.approx(expected * cost.value / mhz / 1e3)
    assert latency["low"] == pytest.approx(expected * (1 - ERROR) * cost.low / mhz / 1e3, rel=1e-3)
    assert latency["high"] == pytest.approx(
        expected * (1 + ERROR) * cost.high / mhz / 1e3, rel=1e-3
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_the_emulator_counts_nearly_what_the_schedule_expects(walked, mechanism, board):
    run = walked.run(mechanism)
    expected = expected_instructions(run.lowered, instruction_set(run.firmware(board)))
    (row,) = [
        row for row in walked.compared.value if (row["run"], row["board"]) == (run.name, board)
    ]
    counted = {layer["name"]: layer["instructions"] for layer in row["layers"]}
    assert len(expected) > 3
    for layer, instructions in expected.items():
        if instructions > 10_000:  # of a small layer the call itself counts
            assert counted[layer] == pytest.approx(instructions, rel=ERROR)


def test_a_share_of_the_multiply_adds_says_what_the_expectation_covers(checked, road):
    run = road.run("softmax")
    layer = expect_something(run)
    share = f"{100 * layer.macs / read_lowered(run.lowered).macs:.1f} %"
    shown = checked("mps2-an386").out
    covered = f"modelled, of 1 of {len(read_lowered(run.lowered).layers)} layers with {share}"
    assert covered in " ".join(shown.split())


def test_nothing_is_predicted_of_code_that_the_schedule_does_not_know(checked, road):
    expect_something(road.run("softmax"))
    assert checked("mps2-an385-m0", "--json").value["predicted"] is None
    assert "not modelled for this core; 'entrain profile' counts" in checked("mps2-an385-m0").out


def test_blocks_of_which_nothing_is_expected_predict_nothing(checked, road):
    expect_something(road.run("softmax"), factor=0)
    assert checked("mps2-an386", "--json").value["predicted"] is None


def test_a_damaged_schedule_is_told_with_its_file(checked, road):
    path = road.run("softmax").lowered / "schedule.json"
    path.write_text('{"layer": 3}')
    ended = checked("mps2-an386")
    assert (ended.code, ended.out) == (2, "")
    assert f"at: {path}" in ended.err


def test_a_missing_schedule_is_told_with_its_file(checked, road):
    path = road.run("softmax").lowered / "schedule.json"
    path.unlink()
    ended = checked("mps2-an386")
    assert (ended.code, ended.out) == (2, "")
    assert f"at: {path}" in ended.err


def test_what_does_not_fit_is_refused_with_the_bytes_that_are_missing(checked, road):
    header = road.run("softmax").lowered / "model.h"
    text = header.read_text()
    arena = read_lowered(header.parent).arena_bytes
    header.write_text(
        text.replace(f"#define MODEL_ARENA_BYTES {arena}u", "#define MODEL_ARENA_BYTES 524288u")
    )
    ended = checked("mps3-an547", "--json")
    assert ended.code == 1
    assert (ended.value["fits"], list(ended.value["short"])) == (False, ["ram_bytes"])
    missing = ended.value["short"]["ram_bytes"]
    assert 8192 < missing < 16384  # the stack, and what is not the arena
    assert f"RAM: needs {524288 + missing:,} of 524,288 bytes, {missing:,} short" in ended.err
    assert "at: mps3-an547" in ended.err
