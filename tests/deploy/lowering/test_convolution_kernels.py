"""Kernels of convolutions and pools: to the bit what numpy computes, on every instruction set."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import window_layers
from c_library import KERNELS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.codegen import C_TYPES
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.graph import LoweredGraph, Value
from entrain.deploy.lowering.interpreter import interpret, run_layer
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.kernels.depthwise import positions_in_16_bits
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.program import build_program
from entrain.deploy.lowering.schedule_files import schedule_header

SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wconversion", *SANITIZED)
INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")
BYTES = 4000
SIGNED = Value("signed", (BYTES,), "int8", 1.0, 5, "signed")
UNSIGNED = Value("unsigned", (BYTES,), "uint8", 1.0, 133, "unsigned")  # the same reals, as bytes


def random_bytes(seed):
    return np.random.default_rng(seed).integers(-128, 128, BYTES).astype(np.int8)


def values(given_bytes):
    return {"signed": given_bytes, "unsigned": (given_bytes.astype(int) + 128).astype(np.uint8)}


# --- on this machine, every buffer exactly as large as it has to be


def array_text(name, array):
    numbers = ", ".join(f"({n} - 1)" if n == -(2**31) else str(n) for n in array.ravel().tolist())
    return f"static const _Alignas(8) {C_TYPES[str(array.dtype)]} {name}[] = {{{numbers}}};\n"


def run_text(function, given_bytes):
    """C that calls a layer's function with buffers from malloc, and writes its result."""
    layer, name = function.layer, function.layer.name
    (source,) = layer.inputs
    texts = [array_text(f"{name}_{constant}", array) for constant, array in function.constants]
    texts += [array_text(f"{name}_given", values(given_bytes)[source.name])]
    arguments = ["read", *(f"{name}_{constant}" for constant, _ in function.constants)]
    arguments += ["scratch"] if function.scratch_bytes else []
    texts.append(
        f"{function.text}static void run_{name}(void) {{\n"
        f"{C_TYPES[source.dtype]} *read = malloc({source.size});\n"
        f"void *scratch = malloc({max(1, function.scratch_bytes)});\n"
        f"{C_TYPES[layer.output.dtype]} *written = malloc({layer.output.size});\n"
        f"memcpy(read, {name}_given, {source.size});\n"
        f"{layer.symbol}({', '.join([*arguments, 'written'])});\n"
        f"fwrite(written, 1, {layer.output.size}, stdout);\n"
        f"free(read); free(scratch); free(written);\n}}\n"
    )
    return "".join(texts)


def run_on_host(folder, layers, given_bytes, options):
    """The result of each layer, by name."""
    functions = tuple(layer_function(layer) for layer in layers)
    headers = sorted(frozenset().union(*(function.headers for function in functions)))
    text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    text += "".join(f'#include "{header}"\n' for header in headers) + '#include "schedule.h"\n'
    text += "".join(run_text(function, given_bytes) for function in functions)
    calls = " ".join(f"run_{layer.name}();" for layer in layers)
    (folder / "main.c").write_text(f"{text}int main(void) {{ {calls} return 0; }}\n")
    (folder / "schedule.h").write_text(schedule_header(functions))
    command = ["cc", *FLAGS, *options, f"-I{KERNELS}", f"-I{folder}"]
    subprocess.run([*command, "-o", str(folder / "run"), str(folder / "main.c")], check=True)
    output = subprocess.run([folder / "run"], check=True, capture_output=True).stdout
    return split(output, layers)


def split(output, layers):
    sizes = [layer.output.size for layer in layers]
    assert len(output) == sum(sizes)
    parts = np.split(np.frombuffer(output, np.uint8), np.cumsum(sizes)[:-1])
    return {
        layer.name: part.view(layer.output.dtype).reshape(layer.output.shape)
        for layer, part in zip(layers, parts, strict=True)
    }


