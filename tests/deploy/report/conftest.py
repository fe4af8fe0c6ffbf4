"""A comparison as the harness writes it: four mechanisms, two boards, counted and modelled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from entrain.deploy.comparisons import Predictions, compare
from entrain.deploy.meters.modelled import CostCoefficients, CostModel
from entrain.deploy.results import Accuracy, Environment, Layer, Result, Results
from entrain.deploy.statistics import accuracy_interval, balanced_accuracy, confusion_matrix

LABELS = ("down", "eight", "five", "go", "left", "one", "right", "up", "zero")
MECHANISMS = {  # attention, coupling, accuracy, instructions of the attention core
    "softmax": (None, 0.940, 1_480_000),
    "oscillator relu": ("relu", 0.934, 910_000),
    "oscillator separable": ("separable", 0.937, 402_000),
    "uniform": (None, 0.939, 61_000),
}
LAYERS = (
    ("stem", "conv2d", 201_600),
    ("depthwise", "conv2d", 118_000),
    ("pointwise", "conv2d", 402_000),
    ("embed", "dense", 1_150_000),
    ("block_attention", "attention", None),
    ("block_expand", "dense", 690_000),
    ("block_contract", "dense", 458_000),
    ("mean", "mean", 2_100),
    ("classifier", "dense", 3_900),
)
M4 = CostCoefficients.model_validate(
    {
        "volts": 1.8,
        "cycles_per_instruction": {"value": 1.2, "low": 1.1, "high": 1.5, "source": "M4 timings"},
        "nanojoules_per_cycle": {"value": 0.35, "low": 0.3, "high": 0.4, "source": "L4R5 power"},
    }
)
M55 = CostCoefficients.model_validate(
    {"cycles_per_instruction": {"value": 1.1, "low": 0.9, "high": 1.6, "source": "M55 timings"}}
)
BOARDS = {
    "mps2-an386": ("Cortex-M4F", CostModel(M4, 25), 1.0),
    "mps3-an547": ("Cortex-M55", CostModel(M55, 32), 0.45),
}

ResultsMaker = Callable[..., Results]


def _prediction(accuracy: float, seed: int, board: str, name: str) -> Predictions:
    random = np.random.default_rng([seed, len(name)])  # the same answers on every board
    truth = np.random.default_rng(1).integers(0, len(LABELS), 450)
    wrong = random.random(450) > accuracy
    predicted = np.where(wrong, (truth + random.integers(1, 9, 450)) % 9, truth)
    speakers = tuple(f"speaker{index % 60}" for index in range(450))
    coupling, _, core = MECHANISMS[name]
    cpu, cost, share = BOARDS[board]
    layers = tuple(
        _layer(i, n, op, round(share * (count or core)), cost)
        for i, (n, op, count) in enumerate(LAYERS)
    )
    instructions = sum(layer.instructions or 0 for layer in layers) + 900
    confusion = confusion_matrix(truth, predicted, len(LABELS))
    correct = predicted == truth
    row = Result(
        run=f"keyword-{name.replace(' ', '-')}-{seed}",
        task="keyword",
        sample="clip",
        group="speaker",
        attention=name.split(maxsplit=1)[0],
        coupling=coupling,
        d_osc=2 if coupling else None,
        p=1.0 if coupling else None,
        seed=seed,
        split="test",
        data="synthetic speech",
        board=board,
        cpu=cpu,
        device=f"qemu:{board}",
        meter="modelled",
        toolchain="arm-none-eabi-gcc 12.2.1",
        parameters=46_000,
        macs=1_360_000,
        accuracy=Accuracy(
            float32=accuracy + 0.002,
            int8_host=float(correct.mean()),
            device=float(correct.mean()),
            balanced=balanced_accuracy(confusion),
            n=450,
            ci95=accuracy_interval(correct, speakers),
        ),
        labels=LABELS,
        confusion=tuple(tuple(int(v) for v in r) for r in confusion),
        mismatches=0,
        onnxruntime_agreement=0.998,
        instructions=instructions,
        cycles=cost.cycles(instructions),
        latency_ms=cost.latency_ms(instructions),
        energy_uj=cost.energy_uj(instructions),
        flash_bytes=61_000 + len(name),
        ram_bytes=21_500,
        arena_bytes=9_000,
        stack_bytes=1_200,
        board_flash_bytes=4 * 2**20,
        board_ram_bytes=4 * 2**20,
        layers=layers,
    )
    return Predictions(row, truth, predicted, speakers)


def _layer(index: int, name: str, op: str, instructions: int, cost: CostModel) -> Layer:
    cycles = cost.cycles(instructions)
    return Layer(
        id=index,
        name=name,
        op=op,
        attention=op == "attention",
        macs=1000,
        instructions=instructions,
        cycles=cycles.value,
        cycles_bounds=cycles.bounds,
    )


@pytest.fixture
def make_results() -> ResultsMaker:
    """Make a comparison over the mechanisms, boards and seeds asked for."""

    def make(
        mechanisms: tuple[str, ...] = tuple(MECHANISMS),
        boards: tuple[str, ...] = tuple(BOARDS),
        seeds: tuple[int, ...] = (0,),
        stopped: str | None = None,
    ) -> Results:
        found = [
            _prediction(MECHANISMS[name][1], seed, board, name)
            for board in boards
            for name in mechanisms
            for seed in seeds
        ]
        return Results(
            environment=Environment(
                created="2030-01-02T03:04:05+00:00",
                command="entrain compare keyword --boards mps2-an386,mps3-an547",
                platform="Linux x86_64",
                versions={"python": "3.11.7", "qemu": None},
            ),
            results=tuple(item.row for item in found),
            comparisons=compare(found),
            stopped=stopped,
        )

    return make
