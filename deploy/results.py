"""results.json: the contract between measuring and everything that reads what was measured.

A file is ``{schema, environment, results, comparisons}``; one row a (run, board). Accuracies are
fractions of 1. What does not apply is null. Every model is frozen and refuses unknown fields, so a
file from another version of Entrain is refused by name rather than half understood.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION: Literal[2] = 2

USUAL_EPSILON = 1 / 64

Kind = Literal["measured", "counted", "modelled"]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Interval = tuple[float, float]


class _Record(BaseModel):
    """Frozen, strict about names, and free of NaN and infinity, which JSON cannot hold."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class Figure(_Record):
    """A number and how it came about.

    ``measured`` by an instrument, ``counted`` exactly by the emulator, or ``modelled``: an estimate
    that always carries its bounds and its source. Energy also carries the volts and megahertz it
    holds at.
    """

    value: float
    kind: Kind
    low: float | None = None
    high: float | None = None
    volts: float | None = None
    mhz: float | None = None
    source: str | None = None

    @property
    def bounds(self) -> Interval | None:
        """Both bounds, or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @model_validator(mode="after")
    def _is_honest(self) -> Self:
        if self.kind == "modelled" and (self.low is None or self.high is None or not self.source):
            raise ValueError("a modelled figure needs low, high and source")
        if self.low is not None and self.low > self.value:
            raise ValueError(f"low {self.low} is above the value {self.value}")
        if self.high is not None and self.high < self.value:
            raise ValueError(f"high {self.high} is below the value {self.value}")
        return self


class Accuracy(_Record):
    """Fractions of ``n`` samples classified rightly.

    ``float32`` (written ``float``) by the trained network, ``int8_host`` by its integer twin on
    this machine, ``device`` on the board. ``balanced`` is the mean recall over the classes on the
    device and ``ci95`` the interval of ``device``.
    """

    float32: Fraction | None = Field(default=None, alias="float")
    int8_host: Fraction | None = None
    device: Fraction | None = None
    balanced: Fraction | None = None
    n: Count
    ci95: Interval | None = None


class Subset(_Record):
    """Accuracy on ``n`` of the samples: of the trained network (``float``), and on the board."""

    n: Count
    device: Fraction | None = None
    float32: Fraction | None = Field(default=None, alias="float")
    ci95: Interval | None = None


class Layer(_Record):
    """One lowered layer.

    ``cycles`` and their bounds, and ``energy_uj``, are of the kind of those of its row.
    ``attention`` says whether it is the core of an attention: all between the projections and the
    context.
    """

    id: int
    name: str
    op: str
    attention: bool = False
    macs: Count | None = None
    instructions: Count | None = None
    cycles: float | None = None
    cycles_bounds: Interval | None = None
    energy_uj: float | None = None


class Result(_Record):
    """What was found for one run on one board: a row of ``results``.

    ``instructions`` are always counted exactly, for one inference, as are those of ``layers``;
    ``mismatches`` counts inputs of which any output byte differs from the host's. ``confusion`` has
    a row a true class and a column a predicted one, in the order of ``labels``. ``subsets`` has the
    samples that are reported on their own too. ``complete`` is false where the device was lost
    before all the samples were through. ``sample`` is what one input is called, and ``group`` what
    several may share that makes them alike; null where each stands for itself.
    """

    run: str
    task: str
    attention: str
    coupling: str | None = None
    d_osc: int | None = None
    p: float | None = None
    epsilon: float | None = None
    anchors: str | None = None
    seed: int | None = None
    sample: str = "input"
    group: str | None = None
    split: str | None = None
    data: str | None = None
    board: str
    cpu: str | None = None
    device: str | None = None
    meter: str | None = None
    toolchain: str | None = None
    parameters: Count | None = None
    macs: Count | None = None
    accuracy: Accuracy | None = None
    labels: tuple[str, ...] | None = None
    confusion: tuple[tuple[Count, ...], ...] | None = None
    subsets: dict[str, Subset] | None = None
    mismatches: Count | None = None
    onnxruntime_agreement: Fraction | None = None
    instructions: Count | None = None
    cycles: Figure | None = None
    latency_ms: Figure | None = None
    energy_uj: Figure | None = None
    flash_bytes: Count | None = None
    ram_bytes: Count | None = None
    arena_bytes: Count | None = None
    stack_bytes: Count | None = None
    board_flash_bytes: Count | None = None
    board_ram_bytes: Count | None = None
    layers: tuple[Layer, ...] = ()
    complete: bool = True

    @property
    def mechanism(self) -> str:
        """The attention mechanism in words: ``softmax``, ``oscillator relu``, ...

        Settings other than the usual ones are named: ``oscillator relu d=4``.
        """
        words = [self.attention, self.coupling]
        words.append(f"d={self.d_osc}" if self.d_osc not in (None, 2) else None)
        words.append(f"p={self.p:g}" if self.p not in (None, 1) else None)
        words.append(f"eps={self.epsilon:g}" if self.epsilon not in (None, USUAL_EPSILON) else None)
        words.append(self.anchors if self.anchors != "learned" else None)
        return " ".join(word for word in words if word)

    @property
    def core_instructions(self) -> int | None:
        """Of the attention cores; None where none was counted or no layer is one."""
        counted = [
            layer.instructions
            for layer in self.layers
            if layer.attention and layer.instructions is not None
        ]
        return sum(counted) if counted else None

    @property
    def core_share(self) -> float | None:
        """The attention cores' share of the instructions."""
        core, whole = self.core_instructions, self.instructions
        return core / whole if core is not None and whole else None

    @property
    def amdahl_bound(self) -> float | None:
        """See :func:`amdahl_bound`; None where nothing was counted or no layer is a core."""
        core, whole = self.core_instructions, self.instructions
        return None if core is None or whole is None else amdahl_bound(core, whole)

    @model_validator(mode="after")
    def _confusion_is_square(self) -> Self:
        if self.confusion is not None:
            size = len(self.confusion)
            if any(len(row) != size for row in self.confusion):
                raise ValueError("confusion is not a square matrix")
            if self.labels is not None and len(self.labels) != size:
                raise ValueError(f"{len(self.labels)} labels for a confusion of {size} classes")
        return self


