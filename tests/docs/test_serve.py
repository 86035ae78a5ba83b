"""The server of the site, over real sockets: this host only, this folder only."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.docs.page_access import PageAccess
from engine.docs.serve import serving
from tests.docs.build import small, written
from tests.project.small_projects import write

pytestmark = pytest.mark.slow

ACCESS = PageAccess("a-token-of-this-test-only", "the-session-of-this-test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "target" / "docs"
    written(site, small())
    (tmp_path / "target" / "secret.html").write_text("secret")
    (site / "notes.txt").write_text("no part of the site")
    (site / "out.html").symlink_to(tmp_path / "target" / "secret.html")
    (site / "up").symlink_to(tmp_path / "target")
    return site


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    with serving(folder, ACCESS) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """The answer to somebody with the token."""
    return ask_without(port, path, method, Authorization=f"Bearer {ACCESS.token}", **headers)


def ask_without(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/app.js?x=1", "text/javascript; charset=utf-8"),
        ("/data/index.js", "text/javascript; charset=utf-8"),
        ("/site.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ],
)
def test_the_site_is_served(port, folder, path, kind):
    status, headers, body = ask(port, path)
    assert (status, headers["content-type"]) == (200, kind)
    assert body == (folder / (path.partition("?")[0].strip("/") or "index.html")).read_bytes()
    assert headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self';" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/data", "/data/", "/up/secret.html", "/out.html", "/notes.txt", "/../secret.html", "/data/../../secret.html",
        "/%2e%2e/secret.html", "/..%2fsecret.html", "/%2e%2e%2fsecret.html", "//etc/passwd", "/%00", "/%ff",
        "/data/../index.html", "/" + "a" * 5000, "/nothing.html", "/..\\secret.html", "/./../secret.html",
    ],
)  # fmt: skip
def test_nothing_else_is(port, path):
    status, _, body = ask(port, path)
    assert (status, body) == (404, b"404 Not Found\n")


def test_an_absolute_target_is_the_same_file(port):
    status, _, body = ask(port, f"http://127.0.0.1:{port}/etc/passwd")
    assert (status, body) == (404, b"404 Not Found\n")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}.evil.example", ""]
)
def test_a_request_for_another_host_gets_nothing(port, host):
    status, _, body = ask(port, "/", Host=host.format(port=port))
    assert (status, body) == (403, b"403 Forbidden\n")


def test_localhost_is_this_host(port):
    assert ask(port, "/", Host=f"localhost:{port}")[0] == 200


def test_two_hosts_are_none(port):
    with socket.create_connection(("127.0.0.1", port), 10) as raw:
        raw.sendall(
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_files_are_read_and_nothing_else_is_done(port, method):
    status, headers, _ = ask(port, "/", method)
    assert status == 501
    assert "access-control-allow-origin" not in headers


def test_a_head_has_no_body(port):
    assert ask(port, "/", "HEAD")[0::2] == (200, b"")
    assert ask(port, "/nothing", "HEAD")[0::2] == (404, b"")


SOCKETS = Path("/proc/net/tcp")


@pytest.mark.skipif(not SOCKETS.exists(), reason="needs Linux's list of sockets")
def test_it_listens_on_this_machine_only(port):
    listening = [line.split() for line in SOCKETS.read_text().splitlines() if line.split()[3] == "0A"]
    mine = [fields[1] for fields in listening if int(fields[1].split(":")[1], 16) == port]
    assert mine == [f"0100007F:{port:04X}"]


def test_without_a_site_the_way_to_one_is_named(tmp_path, capsys):
    root = write(tmp_path, {"models/a.sql": "select 1 as one"})
    assert invoke(["docs", "serve", "--project-dir", str(root)]) == 2
    assert "Run engine docs generate first." in capsys.readouterr().err


def test_a_port_that_is_taken_is_a_usage_error(tmp_path, capsys, port):
    root = write(tmp_path / "p", {"models/a.sql": "select 1 as one"})
    assert invoke(["docs", "generate", "--project-dir", str(root)]) == 0
    assert invoke(["docs", "serve", "--port", str(port), "--project-dir", str(root)]) == 2
    assert f"port {port} cannot be used" in capsys.readouterr().err


def test_a_site_that_is_written_again_has_a_version_and_is_otherwise_the_same(folder: Path) -> None:
    number = iter(range(100))
    with serving(folder, ACCESS, version=lambda: f"v{next(number)}") as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            port = server.server_port
            status, headers, page = ask(port, "/")
            assert page == (folder / "index.html").read_bytes().replace(
                b"</body>", b'<script src="live.js" data-version="v0"></script>\n</body>'
            )
            assert int(headers["content-length"]) == len(page)
            assert (status, ask(port, "/index.html", "HEAD")[1]["content-length"]) == (200, str(len(page)))
            status, headers, script = ask(port, "/data/version.js?x")
            assert (status, script) == (200, b'headrace.put("version","v2");\n')
            assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
            assert ask(port, "/data/version.js", Host=f"evil.example:{port}")[0] == 403
            assert ask(port, "/", Host=f"evil.example:{port}")[0] == 403
            assert ask(port, "/live.js")[2] == (folder / "live.js").read_bytes()
        finally:
            server.shutdown()
            thread.join()


def test_without_a_version_there_is_none(port: int, folder: Path) -> None:
    assert ask(port, "/data/version.js")[0] == 404
    assert b"live.js" not in ask(port, "/")[2]
