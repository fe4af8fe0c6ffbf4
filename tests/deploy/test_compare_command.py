"""What a comparison writes, prints and does not do twice; how it ends when something breaks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from entrain.deploy import comparison
from entrain.deploy.cli.progress import Work
from entrain.deploy.device.client import Client
from entrain.deploy.results_file import read_results

PAIRS = [
    (attention, board)
    for attention in ("softmax", "oscillator")
    for board in ("mps2-an386", "mps3-an547")
]


def rows_of(road, name):
    return read_results(road.runs_dir / f"compare-{name}" / "results.json").results


def test_json_is_the_list_of_results_and_all_there_is_on_stdout(walked):
    written = json.loads((walked.runs_dir / "compare-first" / "results.json").read_text())
    assert walked.compared.value == written["results"]
    assert (written["schema"], written["stopped"]) == (2, None)


def test_there_is_a_row_for_each_run_and_board_in_the_order_asked_for(walked):
    rows = rows_of(walked, "first")
    assert [(row.attention, row.board) for row in rows] == PAIRS
    assert [row.coupling for row in rows] == [None, None, "separable", "separable"]
    assert all(row.complete and row.accuracy.n == 6 for row in rows)


def test_the_device_answers_what_this_machine_computes(walked):
    for row in rows_of(walked, "first"):
        assert row.mismatches == 0
        assert row.accuracy.device == row.accuracy.int8_host
        assert sum(map(sum, row.confusion)) == 6


def test_every_figure_says_how_it_came_about(walked):
    for row in rows_of(walked, "first"):
        assert row.meter == "modelled"
        for figure in (row.cycles, row.latency_ms):
            assert figure.kind == "modelled"
            assert figure.low <= figure.value <= figure.high
            assert figure.source


def test_the_layers_account_for_nearly_all_instructions(walked):
    for row in rows_of(walked, "first"):
        assert all(layer.instructions > 0 for layer in row.layers)
        assert 0.99 < sum(layer.instructions for layer in row.layers) / row.instructions <= 1
        assert sum(layer.macs for layer in row.layers) == row.macs


def test_the_boards_memory_is_told(walked):
    for row in rows_of(walked, "first"):
        assert 0 < row.flash_bytes < row.board_flash_bytes
        assert row.arena_bytes < row.ram_bytes < row.board_ram_bytes
        assert row.stack_bytes > 0


def test_mechanisms_are_compared_with_softmax(walked):
    results = read_results(walked.runs_dir / "compare-first" / "results.json")
    found = {(one.type, one.board) for one in results.comparisons}
    assert {("paired", "mps2-an386"), ("ratio", "mps3-an547")} <= found


def test_the_page_is_written_beside_the_results(walked):
    page = (walked.runs_dir / "compare-first" / "report.html").read_text()
    assert "<html" in page
    assert "modelled" in page


def test_stages_leave_a_line_each_and_a_log(walked):
    assert walked.compared.stages[:4] == ["train", "quantize", "export", "lower"]
    for stage in ("build for mps3-an547", "answer on this machine", "measure on mps2-an386"):
        assert walked.compared.stages.count(stage) == 2
    log = walked.run("softmax").log.read_text()
    assert "train, " in log
    assert "measure on mps3-an547, 6/6 in " in log


def test_a_second_time_nothing_is_done_twice_and_the_counts_are_the_same(road):
    made = {path: path.stat().st_mtime_ns for path in road.run("softmax").folder.glob("*.[pon]*")}
    again = road.compare("second")
    assert again.code == 0
    assert not {"train", "quantize", "export", "lower"} & set(again.stages)
    assert {path: path.stat().st_mtime_ns for path in made if path.suffix != ".elf"} == {
        path: written for path, written in made.items() if path.suffix != ".elf"
    }
    first, second = rows_of(road, "first"), rows_of(road, "second")
    assert [row.instructions for row in first] == [row.instructions for row in second]
    assert [row.layers for row in first] == [row.layers for row in second]


def test_what_is_named_twice_is_measured_once(road):
    ended = road.compare(
        "once",
        "--attention",
        "softmax,softmax",
        "--boards",
        "mps2-an386,mps2-an386",
        "--seeds",
        "0,0",
    )
    assert len(ended.value) == 1


def test_an_emulator_that_dies_ends_the_work_and_keeps_what_was_measured(road, monkeypatch):
    classify = Client.classify
    asked = []

    def killed_at_the_third(self, values):
        if self.name() == "mps3-an547":
            asked.append(values)
            if len(asked) == 3:
                os.kill(self._transport.process_id, signal.SIGKILL)
        return classify(self, values)

    monkeypatch.setattr(Client, "classify", killed_at_the_third)
    ended = road.compare("killed")
    assert ended.code == 3
    assert "error: the emulator ended (signal 9)" in ended.err
    assert "at: qemu:mps3-an547" in ended.err
    results = read_results(road.runs_dir / "compare-killed" / "results.json")
    assert results.stopped.startswith("qemu:mps3-an547: the emulator ended (signal 9)")
    (lost,) = [row for row in results.results if row.board == "mps3-an547"]
    assert (lost.complete, lost.accuracy.n, lost.mismatches) == (False, 2, 0)
    # The other emulator may have gone on to its second run; the lost board's second never begins.
    assert len(results.results) < 4
    assert [row["run"] for row in ended.value] == [row.run for row in results.results]
    assert "Incomplete" in (road.runs_dir / "compare-killed" / "report.html").read_text()


def test_a_finished_comparison_is_kept_when_one_of_its_name_is_cut_short(road, monkeypatch):
    folder = road.runs_dir / "compare-again"
    assert road.compare("again", "--boards", "mps2-an386", "--attention", "softmax").code == 0
    finished = (folder / "results.json").read_bytes()
    classify = Client.classify
    asked = []

    def killed_at_the_third(self, values):
        asked.append(values)
        if len(asked) == 3:
            os.kill(self._transport.process_id, signal.SIGKILL)
        return classify(self, values)

    monkeypatch.setattr(Client, "classify", killed_at_the_third)
    assert road.compare("again", "--boards", "mps2-an386", "--attention", "softmax").code == 3
    assert read_results(folder / "results.json").stopped is not None
    assert (folder / "results.previous.json").read_bytes() == finished


def test_a_missing_emulator_is_told_before_anything_is_trained(road, monkeypatch, tmp_path):
    which = shutil.which
    monkeypatch.setattr(
        "entrain.deploy.device.qemu.shutil.which",
        lambda program: None if program.startswith("qemu") else which(program),
    )
    ended = road.compare("early", "--runs-dir", tmp_path / "fresh")
    assert ended.code == 2
    assert "qemu-system-arm is not installed" in ended.err
    assert not list((tmp_path / "fresh").rglob("model.pt"))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_what_was_measured(road, monkeypatch):
    step = Work.step
    pressed = []

    def interrupted(self, remark):
        step(self, remark)
        if self._what.startswith("measure") and self._done == 2 and not pressed:
            pressed.append("Ctrl-C")
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    ask = comparison.ask_device

    def patient(client, inputs, classes, on_sample, is_stopped):
        """Does not outrun the signal: an inference takes a millisecond."""

        def sample():
            on_sample()
            while pressed and not is_stopped():
                os.sched_yield()

        return ask(client, inputs, classes, sample, is_stopped)

    monkeypatch.setattr(comparison, "ask_device", patient)
    monkeypatch.setattr(Work, "step", interrupted)
    ended = road.compare("interrupted", "--boards", "mps2-an386", "--samples", 12)
    assert ended.code == 130
    assert ended.err.endswith("interrupted\n")
    results = read_results(road.runs_dir / "compare-interrupted" / "results.json")
    assert results.stopped == "interrupted"
    assert {row.complete for row in results.results} == {False}
    assert 2 <= max(row.accuracy.n for row in results.results) < 12


def test_other_bytes_than_this_machines_are_a_failed_check(road, monkeypatch):
    classify = Client.classify
    asked = []

    def one_bit_wrong(self, values):
        answer = classify(self, values)
        asked.append(values)
        return bytes([answer[0] ^ 1]) + answer[1:] if len(asked) == 2 else answer

    monkeypatch.setattr(Client, "classify", one_bit_wrong)
    ended = road.compare("wrong", "--attention", "softmax", "--boards", "mps2-an386")
    assert ended.code == 1
    assert [row["mismatches"] for row in ended.value] == [1]
    assert "the device's bytes differ" in ended.err


def test_without_the_emulator_nothing_earlier_is_lost(road, monkeypatch, tmp_path):
    for folder in os.get_exec_path():
        for program in Path(folder).glob("*"):
            link = tmp_path / "programs" / program.name
            link.parent.mkdir(exist_ok=True)
            if program.name != "qemu-system-arm" and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    before = (road.runs_dir / "compare-first" / "results.json").read_bytes()
    ended = road.compare("first", "--boards", "mps2-an386", "--attention", "softmax")
    assert (ended.code, ended.out) == (2, "")
    assert "error: the emulator qemu-system-arm is not installed" in ended.err
    assert "apt-get install qemu-system-arm" in ended.err
    assert (road.runs_dir / "compare-first" / "results.json").read_bytes() == before


def test_a_missing_port_is_told_before_anything_is_trained(entrain_here, tmp_path):
    ended = entrain_here("compare", "--device", "serial:/dev/nowhere", "--boards", "mps2-an386")
    assert ended.code == 3
    assert "error: there is no such port" in ended.err
    assert "at: serial:/dev/nowhere:115200" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_port_in_use_is_told(entrain_here):
    import pty

    import serial

    controller, line = pty.openpty()
    try:
        port = os.ttyname(line)
        with serial.Serial(port, exclusive=True):
            ended = entrain_here("compare", "--device", f"serial:{port}", "--boards", "mps2-an386")
    finally:
        os.close(controller)
        os.close(line)
    assert ended.code == 3
    assert "error: the port is open in another program" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said", "where"),
    [
        (["nonsense"], "there is no task 'nonsense'", "TASK"),
        (["--attention", "nope"], "'nope' is not the name of an attention", "--attention"),
        (["--attention", "none"], "none attention has no integer form", "--attention"),
        (["--attention", "softmax,none"], "none attention has no integer form", "--attention"),
        (["--attention", "oscillator-relu-p1.5"], "whole exponents p from 1 to 8", "--attention"),
        (["--attention", "oscillator-relu-p9"], "whole exponents p from 1 to 8", "--attention"),
        (["agreement", "--standard-12"], "agreement does not take it", "--standard-12"),
        (["agreement", "--download"], "agreement does not take it", "--download"),
        (["agreement", "--data-dir", "nowhere"], "cannot be read", "{here}/nowhere/train.tsv"),
        (["--attention", ","], "nothing is named", "--attention"),
        (["--seeds", "0,x"], "seeds are whole numbers", "--seeds"),
        (["--boards", "nope"], "no board is called 'nope'", "--boards"),
        (["--device", "usb:1"], "no device is addressed by 'usb:1'", "--device"),
        (["--device", "qemu:nope"], "no board is called 'nope'", "--device"),
        (["--device", "qemu", "--boards", "mps3-an547"], "but --boards mps3-an547", "--device"),
        (["--device", "serial:/dev/x"], "one device is one board", "--device"),
        (["--name", "a/b"], "no name for a run", "--name"),
        (["--download"], "it needs a folder", "--download"),
        (["--standard-12"], "synthetic speech has not the standard twelve", "--standard-12"),
    ],
)
def test_wrong_use_is_told_with_its_option(entrain_here, tmp_path, arguments, said, where):
    ended = entrain_here("compare", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert f"at: {where.format(here=tmp_path)}\n" in ended.err
    assert "try: " in ended.err
    assert not (tmp_path / "runs").exists()
