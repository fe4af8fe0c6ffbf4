"""Scores in integers against the softmax in double precision."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from c_library import compile_c
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.boards import firmware_folder

PROGRAM = """
#include "scores.c"
void scores(const int8_t *logits, uint32_t count, int32_t least, double scale, uint32_t *result);
void scores(const int8_t *logits, uint32_t count, int32_t least, double scale, uint32_t *result) {
    scores_from_logits(logits, count, least, SCORE_OCTAVES(scale), result);
}
"""
MILLION = 1_000_000


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """A function: logits (int8 or uint8), scale -> millionths."""
    app = firmware_folder() / "app"
    library = compile_c(tmp_path_factory.mktemp("scores"), PROGRAM, f"-I{app}")

    def of(logits, scale):
        result = np.zeros(len(logits), np.uint32)
        least = np.iinfo(logits.dtype).min
        library.scores(
            logits.ctypes.data_as(ctypes.c_void_p),
            *(len(logits), least, ctypes.c_double(scale)),
            result.ctypes.data_as(ctypes.c_void_p),
        )
        return result.astype(np.int64)

    return of


def softmax(logits, scale):
    powers = np.exp(scale * (logits.astype(float) - float(logits.max())))
    return powers / powers.sum()


bytes_of_both_kinds = st.binary(min_size=1, max_size=40).flatmap(
    lambda raw: st.sampled_from(["int8", "uint8"]).map(lambda kind: np.frombuffer(raw, kind))
)


@given(logits=bytes_of_both_kinds, scale=st.floats(1e-9, 1e3))
def test_every_score_is_within_a_millionth_of_the_softmax(scores, logits, scale):
    found = scores(logits, scale)
    assert np.abs(found - MILLION * softmax(logits, scale)).max() <= 1.0


@pytest.mark.parametrize("scale", [0.0, 2.0**20, 2.0**40, float("inf")])
def test_no_scale_is_too_small_or_too_large(scores, scale):
    found = scores(np.array([-128, 127, 127, -128], np.int8), scale)
    expected = [250_000] * 4 if scale == 0 else [0, 500_000, 500_000, 0]
    assert found.tolist() == expected


def test_alike_logits_share(scores):
    assert scores(np.full(3, 7, np.int8), 0.1).tolist() == [333_333] * 3
