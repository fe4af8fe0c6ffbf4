"""The integer arithmetic against exact rationals, and quantization against onnxruntime."""

from __future__ import annotations

import ctypes
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import entrain.firmware
from entrain.deploy.arithmetic import requantization
from entrain.deploy.arithmetic.requantization import (
    LARGEST_SHIFT,
    dequantize,
    fixed_point,
    integer_range,
    narrow_fixed_point,
    quantize,
    requantize,
)

INT32_MAX = 2**31 - 1
factors = st.floats(1e-9, 10.0)
signs = st.sampled_from([-1.0, 1.0])


@st.composite
def requantizations(draw):
    """Operands, their peaks, real factors and a bias, such that the result fits."""
    terms = draw(st.integers(1, 3))
    scales = [draw(factors) * draw(signs) for _ in range(terms)]
    peaks = [min(INT32_MAX, int(2**27 / abs(scale))) for scale in scales]
    operands = [draw(st.integers(-peak, peak)) for peak in peaks]
    bias = draw(st.floats(-(2.0**26), 2.0**26))
    return operands, peaks, scales, bias


def computed(operands, fixed, **options):
    arrays = tuple(np.asarray([operand], np.int32) for operand in operands)
    return int(requantize(arrays, fixed, **options)[0])


def fixed_of(peaks, scales, bias):
    return fixed_point(tuple(np.asarray(s) for s in scales), np.asarray(bias), tuple(peaks))


@given(requantizations())
def test_the_result_is_within_half_a_step_and_the_rounding_of_the_factors(case):
    operands, peaks, scales, bias = case
    fixed = fixed_of(peaks, scales, bias)
    result = computed(operands, fixed, zero_point=0, low=-(2**31), high=INT32_MAX)
    exact = Fraction(bias) + sum(Fraction(s) * q for s, q in zip(scales, operands, strict=True))
    half_unit = Fraction(1, 2 ** (fixed.shift + 1))
    slack = sum(abs(q) for q in operands) * half_unit
    slack += Fraction(1, 2 ** (fixed.shift - fixed.bias_shift + 1))
    assert abs(result - exact) <= Fraction(1, 2) + slack


@given(requantizations())
def test_the_result_is_the_exact_rational_of_the_integers_rounded_half_up(case):
    operands, peaks, scales, bias = case
    fixed = fixed_of(peaks, scales, bias)
    total = int(fixed.bias) << fixed.bias_shift
    total += sum(int(m) * q for m, q in zip(fixed.multipliers, operands, strict=True))
    assert abs(total) < 2**62
    result = computed(operands, fixed, zero_point=0, low=-(2**31), high=INT32_MAX)
    assert result == (Fraction(total, 2**fixed.shift) + Fraction(1, 2)).__floor__()


@given(requantizations())
def test_multipliers_and_bias_use_their_thirty_bits_and_no_more(case):
    _, peaks, scales, bias = case
    fixed = fixed_of(peaks, scales, bias)
    assert 1 <= fixed.shift <= LARGEST_SHIFT
    assert 0 <= fixed.bias_shift <= fixed.shift
    assert all(abs(int(m)) <= 2**30 for m in fixed.multipliers)
    assert abs(int(fixed.bias)) <= 2**30
    error = abs(Fraction(int(fixed.bias), 2 ** (fixed.shift - fixed.bias_shift)) - Fraction(bias))
    assert error <= max(Fraction(abs(bias)) / 2**29, Fraction(1, 2 ** (fixed.shift + 1)))


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=5))
def test_the_largest_factor_keeps_thirty_bits(values):
    fixed = fixed_point((np.asarray(values),), np.zeros(()), (1000,))
    assert 2**29 <= int(fixed.multipliers[0].max()) <= 2**30


