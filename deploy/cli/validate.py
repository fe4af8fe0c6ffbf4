"""``entrain validate``: does a device compute what the reference does?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group

from entrain.deploy.cli.options import AsJson, Device, Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.sheet import Name, Number, Sheet, Words
from entrain.deploy.cli.stages import board_named, data_of, run_or_small_default
from entrain.deploy.errors import DeviceRefused, Mismatch, UsageError, concerning
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from entrain.deploy.cli.progress import Stages
    from entrain.deploy.coprocessor import BlockRun
    from entrain.deploy.device.address import Address
    from entrain.deploy.device.client import Client
    from entrain.deploy.device.protocol import StackUse
    from entrain.deploy.lowering.artifact import LoweredModel
    from entrain.deploy.lowering.graph import Array
    from entrain.deploy.runs import Run
    from entrain.deploy.validation import Compared

Layers = Annotated[
    bool,
    typer.Option(
        "--layers",
        help="Compare every layer, on a build that sends them; a real board needs such a build.",
    ),
]


def validate(
    run: RunName = None,
    device: Device = None,
    layers: Layers = False,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Hold a device to the golden integers; exit 1 where it differs, the first layer named."""
    from entrain.deploy import pipeline, validation
    from entrain.deploy.coprocessor import is_block
    from entrain.deploy.device.address import QemuAddress, parse_address
    from entrain.deploy.lowering.artifact import read_lowered
    from entrain.deploy.measure import check_model

    out = Output(machine, quiet, verbose)
    address = QemuAddress() if device is None else parse_address(device)
    chosen = run_or_small_default(runs_dir, run, out)
    with shown_stages(out) as stages:
        pipeline.complete(chosen, data_of(chosen, stages), stages)
        model = read_lowered(chosen.lowered)
        golden = validation.read_golden(chosen.lowered, model)
        with (
            _connected(chosen, address, stages, trace=layers) as client,
            concerning(str(address)),
        ):
            block = None
            if is_block(client):
                compared, block = _compare_block(client, chosen, model, golden, layers=layers)
            else:
                check_model(client, chosen.name)
                compare = validation.compare_layers if layers else validation.compare_outputs
                compared = compare(client, model, golden)
            stack = _stack_use(client)
    diverging = validation.first_divergence(compared)
    inputs = len(golden[model.inputs[0].name])
    value = {
        "run": chosen.name,
        "inputs": inputs,
        "first_divergence": None if diverging is None else diverging.name,
        "layers": [asdict(each) for each in compared],
        "stack": None if stack is None else asdict(stack),
        "block": None if block is None else asdict(block),
    }
    kind = "output" if block is None and not layers else "layer"
    out.result(value, Group(_table(compared, model), _verdict(compared, kind, inputs)))
    if stack is not None:
        out.remark(f"Stack used, at most: {stack.used:,} of {stack.reserved:,} bytes (measured)")
    if block is not None:
        out.remark(
            f"{block.queries:,} queries answered by the block, one in "
            f"{block.cycles_per_query:,.1f} cycles of its clock (counted)"
        )
    if diverging is not None:
        raise Mismatch(
            str(diverging),
            where=f"{chosen.name} on {address}",
            remedy=_remedy(address, layers=layers or block is not None),
        )


def _remedy(address: Address, *, layers: bool) -> str:
    """What to do about a difference; what is emulated or simulated is of this run."""
    from entrain.deploy.device.address import SerialAddress

    if isinstance(address, SerialAddress):
        remedy = "flash this run's firmware, then validate again"
    else:
        remedy = "lower the model again; if that repeats, please report it with the model"
    return remedy if layers else f"{remedy}; --layers names the first layer"


def _connected(run: Run, address: Address, stages: Stages, *, trace: bool) -> Client:
    """The device; an emulator is started with a build of this run, a simulator with its block."""
    from entrain.deploy import pipeline
    from entrain.deploy.device import connect
    from entrain.deploy.device.address import FpgaSimAddress, QemuAddress
    from entrain.deploy.simulated_board import block_of, simulated_board

    if isinstance(address, QemuAddress):
        board = board_named(address.board, "--device")
        build = pipeline.build_trace if trace else pipeline.build
        return connect(address, build(run, board, stages).image)
    if isinstance(address, FpgaSimAddress):
        return connect(address, simulated_board(run, block_of(run), stages))
    with concerning(str(address)):
        return connect(address)


def _compare_block(
    client: Client, run: Run, model: LoweredModel, golden: dict[str, Array], *, layers: bool
) -> tuple[tuple[Compared, ...], BlockRun]:
    """The run's attention on a device that holds a block, not the whole network.

    Raises:
        UsageError: every layer is asked for.
        DeviceMissing: it is another network's block.
    """
    from entrain.deploy.coprocessor import check_block, compare_block
    from entrain.deploy.simulated_board import block_of

    if layers:
        raise UsageError(
            "the device holds a block, which computes one layer",
            where="--layers",
            remedy="leave --layers out: that layer is compared",
        )
    block = block_of(run)
    check_block(client, block.module, block.coprocessor.shape)
    compared, ran = compare_block(client, block.coprocessor, model, golden)
    return (compared,), ran


def _stack_use(client: Client) -> StackUse | None:
    """What the device has used of its stack; None from a board that does not watch it."""
    try:
        return client.stack()
    except DeviceRefused:
        return None


def _verdict(compared: tuple[Compared, ...], kind: str, inputs: int) -> str:
    """What came out, in a line."""
    where = f"on {_several(inputs, 'input')}"
    differing = sum(each.differing > 0 for each in compared)
    if differing:
        return f"{differing} of {_several(len(compared), kind)} not equal {where}"
    every = f"the {kind}" if len(compared) == 1 else f"all {len(compared)} {kind}s"
    return f"{every} equal {where}"


def _several(number: int, kind: str) -> str:
    return f"{number} {kind}" if number == 1 else f"{number} {kind}s"


def _table(compared: tuple[Compared, ...], model: LoweredModel) -> Sheet:
    does = {layer.name: layer.op for layer in model.layers}
    rows = [
        (
            each.name,
            does[each.name],
            f"{each.elements:,}",
            f"{each.differing:,}",
            f"{each.largest} steps" if each.differing else "",
        )
        for each in compared
    ]
    numbers = map(Number, ("elements", "differing", "largest"))
    return Sheet((Name("layer"), Words("does"), *numbers), rows)
