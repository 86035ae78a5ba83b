"""`docs serve` under attack, over real sockets: clients that wait, trickle, flood or never read, and links."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.docs.page_access import PageAccess
from engine.docs.serve import Limits, serving

pytestmark = pytest.mark.slow

PAGE = b"<!doctype html><title>site</title>"
ACCESS = PageAccess("a-token-of-this-test-only", "the-session-of-this-test")
SHORT = 0.2
LONG = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "target" / "docs"
    (site / "data").mkdir(parents=True)
    (site / "index.html").write_bytes(PAGE)
    (site / "large.js").write_bytes(b" " * 30_000_000)
    return site


@contextmanager
def served(folder: Path, limits: Limits) -> Iterator[int]:
    with serving(folder, ACCESS, limits=limits) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def connect(port: int) -> closing[socket.socket]:
    return closing(socket.create_connection(("127.0.0.1", port), LONG))


def request(port: int, path: str = "/", more: str = "") -> bytes:
    head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {ACCESS.token}"
    return f"GET {path} HTTP/1.1\r\n{head}\r\n{more}\r\n".encode()


def everything(client: socket.socket) -> bytes:
    """What comes until the server closes."""
    received = b""
    try:
        while data := client.recv(1 << 16):
            received += data
    except ConnectionError:
        pass
    return received


def test_a_client_that_says_nothing_is_disconnected(folder: Path) -> None:
    with served(folder, Limits(request_seconds=SHORT)) as port, connect(port) as client:
        assert everything(client) == b""


def test_a_client_that_sends_a_byte_at_a_time_is_disconnected(folder: Path) -> None:
    """Each byte comes in time; all of them do not."""
    with served(folder, Limits(request_seconds=SHORT)) as port, connect(port) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ".encode())
        closed = False
        for _ in range(1000):
            if select.select([client], [], [], SHORT / 20)[0]:
                closed = everything(client) == b""
                break
            client.sendall(b"a")
        assert closed


def test_a_connection_that_is_kept_open_after_an_answer_is_closed(folder: Path) -> None:
    with served(folder, Limits(request_seconds=SHORT)) as port, connect(port) as client:
        client.sendall(request(port))
        assert everything(client).endswith(PAGE)


def test_a_client_that_does_not_take_its_answer_makes_room(folder: Path) -> None:
    with (
        served(folder, Limits(connections=1, request_seconds=LONG, answer_seconds=SHORT)) as port,
        connect(port) as client,
    ):
        client.sendall(request(port, "/large.js"))
        assert client.recv(1) == b"H"
        assert eventually(port).endswith(PAGE)


def test_no_more_connections_than_the_limit_are_held(folder: Path) -> None:
    with served(folder, Limits(connections=2, request_seconds=LONG)) as port:
        with connect(port) as first, connect(port) as second:
            for client in (first, second):
                client.sendall(request(port))
                assert client.recv(1) == b"H"
            with connect(port) as third:
                assert everything(third) == b""
            # Those that are held go on.
            first.sendall(request(port, "/nothing.html", "Connection: close\r\n"))
            assert b"404 Not Found" in everything(first)
        assert eventually(port).endswith(PAGE)


def eventually(port: int) -> bytes:
    """The page, as soon as there is room for a client."""
    for _ in range(1000):
        with connect(port) as client:
            try:
                client.sendall(request(port, more="Connection: close\r\n"))
                answer = everything(client)
            except ConnectionError:
                answer = b""
        if answer:
            return answer
        threading.Event().wait(SHORT / 20)
    return b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 4_000,
        b"a" * 20_000,
    ],
    ids=["line", "header", "headers", "noise"],
)
def test_a_long_head_is_not_read_to_its_end(folder: Path, head: bytes) -> None:
    with served(folder, Limits(head_bytes=4_000, request_seconds=LONG)) as port, connect(port) as client:
        try:
            client.sendall(head)
        except ConnectionError:
            return
        assert PAGE not in everything(client)


def test_a_head_of_the_allowed_length_is_answered(folder: Path) -> None:
    with served(folder, Limits(head_bytes=4_000, request_seconds=SHORT)) as port, connect(port) as client:
        for _ in range(3):
            client.sendall(request(port, more=f"X: {'a' * 3_000}\r\n"))
        assert everything(client).count(PAGE) == 3


def test_a_body_is_not_read_as_the_next_request(folder: Path) -> None:
    with served(folder, Limits(request_seconds=LONG)) as port, connect(port) as client:
        body = request(port)
        client.sendall(request(port, more=f"Content-Length: {len(body)}\r\n") + body)
        assert everything(client).count(PAGE) == 1


@pytest.mark.parametrize("path", ["/out.html", "/in.html", "/up/secret.html", "/inside/index.html", "/pipe.html", "/"])
def test_links_and_pipes_are_not_followed(folder: Path, path: str) -> None:
    secret = folder.parent.parent / "secret.html"
    secret.write_text("secret")
    (folder / "out.html").symlink_to(secret)
    (folder / "in.html").symlink_to(folder / "index.html")
    (folder / "up").symlink_to(secret.parent)
    (folder / "inside").symlink_to(folder)
    os.mkfifo(folder / "pipe.html")
    with served(folder, Limits(request_seconds=LONG)) as port, connect(port) as client:
        client.sendall(request(port, path, "Connection: close\r\n"))
        answer = everything(client)
    assert (b"200 OK" in answer) == (path == "/")
    assert b"secret" not in answer


@pytest.mark.parametrize("link", ["target", "target/docs"])
def test_a_site_that_is_a_link_is_not_served(tmp_path: Path, folder: Path, link: str, capsys) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "project.yml").write_text("name: lab\n")
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(folder.parent if link == "target" else folder)
    assert invoke(["docs", "serve", "--port", "0", "--project-dir", str(project)]) == 2
    assert "is a symbolic link" in capsys.readouterr().err


def test_a_folder_that_becomes_a_link_serves_nothing(tmp_path: Path, folder: Path) -> None:
    with served(folder, Limits(request_seconds=LONG)) as port, connect(port) as client:
        moved = folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(moved)
        client.sendall(request(port, more="Connection: close\r\n"))
        assert b"404 Not Found" in everything(client)
