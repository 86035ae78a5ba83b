"""`engine status`, and the file and lock that it reads."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from threading import Event

import pytest

from engine.cli.main import invoke
from engine.errors import UsageError
from engine.events import NodeState, Status
from engine.live import turn_history
from engine.live.lag import Lag
from engine.live.live_server import _LivePages
from engine.live.observer import observing
from tests.lab import wait_until
from tests.live.sequences import ORDERS, batch, started, state, turn


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project.yml").write_text("name: shop\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = invoke(["status", *arguments])
    return code, capsys.readouterr().out


@pytest.mark.slow
def test_exit_codes_follow_what_happens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == (3, "engine start does not run, and has not run with this target folder\n")
    with observing(project / "target", {}, lambda: {ORDERS: (Lag("shop.orders", "files", 3),)}) as observer:
        now = time.time()
        for event in (started(at=now), *turn(at=now, rows=5)):
            observer.on_event(event)
        assert wait_until(lambda: "3 files" in shown(capsys)[1])
        code, text = shown(capsys)
        assert (code, "1 idle" in text, "orders" in text) == (0, True, True)
        for event in turn(number=2, at=now, status=Status.ERROR, message="the broker is away"):
            observer.on_event(event)
        assert wait_until(lambda: "the broker is away" in shown(capsys, "--output", "json")[1])
        code, text = shown(capsys, "--output", "json")
        record = json.loads(text)
        assert (code, record["running"], record["nodes"][0]["state"]) == (1, True, "backing off")
        # In the words of the pages.
        assert "failing, backing off" in shown(capsys)[1]
    assert shown(capsys)[0] == 3
    assert "does not run" in shown(capsys)[1]
    assert [row["status"] for row in turn_history.turns(project / "target/live/history.db")] == ["error", "success"]


def test_liveness_and_health_are_two_questions(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--live") == (3, "engine start does not run\n")
    beats = [time.monotonic()]
    with observing(project / "target", {}, beat=lambda: beats[0]) as observer:
        probe = _LivePages(observer, Event()).answer
        for event in (started(at=time.time()), *turn(at=time.time(), status=Status.ERROR, message="no broker")):
            observer.on_event(event)
        assert wait_until(lambda: "no broker" in shown(capsys)[1])
        assert (shown(capsys)[0], shown(capsys, "--live")) == (1, (0, "engine start works\n"))
        answers = [probe(path, "") for path in ("/livez", "/readyz", "/healthz")]
        assert [answer.status for answer in answers if answer] == [200, 200, 503]
        beats[0] -= 301
        assert wait_until(lambda: shown(capsys, "--live")[0] == 1)
        assert json.loads(shown(capsys, "--live", "--output", "json")[1]) == {"running": True, "alive": False}
        hung = probe("/livez", "")
        assert hung is not None
        assert (hung.status, hung.body) == (503, b"not alive\n")
    assert shown(capsys, "--live")[0] == 3


def test_two_processes_do_not_write_one_status(project: Path) -> None:
    with (
        observing(project / "target", {}),
        pytest.raises(UsageError, match="runs already"),
        observing(project / "target", {}),
    ):
        pass


@pytest.mark.slow
def test_a_killed_process_does_not_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = """
        import sys, time
        from pathlib import Path
        from engine.live.observer import observing
        from tests.live.sequences import started
        with observing(Path("target"), {}) as observer:
            observer.on_event(started(at=time.time()))
            time.sleep(2)
            print("up", flush=True)
            time.sleep(600)
    """
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{textwrap.dedent(code)}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert shown(capsys)[0] == 0
        process.kill()
    code_after, text = shown(capsys)
    assert (code_after, "it was killed" in text) == (3, True)


def test_nothing_of_a_message_reaches_the_terminal_raw(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with observing(project / "target", {}) as observer:
        observer.on_event(started(at=time.time()))
        observer.on_event(state(ORDERS, NodeState.FAILED, "\x1b[2Jgone[/]", time.time()))
    assert "\x1b[2J" not in shown(capsys)[1]
    assert "gone[/]" in shown(capsys, "--output", "json")[1]


def test_the_reason_of_bad_records_is_below_the_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with observing(project / "target", {}) as observer:
        observer.on_event(started(at=time.time()))
        reasons = {"shop.orders": "'\x1b[2Jamount' is not of type double"}
        observer.on_event(batch(rows_in=5, bad_records={"shop.orders": 2}, bad_reasons=reasons))
    text = shown(capsys)[1]
    assert "orders: records of shop.orders cannot be read, for example: '" in text
    assert "amount' is not of type double" in text
    assert "\x1b[2J" not in text


@pytest.mark.slow
def test_status_starts_without_spark_iceberg_and_sqlglot(project: Path) -> None:
    code = "import sys; from engine.cli.main import invoke; invoke(['status']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=project)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"pyspark", "pyiceberg", "pyarrow", "py4j", "sqlglot"})
