"""The fixed list of the bench: names and networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from entrain.deploy.bench import shapes
from entrain.deploy.bench.ds_cnn import ds_cnn
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.operators.convolution import Convolution

NO_PADDING = (0, 0, 0, 0)
HEADS, TOKENS, D_HEAD = 2, 49, 16

POINTWISE = Convolution((1, 1), NO_PADDING, (1, 1), 1)
DEPTHWISE = Convolution((1, 1), (1, 1, 1, 1), (1, 1), 64)
FIRST = Convolution((2, 2), (4, 1, 5, 1), (1, 1), 1)

# attention mechanisms; of heads, tokens and channels a head
CORES: dict[str, Callable[[int, int, int], LoweredGraph]] = {
    "softmax": shapes.softmax_core,
    "softmax base 2": shapes.base2_core,
    "linear relu": partial(shapes.linear_core, "relu"),
    "linear elu": partial(shapes.linear_core, "elu"),
    "oscillator relu": partial(shapes.oscillator_core, "relu"),
    "oscillator softplus": partial(shapes.oscillator_core, "softplus"),
    "oscillator separable": partial(shapes.oscillator_core, "separable"),
}

# by name, in the order in which they are shown; made when asked for
CASES: dict[str, Callable[[], LoweredGraph]] = {
    **{
        f"fully connected {rows}x{inputs} -> {outputs}": partial(
            shapes.fully_connected, rows, inputs, outputs
        )
        for rows, inputs, outputs in ((49, 32, 32), (49, 32, 128), (49, 128, 32), (49, 40, 32))
    },
    "fully connected 49x32 -> 128, four bits": partial(
        shapes.fully_connected, 49, 32, 128, largest_weight=7
    ),
    "convolution 10x4 on 49x10x1 -> 64": partial(
        shapes.convolution, "convolution", (49, 10, 1), (64, 1, 10, 4), FIRST
    ),
    "pointwise 64 -> 64 on 25x5": partial(
        shapes.convolution, "pointwise", (25, 5, 64), (64, 64, 1, 1), POINTWISE
    ),
    "depthwise 3x3 on 25x5x64": partial(
        shapes.convolution, "depthwise", (25, 5, 64), (64, 1, 3, 3), DEPTHWISE
    ),
    "residual add 49x32": partial(shapes.residual_add, 49, 32),
    "layer norm 49x32": partial(shapes.layer_norm, 49, 32),
    "gelu 49x128": partial(shapes.gelu, 49, 128),
    **{
        f"attention core {name}": partial(core, HEADS, TOKENS, D_HEAD)
        for name, core in CORES.items()
    },
    "ds-cnn": ds_cnn,
}


def cores_of_length(tokens: int) -> dict[str, Callable[[], LoweredGraph]]:
    """Every attention core on sequences of another length, by the mechanism's name."""
    return {name: partial(core, HEADS, tokens, D_HEAD) for name, core in CORES.items()}
