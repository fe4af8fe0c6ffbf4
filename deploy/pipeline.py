"""The stages of a run, each from files to files in the run's folder.

``complete`` runs those whose result is missing or older than what it is made from, so a run can
stop anywhere and go on.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.boards import Board
from entrain.deploy.build import Audio, Firmware, build_firmware
from entrain.deploy.errors import CheckpointError, ModelError, UsageError, concerning
from entrain.deploy.files import folder_if_whole, replacing_folder, writing_whole
from entrain.deploy.lowering.artifact import FILE
from entrain.deploy.recipe import read_recipe, settings_of, task_of
from entrain.deploy.runs import Run, create_run
from entrain.deploy.tasks import TASKS

if TYPE_CHECKING:
    from entrain.deploy.tasks.contract import DataSet
    from entrain.models.checkpoint import Checkpoint
    from entrain.models.training import EpochReport

GOLDEN_INPUTS = 8
IMPORTED = "onnx"  # the task of a run that holds somebody else's ONNX file
# What the firmware announces as its model, by the run's task.
PROFILES = {**{name: task.profile for name, task in TASKS.items()}, IMPORTED: IMPORTED}

Step = Callable[[str], None]
LoadData = Callable[[], "DataSet[Any]"]


class Progress(Protocol):
    """Who is told how far a stage is."""

    def stage(self, run: Run, name: str, steps: int) -> AbstractContextManager[Step]:
        """A stage is under way while the block runs; it calls what it is given after each step.

        Args:
            run: whose stage.
            name: what it does.
            steps: how many there will be.

        Returns:
            A context manager that gives the function to call, with a remark, after each step.
        """


def train(run: Run, load: LoadData, progress: Progress) -> None:
    """model.pt from the data and the run's recipe.

    Interrupted, it keeps the best weights so far, unless model.pt already had more epochs.

    Raises:
        UsageError: the recipe makes no sense, or model.pt cannot be written.
        TrainingDiverged: the loss is no longer a number.
        KeyboardInterrupt: interrupted.
    """
    from entrain.models.checkpoint import save_checkpoint

    task, recipe, data = task_of(run), read_recipe(run), load()
    with progress.stage(run, "train", recipe.epochs) as step:
        trained = task.train(recipe, data, lambda report: step(_remark(report)))
        if not trained.interrupted or trained.checkpoint.epochs > _epochs_trained(run):
            with writing_whole(run.checkpoint) as temporary:
                save_checkpoint(temporary, trained.checkpoint)
        if trained.interrupted:
            raise KeyboardInterrupt


def quantize(run: Run, load: LoadData, progress: Progress) -> None:
    """quantized.pt from model.pt.

    Interrupted, it leaves quantized.pt as it was: a network tuned for a shorter time than its twin
    would be compared unfairly, and nobody would see it.

    Raises:
        CheckpointError: no usable checkpoint, or one of another network or of other classes.
        UsageError: the device cannot compute something in the network.
        KeyboardInterrupt: interrupted.
    """
    from entrain.deploy.quantize import QuantizationConfig, quantize_network, save_quantized

    recipe, checkpoint, data = read_recipe(run), trained_network(run), load()
    config = QuantizationConfig(epochs=recipe.quantization_epochs, seed=recipe.seed)
    check_labels(run, checkpoint, data)
    with progress.stage(run, "quantize", config.epochs) as step:
        quantized = quantize_network(checkpoint, data, config, lambda report: step(_remark(report)))
        if quantized.interrupted:
            raise KeyboardInterrupt
        save_quantized(run.quantized_checkpoint, quantized.network)


def export(run: Run, load: LoadData, progress: Progress) -> None:
    """model.onnx and golden_onnx.npz from quantized.pt.

    Raises:
        CheckpointError: the network was not quantized, or a file is damaged.
    """
    from entrain.deploy.export import export_onnx, write_golden_onnx
    from entrain.deploy.quantize import load_quantized

    checkpoint, data = trained_network(run), load()
    with progress.stage(run, "export", 1) as step:
        network = load_quantized(run.quantized_checkpoint, checkpoint)
        golden = data.validation.select(range(min(GOLDEN_INPUTS, len(data.validation))))
        inputs = task_of(run).inputs(golden, checkpoint)
        export_onnx(network, inputs[:1], run.onnx)
        write_golden_onnx(run.onnx, inputs.numpy(), run.golden_onnx)
        step("")


def lower(run: Run, _load: LoadData, progress: Progress) -> None:
    """The folder ``lowered`` from model.onnx.

    Raises:
        ModelError: the ONNX file is not usable.
        Mismatch: the C differs from the interpreter.
    """
    with progress.stage(run, "lower", 1) as step:
        step(_lower(run, run.onnx, run.lowered, PROFILES[_known_task(run)]))


def import_model(run: Run, onnx: Path, progress: Progress) -> None:
    """Somebody else's ONNX file as a run: a copy of it, weights and all, and what it is in C.

    They take their places once the file proved usable; until then the run is as it was.

    Raises:
        ModelError: the file is not usable.
        Mismatch: the C differs from the interpreter.
    """
    with (
        progress.stage(run, "lower", 1) as step,
        folder_if_whole(run.folder),
        # the copy is older than what is made of it, and in its place first
        replacing_folder(run.lowered) as lowered,
        writing_whole(run.onnx) as copy,
    ):
        copy.write_bytes(whole_model(onnx))
        said = _lower(run, onnx, lowered, IMPORTED)
        create_run(run.folder.parent, run.name, {"task": IMPORTED})
        step(said)


def whole_model(onnx: Path) -> bytes:
    """An ONNX file with the weights that lie in files beside it.

    Raises:
        ModelError: it is missing, no ONNX model, or its weights lie outside of its folder.
    """
    from entrain.deploy.lowering.onnx_file import load_onnx

    return bytes(load_onnx(onnx).SerializeToString())


def _lower(run: Run, onnx: Path, folder: Path, task: str) -> str:
    """Lower a file for a run; returns what there is to say of it."""
    from entrain.deploy.lowering import stage  # it takes seconds, which belong to the stage

    features = _golden_features(run)
    model = stage.lower(onnx, folder, task=task, name=run.name, features=features)
    return f"{len(model.layers)} layers, {model.arena_bytes:,} bytes of arena"


def build(run: Run, board: Board, progress: Progress) -> Firmware:
    """firmware-<board>.elf from the folder ``lowered``.

    Raises:
        ToolError: the compiler is not installed.
        DoesNotFit: the board is too small, by how many bytes.
    """
    again = f"'entrain lower --run {run.name}' writes its C anew"
    with concerning(board.name, again), progress.stage(run, f"build for {board.name}", 1) as step:
        firmware = build_firmware(board, run.lowered, run.firmware(board.name), audio=_audio(run))
        step(f"{firmware.flash_bytes:,} bytes of flash, {firmware.ram_bytes:,} of RAM")
    return firmware


def _audio(run: Run) -> Audio | None:
    """What the run's firmware hears by; None if its network answers clips, or no sound at all."""
    from entrain.deploy.listening.firmware import is_spotter, spotter_of
    from entrain.models.front_end.cmsis import cmsis_dsp

    if not is_spotter(run):
        return None
    return Audio(cmsis_dsp().folder, spotter_of(run).sources())


