"""Each row of the table of commands in SECURITY.md, on a hostile project with a server that records what it gets."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import click
import pytest

from engine.cli.commands import start_command
from engine.cli.main import cli, invoke
from engine.control import ControlServer, socket_path
from engine.lake.clients import catalog_client
from tests.lab import REPOSITORY, Lab
from tests.projects import sources_yaml
from tests.security.answering import Answering, answering
from tests.security.hostile import Tree, tree
from tests.security.test_hostile_catalogs import whole

pytestmark = pytest.mark.slow

SECRET = "planted-production-password"
PROJECT = """
name: lab
target: dev
targets:
  dev:
    schema: s
    catalog: {{type: rest, uri: "{uri}", token: "{{{{ env_var('ENGINE_SECRET_PROD_DB') }}}}"}}
    spark: {{master: "spark://127.0.0.1:{port}", shared_folders: true}}
    connections:
      main: {{bootstrap_servers: "127.0.0.1:{port}", security: {{password: "{{{{ env_var('ENGINE_SECRET_PROD_DB') }}}}"}}}}
      crm: {{uri: "jdbc:postgresql://127.0.0.1:{port}/crm", username: u, password: "{{{{ env_var('ENGINE_SECRET_PROD_DB') }}}}"}}
    schema_registries: {{main: {{url: "{uri}", auth: {{token: "{{{{ env_var('ENGINE_SECRET_PROD_DB') }}}}"}}}}}}
    openlineage: {{type: http, url: "{uri}", api_key: "{{{{ env_var('ENGINE_SECRET_PROD_DB') }}}}"}}
"""
SOURCES = sources_yaml(
    events={
        "path": "landing",
        "schema": "id int, at timestamp",
        "loaded_at_field": "at",
        "freshness": {"warn_after": {"count": 1, "period": "day"}},
    }
)
# Arguments that a command needs to get as far as it can.
ARGUMENTS = {
    "backfill": ["copy", "--from", "2024-05-01", "--yes"],
    "compare": ["base"],
    "completion": ["bash"],
    "drop": ["base", "--yes"],
    "erase": ["base", "--where", "id = 1", "--yes"],
    "export dbt-sources": [],
    "export duckdb": ["{other}/copies.duckdb"],
    "import dbt": ["{other}"],
    "import flare": ["{other}/flare.yml"],
    "init": ["{other}/new"],
    "explain": ["usage"],
    "publish": ["base", "--accept"],
    "rollback": ["base", "--yes"],
    "show": ["base"],
    "sql": ["select * from base"],
    "state": ["base"],
    "sink reset": ["crm", "--to", "now"],
    "sink show": ["crm"],
    "source inspect": ["shop.events"],
    "submit": ["--dry-run", "build"],
    "trust": ["--list"],
}
# `docs serve` and `jars fetch` have tests of their own (test_docs_server.py, test_jars_and_archives.py), `lsp` is below,
# `mcp` in tests/mcp, and `warmup` is about the machine alone.
ELSEWHERE = {"docs serve", "jars fetch", "lsp", "mcp", "warmup"}
# They reach a process over its socket.
REACHING = ("stop", "pause", "resume", "reload")


def commands(group: click.Group = cli, begin: tuple[str, ...] = ()) -> Iterator[str]:
    """The full names of all commands."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*begin, name))
        else:
            yield " ".join((*begin, name))


def rows() -> dict[str, tuple[str, str]]:
    """By command: whom it asks, and what it may give away, as SECURITY.md has it."""
    found: dict[str, tuple[str, str]] = {}
    for line in (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 4:
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), (cells[2], cells[3].rstrip(" |")))
    return found


def test_every_command_has_a_row() -> None:
    assert {row for row in rows() if " --" not in row} == set(commands())


class Programs:
    """What the process starts and where it connects to, while it is watched."""

    def __init__(self) -> None:
        self.started: list[str] | None = None
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.started is not None and event in {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"}:
            self.started.append(f"{event} {arguments[0]!r}")


PROGRAMS = Programs()


@pytest.fixture
def server() -> Iterator[Answering]:
    """A catalog that would choose a class of Spark's: no command gets as far as Java."""
    answers = {begin: answer for begin, answer in whole().items() if not begin.endswith("/base")}
    gone = (404, {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}})
    steering = {"GET /v1/config": {"overrides": {"io-impl": "org.example.Run"}}}
    with answering({**answers, **steering, "GET /v1/namespaces/s/tables": {"identifiers": []},
                    "GET /v1/namespaces/s/tables/": gone}) as found:  # fmt: skip
        yield found


@pytest.fixture
def lab(
    tmp_path: Path, server: Answering, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Lab]:
    monkeypatch.setenv("ENGINE_SECRET_PROD_DB", SECRET)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(catalog_client, "_clients", {})
    lab = Lab(tmp_path / "project", None, capsys)
    lab.write("project.yml", PROJECT.format(uri=server.url, port=server.url.rpartition(":")[2]))
    lab.write("sources/shop.yml", SOURCES)
    lab.write("landing/a.json", '{"id": 1}\n')
    lab.model("base", "/*---\nmaterialized: table\n---*/\nselect id from {{ source('shop', 'events') }}")
    lab.model("copy", "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}")
    lab.write("models/sinks.yml", "sinks: [{name: crm, from: ref('base'), to: {connection: crm, table: public.base}}]")
    lab.write("tests/none.sql", "select id from {{ ref('base') }} where id is null")
    other = tmp_path / "other"
    other.mkdir()
    (other / "dbt_project.yml").write_text("name: other\nversion: '1'\n")
    (other / "flare.yml").write_text("version: v1\nname: x\n")
    # A build that failed, for `retry`.
    lab.write("target/run_results.json", "{}")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield lab
    PROGRAMS.started = None
    for number, handler in before.items():
        signal.signal(number, handler)


