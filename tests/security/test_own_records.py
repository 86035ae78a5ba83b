"""`engine status` shows what this user's `engine start` wrote here, and nothing that came with a checkout."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine.cli.commands import status_command
from engine.cli.main import invoke
from engine.events import LiveStopped
from engine.live import own_records, status_file, turn_history
from engine.live.lag import Lag
from engine.live.observer import observing
from engine.live.status_record import aged
from engine.live.turn_history import TurnHistory
from tests.live.sequences import ORDERS, batch, started, text, turn

FILE = "target/live/status.json"


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "project.yml").write_text("name: shop\n")
    monkeypatch.chdir(root)
    return root


def run_once(root: Path, **options: Any) -> None:
    """A process that was observed, and has ended."""
    with observing(root / "target", {}) as observer:
        now = time.time()
        for event in (
            started(at=now, **options),
            *turn(at=now, rows=5, watermark="2026-01-01T00:00:00"),
            LiveStopped("x", text(now)),
        ):
            observer.on_event(event)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = invoke(["status", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


WAYS = [(), ("--watch",), ("--output", "json")]


@pytest.mark.parametrize("way", WAYS, ids=["text", "watch", "json"])
def test_what_came_with_a_checkout_is_not_shown(
    project: Path, capsys: pytest.CaptureFixture[str], user: Path, way: tuple[str, ...]
) -> None:
    run_once(project)
    assert "orders" in shown(capsys, *way)[1]
    shutil.rmtree(user)
    code, out = shown(capsys, *way)
    assert (code, "orders" in out) == (3, False)
    assert way == ("--output", "json") or "was not written here by you" in " ".join(out.split())
    assert way != ("--output", "json") or json.loads(out) == {"running": False}


@pytest.mark.parametrize("way", WAYS, ids=["text", "watch", "json"])
def test_a_record_of_another_folder_is_not_shown(
    project: Path, capsys: pytest.CaptureFixture[str], way: tuple[str, ...]
) -> None:
    run_once(project)
    other = project.parent / "other"
    shutil.copytree(project, other)
    code, out = shown(capsys, *way, "--project-dir", str(other))
    assert (code, "orders" in out) == (3, False)


HOSTILE = [
    b"", b"{}", b"[]", b"null", b"[" * 100_000, b"\xff", b'{"version": 1, "nodes": []}', b"9" * 10_000,
    json.dumps({"version": 1, "at": 0, "states": {"[red]\x1b[2J": 1}, "nodes": [{"name": "\x1b]0;x\x07"}], "pid": "[link=x]"}).encode(),
    b'{"a": 1, "seal": "' + b"0" * 64 + b'"}',
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("way", WAYS, ids=["text", "watch", "json"])
def test_a_file_without_a_seal_is_not_even_read(
    project: Path, capsys: pytest.CaptureFixture[str], content: bytes, way: tuple[str, ...]
) -> None:
    (project / "target/live").mkdir(parents=True)
    (project / FILE).write_bytes(content)
    code, out = shown(capsys, *way)
    assert (code, "\x1b" in out, "internal-error" in out, "Traceback" in out) == (3, False, False, False)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_read(project: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    run_once(project)
    path = project / FILE
    path.rename(project / "elsewhere")
    {"link": lambda: path.symlink_to(project / "elsewhere"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[
        kind
    ]()
    assert shown(capsys)[0] == 3


def test_a_large_file_is_not_taken_into_memory(project: Path) -> None:
    (project / "target/live").mkdir(parents=True)
    with (project / FILE).open("wb") as file:
        file.truncate(3 << 30)
    code = (
        "import resource, sys; from engine.cli.main import invoke\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({1 << 30}, {1 << 30}))\n"
        "sys.exit(invoke(['status']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=project)
    assert (done.returncode, done.stderr) == (3, ""), done.stderr
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2 << 20


def test_markup_and_sequences_of_a_sealed_record_are_text(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target's and a model's name are the project's, also where the record is this user's own."""
    with observing(project / "target", {}) as observer:
        event = started(at=time.time())
        observer.on_event(type(event)(event.run_id, "[red]dev\x1b[2J\n[/]", event.nodes, event.pid, event.at))
    for way in ((), ("--watch",)):
        out = shown(capsys, *way)[1]
        assert "\x1b" not in out