def build_trace(run: Run, board: Board, progress: Progress) -> Firmware:
    """firmware-<board>-trace.elf, which sends what every layer computes.

    Raises:
        ToolError: the compiler is not installed.
        DoesNotFit: the board is too small, by how many bytes.
    """
    image = run.firmware(f"{board.name}-trace")
    with concerning(board.name), progress.stage(run, f"trace build for {board.name}", 1) as step:
        firmware = build_firmware(board, run.lowered, image, trace=True)
        step("")
    return firmware


@dataclass(frozen=True)
class Stage:
    """A stage and its files.

    Args:
        make: does it.
        outputs: what it writes, in a run's folder.
        source: what it makes that from, if it is in the folder too.
    """

    make: Callable[[Run, LoadData, Progress], None]
    outputs: Callable[[Run], tuple[Path, ...]]
    source: Callable[[Run], Path] | None = None

    def is_due(self, run: Run) -> bool:
        """Whether an output is missing, or was made before its source."""
        outputs = self.outputs(run)
        if not all(path.is_file() for path in outputs):
            return True
        source = self.source(run) if self.source else None
        if source is None or not source.is_file():
            return False
        return min(map(_written, outputs)) < _written(source)


LOWER = Stage(lower, lambda run: (run.lowered / FILE,), lambda run: run.onnx)
# The stages of each task's runs, in order.
TRAINED: dict[str, Stage] = {
    "train": Stage(train, lambda run: (run.checkpoint,)),
    "quantize": Stage(
        quantize, lambda run: (run.quantized_checkpoint,), lambda run: run.checkpoint
    ),
    "export": Stage(
        export, lambda run: (run.onnx, run.golden_onnx), lambda run: run.quantized_checkpoint
    ),
    "lower": LOWER,
}
STAGES = {**dict.fromkeys(TASKS, TRAINED), IMPORTED: {"lower": LOWER}}


