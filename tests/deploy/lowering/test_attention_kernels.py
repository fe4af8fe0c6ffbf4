"""The C of softmax and linear attention equals numpy: on this machine, and on every core."""

from __future__ import annotations

import numpy as np
import pytest
from attention_cases import Numbers, Size, layer_of, linear_of, make_case, random_case, softmax_of
from kernel_programs import check_on_board, check_sanitized

from entrain.deploy.boards import boards

BOARDS = [board.name for board in boards().values() if board.emulator]
# one core for each instruction set; the others run the same instructions
SETS = ["mps2-an385-m0", "mps2-an386", "mps3-an547"]


def chosen(count, seed):
    """Layers and the integers that they read: fixed sizes first, then ``count`` random cases."""
    random = np.random.default_rng(seed)
    sizes = {
        "keyword": Size(2, 25, 25, 16, 16),
        "single": Size(1, 1, 1, 1, 1),
        "wide": Size(1, 2, 5, 68, 67),
        "long": Size(1, 3, 150, 6, 3),
    }
    cases = [make_case(name, size, Numbers(), random) for name, size in sizes.items()]
    cases += [random_case(f"any{number}", random, 2000.0) for number in range(count)]
    layers = [
        layer_of(case, softmax_of if place % 2 == 0 else linear_of)
        for place, case in enumerate(cases)
    ]
    swapped = [make_case(f"{name}_2", size, Numbers(), random) for name, size in sizes.items()]
    for place, case in enumerate(swapped):
        options = {} if place % 2 == 0 else {"base": 2.0}
        mechanism = linear_of if place % 2 == 0 else softmax_of
        layers.append(layer_of(case, mechanism, **options))
    stored = {name: array for case in (*cases, *swapped) for name, array in case.stored.items()}
    return layers, stored


@pytest.mark.parametrize("options", [(), ("-DENTRAIN_EMULATE_DSP",)], ids=["scalar", "dsp"])
def test_the_c_equals_numpy_under_sanitizers(tmp_path, options):
    check_sanitized(tmp_path, *chosen(8, 1), *options)


@pytest.mark.parametrize("board", SETS)
def test_every_instruction_set_equals_numpy(tmp_path, board):
    check_on_board(tmp_path, board, *chosen(4, 2))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 5))
@pytest.mark.parametrize("board", BOARDS)
def test_every_core_equals_numpy_for_many_cases(tmp_path, board, seed):
    check_on_board(tmp_path, board, *chosen(24, seed))