@st.composite
def sums_of_bytes(draw):
    """Operands of 8 bits without their zero points, real factors, a bias, and a zero point."""
    terms = draw(st.integers(1, 6))
    scales = [draw(st.floats(0.0, 4.0)) * draw(signs) for _ in range(terms)]
    peaks = [draw(st.integers(128, 255)) for _ in scales]
    operands = [draw(st.sampled_from([-peak, peak]) | st.integers(-peak, peak)) for peak in peaks]
    return operands, peaks, scales, draw(st.floats(-2000.0, 2000.0)), draw(st.integers(-128, 255))


@given(sums_of_bytes())
def test_a_narrow_total_fits_32_bits_and_is_right_within_its_bound(case):
    operands, peaks, scales, bias, zero_point = case
    fixed = narrow_fixed_point(tuple(map(np.asarray, scales)), np.asarray(bias), tuple(peaks))
    if fixed is None:
        return
    total = int(fixed.bias) << fixed.bias_shift
    total += sum(int(m) * q for m, q in zip(fixed.multipliers, operands, strict=True))
    joined = total + (zero_point << fixed.shift) + (1 << (fixed.shift - 1))
    assert total >= -(2**31)
    assert joined < 2**31
    exact = Fraction(bias) + sum(Fraction(s) * q for s, q in zip(scales, operands, strict=True))
    assert abs(Fraction(total, 2**fixed.shift) - exact) <= Fraction(1, 2**9)


def test_two_bytes_of_about_the_result_s_step_lose_less_than_its_4096th_part():
    fixed = narrow_fixed_point((np.asarray(1.0), np.asarray(0.7)), np.zeros(()), (255, 255))
    assert (255 + 255 + 1) / 2.0**fixed.shift < 2.0**-12


@pytest.mark.parametrize("steps", [(0.05, 0.03, 0.06), (0.05, 0.06), (0.1, 0.05, 0.1)])
def test_narrow_multipliers_decide_next_to_a_half_as_thirty_bits_do(steps):
    *operands, result = map(np.float32, steps)
    factors = tuple(np.asarray(float(step) / float(result)) for step in operands)
    peaks = (128,) * len(factors)
    pairs = tuple(np.ogrid[tuple(slice(-128, 129) for _ in factors)])
    wide, narrow = (
        requantize(pairs, made(factors, np.zeros(()), peaks), zero_point=0, low=-999, high=999)
        for made in (fixed_point, narrow_fixed_point)
    )
    np.testing.assert_array_equal(narrow, wide)


def test_wide_operands_are_not_compared_result_by_result(monkeypatch):
    """There would be sixteen million of them; each multiplier is then the nearest one."""
    monkeypatch.delattr(requantization, "requantize")
    scales, peaks = (0.03, 0.07), (2000, 2000)
    fixed = narrow_fixed_point(tuple(map(np.asarray, scales)), np.zeros(()), peaks)
    assert fixed is not None
    nearest = [round(scale * 2**fixed.shift) for scale in scales]
    assert [int(multiplier) for multiplier in fixed.multipliers] == nearest


@pytest.mark.parametrize(
    ("factor", "peak"), [(300.0, 128), (0.001, 2**20), (2.0**30, 1), (np.nan, 1)]
)
def test_large_factors_and_wide_operands_are_too_coarse_for_a_narrow_total(factor, peak):
    assert narrow_fixed_point((np.asarray(factor),), np.zeros(()), (peak,)) is None


@pytest.mark.parametrize("scale", [0.0, 1e-30])
def test_a_bias_beside_factors_of_next_to_nothing_does_not_overflow(scale):
    fixed = fixed_of([128], [scale], 100.25)
    assert computed([127], fixed, zero_point=3, low=-128, high=127) == 103


@pytest.mark.parametrize(
    ("scale", "peak", "bias"),
    [(2.0**30, 1, 0.0), (1.0, 2**30, 0.0), (0.1, 1, 2.0**30), (np.nan, 1, 0.0), (1.0, 1, np.inf)],
)
def test_what_may_not_fit_is_refused(scale, peak, bias):
    with pytest.raises(OverflowError):
        fixed_of([peak], [scale], bias)


