"""The packages of this checkout, built once for all tests of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import REPOSITORY


def build(project: Path, out: Path, *targets: str) -> None:
    """Build packages with the locked hatchling, without an environment of its own."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *targets]
    subprocess.run(command, cwd=project, check=True, capture_output=True)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    out = tmp_path_factory.mktemp("packages")
    build(REPOSITORY, out)
    return out


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    (found,) = packages.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(packages: Path) -> Path:
    (found,) = packages.glob("*.tar.gz")
    return found
