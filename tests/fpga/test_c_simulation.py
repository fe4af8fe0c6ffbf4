from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from entrain.deploy.errors import FpgaToolFailed, ToolError, UsageError
from entrain.fpga.dynamics import Dynamics
from entrain.fpga.reference import LARGEST_COUPLING, Flags, SettlingCore
from entrain.fpga.simulators import c_simulation
from entrain.fpga.simulators.vitis_instance import Instance
from entrain.fpga.simulators.vitis_vectors import Vectors, attention_vectors, settling_vectors
from entrain.fpga.verification.instances import (
    oscillator_block,
    random_anchors,
    settling_core,
    softmax_block,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hls4ml") is None,
    reason="ap_int.h comes with hls4ml: pip install 'entrain-edge[fpga]'",
)

D_HEAD = D_VALUE = 16
QUERIES = 200
SHAPES = [(1, 3), (5, 32), (64, 2), (128, 8)]
SCALES = {"value_scale": 0.03, "context_scale": 0.015, "zero_point": -7}
often = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def same(core: SettlingCore, couplings: np.ndarray, programs: Path):
    """What both say, having made sure that it is the same."""
    found, expected = c_simulation.settled(core, couplings, programs), core.settled(couplings)
    np.testing.assert_array_equal(found.states, expected.states)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.flags, expected.flags)
    np.testing.assert_array_equal(found.steps, expected.steps)
    return found


def couplings_of(rng: np.random.Generator, tokens: int) -> np.ndarray:
    """Nothing, single weak and full couplings, full scale, small ones, and any."""
    one = np.eye(tokens, dtype=np.int64)
    full = np.full((1, tokens), LARGEST_COUPLING)
    small = rng.integers(0, 3, (QUERIES, tokens))
    any_size = rng.integers(0, LARGEST_COUPLING + 1, (QUERIES, tokens))
    sparse = any_size * (rng.random(any_size.shape) < 0.1)
    parts = [0 * full, one, LARGEST_COUPLING * one, full, small, any_size, sparse]
    return np.concatenate(parts)


@pytest.mark.parametrize(("tokens", "d_osc"), SHAPES)
def test_settling_core_in_closed_form_is_the_reference(tokens, d_osc, rng, programs):
    core = settling_core(random_anchors(rng, tokens, d_osc))
    found = same(core, couplings_of(rng, tokens), programs)
    assert found.flags[0] & Flags.ZERO
    # one coupling's rounding is less than its smallest step; and a weight of 1 is a step too large
    assert (found.flags & Flags.WEAK).any() == (tokens > 1)
    assert (found.flags & Flags.SATURATED).any() == (tokens == 1)


def test_settling_core_by_the_dynamics_is_the_reference(rng, programs):
    core = settling_core(random_anchors(rng, 64, 32), dynamics=Dynamics(9, 3))
    found = same(core, couplings_of(rng, 64), programs)
    assert found.steps.max() == 9
    assert (found.flags & Flags.NOT_CONVERGED).any()
    assert not (found.flags & Flags.NOT_CONVERGED).all()


def small_core(anchors: np.ndarray, dynamics: Dynamics | None = None) -> SettlingCore:
    return SettlingCore(anchors, 200, dynamics)


@pytest.mark.parametrize("dynamics", [None, Dynamics()])
def test_antipodal_anchors_cancel_or_pull_apart(dynamics, programs):
    anchors = np.array([[127, 0], [-127, 0], [0, 127], [0, -127]])
    couplings = np.array(
        [[9, 9, 9, 9], [0, 9, 0, 0], [9, 9, 1, 0], [32767, 32766, 0, 0], [0, 32767, 0, 1]]
    )
    found = same(small_core(anchors, dynamics), couplings, programs)
    assert found.flags.tolist() == [Flags.ZERO, 0, Flags.WEAK, Flags.WEAK, 0]
    assert found.states[1].tolist() == [-16384, 0]
    np.testing.assert_array_equal(found.weights[0], 2**14)  # nothing pulls: all alike


def test_equal_anchors_share_the_weight(programs):
    found = same(small_core(np.array([[90, 90]] * 4)), np.full((1, 4), 7), programs)
    np.testing.assert_allclose(found.weights, 2**14, atol=1)  # 1 + z.r = 2, each


@often
@given(couplings=arrays(np.int64, (6, 4), elements=st.integers(0, LARGEST_COUPLING)))
def test_any_couplings_settle_as_in_the_reference(couplings, programs):
    same(small_core(random_anchors(np.random.default_rng(1), 4, 2)), couplings, programs)


def features_of(rng: np.random.Generator, low: int, high: int, rows: int) -> np.ndarray:
    """Nothing, the lowest, the highest, and any; ``rows`` of each kind."""
    any_size = rng.integers(low, high + 1, (rows, D_HEAD))
    weak = any_size // 64
    corners = [np.full((1, D_HEAD), size) for size in (0, low, high)]
    return np.concatenate([*corners, weak, any_size])


