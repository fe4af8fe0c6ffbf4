"""Which part may import which: the rules in pyproject.toml, held against deliberate breaches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINT_IMPORTS = Path(sys.executable).parent / "lint-imports"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages in which a test may write."""
    for package in ("models", "deploy", "firmware", "fpga"):
        shutil.copytree(
            ROOT / package,
            tmp_path / "entrain" / package,
            ignore=shutil.ignore_patterns("build", "__pycache__", "*.[ch]"),
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [str(LINT_IMPORTS), "--no-logo", "--no-cache"]
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("deploy/errors.py", "import entrain.deploy.meters", "import nothing of ours BROKEN"),
        ("deploy/arithmetic.py", "import entrain.models", "import nothing of ours BROKEN"),
        ("models/breach.py", "import entrain.deploy.report", "excepted BROKEN"),
        ("models/breach.py", "import entrain.fpga", "excepted BROKEN"),
        ("fpga/breach.py", "import entrain.models", "excepted BROKEN"),
        ("firmware/breach.py", "import entrain.deploy", "firmware imports nothing of ours BROKEN"),
        ("deploy/report/breach.py", "import entrain.deploy.cli", "deploy is layered"),
        ("deploy/lowering/breach.py", "import entrain.deploy.device", "deploy is layered"),
    ],
)
def test_a_forbidden_import_is_found(tree: Path, file: str, line: str, broken: str) -> None:
    with (tree / "entrain" / file).open("a") as source:
        source.write(f"\n{line}\n")
    outcome = lint_imports(tree)
    assert outcome.returncode == 1
    report = " ".join(outcome.stdout.split())
    assert broken in report
    assert f"(l.{len((tree / 'entrain' / file).read_text().splitlines())})" in report


def test_errors_may_be_imported_by_all(tree: Path) -> None:
    for package in ("models", "fpga", "deploy/report"):
        (tree / "entrain" / package / "user.py").write_text("import entrain.deploy.errors\n")
    outcome = lint_imports(tree)
    assert outcome.returncode == 0, outcome.stdout
