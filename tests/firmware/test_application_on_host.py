"""The application, compiled for this machine with sanitizers, whatever bytes it is sent."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.boards import firmware_folder

LINEAR = Path(__file__).parent / "models" / "linear"
BOOT = ["m-timestamp-mode-performance", "m-init-done", "m-ready"]
INPUT_BYTES = 32


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    tree = tmp_path_factory.mktemp("host")
    sources = firmware_folder()
    configure = ["cmake", "--preset", "host", "-B", tree, f"-DMODEL_DIR={LINEAR}"]
    subprocess.run(configure, cwd=sources, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tree], check=True, capture_output=True)
    return tree / "firmware"


def run(program, sent: bytes) -> list[str]:
    """The lines the application answers to ``sent``, after those of its start."""
    result = subprocess.run([program], input=sent, capture_output=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr.decode()
    text = result.stdout.decode("ascii")
    assert text.endswith("\r\n")
    lines = text[:-2].split("\r\n")
    assert lines[:3] == BOOT
    return lines[3:]


def block(command: bytes, payload: bytes, crc: int | None = None) -> bytes:
    check = zlib.crc32(payload) if crc is None else crc
    return b"%s %d%%" % (command, len(payload)) + payload + check.to_bytes(4, "little")


def linear_model(values: bytes) -> bytes:
    """The fixture model, written a second time."""
    inputs = [value - 256 if value > 127 else value for value in values]
    outputs = []
    for row, bias in enumerate([100, -200, 300, -400]):
        weights = [(7 * row + 5 * i) % 23 - 11 for i in range(INPUT_BYTES)]
        total = bias + sum(x * w for x, w in zip(inputs, weights, strict=True))
        outputs.append(max(-128, min(127, ((total + 32) >> 6) - 3)) % 256)
    return bytes(outputs)


def test_it_announces_itself_and_every_answer_ends_with_ready(program):
    assert run(program, b"name%") == ["m-name-dut-[host]", "m-ready"]
    answer = run(program, b"profile%")
    assert answer == ["m-profile-[entrain 0.1.0 linear-32-4]", "m-model-[linear]", "m-ready"]
    assert run(program, b"timestamp%")[0].startswith("m-lap-us-")
    assert run(program, b"%") == ["m-ready"]


def test_a_command_may_fill_the_buffer_to_the_last_character(program):
    assert run(program, b"name".ljust(80) + b"%") == ["m-name-dut-[host]", "m-ready"]


def test_line_breaks_between_commands_are_ignored(program):
    assert run(program, b"\r\nname%\r\n\r\n") == ["m-name-dut-[host]", "m-ready"]


def test_help_names_every_command(program):
    names = {line[len("m-help-[") :].split(" ")[0].strip("],") for line in run(program, b"help%")}
    assert {"name", "profile", "timestamp", "db", "infer", "results", "help"} < names
    assert {"load", "classify", "raw", "stack"} < names


def test_hexadecimal_lines_fill_the_buffer(program):
    values = bytes(range(200, 200 + INPUT_BYTES))
    sent = b"db load 32%" + b"db %s%%" % values[:31].hex().encode()
    sent += b"db %s%%" % values[31:].hex().upper().encode() + b"db print%"
    answer = run(program, sent)
    assert answer[:5] == ["m-[Expecting 32 bytes]", "m-ready", "m-ready", "m-load-done", "m-ready"]
    printed = "".join(line[len("m-buffer-") :].replace("-", "") for line in answer[5:-1])
    assert bytes.fromhex(printed) == values


def test_infer_answers_in_the_order_of_the_benchmark(program):
    answer = run(program, block(b"load", bytes(32)) + b"infer 2 3%")
    assert answer[:2] == ["m-load-done", "m-ready"]
    kinds = [line.rstrip("0123456789.,]") for line in answer[2:]]
    assert answer[2:5] == ["m-warmup-start-3", "m-warmup-done", "m-infer-start-2"]
    assert kinds[3:] == ["m-lap-us-", "m-lap-us-", "m-infer-done", "m-results-[", "m-ready"]


def test_warmups_default_to_ten_and_inferences_to_one(program):
    answer = run(program, block(b"load", bytes(32)) + b"infer%")
    assert "m-warmup-start-10" in answer
    assert "m-infer-start-1" in answer


@given(values=st.binary(min_size=INPUT_BYTES, max_size=INPUT_BYTES))
@settings(max_examples=20, deadline=None)
def test_a_block_may_hold_any_bytes_and_the_outputs_are_the_models(program, values):
    expected = [f"m-raw-[{linear_model(values).hex()}]", "m-ready"]
    assert run(program, block(b"classify", values)) == expected
    assert run(program, block(b"load", values) + b"infer 1 0%raw%")[-2:] == expected


def test_results_are_the_softmax_of_the_dequantized_logits(program):
    values = bytes(range(INPUT_BYTES))
    answer = run(program, block(b"classify", values) + b"results%")
    scores = [float(score) for score in answer[2][len("m-results-[") : -1].split(",")]
    logits = [(value + 128) % 256 - 128 for value in linear_model(values)]
    powers = [2.718281828459045 ** (0.125 * logit) for logit in logits]
    assert scores == pytest.approx([power / sum(powers) for power in powers], abs=1e-6)
    assert sum(scores) == pytest.approx(1.0, abs=4e-6)


@pytest.mark.parametrize("load", [block(b"load", bytes(32)), b"db load 32%"])
def test_an_output_belongs_to_the_input_that_is_loaded(program, load):
    answer = run(program, block(b"classify", bytes(32)) + load + b"raw%")
    assert answer[-2:] == ["e-[nothing inferred yet]", "m-ready"]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"nonsense%", "e-[unknown command]"),
        (b"name please%", "e-[usage: name]"),
        (b"x" * 81 + b"%", "e-[command longer than 80 characters]"),
        (b"x" * 100_000 + b"%", "e-[command longer than 80 characters]"),
        (b"na\x00me%", "e-[unprintable character in a command]"),
        (b"name\xff%", "e-[unprintable character in a command]"),
        (b"infer%", "e-[no input loaded]"),
        (b"infer 0%", "e-[usage: infer [N [W]], N from 1 and W from 0 to 1000000]"),
        (b"infer -1%", "e-[usage: infer [N [W]], N from 1 and W from 0 to 1000000]"),
        (b"infer 1 4294967297%", "e-[usage: infer [N [W]], N from 1 and W from 0 to 1000000]"),
        (b"infer 1 2 3%", "e-[usage: infer [N [W]]]"),
        (b"results%", "e-[nothing inferred yet]"),
        (b"raw%", "e-[nothing inferred yet]"),
        (b"stack%", "e-[this board does not watch its stack]"),
        (b"db%", "e-[usage: db load N | db HEX | db print]"),
        (b"db 00%", "e-[no load under way: db load N first]"),
        (b"db load 31%", "e-[the model takes 32 bytes]"),
        (b"db load 4294967328%", "e-[the model takes 32 bytes]"),
        (b"db load%", "e-[usage: db load N, db HEX or db print]"),
        (b"load x%", "e-[the length must be a number up to 16777216]"),
        (b"load%", "e-[usage: load N, then N bytes and their CRC-32, low byte first]"),
    ],
)
def test_what_makes_no_sense_is_answered_with_an_error(program, sent, error):
    assert run(program, sent) == [error, "m-ready"]
    assert run(program, sent + b"name%")[2:] == ["m-name-dut-[host]", "m-ready"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"db 000%", "e-[odd number of hexadecimal digits]"),
        (b"db 0g%", "e-[not a hexadecimal digit]"),
        (b"db " + b"00" * 33 + b"%", "e-[more bytes than the model takes]"),
    ],
)
def test_a_bad_hexadecimal_line_changes_nothing(program, line, error):
    good = b"db " + b"01" * 16 + b"%"
    answer = run(program, b"db load 32%" + good + line + good)
    started = ["m-[Expecting 32 bytes]", "m-ready", "m-ready"]
    assert answer == [*started, error, "m-ready", "m-load-done", "m-ready"]


def test_a_block_with_a_wrong_checksum_is_refused_and_leaves_no_input(program):
    answer = run(program, block(b"load", bytes(32), crc=1) + b"infer%")
    assert answer == ["e-[wrong CRC-32]", "m-ready", "e-[no input loaded]", "m-ready"]


@pytest.mark.parametrize("length", [0, 31, 33, 5000])
def test_a_block_of_another_length_is_swallowed_whole(program, length):
    payload = (b"name%" * 1000)[:length]
    answer = run(program, block(b"load", payload) + b"name%")
    assert answer == ["e-[the model takes 32 bytes]", "m-ready", "m-name-dut-[host]", "m-ready"]


@given(sent=st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_at_all_leave_it_answering(program, sent):
    for line in run(program, sent):
        assert line.startswith(("m-", "e-["))


WORDS = st.sampled_from(
    [
        *b"name profile db load print infer raw results classify help timestamp".split(),
        *[b"0", b"1", b"2", b"32", b"99999999999", b"00" * 31, b"%", b"\r\n"],
    ]
)


@given(words=st.lists(WORDS, max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_words_in_any_order_leave_it_answering(program, words):
    for line in run(program, b" ".join(words)):
        assert line.startswith(("m-", "e-["))
