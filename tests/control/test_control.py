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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.control import Client, ControlServer, Request, connect, messages, server, socket_path
from engine.control.private_socket import address
from engine.errors import EngineError, SetupError, StateError


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Longer than the 108 bytes of an address.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("long" * 25) / "cache"))
    found = socket_path(tmp_path / "project", "dev")
    assert found is not None
    assert len(str(found)) > 120
    return found


def count(request: Request) -> Iterator[dict[str, object]]:
    for number in range(request["to"]):
        yield {"number": number}
    yield {"end": True, "sum": sum(range(request["to"]))}


def wait(request: Request) -> Iterator[dict[str, object]]:
    yield {"waiting": True}
    assert request.cancelled.wait(20)
    yield {"end": True, "signal": request.signal}


def fails(_: Request) -> Iterator[dict[str, object]]:
    raise StateError("table-locked", "held", "Wait.")


def breaks(_: Request) -> Iterator[dict[str, object]]:
    raise ValueError("odd")


HANDLERS = {"count": count, "wait": wait, "fails": fails, "breaks": breaks}
OWNER = """
    import sys, time
    from pathlib import Path
    from engine.control import ControlServer
    def slow(_):
        yield {"begun": True}
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


def asked(path: Path, name: str, **arguments: object) -> list[dict[str, object]]:
    client = connect(path)
    assert client is not None
    with client:
        return list(client.ask(name, **arguments))


def until(condition: object) -> None:
    deadline = time.monotonic() + 20
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_answers_are_a_stream_and_one_connection_serves_many_requests(path: Path) -> None:
    with ControlServer(path, HANDLERS):
        client = connect(path)
        assert client is not None
        assert client.pid == os.getpid()
        with client:
            for _ in range(200):
                assert list(client.ask("count", to=2)) == [{"number": 0}, {"number": 1}, {"end": True, "sum": 1}]
    assert connect(path) is None
    assert list(path.parent.iterdir()) == []


def test_the_folder_and_the_socket_are_the_users_alone(path: Path) -> None:
    with ControlServer(path, HANDLERS):
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600
        path.parent.chmod(0o755)
        assert connect(path) is None
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
                asked(path, name)
            assert caught.value.diagnostic.code == code
    assert "a request failed" in caplog.text


@pytest.mark.slow
def test_a_second_owner_sees_the_first_and_a_killed_one_leaves_nothing_in_the_way(path: Path) -> None:
    with owner(path) as first:
        with pytest.raises(StateError) as caught:
            ControlServer(path, HANDLERS)
        assert caught.value.diagnostic.code == "project-running"
        assert f"process {first.pid} " in str(caught.value)
        client = connect(path)
        assert client is not None
        assert client.pid == first.pid
        answers = client.ask("slow")
        assert next(answers) == {"begun": True}
        first.send_signal(signal.SIGKILL)
        with pytest.raises(StateError) as lost:
            next(answers)
        assert lost.value.diagnostic.code == "process-lost"
        first.wait()
    assert path.exists()
    assert connect(path) is None
    with ControlServer(path, HANDLERS):
        assert asked(path, "count", to=1)[-1] == {"end": True, "sum": 0}


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
            connection.shutdown(socket.SHUT_WR)
            answers = received(connection)
        assert all(answer["error"]["code"] == "request-invalid" for answer in answers)  # type: ignore[index]
        assert asked(path, "count", to=1)


@pytest.mark.slow
def test_half_lines_wait_for_their_end_and_for_a_bounded_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.5)
    with ControlServer(path, HANDLERS), raw(path) as slow, raw(path) as never:
        for byte in b'{"do": "count", "to": 1}\n':
            slow.sendall(bytes([byte]))
        never.sendall(b'{"do": "cou')
        begin = time.monotonic()
        answers = received(never)
        assert 0.2 < time.monotonic() - begin < 10
        assert answers[0]["error"]["message"] == "no complete request came in time"  # type: ignore[index]
        assert received(slow)[:2] == [{"number": 0}, {"end": True, "sum": 0}]


def test_a_line_without_an_end_is_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LONGEST", 100_000)
    with ControlServer(path, HANDLERS), raw(path) as connection:
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.sendall(b"x" * 10_000)
        assert "longer than" in str(received(connection))


@pytest.mark.slow
def test_a_client_that_leaves_cancels_its_request(path: Path) -> None:
    seen: list[Request] = []

    def noted(request: Request) -> Iterator[dict[str, object]]:
        seen.append(request)
        return wait(request)

    with ControlServer(path, {"wait": noted}) as control:
        client = connect(path)
        assert client is not None
        answers = client.ask("wait")
        assert next(answers) == {"waiting": True}
        assert control.busy
        client.close()
        until(seen[0].cancelled.is_set)
        assert seen[0].signal == 0
        until(lambda: not control.busy)


def test_a_client_passes_signals_on(path: Path) -> None:
    with ControlServer(path, HANDLERS):
        client = connect(path)
        assert client is not None
        answers = client.ask("wait")
        next(answers)
        client.cancel(signal.SIGTERM)
        assert next(answers) == {"end": True, "signal": signal.SIGTERM}


@pytest.mark.slow
def test_a_client_that_does_not_read_is_taken_for_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ANSWER_SECONDS", 0.5)
    sent = 0

    def endless(_: Request) -> Iterator[dict[str, object]]:
        nonlocal sent
        while True:
            sent += 1
            yield {"text": "x" * 10_000}

    with ControlServer(path, {"endless": endless}) as control, raw(path) as connection:
        connection.sendall(b'{"do": "endless"}\n')
        until(lambda: control.busy)
        until(lambda: not control.busy)
        assert 0 < sent < 1000


def test_descriptors_arrive_and_are_closed_afterwards(path: Path, tmp_path: Path) -> None:
    def writes(request: Request) -> Iterator[dict[str, object]]:
        os.write(request.files[0], b"written by the server")
        yield {"end": True, "files": len(request.files)}

    before = len(list(Path("/proc/self/fd").iterdir()))
    with ControlServer(path, {"writes": writes}), (tmp_path / "out").open("wb") as out:
        client = connect(path)
        assert client is not None
        with client:
            assert list(client.ask("writes", files=(out.fileno(),))) == [{"end": True, "files": 1}]
    assert (tmp_path / "out").read_bytes() == b"written by the server"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.slow
def test_a_hundred_clients_at_once(path: Path) -> None:
    before = threading.active_count()
    with ControlServer(path, HANDLERS):
        clients = [c for c in (connect(path) for _ in range(100)) if isinstance(c, Client)]
        assert len(clients) == 100

        def sums(client: Client) -> object:
            with client:
                return [list(client.ask("count", to=number))[-1]["sum"] for number in range(10)]

        with ThreadPoolExecutor(100) as pool:
            results = list(pool.map(sums, clients))
        assert results == [[sum(range(number)) for number in range(10)]] * 100
    assert threading.active_count() == before


def test_closing_cancels_what_runs(path: Path) -> None:
    control = ControlServer(path, HANDLERS)
    client = connect(path)
    assert client is not None
    answers = client.ask("wait")
    next(answers)
    control.close()
    # The handler's last words, or the end of the connection, whichever comes first.
    with contextlib.suppress(EngineError):
        assert next(answers) == {"end": True, "signal": 0}
    assert not path.exists()


@pytest.mark.slow
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
            connection.sendall(b'{"do": "count", "to": 1}\\n')
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
        assert asked(path, "count", to=1)


@pytest.mark.slow
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
        assert connect(path) is None
    finally:
        process.communicate("")
