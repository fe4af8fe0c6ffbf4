"""The wheel holds all that runs and nothing else; every Python package is pinned exactly."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("models", "deploy", "firmware", "fpga")
NOT_SHIPPED = shutil.ignore_patterns("build", "__pycache__", "*.pyc", ".*")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the sources: a build leaves files beside what it builds."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=NOT_SHIPPED)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    return tree


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from a tree in which somebody has already compiled things."""
    sources = tmp_path_factory.mktemp("sources") / "tree"
    shutil.copytree(tree, sources)
    for leftover in (
        "firmware/build/mps2/a.o",
        "firmware/boards/build/a.o",
        "deploy/__pycache__/a.pyc",
    ):
        (sources / leftover).parent.mkdir(parents=True, exist_ok=True)
        (sources / leftover).write_text("left by a build")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(sources)], check=True)
    (archive,) = folder.glob("*.whl")
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


def test_wheel_holds_every_source_file_under_the_projects_name(tree: Path, wheel: set[str]) -> None:
    sources = {
        f"entrain/{path.relative_to(tree).as_posix()}"
        for folder in FOLDERS
        for path in (tree / folder).rglob("*")
        if path.is_file()
    }
    installed = {name for name in wheel if not name.split("/")[0].endswith(".dist-info")}
    assert installed == sources


def test_every_package_is_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    packages = {
        ".".join(["entrain", *path.parent.relative_to(ROOT).parts])
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
        if "build" not in path.parts
    }
    assert set(listed) == packages


def test_wheel_carries_the_licence(wheel: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines: list[str]) -> dict[str, str]:
    """Name to version of the requirements that name exactly one version."""
    matches = (re.fullmatch(r"([\w.-]+)==([\w.+!]+)", line.strip()) for line in lines)
    return {normalised(match[1]): match[2] for match in matches if match}


def declared_requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return [*project["dependencies"], *extras]


def test_direct_requirements_name_one_version_each() -> None:
    declared = declared_requirements()
    assert len(pins(declared)) == len(declared)


def test_everything_installed_with_them_is_pinned_too() -> None:
    direct = pins(declared_requirements())
    known = direct | pins((ROOT / "constraints.txt").read_text().splitlines())
    unpinned = {}
    waiting = list(direct)
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen or not installed_version(name):
            continue
        seen.add(name)
        if known.get(name) != installed_version(name):
            unpinned[name] = installed_version(name)
        waiting.extend(requirements_of(name))
    assert not unpinned


def installed_version(name: str) -> str | None:
    """The version without its local part, which tells torch's CPU wheels from the others."""
    try:
        return metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        return None


def requirements_of(name: str) -> list[str]:
    """Names that a distribution requires without an extra; torch pins its CUDA libraries itself."""
    lines = [line for line in metadata.requires(name) or [] if "extra ==" not in line]
    names = [normalised(re.match(r"[\w.-]+", line)[0]) for line in lines]
    return [name for name in names if not name.startswith(("nvidia-", "cuda-", "triton"))]
