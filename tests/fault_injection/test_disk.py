"""The disk is full: the build stops and says so, and goes on once there is room, with every row once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fault_injection import shop
from tests.fault_injection.points import reached
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

    @property
    def full(self) -> bool:
        return (self.folder / "ballast").exists()

    def empty(self) -> None:
        (self.folder / "ballast").unlink()


@pytest.fixture
def mounted() -> Iterator[list[Path]]:
    """Folders to unmount at the end."""
    folders: list[Path] = []
    yield folders
    for folder in folders:
        subprocess.run(["umount", "--lazy", folder], check=True)  # Java may have files of it open


def small_disk(folder: Path, mounted: list[Path]) -> SmallDisk:
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", folder], capture_output=True, check=False, text=True
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    mounted.append(folder)
    return SmallDisk(folder)


@pytest.mark.gate
def test_a_full_disk_loses_no_row(lab: Lab, mounted: list[Path]) -> None:
    shop.prepare(lab)
    state = small_disk(lab.root / ".engine" / "state", mounted)
    warehouse = small_disk(lab.lake_path / "warehouse" / lab.schema, mounted)
    lab.build()
    shop.check(lab, later=False)
    before = lab.snapshots()
    shop.land_later(lab)

    def stopped_in_a_batch(disk: SmallDisk) -> set[str]:
        def fill(*_: object) -> None:
            if not disk.full:
                disk.fill()

        with reached("computing", fill):
            codes = stopped(lab)
        assert disk.full
        disk.empty()
        return codes

    assert stopped_in_a_batch(warehouse) == {"disk-full"}
    assert lab.snapshots() == before
    state.fill()
    assert stopped(lab) == {"state-unwritable"}
    assert lab.snapshots() == before
    state.empty()
    # What was committed to the tables by then could not be noted.
    assert stopped_in_a_batch(state) <= {"state-unwritable", "disk-full"}

    lab.build()
    shop.check(lab)
    again = lab.snapshots()
    lab.build()
    assert lab.snapshots() == again


def stopped(lab: Lab) -> set[str]:
    """Build and see it stopped, with a way on; the codes."""
    result = lab.run("build")
    assert result.code == 1, result.text
    assert result.codes(), result.text
    assert "Traceback" not in result.text
    assert all(e["hint"] for e in result.events if e["event"] == "Diagnosed")
    return set(result.codes())
