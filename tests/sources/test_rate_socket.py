"""Sources for development, end to end: a clock, a real TCP server, and any other reader of Spark."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import Lab

pytestmark = pytest.mark.spark

STREAM = "/*---\nstreams: [dev.input]\n---*/\nselect * from {{ source('dev', 'input') }}\n"


def declare(lab: Lab, *lines: str) -> None:
    body = "".join(f"        {line}\n" for line in lines)
    lab.write("sources/dev.yml", f"sources:\n  - name: dev\n    tables:\n      - name: input\n{body}")


@dataclass(slots=True)
class Server:
    """A TCP server that sends each client what is waiting, and closes the connection if it is told to."""

    listening: socket.socket
    waiting: list[bytes] = field(default_factory=list)
    closes: bool = True
    clients: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listening.getsockname()[1])

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            self.clients.append(client)
            for part in self.waiting:
                client.sendall(part)
                time.sleep(0.05)
            self.waiting = []
            if self.closes:
                client.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(socket.create_server(("127.0.0.1", 0)))
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    yield made
    made.listening.close()
    for client in made.clients:
        client.close()
    thread.join(1)


def values(lab: Lab, name: str = "lines") -> list[str]:
    return sorted(row["value"] for row in lab.rows(name))


@pytest.mark.nightly
def test_lines_of_a_socket_are_read_build_by_build(lab: Lab, server: Server) -> None:
    declare(lab, "format: socket", "host: 127.0.0.1", f"port: {server.port}", "read_for: 5 minutes")
    lab.model("lines", STREAM.replace("select *", "select value, _metadata.received_at as at, _metadata.port as port"))
    server.waiting = [b"one\ntw", b"o\r\n", b"th", b"ree"]
    first = lab.build().model("lines")
    assert first["rows_in"] == 3
    # The server closed the connection: nobody waited for the rest of the time.
    assert first["seconds"] < 100
    assert values(lab) == ["one", "three", "two"]
    (port,) = {row["port"] for row in lab.rows("lines")}
    assert port == server.port
    assert all(abs((datetime.now(UTC) - row["at"]).total_seconds()) < 60 for row in lab.rows("lines"))
    # Spark's own source fails here: its numbers begin anew, and the checkpoint's do not.
    server.waiting = [b"four\n"]
    assert lab.build().model("lines")["rows_in"] == 1
    assert values(lab) == ["four", "one", "three", "two"]
    assert lab.build().model("lines")["status"] == "unchanged"


@pytest.mark.nightly
def test_a_server_that_keeps_the_connection_open_is_heard_for_a_time(lab: Lab, server: Server) -> None:
    server.closes = False
    declare(lab, "format: socket", "host: 127.0.0.1", f"port: {server.port}", "read_for: 2 seconds")
    lab.model("lines", STREAM)
    server.waiting = [b"one\n", b"two\nunfinished"]
    lab.build()
    assert values(lab) == ["one", "two"]


def test_nobody_at_the_port(lab: Lab, server: Server) -> None:
    server.listening.close()
    declare(lab, "format: socket", "host: 127.0.0.1", "port: 1")
    lab.model("lines", STREAM)
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["socket-unreachable"])
    assert "no server at 127.0.0.1:1 (Connection refused)" in result.text


@pytest.mark.nightly
def test_lines_that_were_under_way_when_a_build_was_killed_are_gone(lab: Lab, server: Server) -> None:
    declare(lab, "format: socket", "host: 127.0.0.1", f"port: {server.port}")
    lab.model("lines", STREAM)
    server.waiting = [b"one\n"]
    lab.build()
    with reached("written", kill):
        server.waiting = [b"two\n"]
        assert lab.run("build").code != 0
    checkpoint = lab.state / "lines" / "1" / "checkpoint"
    assert (checkpoint / "offsets" / "1").exists()
    assert not (checkpoint / "commits" / "1").exists()
    server.waiting = [b"three\n"]
    lab.build()
    lab.build()
    assert "two" not in values(lab)


def test_bytes_that_are_no_text_are_bad_records(lab: Lab, server: Server) -> None:
    declare(lab, "format: socket", "host: 127.0.0.1", f"port: {server.port}", "on_bad_record: quarantine")
    lab.model("lines", STREAM)
    server.waiting = [b"caf\xe9\n", b"caf\xc3\xa9\n"]
    assert lab.build().model("lines")["bad_records"] == {"dev.input": 1}
    assert values(lab) == ["café"]
    (kept,) = lab.rows("lines__quarantine")
    assert (bytes(kept["raw"]), kept["reason"]) == (b"caf\xe9", "it is not UTF-8")
    assert '"host":"127.0.0.1"' in kept["origin"]


def test_a_socket_as_a_whole_is_what_comes_within_the_time(lab: Lab, server: Server) -> None:
    declare(lab, "format: socket", "host: 127.0.0.1", f"port: {server.port}", "stream: false")
    lab.model("lines", "select value from {{ source('dev', 'input') }}\n")
    server.waiting = [b"one\n"]
    lab.build()
    server.waiting = [b"two\n"]
    lab.build()
    assert values(lab) == ["two"]


@pytest.mark.nightly
def test_lines_of_a_socket_reach_every_output(lab: Lab, server: Server) -> None:
    said = f"host: 127.0.0.1, port: {server.port}, read_for: 5 minutes"
    tables = [
        f"      - {{name: input, format: socket, {said}}}",
        f"      - {{name: all, format: socket, {said}, stream: false}}",
    ]
    lab.write("sources/dev.yml", "sources:\n  - name: dev\n    tables:\n" + "\n".join(tables) + "\n")
    lab.model("latest", STREAM.replace("---*/", "unique_key: value\n---*/"))
    counted = STREAM.replace("---*/", "output_mode: complete\n---*/").replace("select *", "select value, count(*) as n")
    lab.model("counted", counted + "group by value\n")
    lab.model("whole", "select value from {{ source('dev', 'all') }}\n")
    lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect value from {{ ref('whole') }}\n")
    for sent in (b"a\nb\n", b"b\nc\n"):
        for name in ("latest", "counted", "whole+"):
            server.waiting = [sent]
            lab.build("-s", name)
    assert values(lab, "latest") == ["a", "b", "c"]
    assert {row["value"]: row["n"] for row in lab.rows("counted")} == {"a": 1, "b": 2, "c": 1}
    assert values(lab, "whole") == ["b", "c"]
    spark = lab.session.spark  # type: ignore[union-attr]
    assert sorted(row["value"] for row in spark.table(f"lake.{lab.schema}.seen").collect()) == ["b", "c"]


def test_rows_of_a_rate_go_on_from_build_to_build(lab: Lab) -> None:
    declare(lab, "format: rate", "rows_per_second: 10")
    lab.model("ticks", STREAM.replace("select *", "select value, timestamp as at"))
    first = lab.build().model("ticks")
    assert first["rows_in"] == 0  # the clock starts with the first build
    time.sleep(2.1)
    second = lab.build().model("ticks")
    assert second["rows_in"] >= 20
    time.sleep(1.1)
    lab.build()
    rows = sorted((row["value"], row["at"]) for row in lab.rows("ticks"))
    assert [number for number, _ in rows] == list(range(len(rows)))
    assert len(rows) >= second["rows_in"] + 10
    assert {round((b[1] - a[1]).total_seconds(), 3) for a, b in pairwise(rows)} == {0.1}


@pytest.mark.gate
def test_a_rate_gives_a_killed_batch_again(lab: Lab) -> None:
    declare(lab, "format: rate", "rows_per_second: 10")
    lab.model("ticks", STREAM)
    lab.build()
    time.sleep(1.1)
    with reached("written", kill):
        assert lab.run("build").code != 0
    assert not (lab.state / "ticks" / "1" / "checkpoint" / "commits" / "1").exists()
    lab.build()
    numbers = sorted(row["value"] for row in lab.rows("ticks"))
    assert numbers == list(range(len(numbers)))
    assert numbers


def test_a_rate_as_a_whole_is_that_of_the_last_seconds(lab: Lab) -> None:
    declare(lab, "format: rate", "rows_per_second: 3", "stream: false")
    lab.model("ticks", "select value, timestamp as at from {{ source('dev', 'input') }}\n")
    lab.build()
    rows = sorted((row["value"], row["at"]) for row in lab.rows("ticks"))
    assert [number for number, _ in rows] == list(range(30))
    assert (rows[-1][1] - rows[0][1]).total_seconds() == pytest.approx(29 / 3, abs=0.01)


def test_another_reader_of_spark(lab: Lab) -> None:
    declare(lab, "format: spark.xml", "path: landing/x", 'schema: "id int, kind string"', "options: {rowTag: event}")
    lab.model("streamed", STREAM)
    lab.model("whole", "select id, kind, _metadata.format as format from {{ source('dev', 'input') }}\n")
    lab.write("landing/x/a.xml", "<all><event><id>1</id><kind>paid</kind></event></all>")
    lab.build()
    lab.write("landing/x/b.xml", "<all><event><id>2</id><kind>open</kind></event></all>")
    lab.build()
    assert sorted((r["id"], r["kind"]) for r in lab.rows("streamed")) == [(1, "paid"), (2, "open")]
    assert sorted((r["id"], r["format"]) for r in lab.rows("whole")) == [(1, "xml"), (2, "xml")]


def test_a_reader_that_brings_its_columns(lab: Lab) -> None:
    declare(lab, "format: spark.rate-micro-batch", "schema: value bigint", "options: {rowsPerBatch: 4}")
    lab.model("rows", STREAM)
    lab.build()
    lab.build()
    assert sorted(r["value"] for r in lab.rows("rows")) == list(range(8))
    declare(lab, "format: spark.rate-micro-batch", "schema: value string", "options: {rowsPerBatch: 4}")
    assert "table-schema" in lab.run("build").codes(), "the table is looked at first"
    result = lab.run("build", "-f")
    assert "source-unreadable" in result.codes()
    assert "'dev.input' declares value string, and the reader has it as bigint" in result.text