def check_on_host(folder, layers, seed, options):
    found = run_on_host(folder, layers, random_bytes(seed), options)
    for layer in layers:
        expected = run_layer(layer, values(random_bytes(seed)))
        np.testing.assert_array_equal(found[layer.name], expected, err_msg=layer.name)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_geometry_is_what_numpy_computes(tmp_path, instruction_set, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    layers = window_layers.layers((SIGNED, UNSIGNED), choose)
    assert [layer.name for layer in layers if find_kernel(layer) is None] == []
    check_on_host(tmp_path, layers, choose(0, 9), INSTRUCTION_SETS[instruction_set])


# --- on the emulated boards, many shapes in one firmware


def graph_of(layers):
    """Layers that read the model's input, or the same as unsigned bytes."""
    one = constant(np.full((), 2**29, np.int32))
    requantize = Requantize((BYTES,), "uint8", 1, 0, 29, 128, 0, 255)
    shifted = apply(requantize, load(SIGNED), one, constant(np.zeros((), np.int32)))
    first = window_layers.Layer("unsigned", "shift", (SIGNED,), UNSIGNED, shifted)
    return LoweredGraph("shapes", (SIGNED,), (layers[-1].output,), (first, *layers))


def renamed(layer, name):
    return replace(layer, name=name, output=replace(layer.output, name=name))


@pytest.fixture(scope="module")
def shapes():
    """Layers of all kinds, from a fixed seed."""
    random = np.random.default_rng(4)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    found = []
    for turn in range(5):
        made = window_layers.layers((SIGNED, UNSIGNED), choose)
        found += [renamed(layer, f"{layer.name}_{turn}") for layer in made]
    return graph_of(found)


@pytest.fixture(scope="module")
def lowered_shapes(shapes, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    for name, text in emit_model(build_program(shapes), "kws01").files:
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("board", BOARDS)
def test_the_boards_compute_the_same(shapes, lowered_shapes, tmp_path, board):
    require_emulator()
    image = tmp_path / "firmware.elf"
    build_firmware(find_board(board), lowered_shapes, image, trace=True)
    given_bytes = random_bytes(1)
    expected = interpret(shapes, given_bytes)
    with connect(QemuAddress(board), image) as client:
        traced = client.trace(given_bytes.tobytes())
    for number, layer in enumerate(shapes.layers):
        found = np.frombuffer(traced[number], layer.output.dtype).reshape(layer.output.shape)
        np.testing.assert_array_equal(found, expected[layer.name], err_msg=layer.name)


# --- what decides


@given(data=st.data())
def test_sums_in_16_bits_never_overflow(data):
    channels, rows, columns = (data.draw(st.integers(1, 4)) for _ in range(3))
    limit = data.draw(st.integers(1, 128))
    random = np.random.default_rng(data.draw(st.integers(0, 2**30)))
    weights = random.integers(-limit, limit, (channels, 1, rows, columns)).astype(np.int8)
    positions = positions_in_16_bits(weights)
    flat = np.abs(weights.reshape(channels, -1).astype(int))
    groups = [flat[:, i : i + positions].sum(axis=1) for i in range(0, flat.shape[1], positions)]
    assert positions == 1 or max(int(group.max()) for group in groups) * 128 < 2**15


def test_padding_is_the_zero_point_not_0(tmp_path):
    """An image of zero points stays 0 under any kernel, at its borders too."""
    conv = Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1)
    operand = window_layers.image(SIGNED, (3, 3, 2), lambda low, _: low)
    weights = constant(np.full((4, 2, 3, 3), 127, np.int8))
    summed = apply(conv, operand, weights)
    layer = window_layers.rescaled(
        "padded", SIGNED, summed, lambda low, _: low, bias=False, step=1.0
    )
    zero_points = np.full(BYTES, SIGNED.zero_point, np.int8)
    found = run_on_host(tmp_path, [layer], zero_points, ())
    assert (found["padded"] == layer.output.zero_point).all()


def test_a_bias_finer_than_the_sums_is_left_to_generated_loops():
    conv = Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1)
    operand = window_layers.image(SIGNED, (3, 3, 2), lambda low, _: low)
    summed = apply(conv, operand, constant(np.ones((4, 2, 1, 1), np.int8)))
    layer = window_layers.rescaled("fine", SIGNED, summed, lambda low, _: low, bias=True, step=0.1)
    assert find_kernel(layer)
    sums, multipliers, rest = layer.expression.operands
    finer = constant(np.full_like(rest.operator.reference(), 3))
    expression = apply(layer.expression.operator, sums, multipliers, finer)
    assert find_kernel(replace(layer, expression=expression)) is None
