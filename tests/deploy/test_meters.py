"""Modelled time and energy: arithmetic by hand, bounds always, joules only where published."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from entrain.deploy.meters.modelled import CostCoefficients, CostModel, modelled_ratio
from entrain.deploy.results import Figure

CYCLES = {"value": 1.25, "low": 1.0, "high": 1.5, "source": "timings"}
ENERGY = {"value": 0.4, "low": 0.3, "high": 0.5, "source": "power of an L4R5"}
M4 = CostCoefficients.model_validate(
    {"cycles_per_instruction": CYCLES, "nanojoules_per_cycle": ENERGY, "volts": 1.8}
)
M55 = CostCoefficients.model_validate({"cycles_per_instruction": CYCLES})


def numbers(figure: Figure | None) -> tuple[float, float, float]:
    assert figure is not None
    assert figure.low is not None
    assert figure.high is not None
    return figure.low, figure.value, figure.high


def test_a_million_instructions_at_25_mhz() -> None:
    model = CostModel(M4, mhz=25)
    assert numbers(model.cycles(1_000_000)) == pytest.approx((1.0e6, 1.25e6, 1.5e6))
    assert numbers(model.latency_ms(1_000_000)) == pytest.approx((40, 50, 60))
    assert numbers(model.energy_uj(1_000_000)) == pytest.approx((300, 500, 750))


def test_every_modelled_figure_says_so_and_what_it_rests_on() -> None:
    model = CostModel(M4, mhz=25)
    energy = model.energy_uj(1000)
    assert energy is not None
    assert (energy.kind, energy.volts, energy.mhz) == ("modelled", 1.8, 25)
    assert energy.source == "timings; power of an L4R5"
    assert model.cycles(1000).kind == model.latency_ms(1000).kind == "modelled"


def test_a_core_without_published_power_gets_no_joules() -> None:
    model = CostModel(M55, mhz=32)
    assert model.energy_uj(1000) is None
    assert numbers(model.latency_ms(32_000)) == pytest.approx((1.0, 1.25, 1.5))


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_bounds_of_a_ratio_hold_every_ratio_that_the_bounds_of_both_allow(
    one: int, other: int
) -> None:
    model = CostModel(M4, mhz=25)
    low, value, high = numbers(modelled_ratio(model.cycles(one), model.cycles(other)))
    assert value == pytest.approx(one / other)
    assert low == pytest.approx(one * 1.0 / (other * 1.5))
    assert high == pytest.approx(one * 1.5 / (other * 1.0))


def test_a_ratio_without_bounds_is_refused() -> None:
    cycles = Figure(value=3, kind="measured")
    with pytest.raises(ValueError, match="bounds"):
        modelled_ratio(cycles, cycles)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"cycles_per_instruction": {**CYCLES, "value": 2.0}},
        {"cycles_per_instruction": {**CYCLES, "low": 0.0}},
        {"cycles_per_instruction": {**CYCLES, "source": ""}},
        {"cycles_per_instruction": CYCLES, "nanojoules_per_cycle": ENERGY},
        {"cycles_per_instruction": CYCLES, "volts": 1.8},
        {"cycles_per_instruction": CYCLES, "watts": 1.8},
    ],
)
def test_coefficients_that_make_no_sense_are_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CostCoefficients.model_validate(table)
