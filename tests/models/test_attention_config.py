from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.models.attention import AttentionConfig

POSITIVE = st.floats(min_value=1e-6, max_value=1e6)


@pytest.mark.parametrize(
    ("config", "slug", "title"),
    [
        (AttentionConfig(), "softmax", "softmax"),
        (AttentionConfig("uniform"), "uniform", "uniform"),
        (AttentionConfig("oscillator", "relu"), "oscillator-relu", "oscillator relu"),
        (AttentionConfig("oscillator", "separable", 8, 2.0), "oscillator-separable-d8-p2", None),
        (AttentionConfig("oscillator", "relu", epsilon=0.5), "oscillator-relu-eps0.5", None),
    ],
)
def test_a_mechanism_has_a_name_for_people_and_one_for_folders(
    config: AttentionConfig, slug: str, title: str | None
) -> None:
    assert config.slug == slug
    assert config.title == (title or slug.replace("-", " "))
    assert AttentionConfig.parse(slug) == config


@given(
    coupling=st.sampled_from(["relu", "separable"]),
    d_osc=st.integers(2, 64),
    exponent=POSITIVE,
    epsilon=POSITIVE,
)
def test_every_oscillator_is_read_back_from_its_slug(
    coupling: str, d_osc: int, exponent: float, epsilon: float
) -> None:
    config = AttentionConfig("oscillator", coupling, d_osc, exponent, epsilon)
    assert AttentionConfig.parse(config.slug) == config


@pytest.mark.parametrize(
    "arguments",
    [
        {"mechanism": "transformer"},
        {"mechanism": "oscillator"},
        {"mechanism": "oscillator", "coupling": "elu"},
        {"mechanism": "softmax", "coupling": "relu"},
        {"mechanism": "uniform", "d_osc": 4},
        {"mechanism": "oscillator", "coupling": "relu", "d_osc": 1},
        {"mechanism": "oscillator", "coupling": "relu", "exponent": 0.0},
        {"mechanism": "oscillator", "coupling": "relu", "exponent": float("nan")},
        {"mechanism": "oscillator", "coupling": "separable", "epsilon": 0.0},
        {"mechanism": "oscillator", "coupling": "softplus", "epsilon": 0.5},
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        AttentionConfig(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "slug", ["", "softmax-relu", "oscillator", "oscillator-relu-x3", "oscillator-relu-p1.2.3"]
)
def test_a_name_that_names_nothing_is_refused(slug: str) -> None:
    with pytest.raises(UsageError):
        AttentionConfig.parse(slug)