def test_a_key_that_others_could_have_written_proves_nothing(
    project: Path, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_once(project)
    key = user / "headrace/keys/records"
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    key.chmod(0o644)
    assert "orders" not in shown(capsys)[1]
    key.chmod(0o600)
    assert "orders" in shown(capsys)[1]
    content = key.read_bytes()
    key.unlink()
    (user / "elsewhere").write_bytes(content)
    key.symlink_to(user / "elsewhere")
    assert "orders" not in shown(capsys)[1]


def test_without_a_folder_for_the_key_a_running_process_is_not_said_to_be_down(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    with observing(project / "target", {}) as observer:
        observer.on_event(started(at=time.time()))
        observer.write(observer.status.to_json())
        code, out = shown(capsys)
    assert (code, "engine start runs" in out) == (1, True)


@pytest.mark.parametrize("name", ["x", "live/../x"])
def test_a_seal_is_for_one_content_and_one_place(tmp_path: Path, name: str) -> None:
    content = own_records.sealed(b'{"a": 1}', tmp_path, "x")
    assert json.loads(content)["a"] == 1
    assert own_records.verified(content, tmp_path, "x") == b'{"a": 1}'
    assert own_records.verified(content, tmp_path, "y") is None
    for at in range(len(content)):
        assert own_records.verified(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :], tmp_path, "x") is None
        assert own_records.verified(content[:at], tmp_path, "x") is None


def test_ages_are_those_of_now(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_once(project)
    now = time.time()
    monkeypatch.setattr(status_command.time, "time", lambda: now + 7200)
    out = shown(capsys)[1]
    assert "it ended 2 h ago" in out
    assert "2 h ago" in next(line for line in out.splitlines() if "orders" in line)
    record = json.loads(shown(capsys, "--output", "json")[1])
    first = status_file.read(project / "target")
    assert first is not None
    age = first["nodes"][0]["watermark_age_seconds"]
    assert age is not None
    assert record["nodes"][0]["watermark_age_seconds"] == pytest.approx(age + 7200, abs=60)


def test_unread_input_is_unread_for_longer_each_second(project: Path) -> None:
    with observing(project / "target", {}) as observer:
        observer.on_event(started(at=time.time()))
        observer.status.note_lags({ORDERS: (Lag("shop.orders", "files", 3, time.time() - 10),)})
        observer.on_event(batch(number=1))
    found = status_file.read(project / "target")
    assert found is not None
    later = aged(found, found["at"] + 100)["nodes"][0]
    assert later["lag_seconds"] == pytest.approx(110, abs=2)
    assert aged(found, found["at"] - 100)["nodes"][0]["lag_seconds"] == found["nodes"][0]["lag_seconds"]


def test_a_history_that_came_with_a_checkout_is_replaced(project: Path, user: Path) -> None:
    run_once(project)
    path = project / "target" / turn_history.FILE
    assert turn_history.turns(path)
    TurnHistory(project / "target").close()
    assert turn_history.turns(path), "the user's own stays"
    planted = project / "planted.db"
    with sqlite3.connect(planted) as db:
        db.executescript(
            "create table turns (id integer primary key, node text, end real, message text, begin real, bad, watermark);"
            "insert into turns values (1, 'planted', 9e9, 'planted', 0, 0, ''); pragma user_version = 2;"
        )
    planted.replace(path)
    history = TurnHistory(project / "target")
    history.close()
    assert "not written here by you" in history.note
    assert turn_history.turns(path) == []
    shutil.rmtree(user)
    assert "not written here by you" in TurnHistory(project / "target").note
