"""The generated Verilog, streams and all, against the reference: bit for bit, and how fast."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.errors import UsageError
from entrain.fpga.dynamics import Dynamics, scaled_field
from entrain.fpga.generation.attention import contexts_in, hardware_block
from entrain.fpga.generation.core import core_block, settled_in
from entrain.fpga.generation.verilog import COMPACT, QUICK, generate
from entrain.fpga.simulators import just_in_time
from entrain.fpga.simulators.verilator import compile_module
from entrain.fpga.verification.instances import (
    oscillator_block,
    random_anchors,
    settling_core,
    softmax_block,
)

pytest.importorskip("xls", reason="pip install 'entrain-edge[fpga]'")

TOKENS, COMPONENTS, D_HEAD, D_VALUE, LANES = 12, 3, 8, 8, 2


def made(kind, tokens=TOKENS, components=COMPONENTS, d_head=D_HEAD):
    random = np.random.default_rng(7)
    scales = {"value_scale": 0.05, "context_scale": 0.02, "zero_point": 3}
    if kind.startswith("softmax"):
        bits = 8 if kind == "softmax of 8-bit weights" else 15
        return softmax_block(tokens, d_head=d_head, logit=5e-4, weight_bits=bits, **scales)
    return oscillator_block(
        random_anchors(random, tokens, components),
        coupling=kind,
        d_head=d_head,
        score_scale=0.002,
        epsilon=1 / 64,
        **scales,
    )


def operands(kind, sequences, tokens=TOKENS, d_head=D_HEAD, d_value=D_VALUE):
    random = np.random.default_rng(8)
    low, high = (0, 256) if kind == "separable" else (-128, 128)
    q, k = (random.integers(low, high, (sequences, tokens, d_head)) for _ in range(2))
    q[0, 0], k[0] = low, low  # full scale, and of separable coupling no field but epsilon's
    return q, k, random.integers(-128, 128, (sequences, tokens, d_value))


BLOCKS = [
    *((kind, COMPACT) for kind in ("relu", "separable", "softmax", "softmax of 8-bit weights")),
    *((kind, QUICK) for kind in ("relu", "separable", "softmax")),
]


def named(block):
    kind, pace = block
    return f"{kind}, {'quick' if pace == QUICK else 'compact'}"


@pytest.fixture(scope="module", params=BLOCKS, ids=named)
def simulated(request, tmp_path_factory):
    kind, pace = request.param
    block = made(kind)
    hardware = hardware_block(
        block, tokens=TOKENS, queries=TOKENS, d_head=D_HEAD, d_value=D_VALUE, lanes=LANES
    )
    folder = tmp_path_factory.mktemp("block")
    module = generate(hardware, folder, pace)
    return kind, block, compile_module(module, folder / "simulator")


@pytest.mark.parametrize("pauses", [0, 1, 2], ids=["at full speed", "with pauses", "with others"])
def test_attention_in_hardware_is_the_reference_whatever_the_streams_do(simulated, pauses):
    kind, block, simulator = simulated
    q, k, v = operands(kind, 5)
    expected = np.stack([block.contexts(*each) for each in zip(q, k, v, strict=True)])
    contexts, _ = contexts_in(simulator, block, q, k, v, pauses=pauses)
    assert np.array_equal(contexts, expected)


CORES = [
    (1, 2, None, COMPACT),
    (9, 5, None, COMPACT),
    (9, 5, None, QUICK),
    (1, 2, Dynamics(), COMPACT),
    (9, 5, Dynamics(), COMPACT),
    (9, 5, Dynamics(), QUICK),
    (9, 5, Dynamics(most_steps=3), COMPACT),  # some have not converged then
]


@pytest.mark.parametrize(("tokens", "components", "dynamics", "pace"), CORES)
def test_the_settling_core_in_hardware_is_the_reference(
    tokens, components, dynamics, pace, tmp_path
):
    random = np.random.default_rng(9)
    core = settling_core(random_anchors(random, tokens, components), dynamics=dynamics)
    w = (2.0 ** random.uniform(0, 15, (200, 1)) * random.uniform(size=(200, tokens))).astype(int)
    w[0], w[1], w[2, 0] = 0, 2**15 - 1, 1
    simulator = compile_module(generate(core_block(core), tmp_path, pace), tmp_path / "simulator")
    expected = core.settled(w)
    for pauses in (0, 3):
        settled, _ = settled_in(simulator, core, w, pauses=pauses)
        assert np.array_equal(settled.states, expected.states)
        assert np.array_equal(settled.weights, expected.weights)
        assert np.array_equal(settled.flags, expected.flags)
        assert np.array_equal(settled.steps, expected.steps)


def test_a_component_that_rounds_up_to_2_to_the_15_is_cut_for_a_multiplier_of_16_bits(tmp_path):
    core = settling_core(np.array([[127, 0], [1, 60]]), dynamics=Dynamics())
    w = np.array([[8256, 63], [8256, 62]])  # fields of 2^20 - 1 and a little less
    expected = core.settled(w)
    assert np.array_equal(scaled_field(np.array([[2**20 - 1, 3780]])), [[2**14, 59]])
    simulator = compile_module(generate(core_block(core), tmp_path), tmp_path / "simulator")
    settled, _ = settled_in(simulator, core, w)
    assert np.array_equal(settled.states, expected.states)
    assert np.array_equal(just_in_time.settled(core, w).states, expected.states)


def test_sums_that_would_be_read_again_before_they_are_written_are_refused():
    with pytest.raises(UsageError, match="d_value 4"):
        hardware_block(made("softmax"), tokens=12, queries=12, d_head=8, d_value=4, lanes=2)


@pytest.mark.parametrize("lanes", [3, 16])
def test_lanes_that_do_not_divide_the_components_are_refused(lanes):
    with pytest.raises(UsageError, match="lanes"):
        hardware_block(made("relu"), tokens=12, queries=12, d_head=8, d_value=8, lanes=lanes)


def cycles_of(kind, tmp_path, *, tokens, lanes=4):
    """Of a query, loading keys and values included, once the streams flow."""
    block = made(kind, tokens, 2, 16)
    hardware = hardware_block(
        block, tokens=tokens, queries=tokens, d_head=16, d_value=16, lanes=lanes
    )
    folder = tmp_path / f"{kind}-{tokens}"
    simulator = compile_module(generate(hardware, folder), folder / "simulator")
    few, many = (
        contexts_in(simulator, block, *operands(kind, n, tokens, 16, 16))[1] for n in (2, 4)
    )
    return (many - few) / (2 * tokens)


def test_a_score_takes_as_many_cycles_as_its_words_and_the_rest_happens_meanwhile(tmp_path):
    assert cycles_of("relu", tmp_path, tokens=64) < 1.2 * 64 * 16 / 4


def test_separable_coupling_takes_as_long_whatever_the_number_of_tokens(tmp_path):
    few, many = (cycles_of("separable", tmp_path, tokens=tokens) for tokens in (32, 128))
    assert many < 1.1 * few
