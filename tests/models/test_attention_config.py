from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.errors import UsageError
from entrain.models.attention import MECHANISMS, AttentionConfig, build_attention
from entrain.models.attention.anchors import ANCHOR_KINDS
from entrain.models.attention.couplings import COUPLINGS
from entrain.models.attention.declarations import ANCHORS, DECLARATIONS
from entrain.models.attention.linear import FEATURES
from entrain.models.attention.mechanism import AttentionMechanism

POSITIVE = st.floats(min_value=1e-6, max_value=1e6)


@pytest.mark.parametrize(
    ("config", "slug", "title"),
    [
        (AttentionConfig(), "softmax", "softmax"),
        (AttentionConfig("uniform"), "uniform", "uniform"),
        (AttentionConfig("oscillator", "relu"), "oscillator-relu", "oscillator relu"),
        (AttentionConfig("oscillator", "separable", 8, 2.0), "oscillator-separable-d8-p2", None),
        (AttentionConfig("oscillator", "relu", epsilon=0.5), "oscillator-relu-eps0.5", None),
        (
            AttentionConfig("oscillator", "softplus", 4, anchors="rotation"),
            "oscillator-softplus-d4-rotation",
            None,
        ),
        (AttentionConfig("softmax-base2"), "softmax-base2", "softmax-base2"),
        (
            AttentionConfig("relu-normalised", epsilon=0.5),
            "relu-normalised-eps0.5",
            "relu-normalised eps0.5",
        ),
        (AttentionConfig("linear", "elu"), "linear-elu", None),
        (AttentionConfig("lowrank", "relu", 4), "lowrank-relu-d4", None),
        (AttentionConfig("none"), "none", None),
    ],
)
def test_a_mechanism_has_a_name_for_people_and_one_for_folders(
    config: AttentionConfig, slug: str, title: str | None
) -> None:
    assert config.slug == slug
    assert config.title == (title or slug.replace("-", " "))
    assert AttentionConfig.parse(slug) == config
    assert AttentionConfig.parse(config.title) == config


@st.composite
def configs(draw: st.DrawFn) -> AttentionConfig:
    """Any mechanism with any coupling and settings that it takes."""
    mechanism = draw(st.sampled_from(sorted(DECLARATIONS)))
    takes = DECLARATIONS[mechanism].takes
    coupling = draw(st.sampled_from(sorted(takes, key=str)))
    values = {
        "d_osc": st.integers(2, 64),
        "exponent": POSITIVE,
        "epsilon": POSITIVE,
        "anchors": st.sampled_from(ANCHORS),
    }
    settings = {name: draw(values[name]) for name in takes[coupling]}
    return AttentionConfig(mechanism, coupling, **settings)


@given(configs())
def test_every_mechanism_is_read_back_from_its_slug_and_title(config: AttentionConfig) -> None:
    assert AttentionConfig.parse(config.slug) == config
    assert AttentionConfig.parse(config.title.upper()) == config


@pytest.mark.parametrize(
    ("mechanism", "coupling"),
    [(name, coupling) for name in DECLARATIONS for coupling in DECLARATIONS[name].takes],
)
def test_every_declared_mechanism_can_be_built(mechanism: str, coupling: str | None) -> None:
    config = AttentionConfig(mechanism, coupling)
    module = build_attention(config, 8, 2, 5)
    assert isinstance(module, AttentionMechanism)
    assert type(module) is MECHANISMS[mechanism]
    assert module.multiply_adds(config, 8, 2, 5) >= 0


def test_what_is_declared_is_what_there_is() -> None:
    assert list(MECHANISMS) == list(DECLARATIONS)
    assert set(DECLARATIONS["oscillator"].takes) == set(COUPLINGS)
    assert set(DECLARATIONS["linear"].takes) == set(DECLARATIONS["lowrank"].takes) == set(FEATURES)
    assert set(ANCHORS) == set(ANCHOR_KINDS)


def test_names_are_checked_without_torch() -> None:
    program = (
        "import sys\n"
        "from entrain.models.attention import AttentionConfig\n"
        "AttentionConfig.parse('oscillator-relu-d4-rotation')\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


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
        {"mechanism": "oscillator", "coupling": "relu", "anchors": "fixed"},
        {"mechanism": "linear", "coupling": "elu", "epsilon": 0.5},
        {"mechanism": "linear", "coupling": "relu", "d_osc": 4},
        {"mechanism": "lowrank", "coupling": "relu", "exponent": 2.0},
        {"mechanism": "lowrank"},
        {"mechanism": "softmax", "anchors": "rotation"},
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        AttentionConfig(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("", r"(?s)not the name.*softmax, softmax-base2, .*lowrank-relu\[-dN\]\[-epsX\]"),
        ("nope", r"(?s)'nope' is not the name.*none"),
        ("softmax-relu", "softmax attention takes no coupling 'relu'"),
        ("softmax-base3", "not the name"),
        ("softmaxes", "not the name"),
        ("linear", "(?s)needs a coupling.*linear-relu, linear-elu"),
        ("oscillator", "(?s)needs a coupling.*oscillator-softplus, oscillator-relu"),
        ("oscillator-elu", "(?s)has no coupling 'elu'.*oscillator-separable"),
        ("linear-elu-d4", "(?s)linear-elu attention takes no d_osc.*no setting"),
        ("lowrank-elu-p2", "(?s)lowrank-elu attention takes no exponent.*takes d_osc"),
        ("oscillator-relu-x3", "not the name"),
        ("oscillator-relu-p1.2.3", r"'1\.2\.3' in 'oscillator-relu-p1\.2\.3' is not a number"),
    ],
)
def test_a_name_that_names_nothing_is_refused_with_the_choices(slug: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        AttentionConfig.parse(slug)
    assert re.search(message, str(caught.value))
