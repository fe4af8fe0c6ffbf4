"""The C of a model compiles without a warning anywhere, and says what it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from entrain.deploy.errors import ToolError
from entrain.deploy.lowering.emit import real_literal
from entrain.deploy.lowering.host import FLAGS, KERNELS, compiled

CORTEX = {
    "Cortex-M0": ["-mcpu=cortex-m0", "-mthumb", "-mfloat-abi=soft"],
    "Cortex-M3": ["-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft"],
    "Cortex-M4": ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
    "Cortex-M55": ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"],
}


@pytest.fixture(scope="module")
def network(new_model, road, tmp_path_factory):
    """Product, table, settle and mean: every kind of layer; for looking at only."""
    model, folder = new_model(), tmp_path_factory.mktemp("network")
    random = np.random.default_rng(3)
    x = model.quantized(model.input(1, 5, 8), 0.05, 3)
    w = model.weights(random.integers(-127, 128, (8, 6)), random.uniform(0.001, 0.02, 6), axis=1)
    product = model.quantized(model.node("MatMul", x, w), 0.02, name="product")
    y = model.quantized(model.node("Softplus", product), 0.02, 0, "uint8", name="coupling")
    y = model.node("Add", y, product)  # of a sum, which no kernel normalizes
    length = model.node("ReduceSum", model.node("Mul", y, y), model.constant([-1], "int64"))
    z = model.quantized(model.node("Div", y, model.node("Sqrt", length)), 1 / 127, name="state")
    mean = model.quantized(model.node("ReduceMean", z, axes=[1], keepdims=0), 0.01, name="mean")
    softmax = model.node("Softmax", mean, axis=-1)
    model.output(model.quantized(softmax, 1 / 255, 0, "uint8", name="classes"))
    return road.from_file(model.save(folder / "small.onnx"), folder / "lowered")


@pytest.mark.parametrize("core", CORTEX)
def test_it_compiles_for_a_microcontroller_without_a_warning(network, tmp_path, core):
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    for name, text in network.source.files:
        (tmp_path / name).write_text(text)
    for name in ("model.c", "weights.c"):
        subprocess.run(
            ["arm-none-eabi-gcc", *FLAGS, *CORTEX[core], f"-I{KERNELS}", "-c", name],
            cwd=tmp_path,
            check=True,
        )


def test_the_host_agrees(network):
    network.check()


def test_layers_are_described_where_they_stand(network):
    text = network.source["model.c"]
    assert re.search(
        r"/\* node_matmul_\d+: matrix product, 240 multiply-adds\n"
        r" \* reads  input: int8 1 x 5 x 8, scale 0\.0500000007, zero point 3\n"
        r" \* writes int8 1 x 5 x 6, scale 0\.0199999996\n"
        r" \* ONNX   product \*/\n"
        r"static NOINLINE void layer_node_matmul_\d+\(",
        text,
    )
    titles = re.findall(r"^/\* \w+: ([\w -]+?)(?:,.*)?$", text, flags=re.MULTILINE)
    assert titles == ["matrix product", "lookup", "normalization", "mean", "softmax"]


def test_generated_loops_are_written_for_people(network):
    text = network.source["model.c"]
    assert max(map(len, text.split("\n"))) <= 100
    assert not re.search(r"\b(ax\d|cse_v|i\d|v_)", text)
    assert set(re.findall(r"for \(int32_t (\w+) = 0", text)) == {"i", "j"}
    softmax = text[text.index("void layer_node_softmax") : text.index("void model_run")]
    assert "sum[0] += " in softmax
    assert "((" not in softmax.replace("__attribute__((", "")


def test_everything_in_weights_c_is_constant(network):
    definitions = re.findall(r"^.*\w+\[\d+\] = \{$", network.source["weights.c"], re.MULTILINE)
    assert definitions
    assert all(line.startswith("const ") for line in definitions)


def test_there_is_no_heap_no_recursion_and_no_mathematical_library(network):
    text = "".join(text for _, text in network.source.files)
    for word in ("malloc", "calloc", "free(", "expf", "logf", "powf", "math.h", "TVM", "double"):
        assert word not in text


def test_no_layer_holds_floating_point(network):
    functions = network.source["model.c"].split("static NOINLINE void ")[1:]
    assert len(functions) == 5
    assert not any("float" in function for function in functions)
    assert " float " not in network.source["weights.c"]


def test_arrays_on_the_stack_are_a_row_at_most(network):
    arrays = re.findall(r"^ +(?:int32_t|int64_t) \w+\[(\d+)\];", network.source["model.c"], re.M)
    assert max(map(int, arrays)) <= 6


def test_equal_constants_lie_in_flash_once(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    shift = model.constant([0.5, 1.0, 1.5, 2.0])
    y = model.node("Add", x, shift)
    lowered = lower(model, model.quantized(model.node("Mul", y, y), 0.2))
    lowered.check()
    assert lowered.source["weights.c"].count(" int32_t ") == 1


AWKWARD = [
    "int",
    "output",
    "weights",
    "restrict",
    "a/*b",
    "c*/d??/",
    "x\\",
    "7 up",
    "Größe",
    "x_ptr",
]


def test_awkward_names_do_no_harm(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    for name in AWKWARD:
        w = model.weights(np.diag([100, 90, 80, 70]), 0.0101)
        product = model.node("MatMul", x, w)
        model.nodes[-1].name = name
        x = model.quantized(product, 0.05, name=f"{name}*/")
    lowered = lower(model, x)
    lowered.check_c(lowered.random_inputs(2))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1.0, "1.0f"),
        (-0.5, "-0.5f"),
        (1e-6, "9.99999997e-07f"),
        (16777216.0, "16777216.0f"),
        (1e20, "1.00000002e+20f"),
        (-0.0, "-0.0f"),
    ],
)
def test_literals_mean_exactly_their_number(x, text):
    assert real_literal(x) == text
    assert np.float32(text.rstrip("f")) == np.float32(x)


def test_c_plus_plus_may_call_it(network, tmp_path):
    for name, text in network.source.files:
        (tmp_path / name).write_text(text)
    (tmp_path / "main.cpp").write_text(
        '#include "model.h"\n'
        "static int8_t input[MODEL_INPUT_BYTES], output[MODEL_OUTPUT_BYTES];\n"
        "int main() { model_run(input, output); return 0; }\n"
    )
    for name in ("model.c", "weights.c"):
        subprocess.run(["cc", *FLAGS, f"-I{KERNELS}", "-c", name], cwd=tmp_path, check=True)
    linked = ["c++", "main.cpp", "model.o", "weights.o", "-o", "program"]
    subprocess.run(linked, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "program"], check=True)


def test_the_header_says_how_reals_become_integers(network):
    header, (source,), (result,) = (
        network.source["model.h"],
        network.graph.inputs,
        network.graph.outputs,
    )
    for line in (
        f"MODEL_INPUT_SCALE {real_literal(source.scale)}",
        f"MODEL_INPUT_ZERO_POINT ({source.zero_point})",
        "MODEL_INPUT_LEAST (-128)",
        "MODEL_INPUT_MOST 127",
        f"MODEL_OUTPUT_SCALE {real_literal(result.scale)}",
        "MODEL_OUTPUT_LEAST (0)",
        "MODEL_OUTPUT_MOST 255",
    ):
        assert f"#define {line}\n" in header


def test_c_that_does_not_compile_is_a_tool_error(tmp_path):
    (tmp_path / "model.c").write_text("int broken(void) { return missing; }\n")
    (tmp_path / "weights.c").write_text("")
    with pytest.raises(ToolError, match="undeclared"):
        compiled(tmp_path, tmp_path / "model.so", trace=False)


def test_a_missing_compiler_is_a_tool_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="no C compiler") as caught:
        compiled(tmp_path, Path(tmp_path) / "model.so", trace=False)
    assert "build-essential" in caught.value.remedy