class SeedSummary(_Record):
    """The mean of a metric over training seeds, and the t interval of that mean.

    With ``baseline_mechanism`` the metric is that of ``mechanism`` less the baseline's, seed by
    seed.
    """

    type: Literal["seeds"] = "seeds"
    task: str
    board: str
    mechanism: str
    baseline_mechanism: str | None = None
    metric: str
    n_seeds: Count
    mean: float
    sd: float | None = None
    ci95: Interval | None = None


class PairedTest(_Record):
    """Two runs' predictions on the same samples: accuracy of ``run`` less that of ``baseline``.

    ``subset`` names those samples where they are not all. ``n_groups`` is null where samples stand
    for themselves.
    """

    type: Literal["paired"] = "paired"
    task: str
    board: str
    run: str
    baseline: str
    mechanism: str
    baseline_mechanism: str
    subset: str | None = None
    difference: float
    ci95: Interval
    p_value: Fraction
    method: str
    n: Count
    n_groups: Count | None = None


class Ratio(_Record):
    """A quantity of ``run`` over that of ``baseline``; modelled ones carry bounds, never a p."""

    type: Literal["ratio"] = "ratio"
    task: str
    board: str
    run: str
    baseline: str
    mechanism: str
    baseline_mechanism: str
    quantity: Literal["instructions", "cycles", "latency_ms", "energy_uj"]
    ratio: Figure


Comparison = Annotated[SeedSummary | PairedTest | Ratio, Field(discriminator="type")]


class Environment(_Record):
    """What the figures were made with; see :func:`entrain.deploy.environment.environment`."""

    created: str
    command: str
    platform: str
    versions: dict[str, str | None]


class Results(_Record):
    """A whole results.json. ``stopped`` says why the work ended early, where it did."""

    schema_version: Literal[2] = Field(default=SCHEMA_VERSION, alias="schema")
    environment: Environment
    results: tuple[Result, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    stopped: str | None = None


def amdahl_bound(core: int, whole: int) -> float | None:
    """How many times fewer instructions a model would take if its attention cores took none.

    No faster attention can gain more (G. M. Amdahl, "Validity of the single processor approach to
    achieving large scale computing capabilities", 1967). None where the cores are nothing or all.
    """
    return whole / (whole - core) if 0 < core < whole else None
