"""Pages on 127.0.0.1 are for whoever has the link: other users of the machine reach the port, and read nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from engine.cli.main import invoke
from engine.docs.page_access import VARIABLE, PageAccess, page_access
from engine.docs.serve import Additions, ServedAnswer, serving
from engine.errors import UsageError
from tests.docs.test_serve import ask_without
from tests.project.small_projects import write

ACCESS = PageAccess("the-token-of-the-link-1234", "the-session-of-the-cookie-1234")
PAGE = b"<!doctype html><head></head>rows of a customer"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    site = tmp_path / "docs"
    site.mkdir()
    (site / "index.html").write_bytes(PAGE)
    (site / "data.js").write_bytes(b"rows of a customer")

    def answers(path: str, _: str) -> ServedAnswer | None:
        return ServedAnswer("text/plain", b"ok" if path == "/healthz" else b"rows") if path != "/" else None

    added = Additions(
        lambda path, query: None if path == "/data.js" else answers(path, query), bytes, frozenset(["/healthz"])
    )
    with serving(site, ACCESS, additions=added) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def cookie(port: int, value: str = ACCESS.session) -> str:
    return f"headrace-{port}={value}"


WITHOUT = [
    {},
    {"Cookie": "headrace-{port}={token}"},
    {"Cookie": "headrace-1={session}"},
    {"Cookie": "headrace-{port}={session}x"},
    {"Cookie": "headrace-{port}="},
    {"Cookie": "xheadrace-{port}={session}"},
    {"Cookie": "a=b, headrace-{port}={session}"},
    {"Authorization": "Bearer {session}"},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer \xff"},
    {"Authorization": "Basic {token}"},
    {"Authorization": "{token}"},
    {"X-Token": "{token}"},
    {"Referer": "http://127.0.0.1:{port}/?token={token}"},
]


@pytest.mark.parametrize("headers", WITHOUT, ids=range(len(WITHOUT)))
@pytest.mark.parametrize(
    "path",
    ["/", "/index.html", "/data.js", "/live/log", "/nothing", "/healthz/", "/x?/healthz", "/?token=", "/?token=x", "/?token",
     "/?Token={token}", "/#?token={token}", "/?x=token={token}", "/?" + "a=1&" * 30 + "token={token}"],
)  # fmt: skip
def test_nobody_without_the_token_reads_anything(port: int, path: str, headers: dict[str, str]) -> None:
    values = {"port": port, "token": ACCESS.token, "session": ACCESS.session}
    sent = {name: text.format(**values) for name, text in headers.items()}
    for method in ("GET", "HEAD"):
        status, received, body = ask_without(port, path.format(**values), method, **sent)
        assert status == HTTPStatus.FORBIDDEN
        assert b"rows" not in body
        assert "set-cookie" not in received


def test_a_probe_needs_none(port: int) -> None:
    assert ask_without(port, "/healthz")[::2] == (200, b"ok")
    assert ask_without(port, "/healthz", Host="evil.example")[0] == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("path", ["/", "/index.html", "//", "/?x=1"])
def test_the_link_sets_a_cookie_and_leads_to_the_address_without_the_token(port: int, path: str) -> None:
    sign = "&" if "?" in path else "?"
    status, headers, body = ask_without(port, f"{path}{sign}token={ACCESS.token}")
    assert (status, headers["location"], body) == (HTTPStatus.SEE_OTHER, "/", b"")
    assert headers["set-cookie"] == f"{cookie(port)}; Path=/; HttpOnly; SameSite=Strict"
    assert headers["referrer-policy"] == "no-referrer"
    assert ACCESS.token not in str(headers)
    for more in ("", "a=b; ", 'other="{[;'):
        assert ask_without(port, "/", Cookie=f"{more}; {cookie(port)}")[::2] == (200, PAGE)
    status, headers, _ = ask_without(port, "/", Cookie=cookie(port))
    assert "set-cookie" not in headers


def test_a_path_of_the_link_leads_nowhere_else(port: int) -> None:
    for path in ("//evil.example/", "/\\evil.example/", "http://evil.example/", "///evil.example/index.html"):
        assert ask_without(port, f"{path}?token={ACCESS.token}")[1].get("location", "/") == "/"


def test_programs_send_the_token_as_a_bearer_or_in_the_query(port: int) -> None:
    assert ask_without(port, "/live/log", Authorization=f"bearer  {ACCESS.token}")[::2] == (200, b"rows")
    assert ask_without(port, f"/live/log?token={ACCESS.token}")[::2] == (200, b"rows")


@pytest.mark.parametrize("target", ["http://[", "http://[::1"])
def test_what_is_no_address_is_a_bad_request(port: int, target: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask_without(port, target, Host=f"127.0.0.1:{port}", Authorization=f"Bearer {ACCESS.token}")[0] == 400
    assert "Traceback" not in capfd.readouterr().err


def test_each_server_has_a_token_of_its_own_and_one_cookie_does_not_open_another() -> None:
    first, second = page_access({}), page_access({})
    assert len({first.token, first.session, second.token, second.session}) == 4
    assert min(map(len, (first.token, first.session))) >= 43
    assert first.token not in repr(first)


def test_the_variable_gives_the_token_but_not_the_session() -> None:
    env = {VARIABLE: "abcdefghijklmnopqrstuvwxyz"}
    assert page_access(env).token == env[VARIABLE]
    assert page_access(env).session != page_access(env).session
    for wrong in ("short", "a b" * 10, "a" * 201, "é" * 30, "a" * 30 + "\n"):
        with pytest.raises(UsageError, match=VARIABLE) as raised:
            page_access({VARIABLE: wrong})
        assert wrong not in str(raised.value)


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    root = write(tmp_path / "p", {"models/a.sql": "select 1 as one"})
    assert invoke(["docs", "generate", "--project-dir", str(root)]) == 0
    return root


@contextmanager
def docs_served(root: Path, stdout: int, **env: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-u",
        "-m",
        "engine",
        "docs",
        "serve",
        "--port",
        "0",
        "--no-reload",
        "--project-dir",
        str(root),
    ]
    with subprocess.Popen(command, stdout=stdout, text=True, env={**os.environ, **env}) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)


def words_of(line: str) -> str:
    return next(word for word in line.split() if word.startswith("http://"))


def waited(path: Path) -> str:
    for _ in range(400):
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text()
        threading.Event().wait(0.05)
    raise AssertionError(f"{path} was not written")


def test_the_printed_link_opens_the_site_and_its_file_is_the_owners(project: Path) -> None:
    with docs_served(project, subprocess.PIPE) as process:
        assert process.stdout is not None
        link = words_of(process.stdout.readline())
        file = project / "target/docs_link"
        assert file.read_text() == f"{link}\n"
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        url = urlsplit(link)
        assert url.port
        assert ask_without(url.port, "/")[0] == HTTPStatus.FORBIDDEN
        assert ask_without(url.port, f"/?{url.query}")[0] == HTTPStatus.SEE_OTHER
    assert not file.exists()


@pytest.mark.parametrize(("mode", "shown"), [(0o644, False), (0o640, False), (0o600, True)])
def test_a_file_that_others_read_does_not_get_the_token(
    project: Path, tmp_path: Path, mode: int, *, shown: bool
) -> None:
    log = tmp_path / "log"
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY, mode)
    os.fchmod(descriptor, mode)
    with docs_served(project, descriptor):
        text = waited(log)
        link = (project / "target/docs_link").read_text().strip()
        assert (link in text) == shown
        assert (urlsplit(link).query in text) == shown
        assert shown or "target/docs_link" in text
    os.close(descriptor)


def test_a_token_of_the_variable_is_not_printed(project: Path) -> None:
    token = "abcdefghijklmnopqrstuvwxyz0123456789"
    with docs_served(project, subprocess.PIPE, **{VARIABLE: token}) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert token not in line
        assert VARIABLE in line
        port = urlsplit(words_of(line)).port
        assert port
        assert ask_without(port, "/", Authorization=f"Bearer {token}")[0] == HTTPStatus.OK
