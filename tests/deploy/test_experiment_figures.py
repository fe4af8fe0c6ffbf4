"""How an experiment's figures are written."""

from __future__ import annotations

import pytest

from entrain.deploy.cli.experiment_figures import ends, figure, signed, spread


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0.00"),
        (93.104, "93.10"),
        (1.9973, "1.997"),
        (0.4203, "0.4203"),
        (0.00421, "0.0042"),
        (-0.05, "\N{MINUS SIGN}0.050"),
        (204.25, "204.25"),
        (48216, "48,216"),
        (float("nan"), "nan"),
    ],
)
def test_a_figure_has_as_many_decimals_as_tell_it(value: float, written: str) -> None:
    assert figure(value) == written


def test_what_belongs_to_a_mean_has_its_decimals() -> None:
    assert spread(1.6164, 0.0041) == "1.616 ± 0.004"
    assert spread(97.938, 0.0842) == "97.94 ± 0.08"
    assert spread(97.938, None) == "97.94"
    assert ends((1.59, 1.6321), 1.616) == "1.590 to 1.632"
    assert signed(-0.0112, 1.9973) == "\N{MINUS SIGN}0.011"
    assert signed(0.25, 1.9) == "+0.250"