def complete(run: Run, load: LoadData, progress: Progress) -> None:
    """Every stage of the run whose result is missing or out of date.

    Args:
        run: its task says which stages it has.
        load: gives the data; called only by a stage that needs it.
        progress: is told.

    Raises:
        UsageError: the run is of a task that is unknown.
    """
    for stage in STAGES[_known_task(run)].values():
        if stage.is_due(run):
            stage.make(run, load, progress)


def redo(run: Run, load: LoadData, progress: Progress, last: str) -> None:
    """The stage called ``last``, whether due or not, and what is due of those before it.

    Raises:
        UsageError: the run is of a task that is unknown, or that has no such stage.
    """
    stages = STAGES[_known_task(run)]
    if last not in stages:
        raise UsageError(
            f"a run of the task {run.task!r} has no stage {last!r}",
            where=str(run.folder),
            remedy=f"its stages are: {', '.join(stages)}; choose another run with --run NAME",
        )
    for name, stage in stages.items():
        if name == last or stage.is_due(run):
            stage.make(run, load, progress)
        if name == last:
            return


def trained_network(run: Run) -> Checkpoint:
    """The checkpoint of a run, if it is what the run's recipe asks for.

    Raises:
        CheckpointError: it is missing, damaged, or of another network.
    """
    from entrain.models.checkpoint import load_checkpoint

    wanted = read_recipe(run).attention
    checkpoint = load_checkpoint(run.checkpoint)
    found = checkpoint.config.attention.slug
    if checkpoint.task != run.task:
        raise CheckpointError(
            f"the checkpoint is of the task {checkpoint.task}; the run's is {run.task}",
            where=str(run.checkpoint),
            remedy=f"put the run's own checkpoint back, or remove {run.checkpoint} to train anew",
        )
    if found != wanted:
        raise CheckpointError(
            f"the checkpoint is of a network with {found} attention; the run's is {wanted}",
            where=str(run.checkpoint),
            remedy=f"put the run's own checkpoint back, or remove {run.checkpoint} to train anew",
        )
    return checkpoint


def check_labels(run: Run, checkpoint: Checkpoint, data: DataSet[Any]) -> None:
    """Hold a network to the classes of the data.

    Raises:
        CheckpointError: it knows others.
    """
    from entrain.deploy import quantize as stage

    with concerning(f"{run.checkpoint}, {data.source}"):
        stage.check_labels(checkpoint, data)


def _known_task(run: Run) -> str:
    task = settings_of(run).get("task")
    if not isinstance(task, str) or task not in STAGES:
        raise UsageError(
            f"there is no task {task!r}",
            where=str(run.config),
            remedy=f"tasks there are: {', '.join(STAGES)}",
        )
    return task


def _epochs_trained(run: Run) -> int:
    """Of the checkpoint that is there; 0 if there is none that can be read."""
    try:
        return trained_network(run).epochs
    except CheckpointError:
        return 0


def _golden_features(run: Run) -> NDArray[Any] | None:
    """The features that the golden values belong to; None where the model came without any."""
    if not run.golden_onnx.is_file():
        return None
    try:
        with np.load(run.golden_onnx, allow_pickle=False) as golden:
            features: NDArray[Any] = golden["features"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"the golden values cannot be read ({error})",
            where=str(run.golden_onnx),
            remedy=f"run 'entrain export --run {run.name}' again",
        ) from error
    return features


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns


def _remark(report: EpochReport) -> str:
    return f"loss {report.loss:.3f}, validation {100 * report.validation:.1f} %"
