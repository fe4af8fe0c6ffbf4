"""The command line's frame: exit codes, errors, output, and where an option's value comes from."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from entrain.deploy import errors
from entrain.deploy.boards import boards
from entrain.deploy.cli import COMMANDS, main
from entrain.deploy.cli.options import AsJson, Quiet, RunsDir, Samples, Seed, Verbose
from entrain.deploy.cli.output import Output
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.errors import EntrainError
from entrain.deploy.runs import DEFAULT_ROOT, Run

HEAVY = ("torch", "tvm", "brevitas", "onnx", "onnxruntime", "matplotlib", "scipy", "numpy")


def probe(
    runs_dir: RunsDir = DEFAULT_ROOT,
    samples: Samples = None,
    seed: Seed = 0,
    machine: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print what its options came to."""
    output = Output(machine, quiet, verbose)
    value = {"runs_dir": str(runs_dir), "samples": samples, "seed": seed}
    output.remark("a remark")
    output.detail("a detail")
    with shown_stages(output) as stages, stages.stage(Run(runs_dir), "probing", 1) as step:
        step("[red]all done\x1b")
    output.result(value, "shown to a person")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(COMMANDS, "probe", probe)


@pytest.fixture
def entrain(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ending:
            main(arguments)
        out, err = capsys.readouterr()
        assert isinstance(ending.value.code, int)
        return ending.value.code, out, err

    return run


Entrain = Callable[..., tuple[int, str, str]]


def every_error() -> list[type[EntrainError]]:
    found = (getattr(errors, name) for name in dir(errors))
    return [one for one in found if isinstance(one, type) and issubclass(one, EntrainError)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["boards"],
        ["boards", "--nonsense"],
        ["repot"],
        ["compare", "--help"],
        ["compare", "nonsense"],
        ["compare", "--boards", "nope"],
    ],
)
def test_help_boards_and_errors_of_use_import_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom entrain.deploy.cli import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_lists_every_command(entrain: Entrain) -> None:
    code, out, _ = entrain("--help")
    assert code == 0
    for command in COMMANDS:
        assert command in out


def test_the_version_is_printed(entrain: Entrain) -> None:
    code, out, _ = entrain("--version")
    assert (code, out.split()[0]) == (0, "entrain")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["repot"], "repot"), (["boards", "--nope"], "--nope"), (["probe", "--seed", "x"], "--seed")],
)
def test_wrong_use_exits_2_and_names_what_is_wrong(
    entrain: Entrain, arguments: list[str], named: str
) -> None:
    code, out, err = entrain(*arguments)
    assert (code, out) == (2, "")
    assert named in err


@pytest.mark.parametrize("error", every_error(), ids=lambda error: error.__name__)
def test_an_error_is_printed_in_three_parts_and_gives_its_exit_code(
    entrain: Entrain, monkeypatch: pytest.MonkeyPatch, error: type[EntrainError]
) -> None:
    def fail() -> None:
        """Fail."""
        raise error("too [red]large[/]\x1b[2J", where="model.c:3", remedy="make it smaller")

    monkeypatch.setitem(COMMANDS, "fail", fail)
    code, out, err = entrain("fail")
    assert code == error.exit_code
    assert out == ""
    assert err.splitlines() == [
        "error: too [red]large[/]\\x1b[2J",
        "   at: model.c:3",
        "  try: make it smaller",
    ]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_what_the_operating_system_refuses_is_no_fault_of_ours(
    entrain: Entrain, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refused() -> None:
        """Be refused."""
        raise OSError(code, os.strerror(code), "/there/model.pt")

    monkeypatch.setitem(COMMANDS, "write", refused)
    ended, out, err = entrain("write")
    assert (ended, out) == (2, "")
    assert os.strerror(code)[1:] in err
    assert "at: /there/model.pt" in err
    assert "try: check the permissions there, and the space left" in err


def test_an_operating_system_error_of_another_sort_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> None:
        """Look for what is not there."""
        Path("nowhere").read_text()

    monkeypatch.setitem(COMMANDS, "broken", broken)
    with pytest.raises(FileNotFoundError):
        main(["broken"])


def test_ctrl_c_exits_130(entrain: Entrain, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        """Be interrupted."""
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "wait", interrupted)
    assert entrain("wait") == (130, "", "interrupted\n")


def test_a_fault_of_our_own_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        """Break."""
        raise ZeroDivisionError

    monkeypatch.setitem(COMMANDS, "broken", broken)
    with pytest.raises(ZeroDivisionError):
        main(["broken"])


def test_json_is_one_value_and_all_there_is_on_stdout(entrain: Entrain) -> None:
    code, out, err = entrain("probe", "--json", "--verbose")
    assert code == 0
    assert json.loads(out) == {"runs_dir": "runs", "samples": None, "seed": 0}
    for said in ("a remark", "a detail", "probing", "[red]all done\\x1b"):
        assert said in err


def test_quiet_leaves_the_result_alone(entrain: Entrain) -> None:
    assert entrain("probe", "--quiet") == (0, "shown to a person\n", "")


def test_details_need_verbose(entrain: Entrain) -> None:
    _, _, err = entrain("probe")
    assert "a remark" in err
    assert "a detail" not in err


def test_command_line_before_environment_before_file_before_default(
    entrain: Entrain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def samples(*arguments: str) -> object:
        return json.loads(entrain("probe", "--json", *arguments)[1])["samples"]

    assert samples() is None
    (tmp_path / "entrain.toml").write_text("[probe]\nsamples = 20\n")
    assert samples() == 20
    monkeypatch.setenv("ENTRAIN_SAMPLES", "30")
    assert samples() == 30
    assert samples("--samples", "40") == 40


def test_a_key_at_the_top_holds_for_every_command_and_a_table_for_one(
    entrain: Entrain, tmp_path: Path
) -> None:
    (tmp_path / "entrain.toml").write_text(
        'runs-dir = "everywhere"\nseed = 1\nquiet = true\n[probe]\nseed = 2\n'
    )
    _, out, err = entrain("probe", "--json")
    assert json.loads(out) == {"runs_dir": "everywhere", "samples": None, "seed": 2}
    assert err == ""


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("seed = 1\nrun-dir = 'x'\n", 2, "did you mean 'runs-dir'?"),
        ("[prob]\nseed = 1\n", 1, "did you mean 'probe'?"),
        ("seed = 1\n\n[boards]\nsamples = 3\n", 4, "known: json, quiet, verbose"),
    ],
)
def test_an_unknown_key_in_the_project_file_is_refused_with_its_line(
    entrain: Entrain, tmp_path: Path, text: str, line: int, remedy: str
) -> None:
    (tmp_path / "entrain.toml").write_text(text)
    code, _, err = entrain("probe")
    assert code == 2
    assert f"at: entrain.toml:{line}\n" in err
    assert f"try: {remedy}" in err


def test_a_wrong_value_in_the_environment_is_wrong_use(
    entrain: Entrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENTRAIN_SAMPLES", "many")
    code, _, err = entrain("probe")
    assert code == 2
    assert "--samples" in err


def test_boards_lists_those_there_are(entrain: Entrain) -> None:
    code, out, _ = entrain("boards", "--json")
    assert code == 0
    listed = {board["name"]: board["state"] for board in json.loads(out)}
    assert listed == {name: board.state for name, board in boards().items()}
    _, table, _ = entrain("boards")
    for name in listed:
        assert name in table
