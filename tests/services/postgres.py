"""A real PostgreSQL server in a process of its own, from the operating system's package.

It listens on the loopback interface only, on a free port, with a random password. It does not run as root: there it
takes the account of nobody.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.services import process

USER, DATABASE = "lake", "lake"
_NOBODY = 65534
_START_SECONDS = 30.0
# A test database need not survive the machine; a killed server's data does survive.
_SETTINGS = ("fsync=off", "listen_addresses=127.0.0.1", "unix_socket_directories=", "log_min_messages=warning")


def binaries() -> Path | None:
    """The folder of the server's programs; None: it is not installed."""
    named = os.environ.get("ENGINE_POSTGRES")
    found = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("postgres")
    folders = [*found, *([Path(on_path).parent] if on_path else [])]
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@dataclass(slots=True)
class Postgres(process.Service):
    """A server over a folder; it can be stopped and started again, with what it holds."""

    folder: Path
    port: int = field(default_factory=process.free_port)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    @property
    def jdbc(self) -> str:
        """The address for Java."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> Postgres:
        """Start it, and wait until it answers."""
        if self.running:
            return self
        programs, data = binaries(), self.folder / "data"
        assert programs is not None
        if not data.exists():
            self._create(programs, data)
        settings = [part for setting in (*_SETTINGS, f"port={self.port}") for part in ("-c", setting)]
        command = [*_as_nobody(), str(programs / "postgres"), "-D", str(data), *settings]
        self._process = process.start(command, self.folder / "log.txt", self.folder)
        self._wait()
        return self

    def stop(self, *, kill: bool = False) -> None:
        """End it: cleanly, or as a crash would."""
        process.Service.stop(self, kill=kill)
        # Processes of its own; a server that was killed leaves the file, and would not start over it at once.
        deadline = time.monotonic() + _START_SECONDS
        while kill and time.monotonic() < deadline and _alive(self.folder / "data" / "postmaster.pid"):
            time.sleep(0.05)

    def execute(self, query: str, database: str = DATABASE) -> list[tuple[object, ...]]:
        """Run a query as the user of the tests."""
        import psycopg

        where = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": self.password, "dbname": database}
        with psycopg.connect(**where, connect_timeout=5, autocommit=True) as connection:
            done = connection.execute(query)
            return done.fetchall() if done.description else []

    def _create(self, programs: Path, data: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        word = self.folder / "password"
        word.write_text(self.password)
        if os.geteuid() == 0:
            for path in (self.folder, word):
                os.chown(path, _NOBODY, _NOBODY)
        command = [str(programs / "initdb"), "-D", str(data), "-U", USER, "--pwfile", str(word)]
        options = ["--auth=scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*_as_nobody(), *command, *options], check=True, cwd=self.folder, capture_output=True)

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                if not self.execute("SELECT 1 FROM pg_database WHERE datname = 'lake'", "postgres"):
                    self.execute(f"CREATE DATABASE {DATABASE}", "postgres")
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log.txt").read_text()) from None
                time.sleep(0.05)
            else:
                return


def _as_nobody() -> list[str]:
    """The server does not run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]


def _alive(file: Path) -> bool:
    with suppress(OSError, ValueError, IndexError):
        os.kill(int(file.read_text().split()[0]), 0)
        return True
    return False


@contextmanager
def running() -> Iterator[Postgres]:
    """A server that ends with the block. Its folder is not below pytest's, which nobody else may enter."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-postgres-"))
    folder.chmod(0o755)
    server = Postgres(folder / "server")
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
