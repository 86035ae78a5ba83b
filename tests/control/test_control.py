"""The private socket: one owner, its user alone, bounded requests, clients that leave; with real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine import control as private_socket
from engine.control import ControlServer, address, ask, socket_path
from engine.errors import SetupError, StateError
from tests.lab import wait_until


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Longer than the 108 bytes of an address.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("long" * 25) / "cache"))
    found = socket_path(tmp_path / "project", "dev")
    assert found is not None
    assert len(str(found)) > 120
    return found


CAME: list[Mapping[str, Any]] = []


def fails(_: Mapping[str, Any]) -> None:
    raise StateError("table-locked", "held", "Wait.")


def breaks(_: Mapping[str, Any]) -> None:
    raise ValueError("odd")


HANDLERS = {"note": CAME.append, "fails": fails, "breaks": breaks}
OWNER = """
    import sys, time
    from pathlib import Path
    from engine.control import ControlServer
    def slow(_):
        print("begun", flush=True)
        time.sleep(60)
    with ControlServer(Path(sys.argv[1]), {"slow": slow}):
        print("ready", flush=True)
        sys.stdin.read()
"""


@contextlib.contextmanager
def owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def raw(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    with address(path) as name:
        connection.connect(name)
    return connection


def received(connection: socket.socket) -> list[dict[str, object]]:
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            text += data
    return [json.loads(line) for line in text.splitlines()]


def answers(path: Path) -> bool:
    CAME.clear()
    return ask(path, "note", number=1) == os.getpid() and CAME == [{"number": 1}]


def test_a_request_reaches_its_handler_and_nobody_is_asked_when_the_owner_has_closed(path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ControlServer(path, HANDLERS):
        assert all(answers(path) for _ in range(50))
    assert ask(path, "note") is None
    assert ask(None, "note") is None
    assert list(path.parent.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_folder_and_the_socket_are_the_users_alone(path: Path) -> None:
    with ControlServer(path, HANDLERS):
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600
        path.parent.chmod(0o755)
        assert ask(path, "note") is None
        path.parent.chmod(0o700)


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SetupError) as caught:
        ControlServer(folder / "a.sock", {})
    assert caught.value.diagnostic.code == "control-folder"
    with pytest.raises(SetupError):
        ControlServer(None, {})


def test_names_differ_by_project_and_target(path: Path, tmp_path: Path) -> None:
    names = {socket_path(tmp_path / root, target) for root in ("project", "other") for target in ("dev", "prod")}
    assert len(names) == 4
    assert path in names


def test_errors_reach_the_client_with_their_codes(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ControlServer(path, HANDLERS):
        for name, code in (("fails", "table-locked"), ("breaks", "internal-error"), ("none", "request-invalid")):
            with pytest.raises(StateError) as caught:
                ask(path, name)
            assert caught.value.diagnostic.code == code
    assert "a request failed" in caplog.text


@pytest.mark.slow
def test_a_second_owner_sees_the_first_and_a_killed_one_leaves_nothing_in_the_way(path: Path) -> None:
    with owner(path) as first:
        with pytest.raises(StateError) as caught:
            ControlServer(path, HANDLERS)
        assert caught.value.diagnostic.code == "project-running"
        assert f"process {first.pid} " in str(caught.value)
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(ask, path, "slow")
            assert first.stdout is not None
            assert first.stdout.readline() == "begun\n"
            first.send_signal(signal.SIGKILL)
            with pytest.raises(StateError) as lost:
                asking.result(20)
        assert lost.value.diagnostic.code == "process-lost"
        assert f"process {first.pid}," in str(lost.value)
        first.wait()
    assert path.exists()
    assert ask(path, "note") is None
    with ControlServer(path, HANDLERS):
        assert answers(path)


@pytest.mark.slow
def test_of_many_that_start_at_once_one_owns_it(path: Path) -> None:
    def start(_: int) -> ControlServer | None:
        try:
            return ControlServer(path, HANDLERS)
        except StateError:
            return None

    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            owners = [s for s in pool.map(start, range(8)) if s is not None]
        assert len(owners) == 1
        owners[0].close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [b"garbage\n", b"[1]\n", b'{"do": 3}\n', b"\xff\xfe\n", b'{"do": "x"}\n' * 3, b"[" * 100_000 + b"\n"],
    ids=["garbage", "list", "number", "bytes", "several", "deep"],
)
def test_what_is_not_a_request_is_answered_and_the_server_lives(path: Path, data: bytes) -> None:
    with ControlServer(path, HANDLERS):
        with raw(path) as connection:
            connection.sendall(data)
            (answer,) = received(connection)
        assert answer["error"]["code"] == "request-invalid"  # type: ignore[index]
        assert answers(path)


@pytest.mark.slow
def test_half_lines_wait_for_their_end_and_for_a_bounded_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_socket, "REQUEST_SECONDS", 0.5)
    with ControlServer(path, HANDLERS), raw(path) as slow, raw(path) as never, raw(path) as silent:
        for byte in b'{"do": "note", "to": 1}\n':
            slow.sendall(bytes([byte]))
        never.sendall(b'{"do": "cou')
        begin = time.monotonic()
        for late in (received(never), received(silent)):
            assert late[0]["error"]["message"] == "no complete request came in time"  # type: ignore[index]
        assert 0.2 < time.monotonic() - begin < 10
        assert received(slow) == [{}]
        assert answers(path)


def test_a_line_without_an_end_is_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_socket, "LONGEST", 100_000)
    with ControlServer(path, HANDLERS), raw(path) as connection:
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.sendall(b"x" * 10_000)
        assert "longer than" in str(received(connection))


@pytest.mark.slow
def test_a_hundred_clients_at_once_and_more_than_it_serves(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    with ControlServer(path, HANDLERS):
        CAME.clear()
        with ThreadPoolExecutor(100) as pool:
            assert list(pool.map(lambda number: ask(path, "note", number=number), range(100))) == [os.getpid()] * 100
        assert sorted(request["number"] for request in CAME) == list(range(100))
        monkeypatch.setattr(private_socket, "CONNECTIONS", 2)
        waiting = [raw(path) for _ in range(2)]
        with pytest.raises(StateError) as caught:
            ask(path, "note")
        assert caught.value.diagnostic.code == "process-lost"
        for connection in waiting:
            connection.close()
        assert wait_until(lambda: threading.active_count() == before + 1)
        assert answers(path)
    assert threading.active_count() == before


@pytest.mark.slow
def test_closing_waits_for_what_runs_and_not_for_ever(path: Path) -> None:
    going_on = threading.Event()

    def wait(_: Mapping[str, Any]) -> None:
        going_on.wait(20)

    control = ControlServer(path, {"waits": wait})
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, path, "waits")
        assert wait_until(lambda: control._workers)
        threading.Timer(0.3, going_on.set).start()
        control.close()
        assert asking.result(20) == os.getpid()
    going_on.clear()
    control = ControlServer(path, {"waits": wait})
    with raw(path) as connection:
        connection.sendall(b'{"do": "waits"}\n')
        assert wait_until(lambda: control._workers)
        begin = time.monotonic()
        control.close(0.2)
        assert time.monotonic() - begin < 10
        assert not path.exists()
        going_on.set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_another_user_is_not_answered(path: Path) -> None:
    code = textwrap.dedent("""
        import os, socket, sys
        folder = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
        os.setgid(65534); os.setuid(65534)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{os.path.basename(sys.argv[1])}")
            connection.sendall(b'{"do": "note"}\\n')
            print(connection.recv(100))
        except OSError as error:
            print(type(error).__name__)
    """)

    def attempt() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        ).stdout

    with ControlServer(path, HANDLERS):
        assert attempt() == "PermissionError\n"
        # Where the modes were lost, the kernel's word on who asks is what counts.
        path.parent.chmod(0o777)
        path.chmod(0o777)
        assert attempt() in {"b''\n", "BrokenPipeError\n", "ConnectionResetError\n"}
        path.parent.chmod(0o700)
        assert answers(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_process_of_another_user_is_not_asked(path: Path) -> None:
    code = textwrap.dedent("""
        import os, socket, sys
        folder = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(sys.argv[1])}")
        os.setgid(65534); os.setuid(65534)
        listener.listen()
        print("ready", flush=True)
        sys.stdin.read()
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        assert raw(path).close() is None
        assert ask(path, "note") is None
    finally:
        process.communicate("")
