"""The disk is full: the build stops and says so, and goes on once there is room, with every row once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.runtime.writer import BatchWriter
from tests.faults import shop
from tests.lab import Lab

pytestmark = pytest.mark.spark

_SIZE = 8 << 20


@dataclass
class SmallDisk:
    """A file system of a few megabytes, mounted at a folder."""

    folder: Path

    def fill(self) -> None:
        """Leave not a byte free."""
        with (self.folder / "ballast").open("ab", buffering=0) as ballast:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        ballast.write(b"x" * size)
                except OSError:
                    continue
        assert os.statvfs(self.folder).f_bavail == 0

    def empty(self) -> None:
        (self.folder / "ballast").unlink()


@pytest.fixture
def mounted() -> Iterator[list[Path]]:
    """Folders to unmount at the end."""
    folders: list[Path] = []
    yield folders
    for folder in folders:
        subprocess.run(["umount", folder], check=True)


def small_disk(folder: Path, mounted: list[Path]) -> SmallDisk:
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", folder], capture_output=True, check=False, text=True
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    mounted.append(folder)
    return SmallDisk(folder)


@pytest.mark.parametrize("place", ["state", "warehouse"])
def test_a_full_disk_loses_no_row(lab: Lab, mounted: list[Path], monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    shop.prepare(lab)
    folder = lab.state if place == "state" else lab.lake_path / "warehouse" / lab.schema
    disk = small_disk(folder, mounted)
    lab.build()
    shop.check(lab, later=False)
    before = lab.snapshots()
    shop.land_later(lab)

    # Before anything starts, and in a micro-batch that is under way.
    disk.fill()
    stopped(lab)
    disk.empty()
    write = BatchWriter._write

    def filling(self: BatchWriter, *arguments: object) -> object:
        if not (disk.folder / "ballast").exists():
            disk.fill()
        return write(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as planted:
        planted.setattr(BatchWriter, "_write", filling)
        stopped(lab)
    if place == "warehouse":
        assert lab.snapshots() == before
    disk.empty()

    lab.build()
    shop.check(lab)
    again = lab.snapshots()
    lab.build()
    assert lab.snapshots() == again


def stopped(lab: Lab) -> None:
    """Build and see it stopped by the disk."""
    result = lab.run("build")
    assert result.code == 1, result.text
    assert result.codes(), result.text
    assert set(result.codes()) <= {"disk-full", "state-unwritable"}, result.text
    assert "Traceback" not in result.text
    assert all(e["hint"] for e in result.events if e["event"] == "Diagnosed")
