"""Iceberg's reference server of the REST protocol in a process of its own, from locked jars, and a door before it.

The catalog behind it is a SQLite file, so that it knows after a kill what it knew before. The door asks for tokens as
an OAuth server issues them, forbids, and loses answers of commits that were made.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from engine.spark._pyspark import pyspark_home
from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from tests.services import process

LOCK = Path(__file__).with_name("iceberg_rest.json")
# Of Spark: Hadoop's configuration, which the catalog wants, and what Hadoop logs with.
_OF_SPARK = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "jcl-over-slf4j-*.jar")
_START_SECONDS = 60.0
_CALL_SECONDS = 30.0
# Iceberg's own main class listens on all interfaces; this is what it sets up, on one.
_SETUP = """<?xml version="1.0"?>
<!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "https://jetty.org/configure_10_0.dtd">
<Configure id="Server" class="org.eclipse.jetty.server.Server">
 <Call name="addConnector"><Arg><New class="org.eclipse.jetty.server.ServerConnector">
  <Arg><Ref refid="Server"/></Arg><Set name="host">127.0.0.1</Set><Set name="port">{port}</Set>
 </New></Arg></Call>
 <Set name="handler"><New class="org.eclipse.jetty.ee10.servlet.ServletContextHandler">
  <Call name="addServlet"><Arg><New class="org.eclipse.jetty.ee10.servlet.ServletHolder">
   <Arg><New class="org.apache.iceberg.rest.RESTCatalogServlet">
    <Arg><New class="org.apache.iceberg.rest.RESTCatalogAdapter"><Arg>
     <Call class="org.apache.iceberg.CatalogUtil" name="buildIcebergCatalog"><Arg>backend</Arg><Arg><Map>
      <Entry><Item>catalog-impl</Item><Item>org.apache.iceberg.jdbc.JdbcCatalog</Item></Entry>
      <Entry><Item>uri</Item><Item>jdbc:sqlite:{folder}/backend.db</Item></Entry>
      <Entry><Item>jdbc.schema-version</Item><Item>V1</Item></Entry>
      <Entry><Item>warehouse</Item><Item>{warehouse}</Item></Entry>
     </Map></Arg><Arg><New class="org.apache.hadoop.conf.Configuration"/></Arg></Call>
    </Arg></New></Arg></New></Arg></New></Arg><Arg>/*</Arg></Call>
 </New></Set>
</Configure>
"""


@dataclass(slots=True)
class RestServer(process.Service):
    """A server over a folder; it can be stopped and started again, with what it holds."""

    folder: Path
    port: int = field(default_factory=process.free_port)

    @property
    def url(self) -> str:
        """The address of the catalog."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def warehouse(self) -> Path:
        """Where it has its tables."""
        return self.folder / "warehouse"

    def start(self) -> RestServer:
        """Start it, and wait until it answers."""
        if self.running:
            return self
        self.folder.mkdir(parents=True, exist_ok=True)
        setup = self.folder / "jetty.xml"
        setup.write_text(_SETUP.format(port=self.port, folder=self.folder, warehouse=self.warehouse.as_uri()))
        # Ivy takes one jar of a module at a time.
        jars = [jar for name in ("rest", "tests") for jar in jar_paths([name], fetch=True, java=None, lock=LOCK)]
        jars.append(jar_paths(["core"], fetch=True, java=None)[-1])
        jars += [next((pyspark_home() / "jars").glob(name)) for name in _OF_SPARK]
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(map(str, jars))]
        command = [str(find_java().path), *options, "org.eclipse.jetty.xml.XmlConfiguration", str(setup)]
        self._process = process.start(command, self.folder / "log.txt", self.folder)
        process.wait_until_ready(self._process, self._ready, self.folder / "log.txt", _START_SECONDS)
        return self

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/config", timeout=_CALL_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@dataclass(slots=True)
class Door:
    """A proxy before the server.

    Attributes:
        target: the server's address.
        login: client id and secret that get a token; None: nobody needs one.
        lifetime: seconds that a token is good for.
        forbidden: what is answered with 403: begins of "METHOD /path".
        committed: called after each commit was made, before it is answered; True: the answer is lost.
        delay: seconds before each answer.
        asked: what came, as "METHOD /path".
        tokens: how many were issued.
    """

    target: str
    login: tuple[str, str] | None = None
    lifetime: float = 3600.0
    forbidden: tuple[str, ...] = ()
    committed: Callable[[str], bool] = lambda _: False
    delay: float = 0.0
    asked: list[str] = field(default_factory=list)
    tokens: int = 0
    _known: dict[str, float] = field(default_factory=dict)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The address of the catalog."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes] | None:
        """Status and body of an answer; None: the connection ends without one."""
        method, path = handler.command, handler.path
        self.asked.append(f"{method} {path}")
        time.sleep(self.delay)
        if path.startswith("/v1/oauth/tokens") and self.login is not None:
            return self._token(body)
        if self.login is not None and not self._welcome(handler.headers.get("Authorization") or ""):
            return 401, _error("Not authorized: the token is missing or has expired", "NotAuthorizedException", 401)
        if any(f"{method} {path}".startswith(begin) for begin in self.forbidden):
            return 403, _error("Forbidden: this user may not", "ForbiddenException", 403)
        status, answered = self._passed_on(handler, body)
        parts = path.partition("?")[0].split("/")
        if method == "POST" and status == 200 and parts[-2] == "tables" and self.committed(parts[-1]):
            return None
        return status, answered

    def _token(self, body: bytes) -> tuple[int, bytes]:
        said = dict(urllib.parse.parse_qsl(body.decode()))
        if (said.get("client_id"), said.get("client_secret")) != self.login:
            return 401, json.dumps(
                {"error": "invalid_client", "error_description": "unknown client or secret"}
            ).encode()
        self.tokens += 1
        token = secrets.token_urlsafe(24)
        self._known[token] = time.monotonic() + self.lifetime
        kind = "urn:ietf:params:oauth:token-type:access_token"
        known = {"access_token": token, "token_type": "bearer", "expires_in": int(self.lifetime)}
        return 200, json.dumps({**known, "issued_token_type": kind}).encode()

    def _welcome(self, header: str) -> bool:
        return self._known.get(header.removeprefix("Bearer "), 0.0) > time.monotonic()

    def _passed_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        known = {key: value for key in ("Content-Type", "Accept") if (value := handler.headers.get(key))}
        request = urllib.request.Request(self.target + handler.path, body or None, known, method=handler.command)
        try:
            with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError as error:
            return 503, _error(f"no server: {error}", "ServiceUnavailableException", 503)

    @contextlib.contextmanager
    def serving(self) -> Iterator[Door]:
        """Serve as long as the block lasts."""
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                answer = door.answer(self, self.rfile.read(length))
                if answer is None:
                    self.close_connection = True
                    return
                status, body = answer
                self.send_response(status)
                if body or status != 204:
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    if self.command != "HEAD":
                        self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = _serve  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def _error(message: str, kind: str, code: int) -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[RestServer]:
    """A server that ends with the block."""
    server = RestServer(folder)
    try:
        yield server.start()
    finally:
        server.stop()
