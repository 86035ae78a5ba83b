"""What the project installs is pinned by version and hash, its own tools too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lab import REPOSITORY

LOCKS = sorted((REPOSITORY / "requirements").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_each_locked_package_has_one_version_and_hashes(lock: Path) -> None:
    entries = re.split(r"\n(?=\S)", lock.read_text())
    packages = [entry for entry in entries if not entry.startswith("#")]
    assert packages
    for package in packages:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.!+]+ ", package), package
        assert "--hash=sha256:" in package


def test_every_installation_takes_hashes() -> None:
    texts = [(REPOSITORY / "Makefile").read_text(), *(p.read_text() for p in (REPOSITORY / "scripts").glob("*.sh"))]
    lines = [line for text in texts for line in text.replace("\\\n", " ").splitlines()]
    installs = [
        line for line in lines if re.search(r"pip install|\$\(INSTALL\)", line) and not line.startswith("INSTALL")
    ]
    assert installs
    # make test-package installs the wheel as its users do, into an environment that is thrown away.
    allowed = ("--require-hashes", "--no-deps -e .", '"$wheel[java]"')
    assert [line for line in installs if not any(part in line for part in allowed)] == []
