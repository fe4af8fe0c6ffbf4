"""Generated Verilog in Icarus Verilog, driven by a small cocotb test: a second simulator's word.

It takes and gives what the Verilator simulation does, so that the same functions drive both. It is
a hundred times slower.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.errors import ToolError
from entrain.fpga.back_end.tools import tool_failed
from entrain.fpga.simulators.packing import Words
from entrain.fpga.simulators.verilator import Module, Simulator, Streams

TEST = "entrain.fpga.simulators.icarus_test"


class IcarusSimulator(Simulator):
    """A module that Icarus compiles for every run.

    Args:
        module: to be simulated.
        log: what Icarus and cocotb print.
    """

    def __init__(self, module: Module, log: Path) -> None:
        self._module, self._log = module, log

    def run(
        self,
        inputs: Mapping[str, Words],
        expected: Mapping[str, int],
        *,
        most_cycles: int,
        pauses: int = 0,
    ) -> Streams:
        """As :meth:`Simulator.run`.

        Raises:
            ToolError: Icarus or cocotb is missing or failed, or the module did not answer in time.
        """
        with tempfile.TemporaryDirectory(prefix="entrain-icarus-") as name:
            folder = Path(name)
            words = {channel.name: channel.words for channel in self._module.outputs}
            np.savez(
                folder / "streams.npz",
                allow_pickle=False,
                limits=np.array([most_cycles, pauses]),
                **{f"in {channel}": given for channel, given in inputs.items()},
                **{f"out {c}": np.array([expected[c], words[c]]) for c in words},
            )
            self._simulate(folder)
            answers = folder / "answers.npz"
            if not answers.is_file():
                raise ToolError(
                    f"{self._module.top} did not answer in Icarus within {most_cycles} cycles",
                    where=str(self._log),
                    remedy="look at the module: a stream that nobody reads, or a lost one",
                )
            return _answers(answers, words)

    def _simulate(self, folder: Path) -> None:
        runner = _runner()
        try:
            runner.build(
                sources=list(self._module.sources),
                hdl_toplevel=self._module.top,
                build_args=["-g2012"],
                build_dir=folder / "build",
                log_file=self._log,
                always=True,
            )
            runner.test(
                hdl_toplevel=self._module.top,
                test_module=TEST,
                build_dir=folder / "build",
                results_xml=str(folder / "results.xml"),
                extra_env={"ENTRAIN_STREAMS": str(folder), "COCOTB_LOG_LEVEL": "WARNING"},
                log_file=self._log,
            )
        except (RuntimeError, SystemExit) as error:  # the runner exits where a tool fails
            raise tool_failed("cocotb with Icarus", str(error), self._log) from error


def _runner() -> Any:
    """The runner of cocotb for Icarus.

    Raises:
        ToolError: one of the two is not installed.
    """
    if shutil.which("iverilog") is None:
        raise ToolError("Icarus Verilog is not installed", remedy="apt-get install iverilog")
    try:
        from cocotb_tools.runner import get_runner
        from find_libpython import find_libpython
    except ImportError as error:
        raise ToolError(
            "cocotb is not installed", remedy="pip install 'entrain-edge[fpga]'"
        ) from error
    if find_libpython() is None:
        raise ToolError(
            "Python's own shared library is not installed, and cocotb runs in it",
            remedy="apt-get install libpython3-dev",
        )
    runner = get_runner("icarus")
    runner.log.setLevel("ERROR")
    return runner


def _answers(path: Path, words: Mapping[str, int]) -> Streams:
    with np.load(path, allow_pickle=False) as answers:
        return Streams(
            {name: answers[f"words {name}"] for name in words},
            {name: answers[f"times {name}"] for name in words},
            int(answers["cycles"]),
        )
