"""kill -9 in the middle of a build, then a build: the tables equal those of an undisturbed run.

The fault is planted in the killed process only; what the test then finds on disk proves that it fired
where it was meant to (for each kind of state see tests/fault_injection). The build after it runs in the shared session, over the same lake and state.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.fault_injection.shop import paid
from tests.lab import REPOSITORY, Lab, killed_alone
from tests.runtime.test_streams import HOURLY, hour

pytestmark = pytest.mark.spark

PLAIN = "/*---\nstreams: {shop.events: {max_files_per_trigger: 1}}\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"
COPY = "/*---\nstreams: [plain]\n---*/\nselect id from {{ ref('plain') }}\n"


@dataclass
class Shop:
    lab: Lab

    def windows(self) -> list[tuple[datetime, int, float]]:
        return sorted((r["hour"], r["n"], r["amount"]) for r in self.lab.rows("hourly"))

    def checkpoint(self, model: str) -> Path:
        return self.lab.state / model / "1" / "checkpoint"


@pytest.fixture
def shop(lab: Lab) -> Shop:
    lab.model("hourly", HOURLY)
    lab.model("plain", PLAIN)
    lab.model("copy", COPY)
    lab.land("a", [paid(1, "10:05"), paid(2, "10:50")])
    lab.land("b", [paid(3, "11:40"), paid(4, "10:45")])
    lab.land("c", [paid(5, "13:15")])
    return Shop(lab)


WINDOWS = [(hour(10), 3, 7.0), (hour(11), 1, 3.0)]


def check_tables(shop: Shop) -> None:
    assert shop.windows() == WINDOWS
    assert shop.lab.ids("plain") == [1, 2, 3, 4, 5]
    assert shop.lab.ids("copy") == [1, 2, 3, 4, 5]


@pytest.mark.gate
def test_a_stream_of_a_table_killed_after_its_commit_writes_its_rows_once(shop: Shop) -> None:
    killed_alone(shop.lab.root, "build", script=killing({"copy": ("committed", 0)}))
    assert spark_checkpoint.last_committed(shop.checkpoint("copy")) is None
    assert len(shop.lab.rows("copy")) == 5
    shop.lab.land("d", [paid(6, "13:20")])
    shop.lab.build()
    assert shop.lab.ids("copy") == [1, 2, 3, 4, 5, 6]


@pytest.mark.gate
def test_a_kill_between_making_a_table_and_its_state_is_made_good(shop: Shop) -> None:
    killed_alone(shop.lab.root, "build", "-s", "plain", script=killing({"plain": "created"}))
    assert shop.lab.table("plain") is not None
    assert shop.lab.model_json("plain")["phase"] == "building"
    shop.lab.build()
    check_tables(shop)


@pytest.mark.gate
def test_a_batch_table_killed_after_its_commit_is_built_again(shop: Shop) -> None:
    shop.lab.model("total", "select count(*) as n from {{ ref('plain') }}")
    killed_alone(shop.lab.root, "build", script=killing({"total": "replaced"}))
    assert [r["n"] for r in shop.lab.rows("total")] == [5]
    shop.lab.build()
    assert [r["n"] for r in shop.lab.rows("total")] == [5]
    assert shop.lab.model_json("total")["phase"] == "published"


@pytest.mark.nightly
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_asked_to_stop_ends_soon_and_the_next_goes_on(shop: Shop, sent: signal.Signals) -> None:
    for number in range(20):
        shop.lab.land(f"x{number:02}", [paid(100 + number, "13:20")])
    begin = time.monotonic()
    building = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "engine",
            "build",
            "-s",
            "plain",
            "--log-format",
            "json",
            "--project-dir",
            str(shop.lab.root),
        ],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert building.stdout is not None
    for line in building.stdout:
        if '"BatchCommitted"' in line:
            break
    asked = time.monotonic()
    building.send_signal(sent)
    out, err = building.communicate(timeout=600)
    # Ending takes less than starting, however busy the machine is.
    assert time.monotonic() - asked < asked - begin
    assert building.returncode == 128 + sent, out + err
    assert err in {
        f"{word}; the next build continues where this one stopped\n" for word in ("interrupted", "terminated")
    }
    assert not jvms_of(shop.lab.root)
    assert len(shop.lab.rows("plain")) < 25
    shop.lab.build("-s", "plain")
    assert shop.lab.ids("plain") == [1, 2, 3, 4, 5, *range(100, 120)]


def jvms_of(root: Path) -> list[str]:
    """Command lines of Java processes that log into the project."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace") if process.name.isdigit() else ""
            links = [str(p.readlink()) for p in (process / "fd").iterdir()] if "java" in line else []
        except OSError:
            continue
        if any(link.startswith(str(root)) for link in links):
            found.append(line)
    return found
