"""``entrain compare`` and ``entrain demo``: mechanisms side by side on devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cli.options import (
    LARGEST_SEED,
    AsJson,
    BoardNames,
    DataDir,
    Device,
    Download,
    Epochs,
    Quiet,
    RunsDir,
    Samples,
    Standard12,
    TaskName,
    Verbose,
)
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import Stages, shown_stages
from entrain.deploy.cli.stages import (
    DEFAULT_TASK,
    board_named,
    names,
    read_data,
    recipe_of,
    task_named,
)
from entrain.deploy.cli.train import fetch
from entrain.deploy.errors import Mismatch, UsageError, concerning
from entrain.deploy.quantization.deployable import require_deployable
from entrain.deploy.recipe import open_run
from entrain.deploy.results_file import row_values
from entrain.deploy.runs import DEFAULT_ROOT, Run, comparison_folder
from entrain.deploy.target import Target
from entrain.deploy.tasks import Choices, Recipe

if TYPE_CHECKING:
    from entrain.deploy.comparison import Candidate
    from entrain.deploy.results import Results

MECHANISMS = "softmax,oscillator-relu,oscillator-separable,uniform"
DEMO_MECHANISMS = "softmax,oscillator-separable,uniform"
DEMO_BOARDS = "mps2-an386,mps3-an547"
DEMO_SAMPLES = 200

Mechanisms = Annotated[
    str, typer.Option("--attention", help="Attention mechanisms, separated by commas.")
]
Seeds = Annotated[str, typer.Option("--seeds", help="Seeds, separated by commas.")]
Name = Annotated[
    str | None, typer.Option("--name", help="Name of the comparison; without it, the time.")
]


def compare(
    task: TaskName = DEFAULT_TASK,
    attention: Mechanisms = MECHANISMS,
    seeds: Seeds = "0",
    boards: BoardNames = None,
    device: Device = None,
    samples: Samples = None,
    data_dir: DataDir = None,
    download: Download = False,
    standard_12: Standard12 = False,
    epochs: Epochs = None,
    name: Name = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Measure attention mechanisms side by side on devices; train what is missing first."""
    out = Output(machine, quiet, verbose)
    chosen, choices = task_named(task), Choices(data_dir, epochs, download, standard_12)
    numbers, mechanisms = _seeds(seeds), names(attention, "--attention")
    targets = _targets(boards, device)
    recipes = dict.fromkeys(  # each once, however often it is named
        recipe_of(chosen, mechanism, seed, choices) for seed in numbers for mechanism in mechanisms
    )
    _require_deployable(recipes)
    if download:
        fetch(chosen, data_dir, out)
    with concerning("--name"):
        folder = comparison_folder(runs_dir, name or datetime.now(UTC).strftime("%Y%m%d-%H%M%S"))
    _compare(tuple(recipes), targets, samples, folder, runs_dir, out)


def _require_deployable(recipes: Iterable[Recipe]) -> None:
    """What no device computes is told before anything is trained."""
    from entrain.models.attention import AttentionConfig

    for recipe in recipes:
        with concerning("--attention"):
            require_deployable(AttentionConfig.parse(recipe.attention))


def demo(
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """The whole road on synthetic speech and two emulated boards, in a few minutes."""
    compare(
        attention=DEMO_MECHANISMS,
        boards=DEMO_BOARDS,
        samples=DEMO_SAMPLES,
        name="demo",
        runs_dir=runs_dir,
        machine=machine,
        quiet=quiet,
        verbose=verbose,
    )


def _compare(
    recipes: Sequence[Recipe],
    targets: Sequence[Target],
    samples: int | None,
    folder: Run,
    runs_dir: Path,
    out: Output,
) -> None:
    from entrain.deploy.comparison import measure_all

    _require_tools(targets)
    with shown_stages(out) as stages:
        candidates = _candidates(recipes, runs_dir, samples, stages, out)
        measured = measure_all(candidates, targets, folder.results, stages)
    if measured.results.results:
        _show(measured.results, folder, out)
    if measured.ended_by is not None:
        raise measured.ended_by
    for row in measured.results.results:
        if row.mismatches:
            raise Mismatch(
                f"{row.mismatches} inputs of {row.run}: the device's bytes differ from this "
                "machine's, computed by the same C",
                where=row.device,
                remedy="flash the board again; if that repeats, please report it with the model",
            )


def _require_tools(targets: Sequence[Target]) -> None:
    """What will be needed after the training is asked for before it."""
    from entrain.deploy.build import require_programs
    from entrain.deploy.device.address import QemuAddress
    from entrain.deploy.device.qemu import find_emulator

    require_programs()
    if any(isinstance(target.address, QemuAddress) for target in targets):
        find_emulator()


def _show(results: Results, folder: Run, out: Output) -> None:
    """The table or the rows, and the page."""
    from entrain.deploy.report.page import write_page
    from entrain.deploy.report.table import results_table

    write_page(folder.report, results)
    out.result(row_values(results), results_table(results))
    out.remark(f"results: {folder.results}\nreport:  {folder.report}")


def _candidates(
    recipes: Sequence[Recipe],
    runs_dir: Path,
    samples: int | None,
    stages: Stages,
    out: Output,
) -> list[Candidate]:
    """Every recipe's run, brought to where it can be built, with the samples it is asked."""
    from entrain.deploy import pipeline
    from entrain.deploy.comparison import Candidate, chosen
    from entrain.deploy.lowering.artifact import read_lowered

    data = read_data(recipes[0], stages)
    part = chosen(data.test, samples)
    found = []
    for recipe in recipes:
        run = open_run(runs_dir, recipe)
        pipeline.complete(run, lambda: data, stages)
        checkpoint = pipeline.trained_network(run)
        pipeline.check_labels(run, checkpoint, data)
        if checkpoint.epochs < recipe.epochs:
            out.remark(
                f"{run.name} was interrupted after {checkpoint.epochs} of {recipe.epochs} "
                f"epochs; remove {run.checkpoint} to train it anew."
            )
        model = read_lowered(run.lowered)
        found.append(Candidate(run, model, checkpoint, recipe.data_name, part))
    return found


def _targets(boards: str | None, device: str | None) -> list[Target]:
    """The devices; a real one is asked for its name at once, for it may be missing."""
    named = [] if boards is None else names(boards, "--boards")
    known = [board_named(name, "--boards") for name in named]
    # Not before: it takes a while to import, and a misspelt board is told at once.
    from entrain.deploy.device import connect
    from entrain.deploy.device.address import QemuAddress, parse_address

    if device is None:
        known = known or [board_named(None, "--boards")]
        return [Target(board, QemuAddress(board.name)) for board in known]
    address = parse_address(device)
    if isinstance(address, QemuAddress):
        board = board_named(address.board, "--device")
        if known not in ([], [board]):
            raise UsageError(
                f"{address}, but --boards {boards}", where="--device", remedy="give one of the two"
            )
        return [Target(board, address)]
    if len(known) != 1:
        raise UsageError(
            "one device is one board", where="--device", remedy="name that board with --boards"
        )
    from entrain.deploy.measure import check_board

    with concerning(str(address)), connect(address) as client:
        check_board(client, known[0])
    return [Target(known[0], address)]


def _seeds(text: str) -> list[int]:
    found = names(text, "--seeds")
    if not all(seed.isascii() and seed.isdigit() and int(seed) <= LARGEST_SEED for seed in found):
        raise UsageError(
            f"seeds are whole numbers up to {LARGEST_SEED}, not {text!r}",
            where="--seeds",
            remedy="such as --seeds 0,1,2",
        )
    return [int(seed) for seed in found]