def files(lab: Lab) -> Tree:
    """The files of the project but for target/."""
    target = str(lab.root / "target")
    # The folder changes with what is made in it.
    return {
        path: seen for path, seen in tree(lab.root).items() if not path.startswith(target) and path != str(lab.root)
    }


def run(lab: Lab, command: str) -> tuple[int, str]:
    """The exit code and the text of a command; it starts no program."""
    arguments = [part.format(other=lab.root.parent / "other") for part in ARGUMENTS.get(command, [])]
    assert lab.capsys is not None
    lab.capsys.readouterr()
    PROGRAMS.started = []
    code = invoke([*command.split(), *arguments, "--project-dir", str(lab.root)])
    started, PROGRAMS.started = PROGRAMS.started, None
    captured = lab.capsys.readouterr()
    # `debug` asks Java for its version, and `completion` bash.
    allowed = {"debug": "java", "completion": "bash"}.get(command)
    assert [line for line in started if allowed is None or allowed not in line] == []
    return code, captured.out + captured.err


@pytest.mark.parametrize("command", sorted({*rows()} - ELSEWHERE))
def test_without_trust_no_command_gives_a_secret_away(
    lab: Lab, server: Answering, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENGINE_TRUST")
    before = files(lab)
    code, text = run(lab, command)
    assert code in CODES.get(command, {0, 1, 2})
    assert SECRET not in server.seen() + text
    assert server.asked == []
    assert "Traceback" not in text
    assert "internal-error" not in text
    if command not in WRITES:
        assert files(lab) == before


@pytest.mark.parametrize("command", REACHING)
def test_a_command_that_reaches_a_process_asks_nobody_else(
    lab: Lab, server: Answering, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process that is asked to stop is this one.
    monkeypatch.setattr(start_command, "_SECONDS_TO_STOP", 0.2)
    done = list[str]()

    def noting(name: str) -> Callable[[object], None]:
        return lambda _: done.append(name)

    before = files(lab)
    with ControlServer(socket_path(lab.root, "dev"), {name: noting(name) for name in REACHING}):
        code, text = run(lab, command)
    assert (code, done) == (0, [command]), text
    assert server.asked == []
    assert files(lab) == before


def test_an_editor_is_answered_without_asking_anybody(lab: Lab, server: Answering) -> None:
    """A client over stdio: it opens a model, waits for its diagnostics, asks for the columns and leaves."""
    before = files(lab)
    uri = (lab.root / "models/base.sql").as_uri()
    opened = {"uri": uri, "languageId": "sql", "version": 1, "text": "select nothing_known from {{ ref('gone') }}"}
    at = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 10}}
    with subprocess.Popen(
        [sys.executable, "-m", "engine", "lsp", "--project-dir", str(lab.root)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=REPOSITORY,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        message(process.stdin, "initialize", 1, {"processId": None, "rootUri": lab.root.as_uri(), "capabilities": {}})
        said = until(process.stdout, b'"id":1')
        message(process.stdin, "initialized", None, {})
        message(process.stdin, "textDocument/didOpen", None, {"textDocument": opened})
        said += until(process.stdout, b"publishDiagnostics", b"gone")
        message(process.stdin, "textDocument/hover", 2, at)
        said += until(process.stdout, b'"id":2')
        message(process.stdin, "shutdown", 3, None)
        said += until(process.stdout, b'"id":3')
        message(process.stdin, "exit", None, None)
        said += process.stdout.read()
    assert process.returncode == 0, said
    assert server.asked == []
    assert SECRET.encode() not in said
    assert files(lab) == before


def message(pipe: IO[bytes], method: str, number: int | None, params: Any) -> None:
    content = {"jsonrpc": "2.0", "method": method} | ({} if number is None else {"id": number})
    body = json.dumps(content | ({} if params is None else {"params": params})).encode()
    pipe.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    pipe.flush()


def until(pipe: IO[bytes], *words: bytes, seconds: float = 60) -> bytes:
    """What comes until all words have come."""
    said, end = b"", time.monotonic() + seconds
    while not all(word in said.replace(b'": ', b'":') for word in words):
        assert time.monotonic() < end, said
        if select.select([pipe], [], [], 0.2)[0]:
            said += (part := os.read(pipe.fileno(), 65536))
            assert part, said
    return said


# Nothing runs here of which there would be a status.
CODES = {"status": {3}}
# They keep locks and notes in the state of the target, or are asked to write.
WRITES = (
    "build",
    "start",
    "run",
    "test",
    "retry",
    "maintain",
    "publish",
    "drop",
    "erase",
    "backfill",
    "rollback",
    "show",
    "state",
    "source freshness",
    "source inspect",
)


# `start` asks again and again whom `build` asks.
@pytest.mark.parametrize("command", sorted({*rows()} - ELSEWHERE - {"start"}))
def test_with_trust_a_command_asks_whom_its_row_says(lab: Lab, server: Answering, command: str) -> None:
    asks, gives = rows()[command]
    code, text = run(lab, command)
    assert code in CODES.get(command, {0, 1, 2}), text
    assert "internal-error" not in text
    assert SECRET not in text
    if asks == "nobody":
        assert server.asked == []
    # Nothing has failed that could be retried, nothing is submitted, and no stream holds anything or was rebuilt.
    elif command not in {"retry", "submit", "state", "rollback"}:
        assert server.asked != [], text
        assert SECRET in server.seen()
    if gives == "nothing":
        assert SECRET not in server.seen()