@given(requantizations(), st.integers(-128, 127), st.integers(-128, 0), st.integers(0, 127))
def test_results_are_saturated_around_the_zero_point(case, zero_point, low, high):
    operands, peaks, scales, bias = case
    fixed = fixed_of(peaks, scales, bias)
    wide = computed(operands, fixed, zero_point=0, low=-(2**31), high=INT32_MAX)
    result = computed(operands, fixed, zero_point=zero_point, low=low, high=high)
    assert result == min(max(wide + zero_point, low), high)


def test_factors_for_each_channel_broadcast():
    fixed = fixed_point((np.array([0.5, 0.25]),), np.array([1.0, -1.0]), (100,))
    result = requantize((np.array([[4, 8], [100, -100]]),), fixed, zero_point=0, low=-128, high=127)
    assert result.tolist() == [[3, 1], [51, -26]]


@given(requantizations(), st.integers(-128, 127))
def test_the_c_requantizes_alike(kernels, case, zero_point):
    operands, peaks, scales, bias = case
    fixed = fixed_of(peaks, scales, bias)
    total = int(fixed.bias) << fixed.bias_shift
    total += sum(int(m) * q for m, q in zip(fixed.multipliers, operands, strict=True))
    expected = computed(operands, fixed, zero_point=zero_point, low=-128, high=127)
    assert kernels.requantize(total, fixed.shift, zero_point, -128, 127) == expected


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """entrain_arithmetic.h, compiled for this machine."""
    folder = tmp_path_factory.mktemp("kernels")
    header = Path(entrain.firmware.__file__).parent / "kernels" / "entrain_arithmetic.h"
    (folder / "kernels.c").write_text(
        f'#include "{header}"\n'
        "int32_t requantize(int64_t t, int32_t s, int32_t z, int32_t l, int32_t h);\n"
        "int32_t requantize(int64_t t, int32_t s, int32_t z, int32_t l, int32_t h)\n"
        "{ return entrain_requantize(t, s, z, l, h); }\n"
    )
    command = "cc -std=c11 -O2 -Wall -Wextra -Werror -Wconversion -shared -fPIC"
    subprocess.run([*command.split(), "-o", "k.so", "kernels.c"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "k.so"))
    integers = [ctypes.c_int32] * 3
    library.requantize.argtypes = [ctypes.c_int64, ctypes.c_int32, *integers]
    return library


TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def onnxruntime_quantizer(dtype):
    """QuantizeLinear and DequantizeLinear of a vector, by onnxruntime."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
        helper.make_tensor_value_info("scale", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("zero", TYPES[dtype], []),
    ]
    outputs = [
        helper.make_tensor_value_info("q", TYPES[dtype], ["n"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"]),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


@pytest.fixture(scope="module")
def sessions():
    return {dtype: onnxruntime_quantizer(dtype) for dtype in TYPES}


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40),
    st.floats(2.0**-20, 2.0**10, width=32),
    st.sampled_from(sorted(TYPES)),
    st.data(),
)
def test_quantize_and_dequantize_are_onnxruntimes(sessions, reals, scale, dtype, data):
    low, high = integer_range(dtype)
    zero = data.draw(st.integers(low, high))
    x = np.asarray(reals, np.float32)
    feeds = {"x": x, "scale": np.asarray(scale, np.float32), "zero": np.asarray(zero, dtype)}
    theirs, back = sessions[dtype].run(None, feeds)
    ours = quantize(x, scale, zero, dtype)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(dequantize(ours, scale, zero), back)


@pytest.mark.parametrize("dtype", sorted(TYPES))
def test_ties_go_to_the_even_step_as_in_onnxruntime(sessions, dtype):
    x = np.arange(-260, 260, dtype=np.float32) / 2
    feeds = {"x": x, "scale": np.asarray(1, np.float32), "zero": np.asarray(3, dtype)}
    np.testing.assert_array_equal(quantize(x, 1.0, 3, dtype), sessions[dtype].run(None, feeds)[0])
    assert quantize(np.array([0.5, 1.5, 2.5]), 1.0, 0, "int8").tolist() == [0, 2, 2]
