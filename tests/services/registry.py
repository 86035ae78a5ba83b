"""A real schema registry in a process of its own: Apicurio, through its Confluent-compatible interface, in memory.

A `Gateway` stands before one where a test needs what the registry has not: it asks for a password, counts what it is
asked, and refuses to serve when it is told to.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from tests.services import process, unpack

LOCK = Path(__file__).with_name("registry.json")
INTERFACE = "/apis/ccompat/v7"
_START_SECONDS = 90.0
_CALL_SECONDS = 30.0


@dataclass(slots=True)
class RegistryPart(process.Service):
    """A registry; it forgets everything when it stops.

    Attributes:
        folder: of its log.
        port: on the loopback interface.
    """

    folder: Path
    port: int = field(default_factory=process.free_port)

    @property
    def url(self) -> str:
        """What `schema_registries:` of a target names."""
        return f"http://127.0.0.1:{self.port}{INTERFACE}"

    def start(self) -> RegistryPart:
        """Start it, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        runner = next(unpacked().glob("*-runner.jar"))
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dquarkus.http.port={self.port}"]
        options += ["-Dquarkus.http.host=127.0.0.1", "-jar", str(runner)]
        self._process = process.start([str(find_java().path), *options], self.folder / "registry.log", self.folder)
        process.wait_until_ready(self._process, self._ready, self.folder / "registry.log", _START_SECONDS)
        return self

    def register(self, subject: str, schema: Any, kind: str = "AVRO", references: list[Any] | None = None) -> int:
        """Register a schema (JSON, or the text itself) and return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": references or []}
        answer: int = self.call("POST", f"/subjects/{subject}/versions", body)["id"]
        return answer

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request of its interface."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as response:
            return json.load(response)

    def _ready(self) -> bool:
        with contextlib.suppress(OSError):
            return isinstance(self.call("GET", "/subjects"), list)
        return False


def unpacked() -> Path:
    """The folder of the registry's program, fetched and unpacked once into the user's cache."""
    (archive,) = jar_paths(["registry"], fetch=True, java=None, lock=LOCK)
    folder = archive.with_name(archive.name.removesuffix(".tar.gz"))
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=archive.parent) as temporary:
            unpack(archive, Path(temporary))
            with contextlib.suppress(OSError):  # somebody else was first
                (Path(temporary)).rename(folder)
            Path(temporary).mkdir(exist_ok=True)
    return folder


@dataclass(slots=True)
class Gateway:
    """A proxy before a registry.

    Attributes:
        target: what it stands before.
        authorization: the header that it asks for; None: none.
        status: what it answers; None: what the target answers.
        times: how often it answers so; None: always.
        only: answers so to paths that begin with this; the others go through.
        delay: seconds before each answer.
        identity: files of a certificate and its key, with which it speaks TLS; None: plain http.
        asked: the paths it was asked for.
        refused: how many requests it has not served.
    """

    target: str
    authorization: str | None = None
    status: int | None = None
    times: int | None = None
    only: str = ""
    delay: float = 0.0
    identity: tuple[Path, Path] | None = None
    asked: list[str] = field(default_factory=list)
    refused: int = 0
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"http{'s' if self.identity else ''}://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, bytes, str]:
        """Status, body and type of an answer."""
        self.asked.append(handler.path)
        time.sleep(self.delay)
        chosen = handler.path.startswith(self.only) and (self.times is None or self.refused < self.times)
        if self.status is not None and chosen:
            self.refused += 1
            return self.status, b"", "text/plain"
        if self.authorization is not None and handler.headers.get("Authorization") != self.authorization:
            self.refused += 1
            return 401, b'{"error_code": 401, "message": "Unauthorized"}', "application/json"
        try:
            with urllib.request.urlopen(self.target + handler.path, timeout=_CALL_SECONDS) as response:
                return response.status, response.read(), response.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers.get("Content-Type", "text/plain")
        except OSError:
            self.refused += 1
            return 502, b"", "text/plain"

    @contextlib.contextmanager
    def serving(self) -> Iterator[Gateway]:
        """Serve as long as the block lasts."""
        self._listen(0)
        try:
            yield self
        finally:
            self._end()

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Nothing listens at the address as long as the block lasts."""
        assert self._server is not None
        port = self._server.server_address[1]
        self._end()
        try:
            yield
        finally:
            self._listen(port)

    def _end(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _listen(self, port: int) -> None:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body, kind = gateway.answer(self)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                if status in {301, 302, 307}:
                    self.send_header("Location", gateway.target + self.path)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if self.identity is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.identity)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[RegistryPart]:
    """A registry for as long as the block lasts."""
    part = RegistryPart(folder)
    try:
        yield part.start()
    finally:
        part.stop()