def agree(block, queries, keys, values, programs) -> np.ndarray:
    found = c_simulation.contexts(block, queries, keys, values, programs)
    np.testing.assert_array_equal(found, block.contexts(queries, keys, values))
    return found


def check_attention(block, tokens: int, low: int, high: int, rng, programs: Path) -> None:
    """Queries of all kinds against keys and values of any size, and of full scale."""
    queries = features_of(rng, low, high, QUERIES)
    keys = rng.integers(low, high + 1, (tokens, D_HEAD))
    values = rng.integers(-128, 128, (tokens, D_VALUE))
    found = agree(block, queries, keys, values, programs)
    assert np.ptp(found) > 10
    for key in (low, 0, high):
        for value in (-128, 127):
            full_keys = np.full((tokens, D_HEAD), key)
            agree(block, queries[:10], full_keys, np.full((tokens, D_VALUE), value), programs)


def relu_block(anchors, **others):
    given = {"score_scale": 0.25 * 0.03**2, "epsilon": 0.01, **SCALES, **others}
    return oscillator_block(anchors, coupling="relu", d_head=D_HEAD, **given)


def separable_block(anchors, **others):
    given = {"score_scale": 0.25 * 0.02**2, "epsilon": 0.01, **SCALES, **others}
    return oscillator_block(anchors, coupling="separable", d_head=D_HEAD, **given)


@pytest.mark.parametrize(
    ("tokens", "d_osc", "epsilon"), [(1, 3, 0.01), (5, 32, 0.0), (64, 2, 0.01), (128, 8, 0.0)]
)
def test_relu_attention_is_the_reference(tokens, d_osc, epsilon, rng, programs):
    block = relu_block(random_anchors(rng, tokens, d_osc), epsilon=epsilon)
    check_attention(block, tokens, -128, 127, rng, programs)


@pytest.mark.parametrize(("tokens", "d_osc"), [(1, 2), (5, 3), (64, 8), (128, 32)])
def test_separable_attention_is_the_reference(tokens, d_osc, rng, programs):
    block = separable_block(random_anchors(rng, tokens, d_osc))
    check_attention(block, tokens, 0, 255, rng, programs)


@pytest.mark.parametrize("tokens", [1, 5, 64, 128])
def test_softmax_attention_is_the_reference(tokens, rng, programs):
    block = softmax_block(tokens, d_head=D_HEAD, logit=0.25 * 0.03**2, **SCALES)
    check_attention(block, tokens, -128, 127, rng, programs)


@often
@given(data=st.data())
def test_any_queries_keys_and_values_attend_as_in_the_reference(data, programs):
    def words(*shape):
        return data.draw(arrays(np.int64, shape, elements=st.integers(-128, 127)))

    # without epsilon, a query that no key answers has no field
    block = relu_block(random_anchors(np.random.default_rng(5), 5, 32), epsilon=0.0)
    agree(block, words(2, D_HEAD), words(5, D_HEAD), words(5, D_VALUE), programs)


def test_thousands_of_queries_go_through_in_several_calls(rng, programs):
    core = settling_core(random_anchors(rng, 5, 32))
    same(core, rng.integers(0, LARGEST_COUPLING + 1, (10_000, 5)), programs)
    assert c_simulation.settled(core, np.zeros((0, 5)), programs).states.shape == (0, 32)


def test_a_block_is_compiled_once_and_with_our_stream(rng, programs):
    core = settling_core(random_anchors(rng, 5, 32))
    program = c_simulation.compiled(settling_vectors(core, np.zeros((1, 5))).instance, programs)
    again = SettlingCore(core.anchors[::-1], core.rounding)
    instance = settling_vectors(again, np.zeros((1, 5))).instance
    before = program.stat().st_mtime_ns
    assert c_simulation.compiled(instance, programs) == program
    assert program.stat().st_mtime_ns == before

    made_of = (program.parent / "dependencies.d").read_text().split()
    streams = {Path(file) for file in made_of if Path(file).name == "hls_stream.h"}
    assert streams == {c_simulation.SOURCES / "simulation" / "hls_stream.h"}
    assert str(c_simulation.ap_types() / "ap_int.h") in made_of


def test_no_header_of_the_vendor_lies_among_the_sources():
    for source in c_simulation.SOURCES.rglob("*.*"):
        assert "Xilinx" not in source.read_text(), source
        assert not source.name.startswith("ap_"), source


def test_without_hls4ml_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ToolError, match=re.escape("entrain-edge[fpga]")):
        c_simulation.ap_types()


def test_without_a_compiler_its_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(c_simulation, "COMPILER", "no-such-compiler")
    core = SettlingCore(np.array([[127]]), 0)
    with pytest.raises(ToolError, match=r"no-such-compiler is not installed\n.*build-essential"):
        c_simulation.settled(core, np.array([[1]]), tmp_path)
    assert not any(path.is_dir() for path in tmp_path.iterdir())


def test_what_the_compiler_says_is_told_and_kept(tmp_path):
    with pytest.raises(FpgaToolFailed, match="error: #error no settings") as failed:
        c_simulation.compiled(Instance("settling_core", "#error no settings\n"), tmp_path)
    assert "#error no settings" in Path(failed.value.where).read_text()


def test_a_stream_that_runs_dry_is_told(rng, programs):
    core = settling_core(random_anchors(rng, 5, 32))
    vectors = settling_vectors(core, np.zeros((1, 5)))
    short = vectors.inputs | {"anchors.i8": core.anchors[1:].astype(np.int8)}
    with pytest.raises(FpgaToolFailed, match="nothing left to read from anchors"):
        c_simulation.run(Vectors(vectors.instance, short, vectors.outputs), programs)


def test_words_out_of_range_and_other_shapes_are_refused(rng):
    core = settling_core(random_anchors(rng, 5, 2))
    block = separable_block(core.anchors)
    queries, keys, values = np.zeros((2, 16)), np.zeros((5, 16)), np.zeros((5, 3))
    with pytest.raises(OverflowError, match="couplings from 0 to 32768"):
        settling_vectors(core, np.array([[0, 1, 2, 3, 2**15]]))
    with pytest.raises(UsageError, match=re.escape("couplings of shape (1, 4)")):
        settling_vectors(core, np.zeros((1, 4)))
    with pytest.raises(OverflowError, match="an anchor of length"):
        settling_vectors(SettlingCore(np.array([[120, 120]]), 0), np.zeros((1, 1)))
    with pytest.raises(OverflowError, match="queries from -1"):
        attention_vectors(block, queries - 1, keys, values)
    with pytest.raises(UsageError, match=re.escape("values of shape (4, 3)")):
        attention_vectors(block, queries, keys, values[1:])
    with pytest.raises(UsageError, match="two axes"):
        attention_vectors(block, queries, keys[0], values)


def test_settings_that_the_block_has_no_room_for_are_refused(rng):
    anchors = random_anchors(rng, 5, 2)
    with pytest.raises(UsageError, match="256 steps"):
        settling_vectors(settling_core(anchors, dynamics=Dynamics(256)), np.zeros((1, 5)))
    block = relu_block(anchors)
    object.__setattr__(block, "bias", block.bias + 1)
    with pytest.raises(UsageError, match="bias"):
        attention_vectors(block, np.zeros((1, 16)), np.zeros((5, 16)), np.zeros((5, 3)))
    with pytest.raises(UsageError, match="129 tokens"):
        attention_vectors(
            softmax_block(129, d_head=16, logit=1e-4, value_scale=1.0, context_scale=1.0),
            np.zeros((1, 16)),
            np.zeros((129, 16)),
            np.zeros((129, 3)),
        )


VENDOR_COMMANDS = [
    *("open_project", "set_top", "add_files", "open_solution", "set_part", "create_clock"),
    *("csim_design", "csynth_design", "export_design"),
]


@pytest.mark.parametrize("period", [[], ["8"]])
def test_the_vendor_script_names_files_that_are_there(period, rng, tmp_path, monkeypatch):
    tkinter = pytest.importorskip("tkinter", reason="a Tcl interpreter to read the script with")
    core = settling_core(random_anchors(rng, 5, 2))
    settling_vectors(core, couplings_of(rng, 5)).write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "instance.hpp",
        "anchors.i8",
        "couplings.u16",
    }
    tcl, said = tkinter.Tcl(), []
    for command in VENDOR_COMMANDS:
        tcl.createcommand(command, lambda *words, name=command: said.append((name, *words)))
    tcl.createcommand("exit", lambda: None)
    script = str(c_simulation.SOURCES / "build.tcl")
    arguments = ["-tclargs", "settling_core", "xc7a35ticsg324-1L", str(tmp_path), *period]
    tcl.call("set", "argv", tcl.call("list", "-f", script, *arguments))
    monkeypatch.chdir(tmp_path)  # the script goes there too, and the test comes back
    tcl.call("source", script)

    assert [words[0] for words in said] == [*VENDOR_COMMANDS[:3], *VENDOR_COMMANDS[2:]]
    assert ("set_part", "xc7a35ticsg324-1L") in said
    assert ("create_clock", "-period", *(period or ["10"]), "-name", "default") in said
    added = [word for words in said if words[0] == "add_files" for word in words]
    sources = [Path(word) for word in added if word.endswith(".cpp")]
    assert [source.parent.name for source in sources] == ["vitis", "testbench"]
    assert all(source.is_file() for source in sources)
    assert not any("simulation" in word for word in added)  # the vendor's own stream is to be found
